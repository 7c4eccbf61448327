#include "executor/range_slice.h"

#include <algorithm>
#include <utility>

namespace orrery::executor {
namespace {

struct Stretch {
  EpkRange epks;
  DocumentNumber after;
};

EpkRange intersection(const EpkRange& a, const EpkRange& b) {
  return {std::max(a.min, b.min), std::min(a.max, b.max)};
}

std::vector<RangeSlice> slices_of(const std::vector<Stretch>& stretches,
                                  const ContainerScope& scope) {
  std::vector<RangeSlice> slices;
  for (const KeyScope& key : scope.keys) {
    for (const Stretch& stretch : stretches) {
      if (!key.epks.overlaps(stretch.epks)) continue;
      slices.push_back(
          {key.range, intersection(key.epks, stretch.epks), stretch.after, key.canonical});
    }
  }
  if (!scope.keys.empty()) return slices;
  for (const catalog::Range* range : scope.ranges) {
    for (const Stretch& stretch : stretches) {
      EpkRange epks = intersection(range->epks, stretch.epks);
      if (epks.max <= epks.min || (scope.epks && !scope.epks->overlaps(epks))) continue;
      slices.push_back({range, std::move(epks), stretch.after});
    }
  }
  return slices;
}

std::vector<Stretch> stretches_from(const ReadFeedPosition& at, const catalog::RangeMap& map) {
  std::vector<Stretch> stretches;
  Epk end = at.range_min;
  const auto add = [&](const Epk& max, DocumentNumber after) {
    if (max <= end) return;
    stretches.push_back({{end, max}, after});
    end = max;
  };
  if (at.after != DocumentNumber{}) {
    add(at.range_max.value_or(map.owner_of(at.range_min).epks.max), at.after);
    for (const ReadFeedPosition::Rest& rest : at.rests) add(rest.max, rest.after);
  }
  add(Epk::max(), DocumentNumber{});
  return stretches;
}

}  // namespace

std::vector<RangeSlice> slices_from(const ReadFeedPosition& at, const catalog::RangeMap& map,
                                    const ContainerScope& scope) {
  return slices_of(stretches_from(at, map), scope);
}

std::vector<RangeSlice> all_slices(const ReadFeedPosition& at, const catalog::RangeMap& map,
                                   const ContainerScope& scope) {
  auto stretches = stretches_from(at, map);
  if (Epk::min() < at.range_min) {
    stretches.insert(stretches.begin(), {{Epk::min(), at.range_min}, kAllDocuments});
  }
  return slices_of(stretches, scope);
}

ReadFeedPosition position_in(const std::vector<RangeSlice>& slices, std::size_t at,
                             DocumentNumber last) {
  ReadFeedPosition position{slices[at].epks.min, last, slices[at].epks.max, {}};
  for (std::size_t i = at + 1; i < slices.size() && slices[i].after != DocumentNumber{}; ++i) {
    position.rests.push_back({slices[i].epks.max, slices[i].after});
  }
  return position;
}

std::optional<EpkRange> keys_within(const RangeSlice& slice, const ContainerScope& scope) {
  if (slice.epks == slice.range->epks) return scope.epks;
  if (!scope.epks) return slice.epks;
  return intersection(slice.epks, *scope.epks);
}

}  // namespace orrery::executor
