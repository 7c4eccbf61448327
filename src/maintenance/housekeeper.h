// Housekeeper: purges expired documents, builds expiry entries where TTL was switched on, trims
// history whose retention is over, and applies retention settings that a crash has left behind.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "catalog/catalog.h"
#include "partition/expiry.h"
#include "partition/partition.h"

namespace orrery::maintenance {

struct HousekeeperLimits {
  std::uint64_t history_bytes_max = 1ull << 30;  ///< of one partition; beyond, the oldest goes
  std::chrono::milliseconds interval{250};       ///< between rounds
  /// A round ends after so long, and goes on with the rest the next time.
  std::chrono::milliseconds round_max{50};
  std::uint64_t clock_check_rounds = 240;  ///< so often it is looked whether `_ts` is ahead
  UnixSeconds clock_tolerance = 2;         ///< that much ahead is nothing to tell
};

/// Plain counters, published by server/metrics.cc.
struct HousekeeperStats {
  std::atomic<std::uint64_t> purged_documents{0};
  std::atomic<std::uint64_t> trimmed_history_records{0};
  std::atomic<std::uint64_t> purges{0};  ///< transactions
  std::atomic<std::uint64_t> clock_warnings{0};
};

/// One for the whole server. It looks only at containers that have TTL or keep history, and of
/// those only at what may have something due: ten thousand idle ones cost a round a millisecond.
class Housekeeper {
 public:
  Housekeeper(partition::Environment& environment, catalog::Catalog& catalog,
              HousekeeperLimits limits = {});
  ~Housekeeper();

  /// `tell` hears how much was erased of a partition. It must not block. To be set before start().
  void on_erased(std::function<void(PartitionNumber partition, std::uint64_t count)> tell) {
    tell_erased_ = std::move(tell);
  }

  /// Runs rounds on a thread of its own until stop(), which waits for it.
  void start();
  void stop();

  /// One round. True when there is more to do at once. Blocks; for that thread, or for tests
  /// instead of it.
  bool run_once();

  const HousekeeperStats& stats() const { return stats_; }

 private:
  /// State of a partition that is looked after.
  struct Watch {
    Lsn container_version;  // With another one everything is looked at again.
    std::uint64_t round = 0;
    // Expiry.
    bool built = false;
    Lsn head_seen;  // When the next two were found.
    std::optional<UnixSeconds> next_due;
    partition::DueQueue due;
    // History.
    std::optional<UnixSeconds> next_trim;
  };
  class Round;

  void run();
  void check_clock();
  void reconcile(Round& round);
  void look_after(const catalog::Container& container, partition::Partition& partition,
                  Round& round);
  void build_expiry(partition::Partition& partition, Watch& watch, Round& round);
  void purge(const catalog::Container& container, partition::Partition& partition, Watch& watch,
             Round& round);
  void trim(const catalog::Container& container, partition::Partition& partition, Watch& watch,
            Round& round);

  partition::Environment& environment_;
  catalog::Catalog& catalog_;
  const HousekeeperLimits limits_;
  HousekeeperStats stats_;
  std::function<void(PartitionNumber, std::uint64_t)> tell_erased_;

  // Only the thread that runs rounds touches these.
  std::unordered_map<std::uint32_t, Watch> watches_;  // By partition number.
  std::uint64_t rounds_ = 0;
  partition::StoreGeneration generation_;  // The committer's, in which the watches were made.
  Rid last_;                               // The container with which the last round ended early.
  bool has_warned_of_clock_ = false;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // Guarded by mutex_.
  std::thread thread_;
};

}  // namespace orrery::maintenance
