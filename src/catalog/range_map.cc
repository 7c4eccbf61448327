#include "catalog/range_map.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace orrery::catalog {

RangeMap::RangeMap(std::vector<Range> ranges, std::uint64_t version, RangeId next_id)
    : ranges_(std::move(ranges)), version_(version), next_id_(next_id) {
  std::ranges::sort(ranges_, {}, [](const Range& range) { return range.epks.min; });
  // The ranges cover the hash space without gap or overlap, and none is empty.
  ORRERY_ASSERT(!ranges_.empty());
  ORRERY_ASSERT(ranges_.front().epks.min == Epk::min());
  ORRERY_ASSERT(ranges_.back().epks.max == Epk::max());
  for (std::size_t i = 1; i < ranges_.size(); ++i) {
    ORRERY_ASSERT(ranges_[i - 1].epks.max == ranges_[i].epks.min);
  }
  for (const Range& range : ranges_) {
    ORRERY_ASSERT(range.epks.min < range.epks.max);
    next_id_ = std::max(next_id_, RangeId{range.id.value + 1});
    for (const RangeId parent : range.parents) {
      next_id_ = std::max(next_id_, RangeId{parent.value + 1});
    }
  }
}

const Range& RangeMap::owner_of(const Epk& epk) const {
  const auto after = std::ranges::upper_bound(
      ranges_, epk, {}, [](const Range& range) -> const Epk& { return range.epks.min; });
  ORRERY_ASSERT(after != ranges_.begin());
  return *(after - 1);
}

const Range* RangeMap::find(RangeId id) const {
  const auto found = std::ranges::find(ranges_, id, &Range::id);
  return found == ranges_.end() ? nullptr : &*found;
}

std::vector<const Range*> RangeMap::overlapping(const EpkRange& epks) const {
  std::vector<const Range*> found;
  for (const Range& range : ranges_) {
    if (range.epks.overlaps(epks)) found.push_back(&range);
  }
  return found;
}

}  // namespace orrery::catalog
