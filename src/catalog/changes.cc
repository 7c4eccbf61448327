// The part of Catalog that changes databases and containers. Each change is prepared beside the
// current state, committed, and only then shown.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "catalog/catalog.h"
#include "catalog/errors.h"
#include "catalog/rids.h"
#include "storage/keys.h"

namespace orrery::catalog {

using storage::Family;

namespace {

/// Stages the removal of a container and of its offer, and keeps its partitions from taking writes.
void stage_removal(const Container& container, const OfferPtr& offer, storage::Batch& batch) {
  Lsn last;
  for (const Range& range : container.ranges.all()) {
    last = std::max(last, range.partition->close());
    batch.put(Family::Catalog, garbage_key(range.partition->number()), {});
  }
  // A reader's bare position from this container must not hide the first changes of a later one of
  // the same name: that one's log will begin above.
  if (last > Lsn{1}) {
    batch.put(Family::Catalog, last_head_key(container.database_id, container.definition.id()),
              make_value(last));
  }
  batch.erase(Family::Catalog, container_key(container.rid));
  if (offer) batch.erase(Family::Catalog, offer_key(offer->rid));
}

/// The removal failed: the partitions take writes again.
void undo_removal(const Definitions& definitions, const std::vector<ContainerPtr>& containers) {
  // After a disk error the catalog is loaded anew, and a container that has turned out to be gone
  // is no longer in it: that stays closed.
  definitions.read([&](const Definitions::Tables& tables) {
    for (const ContainerPtr& container : containers) {
      if (!tables.containers.contains(container->rid)) continue;
      for (const Range& range : container->ranges.all()) range.partition->reopen();
    }
  });
}

/// The container was removed: its space is garbage.
void discard(Garbage& garbage, const Container& container) {
  std::vector<PartitionNumber> numbers;
  for (const Range& range : container.ranges.all()) {
    // Nobody finds the container any more: readers that wait for its changes may hear that it is
    // gone.
    range.partition->head_watch().retire();
    numbers.push_back(range.partition->number());
  }
  garbage.add(numbers);
}

}  // namespace

Result<DatabasePtr> Catalog::create_database(const std::string& id,
                                             const std::optional<Throughput>& throughput) {
  auto transaction = writer_.begin();
  if (database(id)) return already_exists("database", id);
  const auto made = std::make_shared<const Database>(
      Database{next_database_rid(transaction.counters), id, transaction.version(),
               environment_.clock.unix_seconds()});
  transaction.batch.put(Family::Catalog, database_key(made->rid), make_value(*made));
  OfferPtr offer;
  if (throughput) offer = offers_.stage(transaction, made->rid, *throughput);
  ORRERY_TRY(transaction.commit([&] {
    if (offer) offers_.put(offer);
    definitions_.update([&](Definitions::Tables& tables) { tables.put(made); });
  }));
  return made;
}

Result<ContainerPtr> Catalog::create_container(const Rid& database_rid,
                                               ContainerDefinition definition,
                                               const std::optional<Throughput>& throughput) {
  auto transaction = writer_.begin();
  const auto owner = database(database_rid);
  if (!owner) return database_deleted();
  if (container(owner->id, definition.id())) return already_exists("container", definition.id());

  Throughput provisioned;
  const bool shared = !throughput && offers_.of(database_rid) != nullptr;
  if (shared && limits_.shared_throughput_containers_max > 0) {
    std::size_t sharing = 0;
    for (const auto& each : containers(database_rid, {}, SIZE_MAX)) {
      if (!offers_.of(each->rid)) ++sharing;
    }
    if (sharing >= limits_.shared_throughput_containers_max) {
      return Error(
          ErrorCode::SharedThroughputFull,
          fmt::format("The throughput of database '{}' is shared by {} containers, which is "
                      "the most that may. Give the container a throughput of its own "
                      "(x-ms-offer-throughput), or raise --shared-throughput-containers-max.",
                      owner->id, sharing));
    }
  }
  if (!shared) {
    Throughput standard;
    standard.manual = 400;
    provisioned = throughput.value_or(standard);
  }

  Counters& counters = transaction.counters;
  StoredContainer stored{next_container_rid(counters, database_rid),
                         std::move(definition),
                         transaction.version(),
                         environment_.clock.unix_seconds(),
                         1,
                         {},
                         {}};
  ORRERY_TRY(const storage::Head head,
             factory_.first_head(owner->id, stored.ts, stored.definition));

  storage::Batch& batch = transaction.batch;
  std::vector<Range> ranges;
  const auto& key = stored.definition.partition_key();
  // Without a key all documents hash to one place: more ranges would stay empty.
  const auto count = key.paths.empty() ? 1 : initial_range_count(provisioned.request_units());
  std::uint32_t next_range = 0;
  for (EpkRange& epks : divide_evenly(key, count)) {
    const PartitionNumber number{++counters.partition};
    const RangeId id{next_range++};
    batch.put(Family::Heads, storage::partition_prefix(number), head.make());
    stored.ranges.push_back({id, number, epks, {}, 1, stored.ts});
    stored.next_range = RangeId{next_range};
    ranges.push_back(
        {id,
         std::move(epks),
         {},
         1,
         stored.ts,
         std::make_shared<partition::Partition>(environment_, number, id, stored.rid, head)});
  }
  batch.put(Family::Catalog, container_key(stored.rid), make_value(stored));
  batch.erase(Family::Catalog, last_head_key(owner->id, stored.definition.id()));
  OfferPtr offer;
  if (!shared) offer = offers_.stage(transaction, stored.rid, provisioned);
  const auto made = factory_.make(std::move(stored), owner->id, std::move(ranges));
  ORRERY_TRY(transaction.commit([&] {
    if (offer) offers_.put(offer);
    definitions_.update([&](Definitions::Tables& tables) { tables.put(made); });
  }));
  return made;
}

Result<ContainerPtr> Catalog::replace_container(
    const Rid& rid, std::string_view if_match,
    const std::function<Result<ContainerDefinition>(const ContainerDefinition&)>& change) {
  ORRERY_TRY(auto replaced, replace_definition(rid, if_match, change));
  if (auto applied = retention_.apply(rid); !applied) {
    retention_.apply_later(rid);
    return Error(std::move(applied).error());
  }
  changed_(rid);
  return replaced;
}

Result<ContainerPtr> Catalog::replace_definition(
    const Rid& rid, std::string_view if_match,
    const std::function<Result<ContainerDefinition>(const ContainerDefinition&)>& change) {
  auto transaction = writer_.begin();
  const auto current = container(rid);
  if (!current) return not_found("container");
  if (!if_match.empty() && !current->etag().matches(if_match)) {
    return precondition_failed("container");
  }
  ORRERY_TRY(auto definition, change(current->definition));
  StoredContainer stored = stored_form(*current);
  stored.definition = std::move(definition);
  stored.version = transaction.version();
  stored.ts = environment_.clock.unix_seconds();
  transaction.batch.put(Family::Catalog, container_key(rid), make_value(stored));
  const auto made = factory_.make(std::move(stored), current->database_id,
                                  std::vector<Range>(current->ranges.all()));
  ORRERY_TRY(transaction.commit(
      [&] { definitions_.update([&](Definitions::Tables& tables) { tables.put(made); }); }));
  return made;
}

Result<> Catalog::delete_container(const Rid& rid, std::string_view if_match) {
  auto transaction = writer_.begin();
  const auto current = container(rid);
  if (!current) return not_found("container");
  if (!if_match.empty() && !current->etag().matches(if_match)) {
    return precondition_failed("container");
  }
  stage_removal(*current, offers_.of(rid), transaction.batch);
  auto committed = transaction.commit([&] {
    definitions_.update([&](Definitions::Tables& tables) { tables.erase_container(rid); });
    offers_.erase_of(rid);
  });
  if (!committed) {
    undo_removal(definitions_, {current});
    return committed;
  }
  discard(garbage_, *current);
  return {};
}

Result<> Catalog::delete_database(const Rid& rid, std::string_view if_match) {
  auto transaction = writer_.begin();
  const auto current = database(rid);
  if (!current) return not_found("database");
  if (!if_match.empty() && !current->etag().matches(if_match)) {
    return precondition_failed("database");
  }
  storage::Batch& batch = transaction.batch;
  const auto inside = containers(rid, {}, SIZE_MAX);
  for (const ContainerPtr& each : inside) stage_removal(*each, offers_.of(each->rid), batch);
  const auto keys = encryption_keys_.list(rid, {}, SIZE_MAX);
  for (const EncryptionKeyPtr& key : keys) {
    batch.erase(Family::Catalog, encryption_key_key(key->rid));
  }
  batch.erase(Family::Catalog, database_key(rid));
  if (const auto offer = offers_.of(rid)) batch.erase(Family::Catalog, offer_key(offer->rid));
  auto committed = transaction.commit([&] {
    definitions_.update([&](Definitions::Tables& tables) {
      for (const ContainerPtr& each : inside) tables.erase_container(each->rid);
      tables.erase_database(*current);
    });
    encryption_keys_.erase(*current, keys);
    for (const ContainerPtr& each : inside) offers_.erase_of(each->rid);
    offers_.erase_of(rid);
  });
  if (!committed) {
    undo_removal(definitions_, inside);
    return committed;
  }
  for (const ContainerPtr& each : inside) discard(garbage_, *each);
  return {};
}

}  // namespace orrery::catalog
