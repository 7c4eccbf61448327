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
#include "partition/copy/copy.h"
#include "partition/read/head_watch.h"
#include "partition/read/point_read.h"
#include "partition/writer/stage.h"
#include "partition/writer/transaction.h"
#include "protocol/ids.h"
#include "storage/records.h"
#include "storage/store.h"

namespace orrery::partition {

/// Shared by all partitions of a server. Outlives them.
struct Environment {
  storage::Store& store;
  Committer& committer;
  asio::thread_pool& writers;  ///< where transactions are staged that may have to wait for the disk
  const Clock& clock;
};

enum class IndexProgress { Absent, Building, Complete };
using storage::kIndexesMax;  ///< of a partition

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
  /// Where readers wait for the head to move.
  HeadWatch& head_watch() { return head_watch_; }
  std::uint64_t documents() const { return documents_.load(std::memory_order_relaxed); }
  std::uint64_t text_bytes() const { return text_bytes_.load(std::memory_order_relaxed); }
  std::uint64_t history_bytes() const { return history_bytes_.load(std::memory_order_relaxed); }
  /// The committed ones; null: none. A snapshot may have others: see head_in() of log_cursor.h.
  storage::IndexRecords indexes() const;
  /// How far one of them is, by IndexSpec::text.
  IndexProgress index_progress(std::string_view spec) const;
  /// The same, unless a change of them is on its way: then nothing. If this is the same before and
  /// after a snapshot was taken, it is what that has, too.
  std::optional<storage::IndexRecords> settled_indexes() const;
  /// A second such that all changes with a `_ts` up to it are committed, and no later one will have
  /// such a `_ts`: `now`, read before, less one, unless transactions are under way. Never falls.
  /// Look at the head, or take a snapshot, after it.
  UnixSeconds resolved(UnixSeconds now);
  /// `_ts` of the last committed transaction. It is ahead of the clock when that was set back, and
  /// stays there until the clock has caught up.
  UnixSeconds head_ts() const { return head_ts_.load(std::memory_order_relaxed); }

  /// The latest committed version of a document, at least as new as the head was before the call.
  /// NotFound; RangeGone when others have taken this partition's place; Unavailable on an I/O
  /// error. Blocks.
  Result<PointRead> read(const DocumentAddress& address, const PointReadOptions& options) const;
  /// The same without blocking: NotInMemory where the disk would have to be asked.
  Result<PointRead> read_from_memory(const DocumentAddress& address,
                                     const PointReadOptions& options) const;
  /// The id of a document that is addressed by its number. Errors as read(). Blocks.
  Result<std::string> id_of(const DocumentAddress& address) const;

  /// Commits the transaction and resumes the caller once it is durable. NotFound, Conflict or
  /// PreconditionFailed by the rules of its writes; TooManyRequests when too many are waiting;
  /// Unavailable when the disk refuses, OutcomeUnknown when it failed in the midst of this one;
  /// OwnerNotFound when the container is being deleted;
  /// RangeGone when others have taken this partition's place: nothing was written, look up the
  /// container again.
  Async<Committed> submit(Transaction transaction);
  /// Submits them in order without waiting in between: later ones see earlier ones. Resumes the
  /// caller once each has its outcome, which is as submit() says.
  asio::awaitable<std::vector<Result<Committed>>> submit_all(std::vector<Transaction> transactions);
  /// As submit, for threads that may wait. Blocks.
  Result<Committed> submit_and_wait(Transaction transaction);

  /// From now on every transaction is refused with OwnerNotFound. Those staged before may commit:
  /// the highest LSN they will have reached is returned, and nothing is staged after this returns.
  /// Blocks.
  Lsn close();
  /// The same without waiting: for a partition whose container has turned out to be gone.
  void refuse();
  /// After a disk error has been overcome: readers are told the store's head, also where a write
  /// was answered with an error and has become durable all the same. The writer finds out by
  /// itself. Called on the committer's thread.
  void show_recovered(const storage::Head& head) { publish(head); }
  /// Takes close() back, if deleting the container failed.
  void reopen();

  // ── split and merge: one thread at a time calls these; all but retire() block ──
  // begin_copy, then copy_step until it says false, then hold, then retire or abandon_copy. Every
  // failure ends the copying: what the targets hold is garbage, and this partition goes on.

