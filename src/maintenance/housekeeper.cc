#include "maintenance/housekeeper.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "catalog/retention.h"
#include "storage/store.h"

namespace orrery::maintenance {

using catalog::Catalog;
using catalog::Container;
using catalog::ContainerPtr;
using catalog::Range;
using Steady = std::chrono::steady_clock;

/// How long a round has been going, and whether something is left to do.
class Housekeeper::Round {
 public:
  explicit Round(std::chrono::milliseconds longest) : end_(Steady::now() + longest) {}

  bool is_over() const { return Steady::now() >= end_; }
  void leave_something() { more_ = true; }
  bool more() const { return more_; }

 private:
  const Steady::time_point end_;
  bool more_ = false;
};

Housekeeper::Housekeeper(partition::Environment& environment, Catalog& catalog,
                         HousekeeperLimits limits)
    : environment_(environment), catalog_(catalog), limits_(limits) {}

Housekeeper::~Housekeeper() { stop(); }

void Housekeeper::start() {
  thread_ = std::thread([this] { run(); });
}

void Housekeeper::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Housekeeper::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const auto begin = Steady::now();
    const bool more = run_once();
    const auto took = Steady::now() - begin;
    lock.lock();
    // While there is much to do it takes no more than half of the time: others want to write too.
    const Steady::duration pause = more ? std::min<Steady::duration>(took, limits_.interval)
                                        : Steady::duration(limits_.interval);
    wake_.wait_for(lock, pause, [this] { return stopping_; });
  }
}

void Housekeeper::check_clock() {
  const UnixSeconds now = environment_.clock.unix_seconds();
  const auto latest = catalog_.definitions().latest_time();
  const bool is_ahead = latest.ts > now + limits_.clock_tolerance;
  if (is_ahead && !has_warned_of_clock_) {
    stats_.clock_warnings.fetch_add(1, std::memory_order_relaxed);
    diagnostics::warning(
        "the clock was ahead once: the last write of container {} has a _ts {} seconds after now. "
        "_ts never goes back, so until the clock has caught up all writes there get that second, "
        "documents with a TTL live so much longer, and changes since a time are not told apart. "
        "Nothing is lost. orrery_ts_ahead_seconds shows how far it still is",
        latest.container->definition.id(), latest.ts - now);
  }
  has_warned_of_clock_ = is_ahead;
}

bool Housekeeper::run_once() {
  // After a disk error the partitions may stand elsewhere than we think: look at everything again.
  const auto generation = environment_.committer.generation();
  if (!environment_.committer.accepts()) return false;
  if (generation_ != generation) watches_.clear();
  generation_ = generation;
  if (rounds_++ % limits_.clock_check_rounds == 0) check_clock();

  Round round(limits_.round_max);
  reconcile(round);
  const auto containers = catalog_.definitions().containers_with_upkeep();
  // On with those that the last round did not get to.
  auto at = std::ranges::upper_bound(containers, last_, {},
                                     [](const ContainerPtr& each) { return each->rid; });
  bool all_seen = true;
  for (std::size_t i = 0; i < containers.size(); ++i, ++at) {
    if (at == containers.end()) at = containers.begin();
    if (round.is_over()) {
      round.leave_something();
      all_seen = false;
      break;
    }
    for (const Range& range : (*at)->ranges.all()) look_after(**at, *range.partition, round);
    last_ = (*at)->rid;
  }
  // Partitions that are gone, or have nothing to be looked after any more.
  if (all_seen) {
    std::erase_if(watches_, [this](const auto& each) { return each.second.round != rounds_; });
  }
  return round.more();
}

void Housekeeper::reconcile(Round& round) {
  for (const Rid& container : catalog_.retention().take_pending()) {
    if (round.is_over()) {
      catalog_.retention().apply_later(container);
      round.leave_something();
      continue;
    }
    if (const auto done = catalog_.retention().apply(container); !done) {
      diagnostics::debug("a container does not keep yet what it should: {}",
                         done.error().message());
      catalog_.retention().apply_later(container);
    }
  }
}

void Housekeeper::look_after(const Container& container, partition::Partition& partition,
                             Round& round) {
  if (partition.retired()) return;
  Watch& watch = watches_[partition.number().value];
  watch.round = rounds_;
  if (watch.container_version != container.version) {
    watch = Watch{};
    watch.round = rounds_;
    watch.container_version = container.version;
  }
  if (container.rules.default_ttl) {
    if (!watch.built) build_expiry(partition, watch, round);
    if (watch.built) purge(container, partition, watch, round);
  }
  if (container.definition.change_feed_policy().keeps_tombstones()) {
    trim(container, partition, watch, round);
  }
}

void Housekeeper::build_expiry(partition::Partition& partition, Watch& watch, Round& round) {
  for (;;) {
    const auto step = partition.submit_and_wait({.work = partition::ExpiryBuildStep{}});
    if (!step) return;  // The disk, or the container has just gone: the next round will tell.
    if (!step->more) {
      watch.built = true;
      return;
    }
    if (round.is_over()) {
      round.leave_something();
      return;
    }
  }
}

void Housekeeper::purge(const Container& container, partition::Partition& partition, Watch& watch,
                        Round& round) {
  for (;;) {
    const UnixSeconds now = environment_.clock.unix_seconds();
    // Before the snapshot: what comes after it moves the head again.
    const Lsn head = partition.head();
    const bool due = watch.next_due && *watch.next_due <= now;
    if (watch.head_seen == head && !due) return;
    const auto snapshot = environment_.store.snapshot();
    if (!snapshot) return;
    auto found = watch.due.find(*snapshot, partition.number(), container.rules.default_ttl, now);
    if (!found) return;
    watch.head_seen = head;
    watch.next_due = found->next;
    if (found->candidates.empty()) return;

    const auto purged = partition.submit_and_wait(
        {.rules = container.rules, .work = partition::ExpiryPurge{found->candidates}});
    if (!purged) {
      watch.head_seen = Lsn{};
      return;
    }
    stats_.purges.fetch_add(1, std::memory_order_relaxed);
    stats_.purged_documents.fetch_add(purged->tidied, std::memory_order_relaxed);
    if (tell_erased_) tell_erased_(partition.number(), purged->tidied);
    watch.due.passed(found->candidates);
    if (round.is_over()) {
      round.leave_something();
      return;
    }
  }
}

void Housekeeper::trim(const Container& container, partition::Partition& partition, Watch& watch,
                       Round& round) {
  for (;;) {
    const UnixSeconds now = environment_.clock.unix_seconds();
    const bool due = !watch.next_trim || *watch.next_trim <= now;
    if (!due && partition.history_bytes() <= limits_.history_bytes_max) return;
    const partition::HistoryTrim trim =
        catalog::trim_of(container.definition.change_feed_policy(), now, limits_.history_bytes_max);
    // How long what is recorded from now on is kept at least.
    const UnixSeconds shortest =
        now - std::max(trim.tombstones_before, trim.all_before > now ? 0 : trim.all_before);
    const auto step = partition.submit_and_wait({.work = trim});
    if (!step) return;
    stats_.trimmed_history_records.fetch_add(step->tidied, std::memory_order_relaxed);
    if (tell_erased_) tell_erased_(partition.number(), step->tidied);
    if (!step->more) {
      watch.next_trim = now + step->next_in.value_or(std::max<UnixSeconds>(shortest, 1));
      return;
    }
    if (round.is_over()) {
      round.leave_something();
      return;
    }
  }
}

}  // namespace orrery::maintenance
