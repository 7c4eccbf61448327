#include "processor/hosting/bootstrap.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "json/document_text.h"
#include "json/value.h"
#include "processor/errors.h"
#include "processor/leases/lease_manager.h"

namespace orrery::processor {
namespace {

/// How often ranges may change under a start before it gives up, and is called again.
constexpr int kBootstrapAttemptsMax = 6;

/// In seconds. A lock that claims to hold for longer is not believed.
constexpr std::int64_t kLockTtlMax = 3600;

/// A part of the hash space that no lease covers.
struct Gap {
  std::string range_id;
  client::FeedRange part;
  bool whole = false;  ///< it is all of the range
};

std::vector<Gap> find_gaps(const Ranges& ranges, const std::vector<Lease>& leases) {
  std::vector<client::FeedRange> covered;
  for (const Lease& lease : leases) {
    if (auto area = area_of(lease, ranges)) {
      covered.push_back(std::move(*area));
      continue;
    }
    // Of a range that is gone, without a word about what it was. The host that acquires it makes
    // leases of all its children; if others made them now, they would begin elsewhere.
    for (const FeedTarget& child : targets_of(lease, ranges)) {
      const auto range = std::ranges::find(ranges, child.range_id, &client::PartitionKeyRange::id);
      covered.push_back(range->range);
    }
  }
  std::vector<Gap> gaps;
  for (const auto& range : ranges) {
    for (auto& part : uncovered(range.range, covered)) {
      const bool whole = part == range.range;
      gaps.push_back({range.id, std::move(part), whole});
    }
  }
  return gaps;
}

/// The work of some coroutines at once.
struct Creation {
  AsyncLeaseStore& store;
  FeedReader& reader;
  const LeaseGroupKey& group;
  const MonitoredFeedOptions& feed;
  Runtime& runtime;
  std::vector<Gap> gaps;
  std::size_t next = 0;
  std::size_t created = 0;
  std::optional<Error> failure = std::nullopt;
};

Async<bool> fill_gap(Creation& work, Gap gap) {
  FeedTarget target{gap.range_id, std::nullopt};
  if (!gap.whole) target.slice = gap.part;
  ORRERY_CO_TRY(auto position,
                co_await resolve_start(work.reader, std::move(target), StartPosition::of(work.feed),
                                       work.feed.mode, work.feed.session_token, work.runtime));
  ORRERY_CO_TRY(
      auto lease,
      new_lease(work.group.ids, work.group.format, gap.whole ? gap.range_id : std::string(),
                gap.part, std::move(position), work.feed.mode, work.group.identity.container_rid));
  auto created = co_await work.store.create(lease.id, write_lease(lease));
  if (created) co_return true;
  if (has_code(created.error(), ErrorCode::Conflict)) co_return false;  // Another host was faster.
  co_return created.error();
}

asio::awaitable<void> fill_gaps(Creation& work) {
  while (work.next < work.gaps.size() && !work.failure) {
    Gap gap = work.gaps[work.next++];
    const auto filled = co_await fill_gap(work, std::move(gap));
    if (filled && *filled) ++work.created;
    if (!filled) work.failure = filled.error();
  }
}

/// One host's way through the start of a group.
class Bootstrapper {
 public:
  Bootstrapper(AsyncLeaseStore& store, FeedReader& reader, LeaseGroupKey group,
               BootstrapOptions options, Runtime& runtime)
      : store_(store),
        reader_(reader),
        group_(std::move(group)),
        options_(std::move(options)),
        runtime_(runtime) {}

  Async<BootstrapReport> run() {
    for (;;) {
      if (!options_.discard_existing_leases) {
        const auto marker = co_await store_.read(group_.ids.marker());
        if (marker) {
          ORRERY_CO_TRY(co_await fill_all(true));
          co_return report_;
        }
        if (!has_code(marker.error(), ErrorCode::NotFound)) co_return marker.error();
      }
      auto lock = co_await store_.create(group_.ids.lock(), lock_text());
      if (lock) {
        const auto made = co_await initialise();
        // Best effort: the next host finds out that it has expired.
        (void)co_await store_.remove(group_.ids.lock(), lock->etag);
        if (!made) co_return made.error();
        co_return report_;
      }
      if (!has_code(lock.error(), ErrorCode::Conflict)) co_return lock.error();
      ORRERY_CO_TRY(co_await wait_for_lock());
    }
  }

