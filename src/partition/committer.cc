#include "partition/committer.h"

#include <algorithm>
#include <future>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/diagnostics.h"

namespace orrery::partition {
namespace {

/// The error of transactions that were part of a failed append.
Error unknown_outcome(const Error& failure) {
  return Error(
      ErrorCode::OutcomeUnknown,
      fmt::format("The disk failed while this write was being committed: {}. Whether it is "
                  "committed shows once the disk works again: read before writing again.",
                  failure.message()));
}

}  // namespace

Committer::Committer(commitlog::CommitLog& log, CommitterLimits limits)
    : log_(log), limits_(limits) {}

Committer::~Committer() { stop(); }

void Committer::start() {
  thread_ = std::thread([this] { run(); });
}

void Committer::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  space_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  } else {
    // Never started: there is nobody else to tell those who wait.
    std::unique_lock lock(mutex_);
    stopped_ = true;
    std::vector<Staged> waiting;
    waiting.swap(queue_);
    queued_bytes_ = 0;
    lock.unlock();
    for (Staged& staged : waiting) {
      staged.done(Error(ErrorCode::Unavailable, "the server is stopping"));
    }
  }
}

void Committer::submit(Staged staged, WhenFull when_full) {
  std::unique_lock lock(mutex_);
  if (when_full == WhenFull::Wait) {
    space_.wait(lock, [this] { return stopped_ || !is_full(); });
  }
  if (stopped_) {
    lock.unlock();
    staged.done(Error(ErrorCode::Unavailable, "the server is stopping"));
    return;
  }
  queued_bytes_ += staged.batch.byte_size();
  queue_.push_back(std::move(staged));
  const bool was_idle = queue_.size() == 1;
  lock.unlock();
  if (was_idle) work_.notify_one();
}

Result<> Committer::commit(storage::Batch batch, StoreGeneration generation,
                           const std::function<void()>& committed) {
  std::promise<Result<>> outcome;
  auto waiting = outcome.get_future();
  Staged staged;
  staged.batch = std::move(batch);
  staged.generation = generation;
  // The promise goes along: the waiter may be gone before the committer has let go of it.
  staged.done = [outcome = std::move(outcome), &committed](const Result<>& result) mutable {
    if (result && committed) committed();
    outcome.set_value(result);
  };
  submit(std::move(staged));
  return waiting.get();
}

Result<> Committer::probe() {
  if (!accepts()) return refusal();
  storage::Batch batch;
  // The key of no partition: partitions are numbered from 1.
  batch.put(storage::Family::Heads, std::string_view("probe"), {});
  return commit(std::move(batch), generation());
}

Error Committer::refusal() const {
  std::lock_guard lock(mutex_);
  return Error(
      ErrorCode::Unavailable,
      fmt::format("Writes are suspended because the disk refused one: {}. Reads go on, and "
                  "writes resume by themselves once the disk takes them.",
                  failure_));
}

bool Committer::is_contended() const {
  return std::chrono::steady_clock::now() < contended_until_.load(std::memory_order_relaxed);
}

