// Definitions: the databases and containers that exist, with the range maps of containers.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "catalog/resources.h"
#include "protocol/ids.h"

namespace orrery::catalog {

/// Thread-safe. Look-ups take a shared lock for a moment.
class Definitions {
 public:
  // ── looking up: null when there is none ──
  DatabasePtr database(std::string_view id) const;
  DatabasePtr database(const Rid& rid) const;
  ContainerPtr container(std::string_view database_id, std::string_view container_id) const;
  ContainerPtr container(const Rid& rid) const;

  // ── lists: in the order of creation, those after `after`, at most `count_max` ──
  std::vector<DatabasePtr> databases(std::string_view after, std::size_t count_max) const;
  std::vector<ContainerPtr> containers(const Rid& database, std::string_view after,
                                       std::size_t count_max) const;
  /// Containers with TTL or history, in the order of their rids.
  std::vector<ContainerPtr> containers_with_upkeep() const;
  std::size_t container_count() const;
  /// The latest `_ts` of any range, and the container that has it; null when there is none.
  struct LatestTime {
    UnixSeconds ts = 0;
    ContainerPtr container;
  };
  LatestTime latest_time() const;

  // ── changing ──
  /// Every name of every resource.
  struct Tables {
    std::unordered_map<std::string, DatabasePtr> databases_by_id;
    std::map<Rid, DatabasePtr> databases;
    std::unordered_map<std::string, ContainerPtr> containers_by_path;  // "database/container"
    std::map<Rid, ContainerPtr> containers;
    std::map<Rid, ContainerPtr> with_upkeep;  // Of the containers.

    void put(const DatabasePtr& database);
    void put(const ContainerPtr& container);
    void erase_database(const Database& database);
    void erase_container(const Rid& rid);
  };
  /// Changes them in one step, for readers.
  void update(const std::function<void(Tables&)>& change);
  /// Reads several at once: none changes meanwhile.
  void read(const std::function<void(const Tables&)>& reader) const;

 private:
  /// Guards the tables. Taken inside the writer's turn, on the committer's thread too; inside it
  /// only the mailbox mutex of a partition is taken, to retire or reopen it.
  mutable std::shared_mutex mutex_;
  Tables tables_;
};

}  // namespace orrery::catalog
