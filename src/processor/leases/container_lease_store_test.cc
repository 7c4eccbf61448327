// How a container is asked for leases; against a real server:
// tests/processor/lease_container_test.cc.
#include "processor/leases/container_lease_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/exchange/test_pipeline.h"
#include "processor/leases/test_leases.h"

namespace orrery::processor {
namespace {

using client::test::answer_of;
using client::test::header_of;
using ::testing::HasSubstr;

class ContainerLeaseStoreTest : public ::testing::Test {
 protected:
  ContainerLeaseStoreTest() {
    pipeline_->respond = [this](const client::Call& call) {
      if (call.type == "colls") {
        return answer_of(200, R"({"id":"c","partitionKey":{"paths":["/id"],"kind":"Hash"}})");
      }
      if (call.method == "POST") {
        ++queries_;
        query_ = call;
        if (!answers_queries_) throw client::test::refusal(501);
      } else {
        ++lists_;
      }
      // A list shows everything, a query what it was asked for.
      const std::string other = R"({"id":"q..0","_etag":"\"3\"","_ts":7},)";
      return answer_of(200, R"({"Documents":[)" + (call.method == "POST" ? "" : other) +
                                R"({"id":"p..0","_etag":"\"1\"","_ts":5}]})");
    };
  }

  std::vector<StoredDocument> list() {
    auto found = runtime_.run(store_.list("p.."));
    EXPECT_TRUE(found);
    return found.value_or(std::vector<StoredDocument>());
  }

  std::shared_ptr<client::test::TestPipeline> pipeline_ =
      std::make_shared<client::test::TestPipeline>();
  bool answers_queries_ = true;
  int queries_ = 0;
  int lists_ = 0;
  client::Call query_;
  TestRuntime runtime_;
  ContainerLeaseStore store_{client::Container(pipeline_, "db", "c")};
};

TEST_F(ContainerLeaseStoreTest, LeasesAreListedByTheQueryOfTheOriginals) {
  const auto found = list();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].id, "p..0");
  EXPECT_EQ(found[0].etag, "\"1\"");
  EXPECT_EQ(found[0].ts, 5);
  EXPECT_EQ(lists_, 0);
  EXPECT_THAT(query_.body,
              HasSubstr("SELECT * FROM c WHERE STARTSWITH(c.id, @PartitionLeasePrefix)"));
  EXPECT_THAT(query_.body, HasSubstr(R"({"name":"@PartitionLeasePrefix","value":"p.."})"));
  EXPECT_EQ(header_of(query_, "x-ms-documentdb-query-enablecrosspartition"), "True");
}

TEST_F(ContainerLeaseStoreTest, AServerWithoutQueriesIsAskedForEverythingFromThenOn) {
  answers_queries_ = false;
  for (int i = 0; i < 3; ++i) {
    const auto found = list();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].id, "p..0");
  }
  EXPECT_EQ(queries_, 1);
  EXPECT_EQ(lists_, 3);
}

}  // namespace
}  // namespace orrery::processor
