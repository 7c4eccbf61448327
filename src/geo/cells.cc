#include "geo/cells.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <optional>
#include <utility>
#include <variant>

#include "geo/earth.h"
#include "geo/outline.h"

namespace orrery::geo {
namespace {

/// The relative error of rounding is less than this.
constexpr double kCellRounding = 1e-11;

/// Degrees of longitude; what is less is so for certain.
constexpr double kHalfTurn = 180 - 1e-6;

/// Bounds of longitudes and latitudes, or of a plane. West is not beyond east.
struct Bounds {
  double west;
  double south;
  double east;
  double north;
};

Bounds both(const Bounds& a, const Bounds& b) {
  return {std::min(a.west, b.west), std::min(a.south, b.south), std::max(a.east, b.east),
          std::max(a.north, b.north)};
}

// ── Bounds of a geometry ─────────────────────────────────────────────────────────────────────────

/// How far north (`sign` 1) or south (-1) a line goes between its ends, if farther than these.
double farthest_latitude(Position from, Position to, double sign) {
  const Space a = normalized(on_earth(from));
  const Space b = normalized(on_earth(to));
  const Space normal = cross(a, b);
  const double ends = std::max(sign * from.y, sign * to.y);
  if (length(normal) == 0) return sign * ends;
  const Space axis = normalized(normal);
  const Space top = Space{0, 0, sign} - axis * (sign * axis.z);
  if (length(top) == 0) return sign * ends;  // along the equator
  const bool is_between = dot(cross(a, top), axis) > 0 && dot(cross(top, b), axis) > 0;
  return sign * (is_between ? std::max(ends, sign * position_towards(top).y) : ends);
}

/// Of a line or ring on the earth. Longitudes go on beyond 180 where it crosses that; both are all
/// of them where it touches a pole.
Bounds bounds_on_earth(const Outline::Chain& chain) {
  Bounds bounds = {chain[0].x, chain[0].y, chain[0].x, chain[0].y};
  double at = chain[0].x;
  double step_max = 0;
  for (std::size_t i = 1; i < chain.size(); ++i) {
    const double step = longitude_difference(chain[i - 1].x, chain[i].x);
    at += step;
    step_max = std::max(step_max, std::fabs(step));
    const double south = farthest_latitude(chain[i - 1], chain[i], -1);
    const double north = farthest_latitude(chain[i - 1], chain[i], 1);
    bounds = both(bounds, {at, south, at, north});
  }
  // Half a turn in one step goes over a pole; which way round it is then counted is chance.
  if (step_max > kHalfTurn) return {-180, bounds.south, 180, bounds.north};
  return bounds;
}

/// As grid lines: nothing is lost to rounding, and what lies at 180 also lies at -180.
void append_wrapped(std::vector<Bounds>& out, Bounds bounds) {
  constexpr double kMargin = 1e-9;
  bounds = {bounds.west - kMargin, std::max(-90.0, bounds.south - kMargin), bounds.east + kMargin,
            std::min(90.0, bounds.north + kMargin)};
  const bool has_pole = bounds.north >= 90 || bounds.south <= -90;
  if (has_pole || bounds.east - bounds.west >= 360) {
    out.push_back({-180, bounds.south, 180, bounds.north});
    return;
  }
  for (const double turn : {-360.0, 0.0, 360.0}) {
    const double west = std::max(-180.0, bounds.west + turn);
    const double east = std::min(180.0, bounds.east + turn);
    if (west <= east) out.push_back({west, bounds.south, east, bounds.north});
  }
}

/// Within `distance` of something within `bounds`. On a sphere that is curved as much as the earth
/// is anywhere nothing is farther away than on the earth.
Bounds widened_on_earth(Bounds bounds, double distance) {
  const double angle = distance / kCurvatureMetresMin;
  const double reach = angle / kDegree;
  bounds.south -= reach;
  bounds.north += reach;
  const double latitude = std::max(std::fabs(bounds.south), std::fabs(bounds.north));
  if (latitude >= 90) return {-180, bounds.south, 180, bounds.north};
  const double sideways =
      std::asin(std::min(1.0, std::sin(angle) / std::cos((latitude - reach) * kDegree))) / kDegree;
  bounds.west -= sideways;
  bounds.east += sideways;
  return bounds;
}

/// Parts of a geometry on the earth, each widened by `distance`.
std::vector<Bounds> bounds_on_earth(const Outline& outline, double distance) {
  std::vector<Bounds> parts;
  if (outline.kind != Outline::Kind::Area) parts.push_back(bounds_on_earth(outline.chain));
  for (const Outline::Polygon& polygon : outline.polygons) {
    Bounds bounds = bounds_on_earth(polygon[0]);
    // A ring around a pole has it within. One that goes round neither may have both: then what is
    // outside is at least half of the earth, and so are its longitudes.
    const int turns = turns_around_pole(polygon[0]);
    if (turns != 0) {
      bounds = {-180, turns < 0 ? -90 : bounds.south, 180, turns > 0 ? 90 : bounds.north};
    } else if (bounds.east - bounds.west > kHalfTurn) {
      bounds = {-180, -90, 180, 90};
    }
    parts.push_back(bounds);
  }
  std::vector<Bounds> out;
  for (const Bounds& part : parts) append_wrapped(out, widened_on_earth(part, distance));
  return out;
}

std::vector<Bounds> bounds_in_plane(const Outline& outline, double distance) {
  std::vector<Bounds> out;
  const auto append = [&](const Outline::Chain& chain) {
    Bounds bounds = {chain[0].x, chain[0].y, chain[0].x, chain[0].y};
    for (const auto [x, y] : chain) bounds = both(bounds, {x, y, x, y});
    const double size = std::max({std::fabs(bounds.west), std::fabs(bounds.east),
                                  std::fabs(bounds.south), std::fabs(bounds.north)});
    const double reach = distance * (1 + kCellRounding) + size * kCellRounding;
    out.push_back(
        {bounds.west - reach, bounds.south - reach, bounds.east + reach, bounds.north + reach});
  };
  if (outline.kind != Outline::Kind::Area) append(outline.chain);
  for (const Outline::Polygon& polygon : outline.polygons) append(polygon[0]);
  return out;
}

// ── Cells ────────────────────────────────────────────────────────────────────────────────────────

/// Columns and rows of the finest grid, both ends included.
struct GridBox {
  std::uint32_t west;
  std::uint32_t south;
  std::uint32_t east;
  std::uint32_t north;

