// RangeChange: a split of one range, or a merge of two neighbours, from its acceptance to its end.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <vector>

#include "base/result.h"
#include "catalog/catalog.h"
#include "partition/copy/copy.h"
#include "partition/partition.h"
#include "protocol/ids.h"
#include "protocol/keys/epk.h"

namespace orrery::maintenance {

/// Partitions that are being split or merged. Thread-safe.
class RangeClaims {
 public:
  /// All or none. The first range that is claimed already, if there is one: then none is.
  const catalog::Range* claim(const std::vector<catalog::Range>& ranges);
  void release(const std::vector<catalog::Range>& ranges);

 private:
  std::mutex mutex_;                   // A leaf: nothing is locked inside.
  std::set<PartitionNumber> claimed_;  // Guarded by mutex_.
};

/// Accepted by RangeChanges. As long as it exists no other change of the same ranges is accepted.
///
/// After a crash either map holds completely: see catalog::Topology.
class RangeChange {
 public:
  struct Plan {
    Rid container;
    std::vector<catalog::Range> parents;  ///< claimed, in the order of their keys: one or two
    std::vector<EpkRange> parts;          ///< that come of them: two or one
    bool may_choose = false;              ///< the client did not say where to split
  };
  /// `claims` are released with it; `stop` ends it. Both outlive it, as the environment does.
  RangeChange(partition::Environment& environment, catalog::Catalog& catalog, RangeClaims& claims,
              std::stop_token stop, Plan plan);
  ~RangeChange();
  RangeChange(const RangeChange&) = delete;
  RangeChange& operator=(const RangeChange&) = delete;

  /// Copies, then switches. Blocks as long as that takes; writes go on meanwhile, but for the last
  /// moment, in which they wait. The container with its new ranges. NotFound when it was deleted
  /// meanwhile; Unavailable or OutcomeUnknown when the disk refuses or the server stops: then
  /// everything is as before.
  Result<catalog::ContainerPtr> run();

 private:
  /// Where one first-level hash of a hierarchical key holds most of a range, the range is split
  /// within that prefix.
  Result<> find_hot_prefix();
  Result<> copy();
  /// Waits; false when the server stops.
  bool rest(std::chrono::steady_clock::duration duration) const;
  /// Back-pressure: waits, within bounds, while the store's flushes and compactions are behind, so
  /// that the copy does not bring about a write stall. False when the server stops.
  bool wait_for_store() const;
  Result<catalog::ContainerPtr> switch_over();
  std::vector<storage::Head> heads_of_parts(
      const std::vector<partition::CopyOutcome>& outcomes) const;
  void abandon();

  partition::Environment& environment_;
  catalog::Catalog& catalog_;
  RangeClaims& claims_;
  const std::stop_token stop_;
  const Rid container_;
  const std::vector<catalog::Range> parents_;
  std::vector<EpkRange> parts_;
  const bool may_choose_;
  catalog::Topology::Reserved reserved_;         // The new partitions.
  std::vector<partition::CopiedIndex> indexes_;  // That the new partitions get complete.
  std::size_t copying_ = 0;                      // Parents whose copy has begun.
  bool committing_ = false;  // From then on only the disk knows which map holds.
};

/// Accepts splits and merges. Thread-safe. Outlives the changes that it has accepted.
class RangeChanges {
 public:
  RangeChanges(partition::Environment& environment, catalog::Catalog& catalog)
      : environment_(environment), catalog_(catalog) {}

  /// Accepts a split of a range, at `at` or in the middle; run() does it. NotFound when the
  /// container is not there, RangeGone when the range is not; BadRequest when it cannot be split,
  /// or not there; Conflict while another change of it is under way. Does not block.
  Result<std::unique_ptr<RangeChange>> begin_split(const Rid& container, RangeId range,
                                                   const std::optional<Epk>& at);
  /// Likewise of two neighbours, in any order.
  Result<std::unique_ptr<RangeChange>> begin_merge(const Rid& container, RangeId one,
                                                   RangeId other);
  /// Both steps at once.
  Result<catalog::ContainerPtr> split(const Rid& container, RangeId range,
                                      const std::optional<Epk>& at = {});
  Result<catalog::ContainerPtr> merge(const Rid& container, RangeId one, RangeId other);

  /// Changes that are under way give up, also those that begin later. Their callers wait for them.
  void stop() { stop_.request_stop(); }

 private:
  Result<std::unique_ptr<RangeChange>> accept(const catalog::Container& container,
                                              RangeChange::Plan plan);

  partition::Environment& environment_;
  catalog::Catalog& catalog_;
  RangeClaims claims_;
  std::stop_source stop_;
};

}  // namespace orrery::maintenance
