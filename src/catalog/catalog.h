// Catalog: what exists in the account. Changes are transactions with the same guarantees as writes
// of documents: a container is there completely or not at all.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "catalog/container_factory.h"
#include "catalog/definitions.h"
#include "catalog/encryption_keys.h"
#include "catalog/garbage.h"
#include "catalog/offers.h"
#include "catalog/resources.h"
#include "catalog/retention_sync.h"
#include "catalog/topology.h"
#include "catalog/writer.h"
#include "partition/partition.h"
#include "protocol/container/container_definition.h"
#include "protocol/ids.h"

namespace orrery::catalog {

/// Limits that an operator sets.
struct CatalogLimits {
  /// Containers that may share a database's throughput; 0: any number.
  std::size_t shared_throughput_containers_max = 0;
};

/// Thread-safe, without threads of its own. Look-ups never block; everything that changes something
/// does. Each part has its own lock, and says what that guards.
///
/// Locks are taken in this order: the writer's turn, then that of one part. No two parts are locked
/// at once, and none over a commit; a partition's mailbox may be locked inside the definitions. A
/// change of several parts is shown part by part: an offer before its new owner, and gone after it.
class Catalog {
 public:
  /// Loads what exists. Blocks. Unavailable when the store cannot be read.
  static Result<std::unique_ptr<Catalog>> open(partition::Environment& environment,
                                               RulesMaker make_rules, CatalogLimits limits = {});

  /// `changed` hears of each container whose definition or ranges have changed, after the change.
  /// It must not block. To be set before there is any change.
  void on_change(std::function<void(const Rid& container)> changed) {
    changed_ = std::move(changed);
  }

  // ── parts ──
  const Definitions& definitions() const { return definitions_; }
  Offers& offers() { return offers_; }
  EncryptionKeys& encryption_keys() { return encryption_keys_; }
  Topology& topology() { return topology_; }
  RetentionSync& retention() { return retention_; }
  Garbage& garbage() { return garbage_; }

  /// The life that the store is in: storage::Life::text().
  const std::string& life() const { return factory_.life_text(); }

  // ── looking up: null when there is none ──
  DatabasePtr database(std::string_view id) const { return definitions_.database(id); }
  DatabasePtr database(const Rid& rid) const { return definitions_.database(rid); }
  ContainerPtr container(std::string_view database_id, std::string_view container_id) const {
    return definitions_.container(database_id, container_id);
  }
  ContainerPtr container(const Rid& rid) const { return definitions_.container(rid); }

  // ── lists: in the order of creation, those after `after`, at most `count_max` ──
  std::vector<DatabasePtr> databases(std::string_view after, std::size_t count_max) const {
    return definitions_.databases(after, count_max);
  }
  std::vector<ContainerPtr> containers(const Rid& database, std::string_view after,
                                       std::size_t count_max) const {
    return definitions_.containers(database, after, count_max);
  }

  // ── changing: all block ──
  /// Conflict when the id is taken.
  Result<DatabasePtr> create_database(const std::string& id,
                                      const std::optional<Throughput>& throughput);
  /// With all that is in it. NotFound; PreconditionFailed by `if_match` (empty: no condition).
  Result<> delete_database(const Rid& rid, std::string_view if_match);

  /// Conflict when the id is taken, OwnerNotFound when the database has gone, Forbidden when its
  /// shared throughput serves as many containers as it may.
  Result<ContainerPtr> create_container(const Rid& database, ContainerDefinition definition,
                                        const std::optional<Throughput>& throughput);
  /// `change` makes the new definition of the current one. NotFound; PreconditionFailed; and what
  /// `change` returns.
  Result<ContainerPtr> replace_container(
      const Rid& rid, std::string_view if_match,
      const std::function<Result<ContainerDefinition>(const ContainerDefinition&)>& change);
  Result<> delete_container(const Rid& rid, std::string_view if_match);

 private:
  Catalog(partition::Environment& environment, RulesMaker make_rules, CatalogLimits limits);
  /// Reads everything anew, keeping the partitions that are in use. Before there is any change, or
  /// on the committer's thread.
  Result<> load();
  Result<ContainerPtr> replace_definition(
      const Rid& rid, std::string_view if_match,
      const std::function<Result<ContainerDefinition>(const ContainerDefinition&)>& change);

  partition::Environment& environment_;
  const CatalogLimits limits_;
  std::function<void(const Rid&)> changed_ = [](const Rid&) {};

  ContainerFactory factory_;
  Writer writer_;
  Definitions definitions_;
  Offers offers_;
  EncryptionKeys encryption_keys_;
  RetentionSync retention_;
  Garbage garbage_;
  Topology topology_;
};

/// Whether the offer is for more than the ranges of its container serve.
bool needs_more_ranges(const Catalog& catalog, const Offer& offer);

}  // namespace orrery::catalog
