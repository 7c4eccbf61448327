// The positions of a GeoJSON object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "geo/earth.h"
#include "json/value.h"

namespace orrery::geo {

/// Point, LineString, Polygon or MultiPolygon.
struct Outline {
  enum class Kind : std::uint8_t { Point, Line, Area };
  using Chain = std::vector<Position>;
  using Polygon = std::vector<Chain>;  ///< the outer ring, then holes; each ends where it begins

  Kind kind;
  Chain chain;                    ///< of a point or line
  std::vector<Polygon> polygons;  ///< of an area

  /// Positions of one geometry: a bound for the time that any question about it takes.
  static constexpr std::size_t kPositionsMax = 32'768;

  /// Corners of rings in one place: each of them is a question about each other one.
  static constexpr std::size_t kMeetingMax = 64;

  /// Whether the outer ring of a polygon must go counter-clockwise. To find that out takes the most
  /// of the time, and is a question of rounding where a ring encloses nothing.
  enum class Direction : std::uint8_t { Checked, Any };

  /// Either that, or what is wrong, as a sentence. Checks all but crossings: positions are within
  /// the bounds of the earth (or of what can be computed with), lines have two, rings are closed
  /// and have four, outer ones go counter-clockwise. The rings that come back do so, holes go
  /// clockwise; where the direction is not checked they come as they are.
  static std::variant<Outline, std::string> read(const json::Value& value, bool is_planar,
                                                 Direction direction = Direction::Checked);
};

/// Within a ring, negative when it goes clockwise: square metres, or square units of the plane.
double signed_area(const Outline::Chain& ring, bool is_planar);

}  // namespace orrery::geo