 private:
  std::string lock_text() const {
    std::string text = "{\"id\":";
    json::append_quoted(text, group_.ids.lock());
    text += fmt::format(",\"ttl\":{}}}", options_.lock_ttl.count());
    return text;
  }

  /// Somebody else is at it. Returns when it is worth another look.
  Async<> wait_for_lock() {
    const auto lock = co_await store_.read(group_.ids.lock());
    if (!lock && has_code(lock.error(), ErrorCode::NotFound)) co_return Result<>{};
    if (!lock) co_return lock.error();
    if (lock->etag != lock_seen_) {
      lock_seen_ = lock->etag;
      lock_seen_at_ = runtime_.now();
    }
    const auto value = json::Value::parse(lock->text);
    std::chrono::seconds ttl = options_.lock_ttl;
    if (value && value->member("ttl").is_number()) {
      const json::Number given = value->member("ttl").as_number();
      if (given.is_integer && given.integer > 0 && given.integer < kLockTtlMax) {
        ttl = std::chrono::seconds(given.integer);
      }
    }
    // A store without time to live keeps it for ever; its holder is dead all the same. The store's
    // own clock says so, or this host has watched it for as long.
    const bool old = lock->ts > 0 && lock->store_now - lock->ts > ttl.count();
    if (old || runtime_.now() - lock_seen_at_ >= ttl) {
      const auto removed = co_await store_.remove(group_.ids.lock(), lock->etag);
      const bool settled = removed || has_code(removed.error(), ErrorCode::NotFound) ||
                           has_code(removed.error(), ErrorCode::PreconditionFailed);
      if (!settled) co_return removed.error();
      co_return Result<>{};
    }
    co_await pause_until(runtime_, runtime_.now() + options_.lock_wait);
    co_return Result<>{};
  }

  Async<> initialise() {
    if (options_.discard_existing_leases) {
      ORRERY_CO_TRY(co_await discard());
      options_.discard_existing_leases = false;
    }
    ORRERY_CO_TRY(co_await fill_all(false));
    // The marker comes last: a crash before it repeats everything, harmlessly.
    std::string text = "{\"id\":";
    json::append_quoted(text, group_.ids.marker());
    text += '}';
    const auto marked = co_await store_.create(group_.ids.marker(), std::move(text));
    if (!marked && !has_code(marked.error(), ErrorCode::Conflict)) co_return marked.error();
    report_.initialised = marked.has_value();
    co_return Result<>{};
  }

  Async<> remove_if_there(std::string id, std::string etag) {
    const auto removed = co_await store_.remove(std::move(id), std::move(etag));
    if (removed || has_code(removed.error(), ErrorCode::NotFound) ||
        has_code(removed.error(), ErrorCode::PreconditionFailed)) {
      co_return Result<>{};
    }
    co_return removed.error();
  }

  Async<> discard() {
    // The marker goes first: without it an interrupted discard is not taken for a complete store.
    ORRERY_CO_TRY(co_await remove_if_there(group_.ids.marker(), {}));
    ORRERY_CO_TRY(auto documents, co_await store_.list(group_.ids.lease_prefix()));
    for (const StoredDocument& document : documents) {
      // With its etag a document is known also where its id is there twice.
      ORRERY_CO_TRY(co_await remove_if_there(document.id, document.etag));
      ++report_.discarded;
    }
    co_return Result<>{};
  }

  Async<std::vector<Lease>> list() {
    ORRERY_CO_TRY(auto documents, co_await store_.list(group_.ids.lease_prefix()));
    std::vector<Lease> leases;
    for (const StoredDocument& document : documents) {
      ORRERY_CO_TRY(auto lease, parse_lease(document));
      leases.push_back(std::move(lease));
    }
    auto distinct = distinct_leases(std::move(leases));
    for (const Lease& twin : distinct.doubles) {
      ORRERY_CO_TRY(co_await remove_if_there(twin.id, twin.etag));
      ++report_.doubles_removed;
    }
    ORRERY_CO_TRY(store_format(distinct.leases, group_.format));
    ORRERY_CO_TRY(check_mode(distinct.leases, options_.feed.mode));
    co_return std::move(distinct.leases);
  }

