// The part of Catalog that changes something. Each change is prepared beside the current state,
// committed, and only then shown.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "catalog/catalog.h"
#include "catalog/retention.h"
#include "storage/keys.h"
#include "storage/store.h"

namespace orrery::catalog {

using storage::Family;

namespace {

Error taken(std::string_view what, std::string_view id) {
  return Error(ErrorCode::Conflict,
               fmt::format("Entity with the specified id already exists in the system. There is a "
                           "{} '{}' already.",
                           what, id));
}
Error not_found(std::string_view what) {
  return Error(ErrorCode::NotFound,
               fmt::format("Resource Not Found. The {} does not exist.", what));
}
Error precondition_failed(std::string_view what) {
  return Error(
      ErrorCode::PreconditionFailed,
      fmt::format("One of the specified pre-condition is not met. The {} has changed since "
                  "the etag in If-Match was read.",
                  what));
}

/// The number in big-endian order, so that rids sort by age.
RidPart part_of(std::uint32_t number) {
  return {static_cast<std::uint8_t>(number >> 24), static_cast<std::uint8_t>(number >> 16),
          static_cast<std::uint8_t>(number >> 8), static_cast<std::uint8_t>(number)};
}

/// Some old clients mistreat these characters of a rid.
bool awkward(const Rid& rid) { return rid.text().find_first_of("+-") != std::string::npos; }

Rid next_database_rid(Counters& counters) {
  for (;;) {
    const Rid rid = Rid::database(part_of(++counters.database));
    if (!awkward(rid)) return rid;
  }
}

Rid next_container_rid(Counters& counters, const Rid& database) {
  for (;;) {
    auto part = part_of(++counters.container);
    part[0] |= 0x80;
    const Rid rid = Rid::container(database.database_part(), part);
    if (!awkward(rid)) return rid;
  }
}

Rid next_encryption_key_rid(Counters& counters, const Rid& database) {
  for (;;) {
    const Rid rid = Rid::encryption_key(database, ++counters.encryption_key);
    if (!awkward(rid)) return rid;
  }
}

Rid next_offer_rid(Counters& counters) {
  for (;;) {
    const Rid rid = Rid::offer(++counters.offer);
    if (!awkward(rid)) return rid;
  }
}

}  // namespace

Counters Catalog::next_counters() const {
  std::shared_lock lock(state_mutex_);
  Counters counters = counters_;
  ++counters.version;
  return counters;
}

Result<> Catalog::commit(storage::Batch batch, const Counters& counters,
                         partition::StoreGeneration generation,
                         const std::function<void(State&)>& show) {
  batch.put(Family::Catalog, counters_key(), make_value(counters));
  return environment_.committer.commit(std::move(batch), generation, [&] {
    std::unique_lock lock(state_mutex_);
    counters_ = counters;
    show(state_);
  });
}

void Catalog::add(State& state, const OfferPtr& offer) {
  if (!offer) return;
  state.offers_by_owner.emplace(offer->owner, offer->rid);
  state.offers.emplace(offer->rid, offer);
}

void Catalog::erase_offer_of(State& state, const Rid& owner) {
  const auto offer = state.offers_by_owner.find(owner);
  if (offer == state.offers_by_owner.end()) return;
  state.offers.erase(offer->second);
  state.offers_by_owner.erase(offer);
}

OfferPtr Catalog::make_offer(Counters& counters, const Rid& owner,
                             const Throughput& throughput) const {
  return std::make_shared<const Offer>(Offer{next_offer_rid(counters), owner, throughput,
                                             throughput.request_units(), Lsn{counters.version},
                                             environment_.clock.unix_seconds()});
}

Result<storage::Head> Catalog::first_head(const std::string& database_id, UnixSeconds now,
                                          const ContainerDefinition& definition) const {
  std::string value;
  Lsn lsn{1};
  switch (environment_.store.get(Family::Catalog, last_head_key(database_id, definition.id()),
                                 value, storage::Tier::Disk)) {
    case storage::Lookup::Found:
      if (const auto last = parse_last_head(value)) lsn = next(*last);
      break;
    case storage::Lookup::Missing:
      break;
    default:
      return Error(ErrorCode::Unavailable, "the catalog could not be read from the disk");
  }
  storage::Head head = initial_head(lsn, now, definition);
  // A container of this name may have been made in a life that ended, and be lost: positions in it
  // lie in the gap.
  if (lsn < life_.first_lsn) head.resume_at(life_.first_lsn);
  return head;
}

Result<DatabasePtr> Catalog::create_database(const std::string& id,
                                             const std::optional<Throughput>& throughput) {
  std::lock_guard change(change_mutex_);
  const auto generation = environment_.committer.generation();
  if (database(id)) return taken("database", id);
  Counters counters = next_counters();
  auto made = std::make_shared<const Database>(Database{
      next_database_rid(counters), id, Lsn{counters.version}, environment_.clock.unix_seconds()});
  storage::Batch batch;
  batch.put(Family::Catalog, database_key(made->rid), make_value(*made));
  OfferPtr offer;
  if (throughput) {
    offer = make_offer(counters, made->rid, *throughput);
    batch.put(Family::Catalog, offer_key(offer->rid), make_value(*offer));
  }
  ORRERY_TRY(commit(std::move(batch), counters, generation, [&](State& state) {
    state.databases_by_id.emplace(id, made);
    state.databases.emplace(made->rid, made);
    add(state, offer);
  }));
  return made;
}

Result<ContainerPtr> Catalog::create_container(const Rid& database_rid,
                                               ContainerDefinition definition,
                                               const std::optional<Throughput>& throughput) {
  std::lock_guard change(change_mutex_);
  const auto generation = environment_.committer.generation();
  const auto owner = database(database_rid);
  if (!owner)
    return Error(ErrorCode::OwnerNotFound, "Resource Not Found. The database was deleted.");
  if (container(owner->id, definition.id())) return taken("container", definition.id());

  Throughput provisioned;
  const bool shared = !throughput && offer_of(database_rid) != nullptr;
  if (shared && limits_.shared_throughput_containers_max > 0) {
    std::size_t sharing = 0;
    for (const auto& each : containers(database_rid, {}, SIZE_MAX)) {
      if (!offer_of(each->rid)) ++sharing;
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

  Counters counters = next_counters();
  StoredContainer stored{next_container_rid(counters, database_rid),
                         std::move(definition),
                         Lsn{counters.version},
                         environment_.clock.unix_seconds(),
                         1,
                         {},
                         {}};
  ORRERY_TRY(const storage::Head head, first_head(owner->id, stored.ts, stored.definition));

  storage::Batch batch;
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
  if (!shared) {
    offer = make_offer(counters, stored.rid, provisioned);
    batch.put(Family::Catalog, offer_key(offer->rid), make_value(*offer));
  }
  auto made = make_container(std::move(stored), owner->id, std::move(ranges));
  ORRERY_TRY(commit(std::move(batch), counters, generation, [&](State& state) {
    put(state, made);
    add(state, offer);
  }));
  return made;
}

StoredContainer Catalog::stored_form(const Container& container) {
  StoredContainer stored{container.rid,
                         container.definition,
                         container.version,
                         container.ts,
                         container.ranges.version(),
                         {},
                         container.ranges.next_id()};
  for (const Range& range : container.ranges.all()) {
    stored.ranges.push_back(
        {range.id, range.partition->number(), range.epks, range.parents, range.made_in, range.ts});
  }
  return stored;
}

Result<ContainerPtr> Catalog::replace_container(
    const Rid& rid, std::string_view if_match,
    const std::function<Result<ContainerDefinition>(const ContainerDefinition&)>& make) {
  ORRERY_TRY(auto replaced, replace_definition(rid, if_match, make));
  // Not under the lock: its partitions may be held up by a split that waits for it.
  if (auto reconciled = reconcile_keeping(rid); !reconciled) {
    reconcile_later(rid);
    return Error(std::move(reconciled).error());
  }
  tell_(rid);
  return replaced;
}

Result<ContainerPtr> Catalog::replace_definition(
    const Rid& rid, std::string_view if_match,
    const std::function<Result<ContainerDefinition>(const ContainerDefinition&)>& make) {
  std::lock_guard change(change_mutex_);
  const auto generation = environment_.committer.generation();
  const auto current = container(rid);
  if (!current) return not_found("container");
  if (!if_match.empty() && !current->etag().matches(if_match)) {
    return precondition_failed("container");
  }
  ORRERY_TRY(auto definition, make(current->definition));
  Counters counters = next_counters();
  StoredContainer stored = stored_form(*current);
  stored.definition = std::move(definition);
  stored.version = Lsn{counters.version};
  stored.ts = environment_.clock.unix_seconds();
  storage::Batch batch;
  batch.put(Family::Catalog, container_key(rid), make_value(stored));
  auto made = make_container(std::move(stored), current->database_id,
                             std::vector<Range>(current->ranges.all()));
  ORRERY_TRY(
      commit(std::move(batch), counters, generation, [&](State& state) { put(state, made); }));
  return made;
}

void Catalog::stage_removal(const Container& container, storage::Batch& batch) {
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
  if (const auto offer = offer_of(container.rid)) {
    batch.erase(Family::Catalog, offer_key(offer->rid));
  }
}

void Catalog::put_back(const std::vector<ContainerPtr>& containers) {
  // After a disk error the catalog is loaded anew, and what has turned out to be gone is no longer
  // in it: that stays closed.
  std::shared_lock lock(state_mutex_);
  for (const ContainerPtr& container : containers) {
    if (!state_.containers.contains(container->rid)) continue;
    for (const Range& range : container->ranges.all()) range.partition->reopen();
  }
}

void Catalog::reclaim_space_of(const Container& container) {
  std::vector<PartitionNumber> numbers;
  for (const Range& range : container.ranges.all()) {
    // Nobody finds the container any more: who waits for its changes may hear that it is gone.
    range.partition->head_watch().retire();
    numbers.push_back(range.partition->number());
  }
  reclaim(numbers);
}

Result<> Catalog::delete_container(const Rid& rid, std::string_view if_match) {
  std::lock_guard change(change_mutex_);
  const auto generation = environment_.committer.generation();
  const auto current = container(rid);
  if (!current) return not_found("container");
  if (!if_match.empty() && !current->etag().matches(if_match)) {
    return precondition_failed("container");
  }
  storage::Batch batch;
  stage_removal(*current, batch);
  auto committed = commit(std::move(batch), next_counters(), generation, [&](State& state) {
    erase(state, rid);
    erase_offer_of(state, rid);
  });
  if (!committed) {
    put_back({current});
    return committed;
  }
  reclaim_space_of(*current);
  return {};
}

Result<> Catalog::delete_database(const Rid& rid, std::string_view if_match) {
  std::lock_guard change(change_mutex_);
  const auto generation = environment_.committer.generation();
  const auto current = database(rid);
  if (!current) return not_found("database");
  if (!if_match.empty() && !current->etag().matches(if_match)) {
    return precondition_failed("database");
  }
  storage::Batch batch;
  const auto inside = containers(rid, {}, SIZE_MAX);
  for (const ContainerPtr& each : inside) stage_removal(*each, batch);
  const auto keys = encryption_keys(rid, {}, SIZE_MAX);
  for (const EncryptionKeyPtr& key : keys) {
    batch.erase(Family::Catalog, encryption_key_key(key->rid));
  }
  batch.erase(Family::Catalog, database_key(rid));
  if (const auto offer = offer_of(rid)) batch.erase(Family::Catalog, offer_key(offer->rid));
  auto committed = commit(std::move(batch), next_counters(), generation, [&](State& state) {
    for (const ContainerPtr& each : inside) {
      erase(state, each->rid);
      erase_offer_of(state, each->rid);
    }
    for (const EncryptionKeyPtr& key : keys) {
      state.encryption_keys_by_path.erase(current->id + "/" + key->id);
      state.encryption_keys.erase(key->rid);
    }
    erase_offer_of(state, rid);
    state.databases_by_id.erase(current->id);
    state.databases.erase(rid);
  });
  if (!committed) {
    put_back(inside);
    return committed;
  }
  for (const ContainerPtr& each : inside) reclaim_space_of(*each);
  return {};
}

Result<EncryptionKeyPtr> Catalog::create_encryption_key(const Rid& database_rid, Json members) {
  std::lock_guard change(change_mutex_);
  const auto generation = environment_.committer.generation();
  const auto owner = database(database_rid);
  if (!owner)
    return Error(ErrorCode::OwnerNotFound, "Resource Not Found. The database was deleted.");
  const std::string id = members.at("id");
  if (encryption_key(owner->id, id)) return taken("client encryption key", id);
  if (encryption_keys(database_rid, {}, kEncryptionKeysMax).size() == kEncryptionKeysMax) {
    return Error(ErrorCode::Forbidden,
                 fmt::format("The database '{}' has {} client encryption keys, which is the most "
                             "that there may be. Wrap an existing one anew, or use another "
                             "database.",
                             owner->id, kEncryptionKeysMax));
  }
  Counters counters = next_counters();
  const auto made = std::make_shared<const EncryptionKey>(
      EncryptionKey{next_encryption_key_rid(counters, database_rid), id, std::move(members),
                    Lsn{counters.version}, environment_.clock.unix_seconds()});
  storage::Batch batch;
  batch.put(Family::Catalog, encryption_key_key(made->rid), make_value(*made));
  ORRERY_TRY(commit(std::move(batch), counters, generation,
                    [&](State& state) { put(state, owner->id, made); }));
  return made;
}

Result<EncryptionKeyPtr> Catalog::replace_encryption_key(const Rid& rid, std::string_view if_match,
                                                         Json members) {
  std::lock_guard change(change_mutex_);
  const auto generation = environment_.committer.generation();
  const auto current = encryption_key(rid);
  if (!current) return not_found("client encryption key");
  if (!if_match.empty() && !current->etag().matches(if_match)) {
    return precondition_failed("client encryption key");
  }
  const auto owner = database(rid.database_rid());
  ORRERY_ASSERT(owner != nullptr && members.at("id") == current->id);
  Counters counters = next_counters();
  const auto made = std::make_shared<const EncryptionKey>(
      EncryptionKey{rid, current->id, std::move(members), Lsn{counters.version},
                    environment_.clock.unix_seconds()});
  storage::Batch batch;
  batch.put(Family::Catalog, encryption_key_key(rid), make_value(*made));
  ORRERY_TRY(commit(std::move(batch), counters, generation,
                    [&](State& state) { put(state, owner->id, made); }));
  return made;
}

Result<OfferPtr> Catalog::replace_offer(const Rid& rid, std::string_view if_match,
                                        const Throughput& throughput) {
  std::lock_guard change(change_mutex_);
  const auto generation = environment_.committer.generation();
  const auto current = offer(rid);
  if (!current) return not_found("offer");
  if (!if_match.empty() && !current->etag().matches(if_match)) return precondition_failed("offer");
  Counters counters = next_counters();
  Offer changed = *current;
  changed.throughput = throughput;
  changed.highest_ever = std::max(changed.highest_ever, throughput.request_units());
  changed.version = Lsn{counters.version};
  changed.ts = environment_.clock.unix_seconds();
  storage::Batch batch;
  batch.put(Family::Catalog, offer_key(rid), make_value(changed));
  const OfferPtr made = std::make_shared<const Offer>(std::move(changed));
  ORRERY_TRY(commit(std::move(batch), counters, generation,
                    [&](State& state) { state.offers.insert_or_assign(rid, made); }));
  return made;
}

}  // namespace orrery::catalog
