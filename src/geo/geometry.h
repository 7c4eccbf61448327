// Geometries: points, lines and areas on the earth or in a plane, and how they lie to each other.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "geo/outline.h"
#include "json/value.h"

namespace orrery::geo {

class Geometry;
using GeometryPtr = std::shared_ptr<const Geometry>;  // Shared by the cache and its users.

/// A geometry that is valid: rings do not cross themselves or each other, holes lie within. Never
/// changes. Two of them that meet in a question are both planar, or neither is.
class Geometry {
 public:
  /// From GeoJSON; or what is wrong with it, as a sentence. Each thread caches what it read last.
  static std::variant<GeometryPtr, std::string> read(const json::Value& value, bool is_planar);
  /// Nothing when it is not valid, or no object.
  static GeometryPtr read_valid(const json::Value& value, bool is_planar);
  ~Geometry();

  /// The shortest way from one to the other, in metres or units of the plane; 0 if they touch.
  /// Nothing where it cannot be computed, here and below.
  std::optional<double> distance(const Geometry& other) const;
  /// Whether all of it lies in the other one, and not only on its border.
  std::optional<bool> is_within(const Geometry& other) const;
  std::optional<bool> intersects(const Geometry& other) const;
  /// Square metres, or square units of the plane. Nothing of points and lines.
  std::optional<double> area() const;

  const Outline& outline() const;

 private:
  struct Parts;
  explicit Geometry(std::unique_ptr<const Parts> parts);
  /// Whether this is a place on the earth, and the other one a line that is nowhere near it. Boost
  /// takes the end of a line for the place at the other end of the earth.
  bool is_point_off_line(const Geometry& other) const;
  /// A position of each polygon, or of the whole.
  std::vector<Position> one_of_each_part() const;
  /// On the earth. Nothing where that does not tell whether it lies within the other.
  std::optional<bool> are_parts_inside(const Geometry& other) const;
  /// Whether these two are on the earth, and not too large for it.
  bool can_look_inside(const Geometry& other) const;
  bool has_part_inside(const Geometry& other) const;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace orrery::geo
