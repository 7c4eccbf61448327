#include "processor/leases/lease_manager.h"
#include "processor/errors.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace orrery::processor {
namespace {

/// Of an update that meets other versions of its lease: more often than anybody but the owner
/// writes it.
constexpr int kWriteAttemptsMax = 6;

std::string described_owner(const Lease& lease) {
  return lease.owner.empty() ? "nobody owns it" : fmt::format("'{}' owns it", lease.owner);
}

LeaseChange lost(Lease lease, std::string reason) {
  return {LeaseChange::Kind::Lost, std::move(lease), std::move(reason)};
}
LeaseChange gone(Lease lease) {
  std::string reason = fmt::format("the lease '{}' was deleted", lease.id);
  return {LeaseChange::Kind::Gone, std::move(lease), std::move(reason)};
}

}  // namespace

/// A lease that this host has, and the queue of its updates.
struct LeaseManager::Entry {
  explicit Entry(Runtime& runtime) : turns(runtime) {}

  std::optional<Lease> lease;  // As it is in the store, as far as this host knows.
  std::uint64_t epoch = 0;     // At which it was acquired.
  std::uint64_t writes = 0;    // That have succeeded.
  Turns turns;
};

/// The changes that an update makes.
struct LeaseManager::Intent {
  bool renew = false;  ///< write although nothing but the timestamp changes
  std::optional<std::string> position{};
  bool position_must_advance = false;  ///< else an older one is passed over
  std::optional<std::string> owner{};  ///< if it still wants the lease; else nobody
  PropertyChanges properties{};

  /// False: `lease` is that way already.
  bool apply(Lease& lease) const {
    bool changes = renew;
    if (position && compare_positions(*position, lease.position) != 0 &&
        !(compare_positions(*position, lease.position) < 0)) {
      lease.position = position;
      changes = true;
    }
    if (owner) {
      // A host that does not want it any more has stopped, and would have to expire first.
      lease.owner = lease.wanted_by() == *owner ? *owner : std::string();
      changes = true;
    }
    for (const auto& [key, value] : properties) {
      const auto found = lease.properties.find(key);
      if (value && (found == lease.properties.end() || found->second != *value)) {
        lease.properties.insert_or_assign(key, *value);
        changes = true;
      } else if (!value && found != lease.properties.end()) {
        lease.properties.erase(found);
        changes = true;
      }
    }
    return changes;
  }
};

LeaseManager::LeaseManager(AsyncLeaseStore& store, LeaseIds ids, std::string host, Runtime& runtime)
    : store_(store), ids_(std::move(ids)), host_(std::move(host)), runtime_(runtime) {}

LeaseManager::~LeaseManager() = default;

void LeaseManager::set_feed(client::ChangeFeedMode mode, std::string container_rid) {
  mode_ = mode;
  container_rid_ = std::move(container_rid);
}

std::shared_ptr<LeaseManager::Entry> LeaseManager::entry_of(const std::string& id) {
  auto& entry = entries_[id];
  if (!entry) entry = std::make_shared<Entry>(runtime_);
  return entry;
}

const Lease* LeaseManager::owned(const std::string& id) const {
  const auto found = entries_.find(id);
  if (found == entries_.end() || !found->second->lease) return nullptr;
  return &*found->second->lease;
}

void LeaseManager::forget(const std::string& id) {
  const auto found = entries_.find(id);
  if (found != entries_.end()) found->second->lease.reset();
  // Updates that wait for their turn share the entry and find it empty. While there are some, a
  // later acquisition uses the same one, so that all updates of a lease stay in one queue.
  std::erase_if(entries_, [](const auto& each) {
    return !each.second->lease && each.second.use_count() == 1;
  });
}

Async<std::vector<Lease>> LeaseManager::list() {
  ORRERY_CO_TRY(auto leases, co_await list_leases(store_, ids_));
  co_return leases;
}

