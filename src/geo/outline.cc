#include "geo/outline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

namespace orrery::geo {
namespace {

/// Reads coordinates, level by level, until something is wrong.
class OutlineReader {
 public:
  OutlineReader(bool is_planar, Outline::Direction direction)
      : is_planar_(is_planar), direction_(direction) {}

  std::optional<Outline> read(const json::Value& value) {
    const json::Value type = value.member("type");
    const json::Value coordinates = value.member("coordinates");
    std::string buffer;
    const std::string_view name = type.is_string() ? type.as_string(buffer) : std::string_view();
    Outline outline{.kind = Outline::Kind::Point, .chain = {}, .polygons = {}};
    bool is_read = false;
    if (name == "Point") {
      outline.chain.emplace_back();
      is_read = read_position(coordinates, outline.chain[0]);
    } else if (name == "LineString") {
      outline.kind = Outline::Kind::Line;
      is_read = read_chain(coordinates, outline.chain) && check_line(outline.chain);
    } else if (name == "Polygon") {
      outline.kind = Outline::Kind::Area;
      is_read = read_polygon(coordinates, outline.polygons.emplace_back());
    } else if (name == "MultiPolygon") {
      outline.kind = Outline::Kind::Area;
      is_read = read_polygons(coordinates, outline.polygons);
    } else {
      is_read = refuse(
          "The type of a geometry must be Point, LineString, Polygon or MultiPolygon, written in "
          "exactly this way.");
    }
    if (!is_read || !check_meetings(outline)) return std::nullopt;
    return outline;
  }

  std::string take_reason() { return std::move(reason_); }

 private:
  bool refuse(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }

  bool read_position(const json::Value& value, Position& position) {
    std::array<double, 2> numbers{};
    std::size_t count = 0;
    for (json::Reader reader(value); reader.next(); ++count) {
      const json::Value number = reader.value();
      if (!number.is_number()) return refuse("Each position must consist of numbers.");
      if (count < numbers.size()) numbers[count] = number.as_number().real;
    }
    // Further numbers, such as a height, are ignored.
    if (!value.is_array() || count < numbers.size()) {
      return refuse("Each position must be an array of two numbers or more.");
    }
    if (++positions_ > Outline::kPositionsMax) {
      return refuse("A geometry may have no more than " + std::to_string(Outline::kPositionsMax) +
                    " positions.");
    }
    position = {numbers[0], numbers[1]};
    if (is_planar_) {
      // Beyond that products of coordinates are no longer finite.
      constexpr double kPlaneMax = 1e30;
      if (std::fabs(position.x) > kPlaneMax || std::fabs(position.y) > kPlaneMax) {
        return refuse("Coordinates must be between -1e30 and 1e30.");
      }
      return true;
    }
    if (std::fabs(position.y) > 90) {
      return refuse("Latitude values must be between -90 and 90 degrees.");
    }
    if (std::fabs(position.x) > 180) {
      return refuse("Longitude values must be between -180 and 180 degrees.");
    }
    return true;
  }

  bool read_chain(const json::Value& value, Outline::Chain& chain) {
    if (!value.is_array()) return refuse("Coordinates of a line or ring must be an array.");
    for (json::Reader reader(value); reader.next();) {
      if (!read_position(reader.value(), chain.emplace_back())) return false;
      if (chain.size() > 1 && !check_edge(chain[chain.size() - 2], chain.back())) return false;
    }
    return true;
  }

  /// Between opposite ends of the earth there is no one line.
  bool check_edge(Position from, Position to) {
    if (is_planar_ || from == to) return true;
    const Space sum = normalized(on_earth(from)) + normalized(on_earth(to));
    constexpr double kOpposite = 1e-9;
    if (length(sum) > kOpposite) return true;
    return refuse("Positions that follow each other must not be opposite ends of the earth.");
  }

  bool check_line(const Outline::Chain& chain) {
    const bool is_line =
        std::ranges::any_of(chain, [&](Position position) { return !is_same(position, chain[0]); });
    return is_line || refuse("A LineString must have at least two different positions.");
  }

