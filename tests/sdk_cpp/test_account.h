// AccountTest: a server of its own for a test program, a client of it, and for each test a database
// of its own. Uses only the public headers of the client.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "orrery/client.h"
#include "server_process.h"

namespace orrery::test {

/// RU/s with which the server makes a container of `count` ranges (one up to 10,000 RU/s, above
/// that one per 6,000).
inline std::int64_t throughput_for_ranges(int count) {
  return count <= 1 ? 400 : std::int64_t{count} * 6'000;
}

/// Base of fixtures. Tests of one suite share a server, which is ephemeral.
class AccountTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { shared_server() = std::make_unique<ServerProcess>(); }
  static void TearDownTestSuite() { shared_server().reset(); }

  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    client_.emplace(server().endpoint(), server().key());
    std::string name = std::string(test->test_suite_name()) + "." + test->name();
    std::replace(name.begin(), name.end(), '/', '.');  // Of tests with parameters.
    database_.emplace(client_->database(name));
    client_->create_database(name);
  }
  void TearDown() override {
    if (HasFailure()) RecordProperty("server_log", server().log());
  }

  static ServerProcess& server() { return *shared_server(); }
  const client::CosmosClient& client() const { return *client_; }
  const client::Database& database() const { return *database_; }

  /// A new container of the test's database, with these paths as its key and so many ranges.
  client::Container make_container(const std::string& id, int ranges = 1,
                                   std::vector<std::string> key_paths = {"/pk"},
                                   std::optional<int> default_ttl = {}) const {
    client::ContainerProperties properties;
    properties.id = id;
    properties.partition_key_paths = std::move(key_paths);
    properties.default_ttl = default_ttl;
    client::CreateOptions options;
    options.throughput = client::Throughput::fixed(throughput_for_ranges(ranges));
    database_->create_container(properties, options);
    return database_->container(id);
  }

  /// Cuts a range of a container of the test's database in two.
  void split(const client::Container& container, const std::string& range_id) const {
    server().split(database_->id() + "/" + container.id(), range_id);
  }

 private:
  static std::unique_ptr<ServerProcess>& shared_server() {
    static std::unique_ptr<ServerProcess> server;
    return server;
  }

  std::optional<client::CosmosClient> client_;
  std::optional<client::Database> database_;
};

}  // namespace orrery::test
