// Compactor: gives back the space of what was erased. RocksDB compacts because of what is written;
// on a server that has become idle, documents that were purged would stay on the disk for ever.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "protocol/ids.h"
#include "storage/store.h"

namespace orrery::maintenance {

struct CompactorLimits {
  std::uint64_t erasures_min = 10'000;  ///< of one partition; fewer are not worth it
  /// A partition is left alone until nothing was erased in it for so long,
  std::chrono::milliseconds quiet{5'000};
  /// but not for longer than this.
  std::chrono::milliseconds wait_max{300'000};
  std::size_t partitions_max = 100'000;  ///< that it remembers; others wait for what is written
};

/// One for the whole server. It compacts one partition at a time.
class Compactor {
 public:
  explicit Compactor(storage::Store& store, CompactorLimits limits = {});
  ~Compactor();

  /// Works on a thread of its own until stop(), which gives up what is running and waits.
  void start();
  void stop();

  /// So many documents, or recorded changes, were erased in the partition. Any thread; cheap.
  void note_erased(PartitionNumber partition, std::uint64_t count);

  /// Compacts one partition that is due. False when none is. Blocks; for that thread, or for tests
  /// instead of it.
  bool run_once();

  std::uint64_t compactions() const { return compactions_.load(std::memory_order_relaxed); }

 private:
  using Steady = std::chrono::steady_clock;
  struct Erased {
    std::uint64_t count = 0;
    Steady::time_point first;
    Steady::time_point last;
  };

  std::optional<PartitionNumber> take_due();

  storage::Store& store_;
  const CompactorLimits limits_;
  std::atomic<bool> is_cancelled_{false};
  std::atomic<std::uint64_t> compactions_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<PartitionNumber, Erased> erased_;  // Guarded by mutex_.
  std::thread thread_;
};

}  // namespace orrery::maintenance
