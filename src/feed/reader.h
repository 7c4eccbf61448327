// Reader: makes pages of the change feed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "feed/live_map.h"
#include "feed/page.h"
#include "partition/partition.h"
#include "storage/store.h"

namespace orrery::feed {

/// Where a reader that names a time begins.
struct TimePosition {
  bool found = false;  ///< something is newer; else `position` is the head
  Lsn position;        ///< just below the first change that is
  Lsn head;
  Lsn merged_at;
};

/// The changes that a reader has not seen yet.
struct Lag {
  std::uint64_t items = 0;
  std::uint64_t bytes = 0;               ///< of their texts
  std::optional<UnixSeconds> oldest_ts;  ///< of the first of them
  std::uint64_t lsns = 0;                ///< transactions of the range, also of others than these
  Lsn head;
};

/// Plain counters, published by server/metrics.cc.
struct ReaderStats {
  std::atomic<std::uint64_t> pages{0};
  std::atomic<std::uint64_t> items{0};
  std::atomic<std::uint64_t> positions_ahead{0};  ///< refused: they were beyond the head
};

struct SourceContext;
class Source;

/// Thread-safe.
class Reader {
 public:
  Reader(storage::Store& store, LiveMaps& live_maps) : store_(store), live_maps_(live_maps) {}

  /// The answer to a reader that is at the head: known from memory, without looking at the store.
  /// Nothing when there is something to read, or when the position is beyond the head: a snapshot
  /// may have a head that is not published yet. Never blocks.
  std::optional<Page> caught_up(const partition::Partition& partition, const PageRequest& request);

  /// For those who read several partitions at one moment. Unavailable while the store is reopened
  /// after a disk error.
  Result<storage::Snapshot> snapshot() const { return store_.snapshot(); }

  /// A page, from a snapshot of its own. `text` is what the items are appended to. Blocks.
  /// BadRequest when the position lies before where the history that is asked for begins, or beyond
  /// the head; RangeGone when others have taken the partition's place; Unavailable on an I/O error;
  /// the error of the request's filter.
  Result<Page> read(const partition::Partition& partition, const PageRequest& request,
                    std::string text = {});
  /// The same from a snapshot that the caller has: several partitions at one moment.
  Result<Page> read(const storage::Snapshot& snapshot, PartitionNumber partition,
                    const PageRequest& request, std::string text = {});

  /// Where changes with a `_ts` above `time` begin, in the request's scope. Its `after` and
  /// `newer_than` do not matter. Blocks. Errors as read().
  Result<TimePosition> find_time(const partition::Partition& partition, const PageRequest& request,
                                 UnixSeconds time);
  Result<TimePosition> find_time(const storage::Snapshot& snapshot, PartitionNumber partition,
                                 const PageRequest& request, UnixSeconds time);

  /// How much lies above the request's position. Its budgets do not matter, but for the deadlines:
  /// Unavailable when it cannot be counted in time. Blocks. Errors as read().
  Result<Lag> lag(const partition::Partition& partition, const PageRequest& request);
  Result<Lag> lag(const storage::Snapshot& snapshot, PartitionNumber partition,
                  const PageRequest& request);

  /// Whether the request may be served by a partition with that head. Errors as read().
  Result<> check(const storage::Head& head, const PageRequest& request);

  /// The source of a request above its `after`. For those who merge several.
  Result<std::unique_ptr<Source>> open(const SourceContext& context, const PageRequest& request);

  const ReaderStats& stats() const { return stats_; }

 private:
  Result<storage::Snapshot> snapshot_of(const partition::Partition& partition) const;

  storage::Store& store_;
  LiveMaps& live_maps_;
  ReaderStats stats_;
};

}  // namespace orrery::feed
