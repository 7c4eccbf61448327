// RangeMap: which physical partition owns which part of a container's hash space.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "partition/partition.h"
#include "protocol/ids.h"
#include "protocol/keys/epk.h"

namespace orrery::catalog {

struct Range {
  RangeId id;
  EpkRange epks;
  std::vector<RangeId> parents;  ///< all ancestors, oldest first
  std::uint64_t made_in = 1;     ///< the version of the map that it came with
  UnixSeconds ts = 0;
  std::shared_ptr<partition::Partition> partition;  ///< shared with requests under way
};

/// Ranges in the order of their EPKs; together they cover the whole space without gap or overlap.
class RangeMap {
 public:
  RangeMap() = default;
  /// `next_id` is the first range id never given out; at least one above all that the ranges name.
  RangeMap(std::vector<Range> ranges, std::uint64_t version, RangeId next_id = {});

  /// Counts changes of the set of ranges: the etag of pkranges.
  std::uint64_t version() const { return version_; }
  const std::vector<Range>& all() const { return ranges_; }
  /// The id that the next new range of this container gets: none is ever used twice.
  RangeId next_id() const { return next_id_; }

  const Range& owner_of(const Epk& epk) const;
  /// Null when no live range has that id.
  const Range* find(RangeId id) const;
  /// The live ranges that hold any part of `epks`, in order.
  std::vector<const Range*> overlapping(const EpkRange& epks) const;

 private:
  std::vector<Range> ranges_;
  std::uint64_t version_ = 1;
  RangeId next_id_;
};

}  // namespace orrery::catalog