/// One write on condition that the lease is still as it was seen.
Async<LeaseChange> LeaseManager::write_once(Lease seen, Lease wanted) {
  ++stats_.writes;
  std::string text = write_lease(wanted);
  auto written = co_await store_.replace(seen.id, std::move(text), seen.etag);
  if (written) {
    ORRERY_CO_TRY(auto lease, parse_lease(*written));
    if (!lease.range) lease.range = wanted.range;
    if (lease.container_rid.empty()) lease.container_rid = wanted.container_rid;
    co_return LeaseChange{LeaseChange::Kind::Done, std::move(lease), {}};
  }
  if (has_code(written.error(), ErrorCode::NotFound)) co_return gone(std::move(seen));
  if (has_code(written.error(), ErrorCode::PreconditionFailed) ||
      has_code(written.error(), ErrorCode::Conflict)) {
    ++stats_.conflicts;
    std::string reason = fmt::format("the lease '{}' has changed since it was seen", seen.id);
    co_return lost(std::move(seen), std::move(reason));
  }
  co_return written.error();
}

Async<LeaseChange> LeaseManager::acquire(Lease seen) {
  const auto entry = entry_of(seen.id);
  const auto turn = co_await entry->turns.take();
  Lease wanted = seen;
  wanted.owner = host_;
  wanted.timestamp = runtime_.wall_now();
  // Never below the store's clock: a lease that was deleted, and made again by somebody who had
  // planned that long ago, must not give an epoch a second time.
  const auto made_at = static_cast<std::uint64_t>(std::max<UnixSeconds>(seen.ts, 0));
  wanted.properties.insert_or_assign(std::string(kEpochProperty),
                                     std::to_string(std::max(seen.epoch() + 1, made_at)));
  wanted.properties.erase(std::string(kWantedByProperty));
  const std::string id = seen.id;
  const std::uint64_t epoch = wanted.epoch();
  auto change = co_await write_once(std::move(seen), std::move(wanted));
  if (!change) {
    // No answer is not the answer no: if it was carried out, the lease would wait for this host.
    const auto read = co_await store_.read(id);
    if (!read) co_return change.error();
    ORRERY_CO_TRY(auto found, parse_lease(*read));
    if (found.owner != host_ || found.epoch() != epoch) co_return change.error();
    change = LeaseChange{LeaseChange::Kind::Done, std::move(found), {}};
  }
  if (change && change->done()) {
    entry->lease = change->lease;
    entry->epoch = change->lease.epoch();
    ++entry->writes;
  } else if (change) {
    forget(id);
  }
  co_return change;
}

Async<LeaseChange> LeaseManager::update(std::string id, Intent intent) {
  const auto entry = entry_of(id);
  const std::uint64_t writes_before = entry->writes;
  const auto turn = co_await entry->turns.take();
  // Somebody else of this host has written meanwhile: that was a renewal, too.
  if (intent.renew && entry->writes > writes_before) intent.renew = false;

  for (int attempt = 0; attempt < kWriteAttemptsMax; ++attempt) {
    if (!entry->lease) {
      forget(id);
      Lease unknown;
      unknown.id = id;
      co_return lost(std::move(unknown), fmt::format("this host does not have the lease '{}'", id));
    }
    const Lease current = *entry->lease;
    if (intent.position && intent.position_must_advance &&
        compare_positions(*intent.position, current.position) < 0) {
      co_return LeaseChange{LeaseChange::Kind::Older, current,
                            fmt::format("the lease '{}' stands at {} already, which is further "
                                        "than {}",
                                        id, current.position.value_or(""), *intent.position)};
    }
    Lease wanted = current;
    if (!intent.apply(wanted)) co_return LeaseChange{LeaseChange::Kind::Done, current, {}};
    wanted.timestamp = runtime_.wall_now();
    if (wanted.format == LeaseFormat::JavaEpk) {
      if (!wanted.mode) wanted.mode = mode_;
      if (wanted.container_rid.empty()) wanted.container_rid = container_rid_;
    }
    auto change = co_await write_once(current, std::move(wanted));
    if (!change) co_return change.error();
    if (change->kind == LeaseChange::Kind::Gone) {
      forget(id);
      co_return change;
    }
    if (change->done()) {
      ++entry->writes;
      if (entry->lease) entry->lease = change->lease;
      co_return change;
    }

    // Another version is there. That alone does not mean that the lease is lost: its owner does.
    auto read = co_await store_.read(id);
    if (!read && has_code(read.error(), ErrorCode::NotFound)) {
      forget(id);
      co_return gone(current);
    }
    if (!read) co_return read.error();
    ORRERY_CO_TRY(auto found, parse_lease(*read));
    if (found.owner != host_) {
      forget(id);
      std::string reason = fmt::format("the lease '{}' is lost: {}", id, described_owner(found));
      co_return lost(std::move(found), std::move(reason));
    }
    // The same name in a later life of this host, or in another process that has it, too.
    if (found.properties.contains(std::string(kEpochProperty)) && found.epoch() > entry->epoch) {
      forget(id);
      std::string reason = fmt::format("the lease '{}' was acquired again by this host's name", id);
      co_return lost(std::move(found), std::move(reason));
    }
    if (!found.range) found.range = current.range;
    if (entry->lease) entry->lease = std::move(found);
  }
  const Lease last = entry->lease.value_or(Lease{});
  forget(id);
  co_return lost(last, fmt::format("the lease '{}' changes faster than it can be written", id));
}