  /// Whatever their longitudes are, all places at a pole are one.
  bool is_same(Position a, Position b) const {
    if (a == b) return true;
    if (is_planar_ || a.y != b.y) return false;
    return std::fabs(a.y) == 90 || (std::fabs(a.x) == 180 && std::fabs(b.x) == 180);
  }

  bool read_ring(const json::Value& value, bool is_outer, std::size_t number,
                 Outline::Chain& ring) {
    if (!read_chain(value, ring)) return false;
    const std::string which = "ring number " + std::to_string(number);
    if (ring.empty() || !is_same(ring.front(), ring.back())) {
      return refuse("The Polygon input is not valid because the start and end points of the " +
                    which +
                    " are not the same. Each ring of a polygon must have the same start and end "
                    "points.");
    }
    constexpr std::size_t kRingMin = 4;
    if (ring.size() < kRingMin) {
      return refuse("The Polygon input is not valid because the " + which +
                    " has fewer than four positions.");
    }
    ring.back() = ring.front();
    if (direction_ == Outline::Direction::Any) return true;
    const double area = signed_area(ring, is_planar_);
    if (is_outer && area < 0) {
      return refuse("The Polygon input is not valid because the " + which +
                    " goes clockwise. The outer ring of a polygon must go counter-clockwise: its "
                    "area lies to the left.");
    }
    if (!is_outer && area > 0) std::ranges::reverse(ring);
    return true;
  }

  bool read_polygon(const json::Value& value, Outline::Polygon& polygon) {
    if (!value.is_array()) return refuse("Coordinates of a polygon must be an array of rings.");
    for (json::Reader reader(value); reader.next();) {
      const bool is_outer = polygon.empty();
      const std::size_t number = polygon.size() + 1;
      if (!read_ring(reader.value(), is_outer, number, polygon.emplace_back())) return false;
    }
    return !polygon.empty() || refuse("A polygon must have an outer ring.");
  }

  bool read_polygons(const json::Value& value, std::vector<Outline::Polygon>& polygons) {
    if (!value.is_array()) return refuse("Coordinates must be an array of polygons.");
    for (json::Reader reader(value); reader.next();) {
      if (!read_polygon(reader.value(), polygons.emplace_back())) return false;
    }
    return !polygons.empty() || refuse("A MultiPolygon must have at least one polygon.");
  }

  bool check_meetings(const Outline& outline) {
    std::vector<Position> corners;
    for (const auto& polygon : outline.polygons) {
      for (const auto& ring : polygon) corners.insert(corners.end(), ring.begin() + 1, ring.end());
    }
    std::ranges::sort(
        corners, [](Position a, Position b) { return std::pair(a.x, a.y) < std::pair(b.x, b.y); });
    for (std::size_t i = Outline::kMeetingMax; i < corners.size(); ++i) {
      if (corners[i] == corners[i - Outline::kMeetingMax]) {
        return refuse("No more than " + std::to_string(Outline::kMeetingMax) +
                      " corners of rings may meet in one place.");
      }
    }
    return true;
  }

  bool is_planar_;
  Outline::Direction direction_;
  std::size_t positions_ = 0;
  std::string reason_;
};

}  // namespace

std::variant<Outline, std::string> Outline::read(const json::Value& value, bool is_planar,
                                                 Direction direction) {
  OutlineReader reader(is_planar, direction);
  if (auto outline = reader.read(value)) return std::move(*outline);
  return reader.take_reason();
}

double signed_area(const Outline::Chain& ring, bool is_planar) {
  if (!is_planar) return area_on_earth(ring);
  double twice = 0;
  for (std::size_t i = 1; i < ring.size(); ++i) {
    // From the first position on, so that it is exact for small ones far away.
    const Position a = {ring[i - 1].x - ring[0].x, ring[i - 1].y - ring[0].y};
    const Position b = {ring[i].x - ring[0].x, ring[i].y - ring[0].y};
    twice += a.x * b.y - b.x * a.y;
  }
  return twice / 2;
}

}  // namespace orrery::geo
