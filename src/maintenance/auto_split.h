// AutoSplit: splits ranges without being asked, one at a time: those that have grown too large, and
// those of containers whose throughput was raised beyond what their ranges serve.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <thread>

#include "catalog/catalog.h"
#include "maintenance/range_change.h"
#include "protocol/ids.h"

namespace orrery::maintenance {

struct AutoSplitOptions {
  std::uint64_t range_bytes_max = 50ull << 30;  ///< of the texts of its documents
  std::chrono::milliseconds interval{500};      ///< how often it looks
};

/// Looks around on a thread of its own.
class AutoSplit {
 public:
  AutoSplit(catalog::Catalog& catalog, RangeChanges& changes, AutoSplitOptions options)
      : catalog_(catalog), changes_(changes), options_(options) {}
  ~AutoSplit() { stop(); }

  void start();
  /// Waits for a split that is under way; that gives up once RangeChanges are stopped.
  void stop();

  /// Splits one range if any ought to be, and says whether it did. Blocks. Not while started.
  bool step();

 private:
  bool split_for_throughput();
  bool split_for_size();
  bool split_for_size(const catalog::Container& container);
  bool split(const catalog::Container& container, const catalog::Range& range,
             std::string_view why);

  catalog::Catalog& catalog_;
  RangeChanges& changes_;
  const AutoSplitOptions options_;
  /// Ranges of which a split took next to nothing away, as when one key has most of the documents:
  /// how large they must become before another is tried.
  std::map<PartitionNumber, std::uint64_t> not_before_;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // Guarded by mutex_.
  std::thread thread_;
};

}  // namespace orrery::maintenance
