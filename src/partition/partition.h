// Partition: a physical partition, that is one ordered log of document versions with one writer.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <boost/asio/thread_pool.hpp>

#include "base/async.h"
#include "base/clock.h"
#include "base/result.h"
#include "partition/committer.h"
#include "partition/stage.h"
#include "partition/transaction.h"
#include "protocol/ids.h"
#include "storage/records.h"
#include "storage/store.h"

namespace orrery::partition {

/// What all partitions of a server share. Outlives them.
struct Environment {
  storage::Store& store;
  Committer& committer;
  asio::thread_pool& writers;  ///< where transactions are staged that may have to wait for the disk
  const Clock& clock;
};

struct PartitionLimits {
  std::size_t waiting_transactions_max = 10'000;
  std::size_t waiting_bytes_max = 64 << 20;
};

/// Thread-safe. Shared by the catalog and by the requests that are under way in it, so that
/// deleting a container pulls nothing from under them.
class Partition : public std::enable_shared_from_this<Partition> {
 public:
  Partition(Environment& environment, PartitionNumber number, RangeId range, const Rid& container,
            const storage::Head& head, PartitionLimits limits = {});

  PartitionNumber number() const { return number_; }
  RangeId range() const { return range_; }

  /// The last committed LSN. A reader that has seen n will never be shown a change ≤ n that it has
  /// not seen.
  Lsn head() const { return Lsn{head_lsn_.load(std::memory_order_acquire)}; }
  std::uint64_t documents() const { return documents_.load(std::memory_order_relaxed); }
  std::uint64_t text_bytes() const { return text_bytes_.load(std::memory_order_relaxed); }

  /// Commits the transaction and resumes the caller once it is durable. NotFound, Conflict or
  /// PreconditionFailed by the rules of its writes; TooManyRequests when too many are waiting;
  /// Unavailable when the disk refuses; OwnerNotFound when the container is being deleted.
  Async<Committed> submit(Transaction transaction);

  /// From now on every transaction is refused with OwnerNotFound. Those staged before may commit:
  /// the highest LSN they will have reached is returned, and nothing is staged after this returns.
  /// Blocks.
  Lsn close();
  /// The same without waiting: for a partition whose container has turned out to be gone.
  void refuse();
  /// After a disk error has been overcome: what the store holds now is what readers are told, also
  /// where a write was answered with an error and has become durable all the same. The writer finds
  /// out by itself. Called on the committer's thread.
  void show_recovered(const storage::Head& head) { publish(head); }
  /// Takes close() back, if deleting the container failed.
  void reopen();

 private:
  struct Waiting {
    Transaction transaction;
    std::move_only_function<void(Result<Committed>)> done;
  };

  void enqueue(Transaction transaction, std::move_only_function<void(Result<Committed>)> done);
  /// Stages what waits until nothing does. With Tier::Memory it does not block, and leaves what it
  /// cannot do to a writer thread.
  void drain(storage::Tier tier);
  void drain_elsewhere();
  void put_back(std::vector<Waiting> work, std::size_t from);
  /// Stages transactions and hands them to the committer; returns how many were dealt with.
  std::size_t stage_work(std::vector<Waiting>& work, storage::Tier tier, std::size_t budget);
  /// After a disk error has been overcome: what is in the store counts. False while it has not.
  bool read_state_anew();
  void publish(const storage::Head& head);

  Environment& environment_;
  const PartitionNumber number_;
  const RangeId range_;
  const PartitionLimits limits_;

  std::atomic<std::uint64_t> head_lsn_;
  std::atomic<std::uint64_t> documents_;
  std::atomic<std::uint64_t> text_bytes_;

  std::mutex mailbox_mutex_;
  std::condition_variable drained_;  // close() waits here for the writer to be done.
  std::vector<Waiting> mailbox_;     // Guarded by mailbox_mutex_, as the next three are.
  std::size_t mailbox_bytes_ = 0;
  bool draining_ = false;  // Whether a thread is, or will be, in drain(): only one ever is.
  bool closed_ = false;

  // Only the one writer, inside drain(), touches these.
  std::uint64_t stage_epoch_;  // The committer's epoch in which the stage was read from the store.
  Stage stage_;
};

}  // namespace orrery::partition
