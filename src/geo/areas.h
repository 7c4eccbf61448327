// Tests whether a place lies in an area on the earth.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "geo/outline.h"

namespace orrery::geo {

/// The polygons of an area, as seen from the centre of the earth. Never changes.
class Areas {
 public:
  explicit Areas(const std::vector<Outline::Polygon>& polygons);

  /// Whether a place on the earth, which must be on no border, lies in one of them.
  bool contain(Space place) const;
  /// So many steps it takes to find that out, at most.
  std::size_t steps() const { return steps_; }

 private:
  using Ring = std::vector<Space>;  // Directions of length 1; the last is the first.
  struct Polygon {
    std::vector<Ring> rings;
    // Within a cone around `middle` is all of it; nothing known: an angle of more than half.
    Space middle;
    double cosine;
  };
  std::vector<Polygon> polygons_;
  std::size_t steps_ = 0;
};

}  // namespace orrery::geo
