#include "api/pieces.h"

#include <algorithm>
#include <utility>

namespace orrery::api {
namespace {

struct Stretch {
  EpkRange epks;
  DocumentNumber after;
};

EpkRange intersection(const EpkRange& a, const EpkRange& b) {
  return {std::max(a.min, b.min), std::min(a.max, b.max)};
}

std::vector<Piece> pieces_of(const std::vector<Stretch>& stretches, const FeedScope& scope) {
  std::vector<Piece> pieces;
  for (const FeedKey& key : scope.keys) {
    for (const Stretch& stretch : stretches) {
      if (!key.epks.overlaps(stretch.epks)) continue;
      pieces.push_back(
          {key.range, intersection(key.epks, stretch.epks), stretch.after, key.canonical});
    }
  }
  if (!scope.keys.empty()) return pieces;
  for (const catalog::Range* range : scope.ranges) {
    for (const Stretch& stretch : stretches) {
      EpkRange epks = intersection(range->epks, stretch.epks);
      if (epks.max <= epks.min || (scope.epks && !scope.epks->overlaps(epks))) continue;
      pieces.push_back({range, std::move(epks), stretch.after});
    }
  }
  return pieces;
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

std::vector<Piece> pieces_from(const ReadFeedPosition& at, const catalog::RangeMap& map,
                               const FeedScope& scope) {
  return pieces_of(stretches_from(at, map), scope);
}

std::vector<Piece> all_pieces(const ReadFeedPosition& at, const catalog::RangeMap& map,
                              const FeedScope& scope) {
  auto stretches = stretches_from(at, map);
  if (Epk::min() < at.range_min) {
    stretches.insert(stretches.begin(), {{Epk::min(), at.range_min}, kAllDocuments});
  }
  return pieces_of(stretches, scope);
}

ReadFeedPosition position_in(const std::vector<Piece>& pieces, std::size_t at,
                             DocumentNumber last) {
  ReadFeedPosition position{pieces[at].epks.min, last, pieces[at].epks.max, {}};
  for (std::size_t i = at + 1; i < pieces.size() && pieces[i].after != DocumentNumber{}; ++i) {
    position.rests.push_back({pieces[i].epks.max, pieces[i].after});
  }
  return position;
}

std::optional<EpkRange> keys_within(const Piece& piece, const FeedScope& scope) {
  if (piece.epks == piece.range->epks) return scope.epks;
  if (!scope.epks) return piece.epks;
  return intersection(piece.epks, *scope.epks);
}

}  // namespace orrery::api
