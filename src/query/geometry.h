// Geometries: points, lines and areas on the earth or in a plane, and how they lie to each other.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "json/sort_key.h"
#include "json/value.h"

namespace orrery::query {

struct Outline;

class Geometry;
using GeometryPtr = std::shared_ptr<const Geometry>;  // Shared by a cache and who computes with it.

/// A geometry that is valid: rings do not cross themselves or each other, holes lie within. Never
/// changes. Two of them that meet in a question are both planar, or neither is.
class Geometry {
 public:
  /// From GeoJSON; or what is wrong with it, as a sentence. What a thread read last it need not
  /// read again.
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
  std::unique_ptr<const Parts> parts_;
};

// ── For an index: cells of a quadtree over longitudes and latitudes, or over the plane ───────────
//
// The key of a cell tells the way to it from the root, one byte (1 to 4) per level, and ends with a
// byte 0. So keys of cells that lie in another one follow its own, and no key begins another one.

/// The keys of cells that together hold all of a geometry, few but small ones; a point is in one.
/// None when it is not valid: no function says anything of it.
std::vector<std::string> covering_cells(const json::Value& value, bool is_planar,
                                        std::size_t cells_max);

/// Where in an index of such keys everything is found that is no farther than `distance` from
/// `region`: sorted and disjoint. More may be found, never less. None when there can be nothing,
/// since the region is not valid or the distance is negative.
std::vector<json::KeyInterval> covering_intervals(const json::Value& region, bool is_planar,
                                                  double distance, std::size_t cells_max);

}  // namespace orrery::query
