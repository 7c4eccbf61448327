// Reclaimer: gives back the space of deleted containers, and of partitions that others have
// replaced. They are out of reach already; it erases what they hold, and goes on after a restart.
#pragma once

#include <atomic>
#include <thread>

#include "catalog/garbage.h"
#include "partition/partition.h"
#include "protocol/ids.h"

namespace orrery::maintenance {

/// One for the whole server. It reclaims one partition at a time.
class Reclaimer {
 public:
  Reclaimer(partition::Environment& environment, catalog::Garbage& garbage)
      : environment_(environment), garbage_(garbage) {}
  ~Reclaimer() { stop(); }

  /// Works on a thread of its own until stop(), which gives up a compaction that is running and
  /// waits. Without garbage the thread sleeps.
  void start();
  void stop();

 private:
  void reclaim(PartitionNumber partition);

  partition::Environment& environment_;
  catalog::Garbage& garbage_;
  std::atomic<bool> is_cancelled_{false};  // Of a compaction.
  std::thread thread_;
};

}  // namespace orrery::maintenance