  bool meets(const GridBox& other) const {
    return west <= other.east && other.west <= east && south <= other.north && other.south <= north;
  }
  bool contains(const GridBox& other) const {
    return west <= other.west && other.east <= east && south <= other.south && other.north <= north;
  }
};

constexpr unsigned kGridBits = 32;
/// Cells of about two metres are the smallest.
constexpr unsigned kEarthLevels = 24;

std::uint32_t earth_line(double value, double half) {
  const double lines = std::ldexp((value + half) / (2 * half), kGridBits);
  constexpr double kLast = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp(std::floor(lines), 0.0, kLast));
}

/// The plane has no bounds: its grid is that of the doubles themselves, whose upper bits are in
/// their order.
std::uint32_t plane_line(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value == 0 ? 0.0 : value);
  const std::uint64_t ordered = bits >> 63 != 0 ? ~bits : bits | (std::uint64_t{1} << 63);
  return static_cast<std::uint32_t>(ordered >> 32);
}

std::vector<GridBox> grid_boxes(const Outline& outline, bool is_planar, double distance) {
  std::vector<GridBox> boxes;
  if (is_planar) {
    for (const Bounds& bounds : bounds_in_plane(outline, distance)) {
      boxes.push_back({plane_line(bounds.west), plane_line(bounds.south), plane_line(bounds.east),
                       plane_line(bounds.north)});
    }
  } else {
    for (const Bounds& bounds : bounds_on_earth(outline, distance)) {
      boxes.push_back({earth_line(bounds.west, 180), earth_line(bounds.south, 90),
                       earth_line(bounds.east, 180), earth_line(bounds.north, 90)});
    }
  }
  return boxes;
}

struct Cell {
  unsigned level = 0;
  std::uint32_t x = 0;  ///< of its first column; what is below its level is 0
  std::uint32_t y = 0;

  GridBox box() const {
    const std::uint32_t beyond =
        level == 0 ? std::numeric_limits<std::uint32_t>::max()
                   : static_cast<std::uint32_t>((std::uint64_t{1} << (kGridBits - level)) - 1);
    return {x, y, x + beyond, y + beyond};
  }
  /// The way to it, without the end.
  std::string way() const {
    std::string way;
    for (unsigned i = 1; i <= level; ++i) {
      const unsigned right = (x >> (kGridBits - i)) & 1;
      const unsigned upper = (y >> (kGridBits - i)) & 1;
      way += static_cast<char>(1 + 2 * upper + right);
    }
    return way;
  }
};

constexpr char kEnd = '\0';

