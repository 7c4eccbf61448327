#include "catalog/catalog.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/diagnostics.h"
#include "catalog/retention.h"
#include "protocol/tokens/session_token.h"
#include "protocol/wire/resource_path.h"
#include "storage/keys.h"
#include "storage/store.h"

namespace orrery::catalog {

using storage::Family;

Catalog::Catalog(partition::Environment& environment, RulesMaker make_rules, CatalogLimits limits)
    : environment_(environment), make_rules_(std::move(make_rules)), limits_(limits) {}

Catalog::~Catalog() { stop(); }

Result<std::unique_ptr<Catalog>> Catalog::open(partition::Environment& environment,
                                               RulesMaker make_rules, CatalogLimits limits) {
  std::unique_ptr<Catalog> catalog(new Catalog(environment, std::move(make_rules), limits));
  ORRERY_TRY(catalog->load());
  // A change whose commit failed may have become durable all the same. What the disk says counts,
  // and it must be known before a write is accepted: otherwise a container that is gone would take
  // some.
  environment.committer.on_recovered([self = catalog.get()] { return self->load(); });
  return catalog;
}

// ── loading ──────────────────────────────────────────────────────────────────────────────────────

ContainerPtr Catalog::make_container(StoredContainer stored, const std::string& database_id,
                                     std::vector<Range> ranges) const {
  auto container = std::make_shared<Container>(
      Container{stored.rid,
                database_id,
                std::move(stored.definition),
                stored.version,
                stored.ts,
                RangeMap(std::move(ranges), stored.map_version, stored.next_range),
                {},
                {},
                {},
                session_version(life_.number, stored.rid),
                life_.number == 1 ? 0 : life_.first_lsn.value});
  container->rid_text = container->rid.text();
  container->alt_content_path =
      percent_encode_path("dbs/" + database_id + "/colls/" + container->definition.id());
  container->rules = make_rules_(container->definition);
  return container;
}

Result<> Catalog::load() {
  ORRERY_TRY(const auto snapshot, environment_.store.snapshot());

  std::unordered_map<std::uint32_t, storage::Head> heads;
  auto head_cursor = snapshot.cursor(Family::Heads, "", std::string(8, '\xFF'));
  for (; head_cursor.valid(); head_cursor.next()) {
    if (head_cursor.key().size() != 4) continue;
    if (auto head = storage::Head::parse(head_cursor.value())) {
      heads.emplace(storage::read_u32(head_cursor.key().data()), *head);
    }
  }
  ORRERY_TRY(head_cursor.status());

  // Partitions in use go on as they are: their writers know more than the store.
  struct InUse {
    std::shared_ptr<partition::Partition> partition;
    Rid container;
  };
  std::unordered_map<std::uint32_t, InUse> partitions;
  {
    std::shared_lock lock(state_mutex_);
    for (const auto& [rid, container] : state_.containers) {
      for (const Range& range : container->ranges.all()) {
        partitions.emplace(range.partition->number().value, InUse{range.partition, rid});
      }
    }
  }

  State state;
  Counters counters;
  std::vector<PartitionNumber> garbage;
  const auto unreadable = [](std::string_view key) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("the catalog entry '{}' cannot be read; restore the data directory "
                             "from a backup",
                             fmt::format("{:.1}…", key)));
  };
  auto cursor = snapshot.cursor(Family::Catalog, "", std::string(8, '\xFF'));
  std::vector<StoredContainer> containers;
  try {
    for (; cursor.valid(); cursor.next()) {
      const std::string_view key = cursor.key();
      const std::string_view value = cursor.value();
      if (key.starts_with('d')) {
        auto database = parse_database(key, value);
        if (!database) return unreadable(key);
        auto shared = std::make_shared<const Database>(std::move(*database));
        state.databases_by_id.emplace(shared->id, shared);
        state.databases.emplace(shared->rid, std::move(shared));
      } else if (key.starts_with('c')) {
        auto container = parse_container(key, value);
        if (!container) return unreadable(key);
        containers.push_back(std::move(*container));
      } else if (key.starts_with('k')) {
        auto encryption_key = parse_encryption_key(key, value);
        if (!encryption_key) return unreadable(key);
        // Databases come before it in the scan.
        const auto database = state.databases.find(encryption_key->rid.database_rid());
        if (database == state.databases.end()) return unreadable(key);
        put(state, database->second->id,
            std::make_shared<const EncryptionKey>(std::move(*encryption_key)));
      } else if (key.starts_with('o')) {
        auto offer = parse_offer(key, value);
        if (!offer) return unreadable(key);
        state.offers_by_owner.emplace(offer->owner, offer->rid);
        state.offers.emplace(offer->rid, std::make_shared<const Offer>(*offer));
      } else if (key.starts_with('g') && key.size() == 5) {
        garbage.push_back(PartitionNumber{storage::read_u32(key.data() + 1)});
      } else if (key == counters_key()) {
        auto parsed = parse_counters(value);
        if (!parsed) return unreadable(key);
        counters = *parsed;
      } else if (key == storage::kLifeKey) {
        const auto life = storage::Life::parse(value);
        if (!life) return unreadable(key);
        // Read again after a disk error it is the same, and others are looking at it.
        if (life_ == *life) continue;
        life_ = *life;
        life_text_ = life->text();
      }
    }
  } catch (const Json::exception& broken) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("a catalog entry cannot be read ({}); restore the data directory from "
                             "a backup",
                             broken.what()));
  }
  ORRERY_TRY(cursor.status());

  for (StoredContainer& stored : containers) {
    const auto database = state.databases.find(stored.rid.database_rid());
    if (database == state.databases.end()) return unreadable(container_key(stored.rid));
    std::vector<Range> ranges;
    for (StoredRange& range : stored.ranges) {
      auto& partition = partitions[range.partition.value].partition;
      const auto head = heads.find(range.partition.value);
      if (head == heads.end()) return unreadable(container_key(stored.rid));
      if (!retains_as_asked(head->second.retention, retention_of(stored.definition))) {
        reconcile_later(stored.rid);
      }
      if (partition) {
        partition->show_recovered(head->second);
      } else {
        partition = std::make_shared<partition::Partition>(environment_, range.partition, range.id,
                                                           stored.rid, head->second);
      }
      partition->reopen();
      ranges.push_back({range.id, std::move(range.epks), std::move(range.parents), range.made_in,
                        range.ts, partition});
      partitions.erase(range.partition.value);
    }
    put(state, make_container(std::move(stored), database->second->id, std::move(ranges)));
  }
  {
    std::unique_lock lock(state_mutex_);
    // What is left belonged to containers whose deletion turned out to be durable, or to ranges
    // whose split or merge did.
    for (const auto& [number, each] : partitions) {
      if (state.containers.contains(each.container)) {
        each.partition->retire();
      } else {
        each.partition->refuse();
      }
    }
    state_ = std::move(state);
    counters_ = counters;
  }
  std::lock_guard lock(reclaim_mutex_);
  for (const PartitionNumber partition : garbage) {
    const auto known = partitions.find(partition.value);
    const bool replaced = known != partitions.end() && known->second.partition->retired();
    add_garbage(replaced ? used_garbage(known->second.partition) : Garbage{partition, {}, {}, {}});
  }
  start_reclaiming();
  return {};
}

