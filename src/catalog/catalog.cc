#include "catalog/catalog.h"

#include <unordered_map>
#include <utility>

#include "catalog/retention.h"
#include "catalog/stored_catalog.h"
#include "storage/store.h"

namespace orrery::catalog {

namespace {

/// A partition that requests hold already, and its container.
struct InUse {
  std::shared_ptr<partition::Partition> partition;
  Rid container;
};
using PartitionsInUse = std::unordered_map<std::uint32_t, InUse>;  // By number.

PartitionsInUse partitions_in_use(const Definitions& definitions) {
  PartitionsInUse found;
  definitions.read([&](const Definitions::Tables& tables) {
    for (const auto& [rid, container] : tables.containers) {
      for (const Range& range : container->ranges.all()) {
        found.emplace(range.partition->number().value, InUse{range.partition, rid});
      }
    }
  });
  return found;
}

/// The partition of a range as it is stored. One in use goes on as it is, since its writer knows
/// more than the store, and is taken from `in_use`.
std::shared_ptr<partition::Partition> open_partition(partition::Environment& environment,
                                                     const StoredRange& range, const Rid& container,
                                                     const storage::Head& head,
                                                     PartitionsInUse& in_use) {
  const auto known = in_use.find(range.partition.value);
  std::shared_ptr<partition::Partition> partition;
  if (known != in_use.end()) {
    partition = std::move(known->second.partition);
    in_use.erase(known);
    partition->show_recovered(head);
  } else {
    partition = std::make_shared<partition::Partition>(environment, range.partition, range.id,
                                                       container, head);
  }
  partition->reopen();
  return partition;
}

}  // namespace

Catalog::Catalog(partition::Environment& environment, RulesMaker make_rules, CatalogLimits limits)
    : environment_(environment),
      limits_(limits),
      factory_(environment.store, std::move(make_rules)),
      writer_(environment.committer),
      offers_(writer_, environment.clock),
      encryption_keys_(writer_, definitions_, environment.clock),
      retention_(definitions_),
      topology_(environment, writer_, definitions_, garbage_, factory_, changed_) {}

Result<std::unique_ptr<Catalog>> Catalog::open(partition::Environment& environment,
                                               RulesMaker make_rules, CatalogLimits limits) {
  std::unique_ptr<Catalog> catalog(new Catalog(environment, std::move(make_rules), limits));
  ORRERY_TRY(catalog->load());
  // A change whose commit failed may have become durable all the same. The disk decides, and it
  // must be known before a write is accepted: otherwise a container that is gone would take some.
  environment.committer.on_recovered([self = catalog.get()] { return self->load(); });
  return catalog;
}

Result<> Catalog::load() {
  ORRERY_TRY(const auto snapshot, environment_.store.snapshot());
  ORRERY_TRY(auto stored, read_catalog(snapshot));
  if (stored.life) factory_.set_life(*stored.life);

  auto in_use = partitions_in_use(definitions_);
  Definitions::Tables tables;
  for (const auto& [rid, database] : stored.databases) tables.put(database);
  for (StoredContainer& container : stored.containers) {
    const auto database = stored.databases.find(container.rid.database_rid());
    if (database == stored.databases.end()) return unreadable_entry(container_key(container.rid));
    std::vector<Range> ranges;
    for (StoredRange& range : container.ranges) {
      const auto head = stored.heads.find(range.partition.value);
      if (head == stored.heads.end()) return unreadable_entry(container_key(container.rid));
      if (!retains_as_asked(head->second.retention, retention_of(container.definition))) {
        retention_.apply_later(container.rid);
      }
      auto partition = open_partition(environment_, range, container.rid, head->second, in_use);
      ranges.push_back({range.id, std::move(range.epks), std::move(range.parents), range.made_in,
                        range.ts, std::move(partition)});
    }
    tables.put(factory_.make(std::move(container), database->second->id, std::move(ranges)));
  }

  writer_.load(stored.counters);
  offers_.load(stored.offers);
  encryption_keys_.load(stored.encryption_keys);
  definitions_.update([&](Definitions::Tables& current) {
    // The others in use belonged to containers whose deletion turned out to be durable, or to
    // ranges whose split or merge did.
    for (const auto& [number, each] : in_use) {
      if (tables.containers.contains(each.container)) {
        each.partition->retire();
      } else {
        each.partition->refuse();
      }
    }
    current = std::move(tables);
  });
  for (const PartitionNumber partition : stored.garbage) {
    const auto known = in_use.find(partition.value);
    if (known != in_use.end() && known->second.partition->retired()) {
      garbage_.add_when_unused(known->second.partition);
    } else {
      garbage_.add({partition});
    }
  }
  return {};
}

bool needs_more_ranges(const Catalog& catalog, const Offer& offer) {
  const auto owner = catalog.container(offer.owner);
  if (!owner || owner->definition.partition_key().paths.empty()) return false;
  const auto served = static_cast<std::int64_t>(owner->ranges.all().size()) * kRangeUnitsMax;
  return offer.throughput.request_units() > served;
}

}  // namespace orrery::catalog
