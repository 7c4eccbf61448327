#include "catalog/topology.h"

#include <algorithm>
#include <memory>

#include "catalog/entries.h"
#include "catalog/errors.h"
#include "storage/keys.h"

namespace orrery::catalog {

using storage::Family;

namespace {

/// All that came before the ranges that are made of these: ids are given out in the order of time.
std::vector<RangeId> ancestors(const std::vector<Range>& parents) {
  std::vector<RangeId> found;
  for (const Range& parent : parents) {
    found.insert(found.end(), parent.parents.begin(), parent.parents.end());
    found.push_back(parent.id);
  }
  std::ranges::sort(found);
  const auto repeated = std::ranges::unique(found);
  found.erase(repeated.begin(), repeated.end());
  return found;
}

}  // namespace

Result<Topology::Reserved> Topology::reserve(const Rid& container, std::size_t count) {
  auto transaction = writer_.begin();
  if (!definitions_.container(container)) return not_found("container");
  Reserved reserved{{}, transaction.generation()};
  for (std::size_t i = 0; i < count; ++i) {
    const PartitionNumber number{++transaction.counters.partition};
    reserved.partitions.push_back(number);
    transaction.batch.put(Family::Catalog, garbage_key(number), {});
  }
  ORRERY_TRY(transaction.commit([] {}));
  return reserved;
}

Result<Topology::Change> Topology::begin(const Rid& container,
                                         partition::StoreGeneration generation) {
  auto transaction = writer_.begin(generation);
  auto current = definitions_.container(container);
  if (!current) return not_found("container");
  return Change(*this, std::move(transaction), std::move(current));
}

Result<ContainerPtr> Topology::Change::commit(const std::vector<Range>& parents,
                                              const std::vector<Child>& children) {
  auto& environment = topology_.environment_;
  StoredContainer stored = stored_form(*current_);
  stored.map_version += 1;
  const UnixSeconds now = environment.clock.unix_seconds();
  const auto is_parent = [&](RangeId id) {
    return std::ranges::find(parents, id, &Range::id) != parents.end();
  };
  std::erase_if(stored.ranges, [&](const StoredRange& each) { return is_parent(each.id); });
  std::vector<Range> ranges = current_->ranges.all();
  std::erase_if(ranges, [&](const Range& each) { return is_parent(each.id); });

  storage::Batch& batch = transaction_.batch;
  for (const Child& child : children) {
    const RangeId id{stored.next_range.value++};
    stored.ranges.push_back(
        {id, child.partition, child.epks, ancestors(parents), stored.map_version, now});
    ranges.push_back({id, child.epks, ancestors(parents), stored.map_version, now,
                      std::make_shared<partition::Partition>(environment, child.partition, id,
                                                             current_->rid, child.head)});
    batch.put(Family::Heads, storage::partition_prefix(child.partition), child.head.make());
    batch.erase(Family::Catalog, garbage_key(child.partition));
  }
  for (const Range& parent : parents) {
    batch.put(Family::Catalog, garbage_key(parent.partition->number()), {});
  }
  batch.put(Family::Catalog, container_key(current_->rid), make_value(stored));
  const auto made =
      topology_.factory_.make(std::move(stored), current_->database_id, std::move(ranges));
  ORRERY_TRY(transaction_.commit([&] {
    topology_.definitions_.update([&](Definitions::Tables& tables) {
      tables.put(made);
      // No new partition can have committed anything yet: a reader of an old one that finds it not
      // retired afterwards has missed nothing.
      for (const Range& parent : parents) parent.partition->retire();
    });
  }));
  topology_.garbage_.add_when_unused(parents);
  topology_.changed_(made->rid);
  return made;
}

}  // namespace orrery::catalog