  /// From now on what is written here is written to the targets too. Conflict when it is being
  /// copied already; Unavailable when `generation` is over; Forbidden, also later, when a target
  /// has no indexes left.
  Result<> begin_copy(CopyPlan plan, StoreGeneration generation);
  /// Copies the next piece of what was there before, in between the transactions that wait. False
  /// when all of it is there. Unavailable after a disk error, OwnerNotFound when the container is
  /// being deleted.
  Result<bool> copy_step();
  /// All indexes that the targets have of this partition, and will get, are below: those of another
  /// parent of the same target are numbered on from it. Once nothing is left to be copied. Errors
  /// as copy_step.
  Result<std::uint32_t> copied_index_bound();
  /// From now on transactions wait. Returns the contents of the targets once all that is staged has
  /// been committed: the new map is to be committed in the same generation, and so after that.
  /// Errors as copy_step; then nothing waits.
  Result<CopyOutcome> hold();
  /// Ends the copying, and the hold if there is one. Once it returns nothing that goes to the
  /// targets is under way.
  void abandon_copy();
  /// Others have taken this partition's place: answers what waits, and all that comes, with
  /// RangeGone. For good. Does not block.
  void retire();
  /// To be asked after reading from this partition without a snapshot: when it is true, the data
  /// may be out of date, or already reclaimed. With a snapshot, right after that was taken.
  bool retired() const { return retired_.load(std::memory_order_acquire); }
  /// RangeGone once it is retired. Readers ask after they have taken the snapshot that they read,
  /// or after they have read: before that it can still be retired, and its data be reclaimed.
  Result<> check_in_place() const;

 private:
  using Done = std::move_only_function<void(Result<Committed>)>;
  /// Work of the writer that is not a transaction of a client: runs where it may block, in order
  /// with them, and is told its outcome once what it staged is committed.
  using Step = std::move_only_function<Result<Committed>(Stage&, storage::Batch&)>;
  struct Waiting {
    Transaction transaction;
    Done done;
    Step step;  ///< instead of a transaction
  };

  void enqueue(Waiting waiting);
  /// Runs a step of the writer and waits for its outcome.
  Result<Committed> run_step(Step step);
  Result<PointRead> read_in(storage::Tier tier, const DocumentAddress& address,
                            const PointReadOptions& options) const;
  /// Stages what waits until nothing does. With Tier::Memory it does not block, and leaves what it
  /// cannot do to a writer thread.
  void drain(storage::Tier tier);
  void drain_elsewhere();
  void put_back(std::vector<Waiting> work, std::size_t from);
  /// Stages transactions and hands them to the committer; returns how many were dealt with.
  std::size_t stage_work(std::vector<Waiting>& work, storage::Tier tier, std::size_t budget);
  /// After a disk error has been overcome: what is in the store counts. False while it has not.
  bool read_state_anew();
  /// A commit has moved the head from `before`. On the committer's thread.
  void publish_committed(Lsn before, const storage::Head& head);
  /// After a disk error the head is the store's, which may be ahead of what was published; and
  /// behind it where durability is relaxed and the disk has lost what it was to write later.
  void publish(const storage::Head& head);

  Environment& environment_;
  const PartitionNumber number_;
  const RangeId range_;
  const PartitionLimits limits_;

  std::atomic<std::uint64_t> head_lsn_;
  HeadWatch head_watch_{head_lsn_};
  std::atomic<std::uint64_t> documents_;
  std::atomic<std::uint64_t> text_bytes_;
  std::atomic<std::uint64_t> history_bytes_;
  std::atomic<UnixSeconds> head_ts_;
  mutable std::mutex indexes_mutex_;
  storage::IndexRecords indexes_;  // Guarded by indexes_mutex_; only publish() changes it.
  /// Likewise: what they will be, set before it is committed.
  storage::IndexRecords staged_indexes_;

  std::mutex mailbox_mutex_;
  std::condition_variable drained_;  // close() waits here for the writer to be done.
  std::vector<Waiting> mailbox_;     // Guarded by mailbox_mutex_, as the next three are.
  std::size_t mailbox_bytes_ = 0;
  bool draining_ = false;  // Whether a thread is, or will be, in drain(): only one ever is.
  bool closed_ = false;
  bool held_ = false;  // Nothing is taken from the mailbox.
  UnixSeconds resolved_ = 0;
  std::atomic<bool> retired_{false};

  // Only the one writer, inside drain(), touches these.
  StoreGeneration stage_generation_;  // In which the stage was read from the store.
  Stage stage_;
};

}  // namespace orrery::partition