/// Level by level, as long as there are not too many.
std::vector<Cell> covering(const std::vector<GridBox>& boxes, unsigned levels_max,
                           std::size_t cells_max) {
  std::vector<Cell> done;
  std::vector<Cell> current = {Cell()};
  for (unsigned level = 1; level <= levels_max && !current.empty(); ++level) {
    std::vector<Cell> filled = done;
    std::vector<Cell> next;
    for (const Cell& cell : current) {
      const GridBox outer = cell.box();
      if (std::ranges::any_of(boxes, [&](const GridBox& box) { return box.contains(outer); })) {
        filled.push_back(cell);
        continue;
      }
      const std::uint32_t half = std::uint32_t{1} << (kGridBits - level);
      for (const std::uint32_t up : {std::uint32_t{0}, half}) {
        for (const std::uint32_t right : {std::uint32_t{0}, half}) {
          const Cell child = {level, cell.x + right, cell.y + up};
          const GridBox inner = child.box();
          if (std::ranges::any_of(boxes, [&](const GridBox& box) { return box.meets(inner); })) {
            next.push_back(child);
          }
        }
      }
    }
    if (filled.size() + next.size() > std::max<std::size_t>(cells_max, 1)) break;
    done = std::move(filled);
    current = std::move(next);
  }
  done.insert(done.end(), current.begin(), current.end());
  return done;
}

std::vector<Cell> covering(const Outline& outline, bool is_planar, double distance,
                           std::size_t cells_max) {
  return covering(grid_boxes(outline, is_planar, distance), is_planar ? kGridBits : kEarthLevels,
                  cells_max);
}

Cell cell_of(Position point, bool is_planar) {
  if (is_planar) return {kGridBits, plane_line(point.x), plane_line(point.y)};
  constexpr std::uint32_t kMask = ~std::uint32_t{0} << (kGridBits - kEarthLevels);
  return {kEarthLevels, earth_line(point.x == 180 ? -180 : point.x, 180) & kMask,
          earth_line(point.y, 90) & kMask};
}

/// Nothing when it is none.
std::optional<Outline> outline_of(const json::Value& value, bool is_planar) {
  if (!value.is_object()) return std::nullopt;
  auto read = Outline::read(value, is_planar, Outline::Direction::Any);
  auto* const outline = std::get_if<Outline>(&read);
  return outline != nullptr ? std::optional(std::move(*outline)) : std::nullopt;
}

/// Those that overlap or touch become one.
void merge(std::vector<json::KeyInterval>& intervals) {
  std::ranges::sort(intervals, {}, &json::KeyInterval::low);
  std::vector<json::KeyInterval> merged;
  for (json::KeyInterval& interval : intervals) {
    if (merged.empty() || merged.back().high < interval.low) {
      merged.push_back(std::move(interval));
    } else if (merged.back().high < interval.high) {
      merged.back().high = std::move(interval.high);
    }
  }
  intervals = std::move(merged);
}

}  // namespace

std::vector<std::string> covering_cells(const json::Value& value, bool is_planar,
                                        std::size_t cells_max) {
  std::vector<std::string> keys;
  const auto outline = outline_of(value, is_planar);
  if (!outline) return keys;
  if (outline->kind == Outline::Kind::Point) {
    return {cell_of(outline->chain[0], is_planar).way() + kEnd};
  }
  for (const Cell& cell : covering(*outline, is_planar, 0, cells_max)) {
    keys.push_back(cell.way() + kEnd);
  }
  std::ranges::sort(keys);
  return keys;
}

std::vector<json::KeyInterval> covering_intervals(const json::Value& region, bool is_planar,
                                                  double distance, std::size_t cells_max) {
  std::vector<json::KeyInterval> intervals;
  const auto outline = outline_of(region, is_planar);
  if (!outline || !(distance >= 0)) return intervals;
  // Comparisons of geometries take places this near to each other for the same: on the earth two
  // decimetres, and in a plane some 1e-8.
  constexpr double kSamePlaceMetres = 1;
  constexpr double kSamePlace = 1e-6;
  const double reach = distance * (1 + kCellRounding) + (is_planar ? kSamePlace : kSamePlaceMetres);
  for (const Cell& cell : covering(*outline, is_planar, reach, cells_max)) {
    std::string way = cell.way();
    // Geometries in the cell have keys that begin with the way to it: one interval.
    std::string after = way;
    if (!after.empty()) ++after.back();
    intervals.push_back({way, after.empty() ? std::string(1, '\xFF') : after});
    // Geometries in the cells around it may reach into it: exactly these, not all that is in them.
    while (!way.empty()) {
      way.pop_back();
      intervals.push_back({way + kEnd, way + '\1'});
    }
  }
  merge(intervals);
  return intervals;
}

}  // namespace orrery::geo