std::vector<Committer::Staged> Committer::take_group() {
  std::size_t bytes = 0;
  std::size_t count = 0;
  std::size_t transactions = 0;
  while (count < queue_.size()) {
    const std::size_t size = queue_[count].batch.byte_size();
    if (count > 0 && bytes + size > limits_.group_bytes_max) break;
    bytes += size;
    transactions += queue_[count].transactions;
    ++count;
  }
  std::vector<Staged> group;
  if (count == queue_.size()) {
    group.swap(queue_);
  } else {
    const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(count);
    group.assign(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
    queue_.erase(queue_.begin(), end);
  }
  // A commit is bounded, and the queue's budget is the sum of what it holds.
  ORRERY_ASSERT(count <= 1 || bytes <= limits_.group_bytes_max);
  ORRERY_ASSERT(bytes <= queued_bytes_);
  queued_bytes_ -= bytes;
  ORRERY_ASSERT(!queue_.empty() || queued_bytes_ == 0);
  if (transactions >= limits_.contention_transactions) {
    contended_until_.store(std::chrono::steady_clock::now() + limits_.contention_window,
                           std::memory_order_relaxed);
  }
  return group;
}

void Committer::run() {
  std::unique_lock lock(mutex_);
  auto next_attempt = std::chrono::steady_clock::now();
  for (;;) {
    const auto has_work = [this] { return stopping_ || !queue_.empty(); };
    if (accepts()) {
      work_.wait(lock, has_work);
    } else {
      work_.wait_until(lock, next_attempt, has_work);
    }
    if (queue_.empty() && stopping_) break;
    const bool worked = !queue_.empty();
    if (worked) {
      auto group = take_group();
      lock.unlock();
      space_.notify_all();
      const bool accepted = accepts();
      commit_group(group);
      if (accepted && !accepts()) {
        next_attempt = std::chrono::steady_clock::now() + limits_.recovery_interval;
      }
      lock.lock();
    }
    // By the clock, not when there is nothing else to do: refusing requests is something to do.
    if (!accepts() && !stopping_ && std::chrono::steady_clock::now() >= next_attempt) {
      lock.unlock();
      try_to_recover();
      next_attempt = std::chrono::steady_clock::now() + limits_.recovery_interval;
      lock.lock();
    }
  }
  stopped_ = true;
}

void Committer::commit_group(std::vector<Staged>& group) {
  const auto now = generation();
  std::vector<const storage::Batch*> batches;
  batches.reserve(group.size());
  for (const Staged& staged : group) {
    // Nothing can have been validated in a generation that is yet to come.
    ORRERY_ASSERT(staged.generation <= now);
    if (accepts() && staged.generation == now) batches.push_back(&staged.batch);
  }
  // Heads last, and of each partition only the newest: the committer's order is theirs.
  storage::Batch heads;
  struct Seen {
    PartitionNumber partition;
    Lsn from;
  };
  std::vector<Seen> seen;
  for (auto staged = group.rbegin(); staged != group.rend(); ++staged) {
    if (!accepts() || staged->generation != now || !staged->head) continue;
    const auto& [from, head] = *staged->head;
    // Heads rise.
    ORRERY_ASSERT(from <= head.lsn);
    const auto later = std::ranges::find(seen, staged->partition, &Seen::partition);
    if (later != seen.end()) {
      ORRERY_ASSERT(head.lsn == later->from);
      later->from = from;
      continue;
    }
    seen.push_back({staged->partition, from});
    heads.put(storage::Family::Heads, storage::partition_prefix(staged->partition), head.make());
  }
  if (!heads.empty()) batches.push_back(&heads);

  const bool appends = accepts();
  Result<> outcome;
  if (!batches.empty()) {
    outcome = log_.append(batches);
    if (!outcome) {
      suspend(outcome.error());
    } else {
      stats_.commits.fetch_add(1, std::memory_order_relaxed);
      stats_.groups.fetch_add(group.size(), std::memory_order_relaxed);
      for (const auto* batch : batches) {
        stats_.bytes.fetch_add(batch->byte_size(), std::memory_order_relaxed);
      }
    }
  }
  for (Staged& staged : group) {
    if (!appends || staged.generation != now) {
      staged.done(refusal());
    } else if (!outcome) {
      staged.done(unknown_outcome(outcome.error()));
    } else {
      staged.done(Result<>());
    }
  }
}

void Committer::suspend(const Error& error) {
  {
    std::lock_guard lock(mutex_);
    failure_ = error.message();
  }
  stats_.commit_failures.fetch_add(1, std::memory_order_relaxed);
  accepts_.store(false, std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_acq_rel);
  diagnostics::error("writes are suspended: {}. Reads go on. Trying again every {} ms.",
                     error.message(), limits_.recovery_interval.count());
}

void Committer::try_to_recover() {
  auto recovered = log_.recover();
  if (recovered && recovered_) recovered = recovered_();
  if (!recovered) {
    diagnostics::debug("still no writes: {}", recovered.error().message());
    return;
  }
  stats_.recoveries.fetch_add(1, std::memory_order_relaxed);
  // Once more: what was prepared since the failure, and before the state was read anew, must not
  // pass.
  generation_.fetch_add(1, std::memory_order_acq_rel);
  accepts_.store(true, std::memory_order_release);
  diagnostics::info("the disk takes writes again; writes have resumed");
}

}  // namespace orrery::partition
