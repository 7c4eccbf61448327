// For tests: a catalog over a store of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "catalog/catalog.h"
#include "partition/test_environment.h"
#include "protocol/container/container_definition.h"

namespace orrery::catalog {

/// A container with the key /pk. `members` (JSON) follow, each with a comma before it.
inline ContainerDefinition test_definition(const std::string& id, const std::string& members = {}) {
  return ContainerDefinition::create(
             Json::parse(R"({"id":")" + id +
                         R"(","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2})" +
                         members + "}"),
             "2020-07-15")
      .value();
}

inline Throughput manual(std::int64_t units) {
  Throughput throughput;
  throughput.manual = units;
  return throughput;
}

/// A catalog with the database `d`. Tests release the containers that they hold before it ends.
class TestCatalog {
 public:
  /// By default only the time to live of documents.
  explicit TestCatalog(RulesMaker make_rules = rules_of_ttl) {
    catalog_ = std::move(Catalog::open(home.environment(), std::move(make_rules)).value());
    home.committer().start();
    database_ = catalog_->create_database("d", {}).value();
  }
  ~TestCatalog() {
    stop();
    catalog_.reset();
  }
  /// From here on every write is refused.
  void stop() { home.committer().stop(); }

  /// `members` follow the id in its definition, each with a comma before it.
  ContainerPtr create_container(const std::string& id, const std::string& members,
                                std::int64_t request_units = 400) {
    auto definition = ContainerDefinition::create(
        Json::parse(R"({"id":")" + id + "\"" + members + "}"), "2020-07-15");
    Throughput throughput;
    throughput.manual = request_units;
    return catalog_->create_container(database_->rid, std::move(*definition), throughput).value();
  }

  Catalog& operator*() { return *catalog_; }

  partition::TestEnvironment home;

 private:
  static partition::Rules rules_of_ttl(const ContainerDefinition& definition) {
    partition::Rules rules;
    rules.default_ttl = definition.default_ttl();
    return rules;
  }

  std::unique_ptr<Catalog> catalog_;
  DatabasePtr database_;
};

}  // namespace orrery::catalog
