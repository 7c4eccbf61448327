#include "catalog/definitions.h"

#include <mutex>

#include "catalog/lookup.h"
#include "catalog/retention.h"

namespace orrery::catalog {

void Definitions::Tables::put(const DatabasePtr& database) {
  databases_by_id.insert_or_assign(database->id, database);
  databases.insert_or_assign(database->rid, database);
}

void Definitions::Tables::put(const ContainerPtr& container) {
  containers_by_path.insert_or_assign(container->database_id + "/" + container->definition.id(),
                                      container);
  containers.insert_or_assign(container->rid, container);
  if (needs_upkeep(container->definition)) {
    with_upkeep.insert_or_assign(container->rid, container);
  } else {
    with_upkeep.erase(container->rid);
  }
}

void Definitions::Tables::erase_database(const Database& database) {
  databases_by_id.erase(database.id);
  databases.erase(database.rid);
}

void Definitions::Tables::erase_container(const Rid& rid) {
  const auto found = containers.find(rid);
  if (found == containers.end()) return;
  containers_by_path.erase(found->second->database_id + "/" + found->second->definition.id());
  containers.erase(found);
  with_upkeep.erase(rid);
}

void Definitions::update(const std::function<void(Tables&)>& change) {
  std::unique_lock lock(mutex_);
  change(tables_);
}

void Definitions::read(const std::function<void(const Tables&)>& reader) const {
  std::shared_lock lock(mutex_);
  reader(tables_);
}

DatabasePtr Definitions::database(std::string_view id) const {
  const std::string name(id);
  std::shared_lock lock(mutex_);
  return find_in(tables_.databases_by_id, name);
}

DatabasePtr Definitions::database(const Rid& rid) const {
  std::shared_lock lock(mutex_);
  return find_in(tables_.databases, rid);
}

ContainerPtr Definitions::container(std::string_view database_id,
                                    std::string_view container_id) const {
  std::string path;
  path.reserve(database_id.size() + 1 + container_id.size());
  path.append(database_id).append("/").append(container_id);
  std::shared_lock lock(mutex_);
  return find_in(tables_.containers_by_path, path);
}

ContainerPtr Definitions::container(const Rid& rid) const {
  std::shared_lock lock(mutex_);
  return find_in(tables_.containers, rid);
}

std::vector<DatabasePtr> Definitions::databases(std::string_view after,
                                                std::size_t count_max) const {
  std::shared_lock lock(mutex_);
  return list_after(tables_.databases, after, count_max, nullptr);
}

std::vector<ContainerPtr> Definitions::containers(const Rid& database, std::string_view after,
                                                  std::size_t count_max) const {
  std::shared_lock lock(mutex_);
  return list_after(tables_.containers, after, count_max, &database);
}

std::vector<ContainerPtr> Definitions::containers_with_upkeep() const {
  std::shared_lock lock(mutex_);
  std::vector<ContainerPtr> found;
  found.reserve(tables_.with_upkeep.size());
  for (const auto& [rid, container] : tables_.with_upkeep) found.push_back(container);
  return found;
}

std::size_t Definitions::container_count() const {
  std::shared_lock lock(mutex_);
  return tables_.containers.size();
}

Definitions::LatestTime Definitions::latest_time() const {
  std::shared_lock lock(mutex_);
  LatestTime latest;
  for (const auto& [rid, container] : tables_.containers) {
    for (const Range& range : container->ranges.all()) {
      if (range.partition->head_ts() <= latest.ts) continue;
      latest = {range.partition->head_ts(), container};
    }
  }
  return latest;
}

}  // namespace orrery::catalog
