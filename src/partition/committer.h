// Committer: group commit. The one thread that moves heads takes all that is staged in all
// partitions and makes it durable with one write and one fsync.
#pragma once

#include <atomic>
#include <chrono>
#include <compare>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "commitlog/commit_log.h"
#include "protocol/ids.h"
#include "storage/batch.h"
#include "storage/records.h"

namespace orrery::partition {

/// Counts failed commits and recoveries from them, in this process. State that was read from the
/// store in an older generation may never have become durable.
struct StoreGeneration {
  std::uint64_t value = 0;
  auto operator<=>(const StoreGeneration&) const = default;
};

struct CommitterLimits {
  std::size_t group_bytes_max = 8 << 20;    ///< one commit is not larger, unless one item is
  std::size_t queued_bytes_max = 64 << 20;  ///< writers wait when more than this is staged
  std::chrono::milliseconds recovery_interval{250};
  std::size_t contention_transactions = 4;  ///< so many in one commit mean contention
  /// For so long after such a commit contention is assumed. Longer than a slow fsync.
  std::chrono::milliseconds contention_window{50};
};

/// Plain counters, published by server/metrics.cc.
struct CommitterStats {
  std::atomic<std::uint64_t> commits{0};
  std::atomic<std::uint64_t> groups{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> commit_failures{0};
  std::atomic<std::uint64_t> recoveries{0};
};

class Committer {
 public:
  /// Records that one partition, or the catalog, has staged.
  struct Staged {
    storage::Batch batch;
    std::size_t transactions = 1;  ///< in it, of which each has somebody who waits for it
    PartitionNumber partition;
    /// How it moves the partition's head: each move begins where the one before it has ended, so
    /// that LSNs are dense and in commit order. Of several in one commit only the last is stored.
    struct HeadMove {
      Lsn from;
      storage::Head to;
    };
    std::optional<HeadMove> head;
    /// In which it was validated: once that is over, it is refused.
    StoreGeneration generation;
    /// Called on the committer's thread, in commit order, once the outcome is known. Must not
    /// block.
    std::move_only_function<void(const Result<>&)> done;
  };

  Committer(commitlog::CommitLog& log, CommitterLimits limits);
  ~Committer();

  void start();
  /// Commits what is queued, then ends the thread. Later submissions are refused.
  void stop();

  /// Whether more than queued_bytes_max is staged. Cheap.
  bool is_full() const {
    return queued_bytes_.load(std::memory_order_relaxed) > limits_.queued_bytes_max;
  }
  /// Whether writers contend for the committer: background work should make way. Cheap.
  bool is_contended() const;
  enum class WhenFull {
    Wait,    ///< blocks
    Exceed,  ///< for event loops, which have asked is_full() before
  };
  /// Hands over what is staged. Thread-safe.
  void submit(Staged staged, WhenFull when_full = WhenFull::Wait);

  /// Commits an empty-handed write and waits for it: whether a write would succeed now. Blocks.
  Result<> probe();
  /// Commits `batch`, validated in `generation`, and waits for it. `committed`, if given, is called
  /// on the committer's thread once it is, before anything after it is committed or recovered.
  /// Blocks. Unavailable while writes are suspended, OutcomeUnknown when the disk failed under this
  /// one.
  Result<> commit(storage::Batch batch, StoreGeneration generation,
                  const std::function<void()>& committed = {});

  /// Changes with every failure and with every recovery: state that was read from the store before
  /// has to be read anew.
  StoreGeneration generation() const {
    return StoreGeneration{generation_.load(std::memory_order_acquire)};
  }
  /// Whether writes are accepted; cheap.
  bool accepts() const { return accepts_.load(std::memory_order_acquire); }
  /// Why not.
  Error refusal() const;

  /// Called on the committer's thread once a failure has been overcome and before writes are
  /// accepted again: the time to read state that is kept in memory anew. Set before start(); must
  /// not wait for anything that waits for a commit.
  void on_recovered(std::function<Result<>()> callback) { recovered_ = std::move(callback); }

  const CommitterStats& stats() const { return stats_; }

 private:
  void run();
  std::vector<Staged> take_group();
  void commit_group(std::vector<Staged>& group);
  void suspend(const Error& error);
  void try_to_recover();

  commitlog::CommitLog& log_;
  const CommitterLimits limits_;
  std::function<Result<>()> recovered_;
  CommitterStats stats_;

  mutable std::mutex mutex_;
  std::condition_variable work_;   // The committer waits here for something staged.
  std::condition_variable space_;  // Writers wait here for the queue to shrink.
  std::vector<Staged> queue_;
  std::atomic<std::size_t> queued_bytes_{0};  // Changed under mutex_ only.
  std::atomic<std::chrono::steady_clock::time_point> contended_until_{};
  std::string failure_;
  bool stopping_ = false;
  bool stopped_ = false;

  std::atomic<std::uint64_t> generation_{1};
  std::atomic<bool> accepts_{true};
  std::thread thread_;
};

}  // namespace orrery::partition
