// RangeChange: a split of one range, or a merge of two neighbours, from its acceptance to its end.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "catalog/resources.h"
#include "partition/copy/copy.h"
#include "protocol/ids.h"
#include "protocol/keys/epk.h"

namespace orrery::catalog {

class Catalog;

/// Accepted by Catalog::begin_split or begin_merge. As long as it exists no other change of the
/// same ranges is accepted.
///
/// What becomes of a crash: the new partitions are registered as garbage before anything is put
/// into them, and taken out of that list by the commit that puts them into the map. Before it, the
/// old map holds and the rest is reclaimed; after it, the new one, and the old partitions are.
class RangeChange {
 public:
  ~RangeChange();
  RangeChange(const RangeChange&) = delete;
  RangeChange& operator=(const RangeChange&) = delete;

  /// Copies, then switches. Blocks as long as that takes; writes go on meanwhile, but for the last
  /// moment, in which they wait. The container with its new ranges. NotFound when it was deleted
  /// meanwhile; Unavailable when the disk refuses or the server stops: then everything is as
  /// before.
  Result<std::shared_ptr<const Container>> run();

 private:
  friend class Catalog;
  RangeChange(Catalog& catalog, Rid container, std::vector<Range> parents,
              std::vector<EpkRange> parts);

  /// Where one first-level hash of a hierarchical key holds most of a range, the cut goes through
  /// that.
  Result<> look_for_crowd();
  /// Takes numbers for the new partitions, and registers them as garbage.
  Result<> prepare();
  Result<> copy();
  /// Back-pressure: waits, within bounds, while the store's flushes and compactions are behind, so
  /// that the copy does not bring about a write stall. False when the catalog is stopping.
  bool wait_for_store();
  Result<std::shared_ptr<const Container>> switch_over();
  std::vector<storage::Head> heads_of_parts(
      const std::vector<partition::CopyOutcome>& outcomes) const;
  void abandon();

  Catalog& catalog_;
  const Rid container_;
  const std::vector<Range> parents_;       // In the order of their keys: one, or two to be merged.
  std::vector<EpkRange> parts_;            // What comes of them: two, or one.
  bool may_choose_ = false;                // Nobody said where to cut.
  partition::StoreGeneration generation_;  // Of the committer. A disk error ends it all.
  std::vector<PartitionNumber> numbers_;   // Of the new partitions.
  std::vector<partition::CopiedIndex> indexes_;  // That the new partitions get complete.
  std::size_t copying_ = 0;                      // How many parents have begun to.
  bool committing_ = false;  // From then on only the disk knows which map holds.
};

}  // namespace orrery::catalog
