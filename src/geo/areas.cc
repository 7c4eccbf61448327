#include "geo/areas.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace orrery::geo {

namespace {

/// The angle, in all, by which a view from the place turns when it follows the ring. Once round, to
/// the left, where the place is on the left of the ring; once round, to the right, where it is on
/// the right; and the same for the place at the other end of the earth, the other way round.
/// Nothing otherwise.
double turn_around(Space place, const std::vector<Space>& ring) {
  double turn = 0;
  for (std::size_t i = 1; i < ring.size(); ++i) {
    const Space from = cross(place, ring[i - 1]);
    const Space to = cross(place, ring[i]);
    turn += std::atan2(dot(place, cross(from, to)), dot(from, to));
  }
  return turn;
}

}  // namespace

Areas::Areas(const std::vector<Outline::Polygon>& polygons) {
  // In a wider cone than this what lies within a ring may lie outside of it.
  constexpr double kCosineMin = 0.2;
  constexpr double kSlack = 1e-9;
  for (const Outline::Polygon& from : polygons) {
    Polygon& polygon = polygons_.emplace_back();
    Space sum{0, 0, 0};
    for (const Outline::Chain& chain : from) {
      Ring& ring = polygon.rings.emplace_back();
      for (const Position position : chain) {
        ring.push_back(normalized(on_earth(position)));
      }
      steps_ += ring.size();
    }
    for (const Space corner : polygon.rings[0]) sum = sum + corner;
    polygon.cosine = -1;
    if (length(sum) > kSlack) {
      polygon.middle = normalized(sum);
      double cosine = 1;
      for (const Space corner : polygon.rings[0]) {
        cosine = std::min(cosine, dot(polygon.middle, corner));
      }
      if (cosine >= kCosineMin) polygon.cosine = cosine - kSlack;
    }
  }
}

bool Areas::contain(Space place) const {
  const Space towards = normalized(place);
  return std::ranges::any_of(polygons_, [&](const Polygon& polygon) {
    if (polygon.cosine >= 0 && dot(polygon.middle, towards) < polygon.cosine) return false;
    if (turn_around(towards, polygon.rings[0]) < std::numbers::pi) return false;
    // Holes go clockwise.
    return std::ranges::none_of(
        polygon.rings.begin() + 1, polygon.rings.end(),
        [&](const Ring& hole) { return turn_around(towards, hole) < -std::numbers::pi; });
  });
}

}  // namespace orrery::geo
