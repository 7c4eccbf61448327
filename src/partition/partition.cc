#include "partition/partition.h"

#include <algorithm>
#include <future>
#include <iterator>
#include <utility>

#include "base/assert.h"
#include "protocol/wire/range_gone.h"
#include "storage/keys.h"

namespace orrery::partition {
namespace {

/// An event loop stages so many transactions of others besides its own before it gives way.
constexpr std::size_t kInlineTransactionsMax = 32;

Error container_deleted() {
  return Error(ErrorCode::OwnerNotFound, "Resource Not Found. The container was deleted.");
}

}  // namespace

Partition::Partition(Environment& environment, PartitionNumber number, RangeId range,
                     const Rid& container, const storage::Head& head, PartitionLimits limits)
    : environment_(environment),
      number_(number),
      range_(range),
      limits_(limits),
      head_lsn_(head.lsn.value),
      documents_(head.documents),
      text_bytes_(head.text_bytes),
      history_bytes_(head.history_bytes),
      head_ts_(head.ts),
      indexes_(head.indexes),
      staged_indexes_(head.indexes),
      stage_generation_(environment.committer.generation()),
      stage_(environment.store, number, range, container, head) {}

Async<Committed> Partition::submit(Transaction transaction) {
  co_return co_await asio::async_initiate<decltype(asio::use_awaitable), void(Result<Committed>)>(
      [this](auto handler, Transaction work) {
        auto executor = asio::get_associated_executor(handler);
        auto done = [handler = std::move(handler),
                     executor = std::move(executor)](Result<Committed> outcome) mutable {
          asio::post(executor,
                     [handler = std::move(handler), outcome = std::move(outcome)]() mutable {
                       std::move(handler)(std::move(outcome));
                     });
        };
        enqueue({std::move(work), std::move(done), {}});
      },
      asio::use_awaitable, std::move(transaction));
}

Result<> Partition::check_in_place() const {
  if (retired()) return range_replaced(range_);
  return {};
}

Result<PointRead> Partition::read(const DocumentAddress& address,
                                  const PointReadOptions& options) const {
  return read_in(storage::Tier::Disk, address, options);
}

Result<PointRead> Partition::read_from_memory(const DocumentAddress& address,
                                              const PointReadOptions& options) const {
  return read_in(storage::Tier::Memory, address, options);
}

Result<PointRead> Partition::read_in(storage::Tier tier, const DocumentAddress& address,
                                     const PointReadOptions& options) const {
  auto found = read_document(environment_.store, number_, address, options,
                             environment_.clock.unix_seconds(), tier);
  ORRERY_TRY(check_in_place());
  return found;
}

Result<std::string> Partition::id_of(const DocumentAddress& address) const {
  auto id = find_document_id(environment_.store, number_, address);
  ORRERY_TRY(check_in_place());
  return id;
}

asio::awaitable<std::vector<Result<Committed>>> Partition::submit_all(
    std::vector<Transaction> transactions) {
  using Outcomes = std::vector<Result<Committed>>;
  if (transactions.empty()) co_return Outcomes();
  co_return co_await asio::async_initiate<decltype(asio::use_awaitable), void(Outcomes)>(
      [this](auto handler, std::vector<Transaction> work) {
        // Shared by those that have no outcome yet; the last one resumes the caller.
        struct Gathering {
          Outcomes outcomes;
          std::atomic<std::size_t> missing;
          decltype(handler) resume;
        };
        auto executor = asio::get_associated_executor(handler);
        auto gathering =
            std::make_shared<Gathering>(Outcomes(work.size()), work.size(), std::move(handler));
        for (std::size_t index = 0; index < work.size(); ++index) {
          auto done = [gathering, executor, index](Result<Committed> outcome) {
            gathering->outcomes[index] = std::move(outcome);
            if (gathering->missing.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
            asio::post(executor, [gathering] {
              std::move(gathering->resume)(std::move(gathering->outcomes));
            });
          };
          enqueue({std::move(work[index]), std::move(done), {}});
        }
      },
      asio::use_awaitable, std::move(transactions));
}

Result<Committed> Partition::submit_and_wait(Transaction transaction) {
  std::promise<Result<Committed>> outcome;
  auto waiting = outcome.get_future();
  // The promise goes along: the waiter may be gone before the last one has let go of it.
  enqueue({std::move(transaction),
           [outcome = std::move(outcome)](Result<Committed> result) mutable {
             outcome.set_value(std::move(result));
           },
           {}});
  return waiting.get();
}

void Partition::enqueue(Waiting waiting) {
  if (!environment_.committer.accepts()) {
    waiting.done(environment_.committer.refusal());
    return;
  }
  const std::size_t bytes = waiting.transaction.byte_size();
  std::unique_lock lock(mailbox_mutex_);
  if (retired() || closed_) {
    lock.unlock();
    waiting.done(retired() ? range_replaced(range_) : container_deleted());
    return;
  }
  if (mailbox_.size() >= limits_.waiting_transactions_max ||
      mailbox_bytes_ + bytes > limits_.waiting_bytes_max) {
    lock.unlock();
    waiting.done(
        Error(ErrorCode::TooManyRequests,
              "Request rate is large. Too many writes are waiting in this range; retry after the "
              "time in x-ms-retry-after-ms."));
    return;
  }
  const bool step = static_cast<bool>(waiting.step);
  mailbox_bytes_ += bytes;
  mailbox_.push_back(std::move(waiting));
  if (draining_ || held_) return;
  draining_ = true;
  lock.unlock();
  if (step) {
    drain_elsewhere();
    return;
  }
  // Most writes can be judged from memory alone: that is done here and now, which saves a change of
  // threads. Writes that cannot, or are too many for an event loop, go to a writer thread.
  drain(storage::Tier::Memory);
}

void Partition::drain_elsewhere() {
  asio::post(environment_.writers,
             [self = shared_from_this()] { self->drain(storage::Tier::Disk); });
}

void Partition::put_back(std::vector<Waiting> work, std::size_t from) {
  std::lock_guard lock(mailbox_mutex_);
  for (std::size_t i = from; i < work.size(); ++i) {
    mailbox_bytes_ += work[i].transaction.byte_size();
  }
  mailbox_.insert(mailbox_.begin(),
                  std::make_move_iterator(work.begin() + static_cast<std::ptrdiff_t>(from)),
                  std::make_move_iterator(work.end()));
}

void Partition::drain(storage::Tier tier) {
  std::size_t budget = tier == storage::Tier::Memory ? kInlineTransactionsMax : SIZE_MAX;
  for (;;) {
    std::vector<Waiting> work;
    {
      std::lock_guard lock(mailbox_mutex_);
      if (mailbox_.empty() || held_) {
        draining_ = false;
        drained_.notify_all();
        return;
      }
      // One writer at a time; and the mailbox's budget is the sum of what it holds.
      ORRERY_ASSERT(draining_ && mailbox_bytes_ > 0);
      work.swap(mailbox_);
      mailbox_bytes_ = 0;
      if (retired() || closed_) {
        const Error refusal = retired() ? range_replaced(range_) : container_deleted();
        for (Waiting& waiting : work) waiting.done(refusal);
        continue;
      }
    }
    // After a failed commit the stage stands on what never became durable. Until the committer has
    // overcome that, and the head was read anew, nothing may be validated against it.
    const bool stale = stage_generation_ != environment_.committer.generation();
    if (tier == storage::Tier::Memory && (stale || environment_.committer.is_full())) {
      put_back(std::move(work), 0);
      drain_elsewhere();
      return;
    }
    if (stale) {
      if (!read_state_anew()) {
        const Error refusal = environment_.committer.refusal();
        for (Waiting& waiting : work) waiting.done(refusal);
        continue;
      }
    }
    const std::size_t staged = stage_work(work, tier, budget);
    if (staged < work.size()) {
      put_back(std::move(work), staged);
      drain_elsewhere();
      return;
    }
    budget -= staged;
  }
}

std::size_t Partition::stage_work(std::vector<Waiting>& work, storage::Tier tier,
                                  std::size_t budget) {
  struct Told {
    Result<Committed> outcome;
    Done done;
  };
  std::vector<Told> after_commit;
  Committer::Staged staged;
  staged.generation = stage_generation_;
  stage_.forget_committed(head());
  const UnixSeconds now = environment_.clock.unix_seconds();
  const Lsn head_before = stage_.head().lsn;
  bool head_changed = false;
  std::size_t count = 0;
  for (; count < std::min(work.size(), budget); ++count) {
    Waiting& waiting = work[count];
    if (waiting.step) {
      // It takes its time: those who came before shall not wait for it.
      if (tier == storage::Tier::Memory || !after_commit.empty()) break;
      auto outcome = waiting.step(stage_, staged.batch);
      after_commit.push_back({std::move(outcome), std::move(waiting.done)});
      continue;
    }
    auto outcome = stage_.stage(waiting.transaction, now, staged.batch, tier);
    if (stage_.would_block()) break;
    head_changed = head_changed || stage_.staged_anything();
    if (stage_.staged_anything() || stage_.outcome_rests_on_staged()) {
      after_commit.push_back({std::move(outcome), std::move(waiting.done)});
    } else {
      waiting.done(std::move(outcome));
    }
  }
  if (after_commit.empty()) return count;
  const storage::Head head_after = stage_.head();
  {
    std::lock_guard lock(indexes_mutex_);
    staged_indexes_ = head_after.indexes;
  }
  staged.partition = number_;
  staged.transactions = after_commit.size();
  if (head_changed || !staged.batch.empty()) staged.head = {head_before, head_after};
  // The records go along: a later transaction may ask for the text of one until it is committed.
  staged.done = [self = shared_from_this(), head_before, head_after,
                 records = stage_.take_records(),
                 told = std::move(after_commit)](const Result<>& committed) mutable {
    if (committed) self->publish_committed(head_before, head_after);
    for (Told& each : told) {
      each.done(committed ? std::move(each.outcome) : Result<Committed>(Error(committed.error())));
    }
  };
  environment_.committer.submit(std::move(staged), tier == storage::Tier::Disk
                                                       ? Committer::WhenFull::Wait
                                                       : Committer::WhenFull::Exceed);
  return count;
}

void Partition::publish_committed(Lsn before, const storage::Head& head) {
  // Commits are published one after the other, in the order of their LSNs and without a gap: a
  // reader that has seen a head is never shown a change at or below it later. Neither head nor
  // `_ts` goes back.
  ORRERY_ASSERT(head_lsn_.load(std::memory_order_relaxed) == before.value);
  ORRERY_ASSERT(head.lsn >= before);
  ORRERY_ASSERT(head.ts >= head_ts_.load(std::memory_order_relaxed));
  publish(head);
}

void Partition::publish(const storage::Head& head) {
  documents_.store(head.documents, std::memory_order_relaxed);
  text_bytes_.store(head.text_bytes, std::memory_order_relaxed);
  history_bytes_.store(head.history_bytes, std::memory_order_relaxed);
  head_ts_.store(head.ts, std::memory_order_relaxed);
  {
    std::lock_guard lock(indexes_mutex_);
    indexes_ = head.indexes;
  }
  head_lsn_.store(head.lsn.value, std::memory_order_release);
  head_watch_.moved();
}

storage::IndexRecords Partition::indexes() const {
  std::lock_guard lock(indexes_mutex_);
  return indexes_;
}

IndexProgress Partition::index_progress(std::string_view spec) const {
  const auto records = indexes();
  const auto* record = storage::find_index(records, spec);
  if (record == nullptr) return IndexProgress::Absent;
  return record->is_complete() ? IndexProgress::Complete : IndexProgress::Building;
}

std::optional<storage::IndexRecords> Partition::settled_indexes() const {
  std::lock_guard lock(indexes_mutex_);
  if (indexes_ != staged_indexes_) return std::nullopt;
  return indexes_;
}

UnixSeconds Partition::resolved(UnixSeconds now) {
  std::lock_guard lock(mailbox_mutex_);
  // While nothing is under way, the next transaction is yet to look at the clock. One that is has
  // looked, and may have stamped an earlier second than now; but none before the last committed.
  const bool idle = !draining_ && mailbox_.empty() && stage_.head().lsn.value == head_lsn_.load();
  resolved_ = std::max(resolved_, idle ? now - 1 : head_ts_.load(std::memory_order_relaxed) - 1);
  return resolved_;
}

Lsn Partition::close() {
  std::unique_lock lock(mailbox_mutex_);
  closed_ = true;
  drained_.wait(lock, [this] { return !draining_; });
  return stage_.head().lsn;
}

void Partition::refuse() {
  {
    std::lock_guard lock(mailbox_mutex_);
    closed_ = true;
  }
  head_watch_.retire();
}

void Partition::reopen() {
  std::lock_guard lock(mailbox_mutex_);
  closed_ = false;
}

// ── split and merge ──────────────────────────────────────────────────────────────────────────────

Result<Committed> Partition::run_step(Step step) {
  std::promise<Result<Committed>> outcome;
  auto waiting = outcome.get_future();
  // The promise goes along: the waiter may be gone before the last one has let go of it.
  enqueue({{},
           [outcome = std::move(outcome)](Result<Committed> result) mutable {
             outcome.set_value(std::move(result));
           },
           std::move(step)});
  return waiting.get();
}

Result<> Partition::begin_copy(CopyPlan plan, StoreGeneration generation) {
  // Told once it is committed, and so is all that was staged before: that is what gets copied.
  const auto begun = run_step([&](Stage& stage, storage::Batch&) -> Result<Committed> {
    if (stage_generation_ != generation) return copy_abandoned();
    ORRERY_TRY(stage.copier().begin(std::move(plan)));
    return Committed{};
  });
  if (!begun) return begun.error();
  return {};
}

Result<bool> Partition::copy_step() {
  ORRERY_TRY(const auto copied,
             run_step([](Stage& stage, storage::Batch& batch) -> Result<Committed> {
               Committed outcome;
               ORRERY_TRY(outcome.more, stage.copier().step(batch));
               return outcome;
             }));
  return copied.more;
}

Result<std::uint32_t> Partition::copied_index_bound() {
  std::uint32_t bound = 0;
  ORRERY_TRY(run_step([&](Stage& stage, storage::Batch&) -> Result<Committed> {
    ORRERY_TRY(bound, stage.copier().index_bound());
    return Committed{};
  }));
  return bound;
}

Result<CopyOutcome> Partition::hold() {
  std::unique_lock lock(mailbox_mutex_);
  held_ = true;
  drained_.wait(lock, [this] { return !draining_; });
  Result<CopyOutcome> outcome = copy_abandoned();
  if (closed_) {
    outcome = container_deleted();
  } else if (stage_generation_ == environment_.committer.generation()) {
    outcome = stage_.copier().outcome();
  }
  if (!outcome) {
    lock.unlock();
    abandon_copy();
  }
  return outcome;
}

void Partition::abandon_copy() {
  std::unique_lock lock(mailbox_mutex_);
  held_ = true;
  drained_.wait(lock, [this] { return !draining_; });
  stage_.copier().end();
  held_ = false;
  const bool waiting = !mailbox_.empty();
  draining_ = waiting;
  lock.unlock();
  if (waiting) drain_elsewhere();
  // Records that were staged for the targets are on their way: they must not come after the batch
  // that tidies up.
  (void)environment_.committer.commit({}, environment_.committer.generation());
}

void Partition::retire() {
  std::vector<Waiting> waiting;
  {
    std::lock_guard lock(mailbox_mutex_);
    retired_.store(true, std::memory_order_release);
    held_ = false;
    // A drain that is under way answers what it has taken, by the same flag.
    if (!draining_) {
      waiting.swap(mailbox_);
      mailbox_bytes_ = 0;
    }
  }
  for (Waiting& each : waiting) each.done(range_replaced(range_));
  head_watch_.retire();
}

bool Partition::read_state_anew() {
  const StoreGeneration generation = environment_.committer.generation();
  if (!environment_.committer.accepts()) return false;
  std::string value;
  const auto lookup = environment_.store.get(
      storage::Family::Heads, storage::partition_prefix(number_), value, storage::Tier::Disk);
  if (lookup != storage::Lookup::Found) return false;
  const auto head = storage::Head::parse(value);
  ORRERY_ASSERT(head.has_value());
  stage_.reset(*head);
  {
    std::lock_guard lock(indexes_mutex_);
    staged_indexes_ = head->indexes;
  }
  // No commit of this partition is under way: what was staged before the failure has been refused.
  publish(*head);
  stage_generation_ = generation;
  return true;
}

}  // namespace orrery::partition