void Catalog::put(State& state, const ContainerPtr& container) {
  state.containers_by_path.insert_or_assign(
      container->database_id + "/" + container->definition.id(), container);
  state.containers.insert_or_assign(container->rid, container);
  if (needs_upkeep(container->definition)) {
    state.with_upkeep.insert_or_assign(container->rid, container);
  } else {
    state.with_upkeep.erase(container->rid);
  }
}

void Catalog::put(State& state, const std::string& database_id, const EncryptionKeyPtr& key) {
  state.encryption_keys_by_path.insert_or_assign(database_id + "/" + key->id, key);
  state.encryption_keys.insert_or_assign(key->rid, key);
}

void Catalog::erase(State& state, const Rid& rid) {
  const auto found = state.containers.find(rid);
  if (found == state.containers.end()) return;
  state.containers_by_path.erase(found->second->database_id + "/" + found->second->definition.id());
  state.containers.erase(found);
  state.with_upkeep.erase(rid);
}

// ── looking up ───────────────────────────────────────────────────────────────────────────────────

namespace {

template <typename Map, typename Key>
typename Map::mapped_type find_in(std::shared_mutex& mutex, const Map& map, const Key& key) {
  std::shared_lock lock(mutex);
  const auto found = map.find(key);
  return found == map.end() ? nullptr : found->second;
}

/// The values of those keys that come after the rid whose bytes are `after`.
template <typename Value>
std::vector<Value> list_after(const std::map<Rid, Value>& map, std::string_view after,
                              std::size_t count_max, const Rid* database) {
  std::vector<Value> found;
  auto at = map.begin();
  if (database != nullptr) at = map.lower_bound(*database);
  if (const auto last = Rid::from_bytes(after)) at = map.upper_bound(*last);
  for (; at != map.end() && found.size() < count_max; ++at) {
    if (database != nullptr && at->first.database_part() != database->database_part()) break;
    found.push_back(at->second);
  }
  return found;
}

}  // namespace

