// Garbage: partitions that belong to no container any more, until their space is reclaimed. The
// store has the same list, so that it is complete after a restart.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "catalog/range_map.h"
#include "partition/partition.h"
#include "protocol/ids.h"

namespace orrery::catalog {

/// Thread-safe.
class Garbage {
 public:
  /// To be reclaimed at once. A partition that is in the list already stays there as it is.
  void add(const std::vector<PartitionNumber>& partitions);
  /// Of ranges that others have replaced: readers who are under way may finish, within bounds.
  void add_when_unused(const std::vector<Range>& ranges);
  void add_when_unused(const std::shared_ptr<partition::Partition>& partition);
  /// Backoff: the disk has refused to reclaim it.
  void retry_later(PartitionNumber partition);

  /// Waits for one that can be reclaimed now, and takes it out of the list. Nothing after close().
  std::optional<PartitionNumber> take();
  /// Ends take(); what is left is reclaimed after the next start.
  void close();

 private:
  using Steady = std::chrono::steady_clock;
  struct Entry {
    PartitionNumber partition;
    /// Taken when nobody reads it any more, or then at the latest.
    std::weak_ptr<partition::Partition> readers;
    Steady::time_point deadline{};
    Steady::time_point not_before{};
  };

  void insert(Entry entry);

  /// Guards all that follows. A leaf: nothing is locked inside.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Entry> entries_;
  bool closed_ = false;
};

}  // namespace orrery::catalog
