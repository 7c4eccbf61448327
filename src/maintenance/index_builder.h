// IndexKeeper: sees to it that all ranges of a container have the secondary indexes that it ought
// to have, and builds them, without being in anybody's way.
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

struct IndexKeeperLimits {
  /// After each piece of a build it rests as long as that took, so that it has no more than half of
  /// the writer; and at most so long, so that it ends. While many wait for commits, always so long.
  std::chrono::milliseconds rest_max{50};
  /// How long it waits after the disk has refused.
  std::chrono::milliseconds retry_interval{250};
};

/// Plain counters, published by server/metrics.cc.
struct IndexKeeperStats {
  std::atomic<std::uint64_t> added_indexes{0};  ///< each once per range
  std::atomic<std::uint64_t> dropped_indexes{0};
  std::atomic<std::uint64_t> indexed_documents{0};  ///< by building
};

/// What a container ought to have: the indexes that its policy names, those that one of its ranges
/// has, and those that somebody wants; of all of them only what the policy allows.
///
/// Thread-safe. Nothing but run_once() and stop() blocks.
class IndexKeeper {
 public:
  IndexKeeper(partition::Environment& environment, catalog::Catalog& catalog,
              IndexKeeperLimits limits = {});
  ~IndexKeeper();

  /// Looks for containers that lack something, and attends to them and to those that somebody names
  /// on a thread of its own until stop(), which waits for it. Without work the thread sleeps.
  void start();
  void stop();

  /// Adds indexes, by IndexSpec::text, to all ranges of the container, and drops others before,
  /// unless the policy names them. What is there, or may not be there, costs next to nothing.
  void want(const Rid& container, const std::vector<std::string>& specs,
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
  /// Attends to one container: makes its ranges have what they ought to, and builds a piece in
  /// each. Blocks; for the keeper's thread, or for tests instead of it.
  Outcome run_once();

  const IndexKeeperStats& stats() const { return stats_; }

 private:
  using Specs = std::set<std::string>;
  /// Beside what a container ought to have anyway.
  struct Wishes {
    Specs wanted;
    Specs unwanted;
  };
  /// What came of attending to a container.
  enum class Attended { Done, More, Refused };
  /// How many documents are behind the index of a partition that has come least far.
  struct Built {
    DocumentNumber up_to;
    std::uint64_t documents = 0;
  };

  void run();
  bool rest(std::chrono::steady_clock::duration worked);
  Attended attend(const catalog::Container& container, const Wishes& wishes);
  Attended build_piece(partition::Partition& partition);
  void see_built(const partition::Partition& partition, DocumentNumber before,
                 std::size_t documents);
  void gather(const partition::Partition& partition, const storage::IndexRecords& before);
  std::optional<std::uint64_t> count_up_to(PartitionNumber partition, DocumentNumber number) const;
  std::uint64_t behind(PartitionNumber partition, DocumentNumber up_to) const;

  partition::Environment& environment_;
  catalog::Catalog& catalog_;
  const IndexKeeperLimits limits_;
  IndexKeeperStats stats_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_, as all that follows.
  std::map<Rid, Wishes> waiting_;  // Containers to attend to, with what somebody wants besides.
  std::optional<Rid> attending_;   // The one that is being attended to; not among the waiting.
  Rid last_;                       // The one that was attended to last.
  std::map<std::uint32_t, Built> built_;  // By partition number, while it is being built.
  std::atomic<bool> stopping_ = false;    // Read without it, too.
  std::thread thread_;
};

}  // namespace orrery::maintenance
