#include "partition/partition.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/assert.h"
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
      stage_epoch_(environment.committer.epoch()),
      stage_(environment.store, number, range, container, head) {}

Async<Committed> Partition::submit(Transaction transaction) {
  co_return co_await asio::async_initiate<decltype(asio::use_awaitable), void(Result<Committed>)>(
      [this](auto handler, Transaction work) {
        auto executor = asio::get_associated_executor(handler);
        enqueue(std::move(work), [handler = std::move(handler), executor = std::move(executor)](
                                     Result<Committed> outcome) mutable {
          asio::post(executor,
                     [handler = std::move(handler), outcome = std::move(outcome)]() mutable {
                       std::move(handler)(std::move(outcome));
                     });
        });
      },
      asio::use_awaitable, std::move(transaction));
}

void Partition::enqueue(Transaction transaction,
                        std::move_only_function<void(Result<Committed>)> done) {
  if (!environment_.committer.accepts()) {
    done(environment_.committer.refusal());
    return;
  }
  const std::size_t bytes = transaction.byte_size();
  std::unique_lock lock(mailbox_mutex_);
  if (closed_) {
    lock.unlock();
    done(container_deleted());
    return;
  }
  if (mailbox_.size() >= limits_.waiting_transactions_max ||
      mailbox_bytes_ + bytes > limits_.waiting_bytes_max) {
    lock.unlock();
    done(Error(ErrorCode::TooManyRequests,
               "Request rate is large. Too many writes are waiting in this range; retry after the "
               "time in x-ms-retry-after-ms."));
    return;
  }
  mailbox_bytes_ += bytes;
  mailbox_.push_back({std::move(transaction), std::move(done)});
  if (draining_) return;
  draining_ = true;
  lock.unlock();
  // Most writes can be judged from memory alone: that is done here and now, which saves a change of
  // threads. What cannot, or is too much for an event loop, goes to a writer thread.
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
      if (mailbox_.empty()) {
        draining_ = false;
        drained_.notify_all();
        return;
      }
      work.swap(mailbox_);
      mailbox_bytes_ = 0;
      if (closed_) {
        for (Waiting& waiting : work) waiting.done(container_deleted());
        continue;
      }
    }
    // After a failed commit the stage stands on what never became durable. Until the committer has
    // overcome that, and the head was read anew, nothing may be validated against it.
    const bool stale = stage_epoch_ != environment_.committer.epoch();
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
    std::move_only_function<void(Result<Committed>)> done;
  };
  std::vector<Told> after_commit;
  Committer::Staged staged;
  staged.epoch = stage_epoch_;
  stage_.forget_committed(head());
  const UnixSeconds now = environment_.clock.unix_seconds();
  std::size_t count = 0;
  for (; count < std::min(work.size(), budget); ++count) {
    Waiting& waiting = work[count];
    auto outcome = stage_.stage(waiting.transaction, now, staged.batch, tier);
    if (stage_.would_block()) break;
    if (outcome || stage_.outcome_rests_on_staged()) {
      after_commit.push_back({std::move(outcome), std::move(waiting.done)});
    } else {
      waiting.done(std::move(outcome));
    }
  }
  if (after_commit.empty()) return count;
  const storage::Head head_after = stage_.head();
  staged.partition = number_;
  if (!staged.batch.empty()) staged.head = head_after;
  staged.done = [self = shared_from_this(), head_after,
                 told = std::move(after_commit)](const Result<>& committed) mutable {
    if (committed) self->publish(head_after);
    for (Told& each : told) {
      each.done(committed ? std::move(each.outcome) : Result<Committed>(Error(committed.error())));
    }
  };
  environment_.committer.submit(std::move(staged), tier == storage::Tier::Disk
                                                       ? Committer::WhenFull::Wait
                                                       : Committer::WhenFull::Exceed);
  return count;
}

void Partition::publish(const storage::Head& head) {
  // Only the committer's thread publishes, in commit order.
  documents_.store(head.documents, std::memory_order_relaxed);
  text_bytes_.store(head.text_bytes, std::memory_order_relaxed);
  head_lsn_.store(head.lsn.value, std::memory_order_release);
}

Lsn Partition::close() {
  std::unique_lock lock(mailbox_mutex_);
  closed_ = true;
  drained_.wait(lock, [this] { return !draining_; });
  return stage_.head().lsn;
}

void Partition::refuse() {
  std::lock_guard lock(mailbox_mutex_);
  closed_ = true;
}

void Partition::reopen() {
  std::lock_guard lock(mailbox_mutex_);
  closed_ = false;
}

bool Partition::read_state_anew() {
  const std::uint64_t epoch = environment_.committer.epoch();
  if (!environment_.committer.accepts()) return false;
  std::string value;
  const auto lookup = environment_.store.get(
      storage::Family::Heads, storage::partition_prefix(number_), value, storage::Tier::Disk);
  if (lookup != storage::Lookup::Found) return false;
  const auto head = storage::Head::parse(value);
  ORRERY_ASSERT(head.has_value());
  stage_.reset(*head);
  // No commit of this partition is under way: what was staged before the failure has been refused.
  publish(*head);
  stage_epoch_ = epoch;
  return true;
}

}  // namespace orrery::partition