  /// Makes the leases that are missing. `look_twice`: a lease that was being replaced while the
  /// leases were listed may be seen neither before nor after; then it only seems to be missing.
  Async<> fill_all(bool look_twice) {
    for (int attempt = 0; attempt < kBootstrapAttemptsMax; ++attempt) {
      // Ranges before leases: a split that another host completes in between would look like
      // missing leases otherwise.
      ORRERY_CO_TRY(auto ranges, co_await reader_.ranges());
      ORRERY_CO_TRY(auto leases, co_await list());
      // Leases of ranges that nobody has heard of are newer than what was read of the ranges.
      const bool newer = std::ranges::any_of(
          leases, [&](const Lease& lease) { return targets_of(lease, ranges).empty(); });
      const bool last = attempt + 1 == kBootstrapAttemptsMax;
      if (newer && !last) continue;
      Creation work{store_, reader_, group_, options_.feed, runtime_, find_gaps(ranges, leases)};
      if (work.gaps.empty()) co_return Result<>{};
      if (std::exchange(look_twice, false) && !last) continue;

      const auto workers = std::min<std::size_t>(
          work.gaps.size(), static_cast<std::size_t>(std::max(options_.degree_of_parallelism, 1)));
      TaskGroup group(runtime_);
      for (std::size_t count = 0; count < workers; ++count) group.spawn(fill_gaps(work));
      co_await group.join();
      report_.created += work.created;
      if (!work.failure) co_return Result<>{};
      if (!has_code(*work.failure, ErrorCode::RangeGone)) co_return *work.failure;
    }
    co_return Error(ErrorCode::Unavailable,
                    "the ranges of the container change faster than leases can be made for them");
  }

  AsyncLeaseStore& store_;
  FeedReader& reader_;
  LeaseGroupKey group_;
  BootstrapOptions options_;
  Runtime& runtime_;
  BootstrapReport report_;
  std::string lock_seen_;         // The etag of somebody else's lock…
  MonotonicTime lock_seen_at_{};  // …and when it was first seen.
};

}  // namespace

Async<LeaseGroupKey> find_group(AsyncLeaseStore& store, FeedReader& reader, std::string prefix,
                                std::string feed_host, LeaseFormat format) {
  LeaseGroupKey group;
  ORRERY_CO_TRY(group.identity, co_await reader.identity());
  const auto& identity = group.identity;
  group.feed_host = std::move(feed_host);
  if (group.feed_host.empty()) group.feed_host = identity.feed_host;
  const auto by_rid =
      LeaseIds::make(prefix, group.feed_host, identity.database_rid, identity.container_rid);
  const auto by_name =
      LeaseIds::make(prefix, group.feed_host, identity.database_name, identity.container_name);

  std::vector<Lease> under_rids;
  std::vector<Lease> under_names;
  if (format != LeaseFormat::JavaPk) {
    ORRERY_CO_TRY(under_rids, co_await list_leases(store, by_rid));
  }
  if (format == LeaseFormat::JavaPk || format == LeaseFormat::Detect) {
    ORRERY_CO_TRY(under_names, co_await list_leases(store, by_name));
  }
  if (format == LeaseFormat::Detect && !under_rids.empty() && !under_names.empty()) {
    co_return Error(
        ErrorCode::BadRequest,
        fmt::format("there are two groups of leases with the prefix '{}': those of Java's "
                    "handleChanges ('{}') and others ('{}'). Say which one by naming the lease "
                    "format",
                    prefix, under_names[0].id, under_rids[0].id));
  }
  const bool names = format == LeaseFormat::JavaPk || !under_names.empty();
  group.ids = names ? by_name : by_rid;
  ORRERY_CO_TRY(group.format, store_format(names ? under_names : under_rids, format));
  co_return group;
}

Async<BootstrapReport> bootstrap(AsyncLeaseStore& store, FeedReader& reader, LeaseGroupKey group,
                                 BootstrapOptions options, Runtime& runtime) {
  const auto start = StartPosition::of(options.feed).kind;
  if (options.feed.mode == client::ChangeFeedMode::AllVersionsAndDeletes &&
      start != StartPosition::Kind::Now && start != StartPosition::Kind::Etag) {
    co_return Error(ErrorCode::BadRequest,
                    "the feed of all versions begins now or at a continuation, not at the "
                    "beginning or at a time");
  }
  Bootstrapper bootstrapper(store, reader, std::move(group), std::move(options), runtime);
  co_return co_await bootstrapper.run();
}

}  // namespace orrery::processor