Async<LeaseChange> LeaseManager::renew(std::string id, std::optional<std::string> position) {
  return update(std::move(id), Intent{.renew = true, .position = std::move(position)});
}

Async<LeaseChange> LeaseManager::checkpoint(std::string id, std::string position) {
  return update(std::move(id),
                Intent{.position = std::move(position), .position_must_advance = true});
}

Async<LeaseChange> LeaseManager::release(std::string id, std::string to) {
  auto change = co_await update(id, Intent{.owner = std::move(to)});
  if (!change) co_return change.error();
  forget(id);
  if (change->lost()) change->kind = LeaseChange::Kind::Done;
  co_return change;
}

Async<LeaseChange> LeaseManager::update_properties(std::string id, PropertyChanges changes) {
  return update(std::move(id), Intent{.properties = std::move(changes)});
}

Async<LeaseChange> LeaseManager::ask_for(Lease seen) {
  Lease wanted = seen;
  wanted.properties.insert_or_assign(std::string(kWantedByProperty), host_);
  co_return co_await write_once(std::move(seen), std::move(wanted));
}

Async<LeaseChange> LeaseManager::withdraw(Lease seen) {
  Lease wanted = seen;
  if (wanted.owner == host_) wanted.owner.clear();
  if (wanted.wanted_by() == host_) wanted.properties.erase(std::string(kWantedByProperty));
  co_return co_await write_once(std::move(seen), std::move(wanted));
}

Async<LeaseChange> LeaseManager::create(Lease lease) {
  ++stats_.writes;
  const std::string id = lease.id;
  auto stored = co_await store_.create(id, write_lease(lease));
  if (!stored && has_code(stored.error(), ErrorCode::Conflict)) {
    stored = co_await store_.read(id);
    // It was there a moment ago: others have gone on, and there is nothing to make any more.
    if (!stored && has_code(stored.error(), ErrorCode::NotFound)) co_return gone(std::move(lease));
  }
  if (!stored) co_return stored.error();
  ORRERY_CO_TRY(auto created, parse_lease(*stored));
  co_return LeaseChange{LeaseChange::Kind::Done, std::move(created), {}};
}

Async<> LeaseManager::remove(std::string id) {
  const auto entry = entry_of(id);
  const auto turn = co_await entry->turns.take();
  ++stats_.writes;
  auto removed = co_await store_.remove(id, {});
  if (!removed && !has_code(removed.error(), ErrorCode::NotFound)) co_return removed.error();
  forget(id);
  co_return Result<>{};
}

Async<std::vector<Lease>> list_leases(AsyncLeaseStore& store, LeaseIds ids) {
  ORRERY_CO_TRY(auto documents, co_await store.list(ids.lease_prefix()));
  std::vector<Lease> leases;
  leases.reserve(documents.size());
  for (const StoredDocument& document : documents) {
    ORRERY_CO_TRY(auto lease, parse_lease(document));
    leases.push_back(std::move(lease));
  }
  auto distinct = distinct_leases(std::move(leases));
  ORRERY_CO_TRY(store_format(distinct.leases, LeaseFormat::Detect));
  co_return std::move(distinct.leases);
}

}  // namespace orrery::processor
