// The example at the head of client.h does what it seems to do.
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>

#include "orrery/client.h"
#include "test_account.h"

namespace {

void example(const std::string& endpoint, const std::string& key) {
#include "client_example.inc"
}

TEST(ClientExample, PrintsTheStarThatItWrote) {
  const orrery::test::ServerProcess server;
  const orrery::client::CosmosClient client(server.endpoint(), server.key());
  client.create_database("sky");
  orrery::client::ContainerProperties stars;
  stars.id = "stars";
  stars.partition_key_paths = {"/constellation"};
  client.database("sky").create_container(stars);

  std::ostringstream printed;
  std::streambuf* const before = std::cout.rdbuf(printed.rdbuf());
  example(server.endpoint(), server.key());
  std::cout.rdbuf(before);
  EXPECT_TRUE(printed.str().starts_with(R"({"id":"deneb","constellation":"cygnus","_rid")"))
      << printed.str();
  EXPECT_EQ(printed.str().find('\n'), printed.str().size() - 1) << "one line";
}

}  // namespace
