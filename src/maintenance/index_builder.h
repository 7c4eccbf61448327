// IndexBuilder: gives all ranges of a container the secondary indexes that it ought to have, and
// builds them in the background.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "catalog/catalog.h"
#include "partition/partition.h"
#include "protocol/ids.h"

namespace orrery::maintenance {

struct IndexBuilderLimits {
  /// After each step of a build it rests as long as that took, so that it has no more than half of
  /// the writer; and at most so long, so that it ends. Under contention for commits, always so
  /// long.
  std::chrono::milliseconds rest_max{50};
  /// Backoff after the disk has refused.
  std::chrono::milliseconds retry_interval{250};
};

/// Plain counters, published by server/metrics.cc.
struct IndexBuilderStats {
  std::atomic<std::uint64_t> added_indexes{0};  ///< each once per range
  std::atomic<std::uint64_t> dropped_indexes{0};
  std::atomic<std::uint64_t> indexed_documents{0};  ///< by building
};

/// A container ought to have the indexes that its policy names, those that one of its ranges has,
/// and those that were requested; of all of them only those that the policy allows.
///
/// Thread-safe. Nothing but run_once() and stop() blocks.
class IndexBuilder {
 public:
  IndexBuilder(partition::Environment& environment, catalog::Catalog& catalog,
               IndexBuilderLimits limits = {});
  ~IndexBuilder();

  /// Processes containers that lack something, and those that are requested or reconciled later, on
  /// a thread of its own until stop(), which waits for it. Without work the thread sleeps.
  void start();
  void stop();

  /// Adds indexes, by IndexSpec::text, to all ranges of the container, and drops `unwanted` ones
  /// before, unless the policy names them. An index that is there, or may not be there, costs next
  /// to nothing.
  void request(const Rid& container, const std::vector<std::string>& specs,
               const std::vector<std::string>& unwanted = {});
  /// The container is new, or its policy or its ranges have changed.
  void reconcile(const Rid& container);
  /// How many of a hundred documents the container's indexes have. 100 when nothing is being built.
  int progress(const Rid& container) const;

  enum class Outcome {
    Idle,     ///< there was nothing to do
    Worked,   ///< there may be more to do
    Refused,  ///< not now: the disk
  };
  /// Processes one container: adds and drops indexes of its ranges, and runs one step of the builds
  /// in each. Blocks; for the builder's thread, or for tests instead of it.
  Outcome run_once();

  const IndexBuilderStats& stats() const { return stats_; }

 private:
  using Specs = std::set<std::string>;
  /// Indexes to add and drop beside those that a container ought to have anyway.
  struct Request {
    Specs add;
    Specs drop;
  };
  /// How far processing a container has come.
  enum class Progress { Done, More, Refused };
  /// How many documents the least complete index of a partition has.
  struct Built {
    DocumentNumber up_to;
    std::uint64_t documents = 0;
  };

  void run();
  bool rest(std::chrono::steady_clock::duration worked);
  Progress process(const catalog::Container& container, const Request& request);
  Progress build_piece(partition::Partition& partition);
  void record_built(const partition::Partition& partition, DocumentNumber before,
                    std::size_t documents);
  void compact_built(const partition::Partition& partition, const storage::IndexRecords& before);
  std::optional<std::uint64_t> count_up_to(PartitionNumber partition, DocumentNumber number) const;
  std::uint64_t behind(PartitionNumber partition, DocumentNumber up_to) const;

  partition::Environment& environment_;
  catalog::Catalog& catalog_;
  const IndexBuilderLimits limits_;
  IndexBuilderStats stats_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_, as all that follows.
  std::map<Rid, Request> waiting_;        // Containers to process.
  std::optional<Rid> current_;            // The one being processed; not among the waiting.
  Rid last_;                              // The one that was processed last.
  std::map<std::uint32_t, Built> built_;  // By partition number, while it is being built.
  std::atomic<bool> stopping_ = false;    // Read without it, too.
  std::thread thread_;
};

}  // namespace orrery::maintenance
