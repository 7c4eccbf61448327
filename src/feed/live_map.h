// LiveMap: which positions of a log were live at some moment, so that a reader can jump over what
// has been superseded since.
//
// Superseded versions lie in the log's files until compaction drops them, and an iterator steps
// over each of them. Where most documents are updated often that costs a page far more than what it
// returns. Versions only ever leave a log, so what was dead once is dead for ever: a map made long
// ago names more than is live now, but never less.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <boost/asio/thread_pool.hpp>

#include "base/result.h"
#include "protocol/ids.h"
#include "storage/keys.h"
#include "storage/records.h"
#include "storage/store.h"

namespace orrery::feed {

/// Immutable, and small: one to two bytes for each position.
class LiveMap {
 public:
  /// Higher places in a transaction are not told from this one: beyond it one steps. LSNs have 53
  /// bits at the most, so that a position is one number of 64.
  static constexpr int kIndexBits = 11;
  static constexpr std::uint32_t kIndexMax = (1 << kIndexBits) - 1;

  /// Collects positions in ascending order.
  class Builder {
   public:
    void add(storage::LogPosition position);
    LiveMap finish(Lsn head);

   private:
    friend class LiveMap;
    std::string bytes_;
    std::vector<std::pair<storage::LogPosition, std::uint32_t>> blocks_;
    storage::LogPosition last_;
    std::size_t count_ = 0;
  };

  /// It knows about all LSNs up to this one.
  Lsn head() const { return head_; }
  std::size_t count() const { return count_; }
  std::size_t byte_size() const;

  /// Asks for one position after the other; cheap as long as they ascend. Must not outlive the map.
  class Walk {
   public:
    explicit Walk(const LiveMap& map) : map_(&map) {}
    /// The first position ≥ `from` in the map; nothing when there is none.
    std::optional<storage::LogPosition> at_least(storage::LogPosition from);

   private:
    void enter(std::size_t block);
    bool step();

    const LiveMap* map_;
    std::size_t block_ = 0;
    std::size_t at_ = 0;    // In bytes_, behind current_.
    std::size_t left_ = 0;  // Positions of the block after current_.
    storage::LogPosition current_;
    bool placed_ = false;
  };

 private:
  LiveMap() = default;

  // Blocks of kBlockPositions. The first position of a block stands in blocks_ with the place of
  // the rest in bytes_. Each of these is a number of 7 bits a byte, lowest first, the top bit
  // saying that there is more:
  //   (LSN - LSN before) * 2             at index 0 of that LSN
  //   (LSN - LSN before) * 2 + 1, index  elsewhere
  static constexpr std::size_t kBlockPositions = 64;
  std::string bytes_;
  std::vector<std::pair<storage::LogPosition, std::uint32_t>> blocks_;
  std::size_t count_ = 0;
  Lsn head_;
};

struct LiveMapLimits {
  std::size_t bytes_max = std::size_t{64} << 20;  ///< of all maps together
  std::uint64_t documents_max = 8'000'000;  ///< of a partition: making a map takes 8 bytes for each
  std::uint64_t new_lsns_min = 64;          ///< a map is not made again for less
  int rest_factor = 10;  ///< nor before so many times as long as making it took have passed
};

/// Plain counters, published by server/metrics.cc.
struct LiveMapStats {
  std::atomic<std::uint64_t> built{0};
  std::atomic<std::uint64_t> bytes{0};
};

/// The maps of all partitions, made in the background when a reader would profit. Thread-safe.
class LiveMaps {
 public:
  /// Maps are made on `pool`, one at a time.
  LiveMaps(storage::Store& store, boost::asio::thread_pool& pool, LiveMapLimits limits = {});
  /// Ends what is being made. Nothing is begun after it.
  void stop();

  /// The map of a partition whose head is `head`, if there is one. Never blocks.
  std::shared_ptr<const LiveMap> of(PartitionNumber partition, const storage::Head& head);
  /// A reader had to step over much that is dead: has a map made, or made again where there is
  /// much that it does not know of. Never blocks.
  void note_slow(PartitionNumber partition, const storage::Head& head);

  /// Makes the map of a partition now. Blocks. For tests, and for those who know.
  Result<> build(PartitionNumber partition);

  const LiveMapStats& stats() const { return stats_; }

 private:
  struct Entry {
    std::shared_ptr<const LiveMap> map;  // Shared with the readers that are using it.
    std::chrono::steady_clock::time_point rests_until{};
    std::uint64_t used = 0;
  };

  void begin(PartitionNumber partition, Entry& entry);
  Result<LiveMap> build_whole(const storage::Snapshot& snapshot, PartitionNumber partition,
                              const storage::Head& head) const;
  Result<LiveMap> extend(const storage::Snapshot& snapshot, PartitionNumber partition,
                         const storage::Head& head, const LiveMap& map) const;
  void keep(PartitionNumber partition, LiveMap map, std::chrono::steady_clock::duration took);

  storage::Store& store_;
  boost::asio::thread_pool& pool_;
  const LiveMapLimits limits_;
  LiveMapStats stats_;
  std::atomic<bool> stopping_{false};

  std::mutex mutex_;
  std::unordered_map<std::uint32_t, Entry>
      entries_;  // By partition. Guarded by mutex_, as the rest.
  std::uint64_t uses_ = 0;
  bool building_ = false;
};

}  // namespace orrery::feed