DatabasePtr Catalog::database(std::string_view id) const {
  return find_in(state_mutex_, state_.databases_by_id, std::string(id));
}
DatabasePtr Catalog::database(const Rid& rid) const {
  return find_in(state_mutex_, state_.databases, rid);
}
ContainerPtr Catalog::container(std::string_view database_id, std::string_view container_id) const {
  std::string path;
  path.reserve(database_id.size() + 1 + container_id.size());
  path.append(database_id).append("/").append(container_id);
  return find_in(state_mutex_, state_.containers_by_path, path);
}
ContainerPtr Catalog::container(const Rid& rid) const {
  return find_in(state_mutex_, state_.containers, rid);
}
EncryptionKeyPtr Catalog::encryption_key(std::string_view database_id,
                                         std::string_view key_id) const {
  return find_in(state_mutex_, state_.encryption_keys_by_path,
                 fmt::format("{}/{}", database_id, key_id));
}
EncryptionKeyPtr Catalog::encryption_key(const Rid& rid) const {
  return find_in(state_mutex_, state_.encryption_keys, rid);
}
OfferPtr Catalog::offer(const Rid& rid) const { return find_in(state_mutex_, state_.offers, rid); }
OfferPtr Catalog::offer_of(const Rid& owner) const {
  std::shared_lock lock(state_mutex_);
  const auto found = state_.offers_by_owner.find(owner);
  return found == state_.offers_by_owner.end() ? nullptr : state_.offers.at(found->second);
}

std::vector<DatabasePtr> Catalog::databases(std::string_view after, std::size_t count_max) const {
  std::shared_lock lock(state_mutex_);
  return list_after(state_.databases, after, count_max, nullptr);
}
std::vector<ContainerPtr> Catalog::containers(const Rid& database, std::string_view after,
                                              std::size_t count_max) const {
  std::shared_lock lock(state_mutex_);
  return list_after(state_.containers, after, count_max, &database);
}
std::vector<EncryptionKeyPtr> Catalog::encryption_keys(const Rid& database, std::string_view after,
                                                       std::size_t count_max) const {
  std::shared_lock lock(state_mutex_);
  return list_after(state_.encryption_keys, after, count_max, &database);
}
std::vector<OfferPtr> Catalog::offers(std::string_view after, std::size_t count_max) const {
  std::shared_lock lock(state_mutex_);
  return list_after(state_.offers, after, count_max, nullptr);
}
bool Catalog::needs_more_ranges(const Offer& offer) const {
  const auto owner = container(offer.owner);
  if (!owner || owner->definition.partition_key().paths.empty()) return false;
  const auto served = static_cast<std::int64_t>(owner->ranges.all().size()) * kRangeUnitsMax;
  return offer.throughput.request_units() > served;
}
std::size_t Catalog::container_count() const {
  std::shared_lock lock(state_mutex_);
  return state_.containers.size();
}

Catalog::LatestTime Catalog::latest_time() const {
  std::shared_lock lock(state_mutex_);
  LatestTime latest;
  for (const auto& [rid, container] : state_.containers) {
    for (const Range& range : container->ranges.all()) {
      if (range.partition->head_ts() <= latest.ts) continue;
      latest = {range.partition->head_ts(), container};
    }
  }
  return latest;
}

}  // namespace orrery::catalog
