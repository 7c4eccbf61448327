#include "geo/geometry.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <list>
#include <string_view>
#include <type_traits>
#include <utility>

#include <boost/geometry/algorithms/covered_by.hpp>
#include <boost/geometry/algorithms/equals.hpp>
#include <boost/geometry/algorithms/intersects.hpp>
#include <boost/geometry/algorithms/is_valid.hpp>
#include <boost/geometry/algorithms/num_points.hpp>
#include <boost/geometry/algorithms/within.hpp>
#include <boost/geometry/core/cs.hpp>
#include <boost/geometry/core/exception.hpp>
#include <boost/geometry/geometries/linestring.hpp>
#include <boost/geometry/geometries/multi_polygon.hpp>
#include <boost/geometry/geometries/point.hpp>
#include <boost/geometry/geometries/polygon.hpp>
#include <boost/geometry/strategies/strategies.hpp>

#include "geo/areas.h"
#include "geo/edges.h"

namespace orrery::geo {
namespace {

namespace bg = boost::geometry;

/// The same for both systems of coordinates. On the earth latitudes are geocentric: lines are great
/// circles then.
template <typename System>
struct Shapes {
  using Point = bg::model::point<double, 2, System>;
  using Line = bg::model::linestring<Point>;
  using Polygon = bg::model::polygon<Point, false, true>;  // counter-clockwise, closed
  using Area = bg::model::multi_polygon<Polygon>;
  using Any = std::variant<Point, Line, Area>;
};
using Plane = Shapes<bg::cs::cartesian>;
using Earth = Shapes<bg::cs::spherical_equatorial<bg::degree>>;

/// A pole has all longitudes, which Boost takes for different directions. So the poles are places
/// like any other, a hundredth of a millimetre beside themselves.
Position beside_pole(Position position) {
  constexpr double kLatitudeMax = 90 - 1e-10;
  if (std::fabs(position.y) <= kLatitudeMax) return position;
  return {0, std::copysign(kLatitudeMax, position.y)};
}

template <typename In>
typename In::Any shape_of(const Outline& outline) {
  const auto point_of = [](Position position) {
    if constexpr (std::is_same_v<In, Earth>) {
      position = beside_pole({position.x, geocentric_latitude(position.y)});
    }
    return typename In::Point(position.x, position.y);
  };
  const auto append = [&](const Outline::Chain& chain, auto& to) {
    to.reserve(chain.size());
    for (const Position position : chain) to.push_back(point_of(position));
  };
  switch (outline.kind) {
    case Outline::Kind::Point:
      return point_of(outline.chain[0]);
    case Outline::Kind::Line: {
      typename In::Line line;
      append(outline.chain, line);
      return line;
    }
    case Outline::Kind::Area:
      break;
  }
  typename In::Area area;
  for (const Outline::Polygon& rings : outline.polygons) {
    auto& polygon = area.emplace_back();
    append(rings[0], polygon.outer());
    polygon.inners().resize(rings.size() - 1);
    for (std::size_t i = 1; i < rings.size(); ++i) append(rings[i], polygon.inners()[i - 1]);
  }
  return area;
}

/// Nothing when it is valid.
std::optional<std::string> fault_of(bg::validity_failure_type failure) {
  switch (failure) {
    case bg::no_failure:
      return std::nullopt;
    case bg::failure_spikes:
      return "The Polygon input is not valid because a ring goes back the way that it came.";
    case bg::failure_self_intersections:
      return "The Polygon input is not valid because rings cross or touch along a line.";
    case bg::failure_interior_rings_outside:
      return "The Polygon input is not valid because a hole lies outside of the outer ring.";
    case bg::failure_nested_interior_rings:
      return "The Polygon input is not valid because a hole lies within another hole.";
    case bg::failure_disconnected_interior:
      return "The Polygon input is not valid because its holes cut it into parts.";
    case bg::failure_intersecting_interiors:
      return "The MultiPolygon input is not valid because two of its polygons overlap.";
    case bg::failure_few_points:
    case bg::failure_wrong_topological_dimension:
      return "The Polygon input is not valid because a ring has fewer than three different "
             "positions.";
    case bg::failure_wrong_orientation:
      return "The Polygon input is not valid because a ring encloses no area, or more than half of "
             "the earth.";
    default:
      return "The geometry is not valid.";
  }
}

template <typename Shape>
std::optional<std::string> fault_in(const Shape& shape) {
  bg::validity_failure_type failure = bg::no_failure;
  bg::is_valid(shape, failure);
  return fault_of(failure);
}

/// Whether all of a line lies in an area, and not only on its border. Boost finds all places first
/// where borders touch, as many as there are pairs of edges when a line goes to and fro: so only
/// some edges of the line at a time.
template <typename Line, typename Area>
bool is_line_within(const Line& line, const Area& area) {
  constexpr std::size_t kPairsMax = std::size_t{1} << 20;
  const std::size_t step = std::max<std::size_t>(kPairsMax / bg::num_points(area), 1);
  bool is_any_inside = false;
  for (std::size_t begin = 0; begin + 1 < line.size(); begin += step) {
    const std::size_t end = std::min(begin + step, line.size() - 1);
    const Line piece(line.begin() + static_cast<std::ptrdiff_t>(begin),
                     line.begin() + static_cast<std::ptrdiff_t>(end) + 1);
    const auto is_same = [&](const auto& point) { return bg::equals(point, piece[0]); };
    if (std::ranges::all_of(piece, is_same)) continue;  // a position many times: no line
    if (!bg::covered_by(piece, area)) return false;
    is_any_inside = is_any_inside || bg::within(piece, area);
  }
  return is_any_inside;
}

/// Whether one is within the other, given that their borders do not cross.
template <typename In>
struct Within {
  using Point = typename In::Point;
  using Line = typename In::Line;
  using Area = typename In::Area;
  template <typename Any>
  bool operator()(const Point& point, const Any& other) const {
    return bg::within(point, other);
  }
  bool operator()(const Line& line, const Area& area) const { return is_line_within(line, area); }
  bool operator()(const Area& area, const Area& other) const { return bg::within(area, other); }
  /// Nothing is within something of fewer dimensions. Lines within lines are a question of edges.
  template <typename A, typename B>
  bool operator()(const A&, const B&) const {
    return false;
  }
};

struct Intersects {
  template <typename A, typename B>
  bool operator()(const A& a, const B& b) const {
    return bg::intersects(a, b);
  }
};

}  // namespace

struct Geometry::Parts {
  Outline outline;
  std::variant<Plane::Any, Earth::Any> shape;
  Edges edges;
  std::optional<Areas> areas;  // On the earth.
};

namespace {

using Reading = std::variant<GeometryPtr, std::string>;

/// Caches what a thread read last: a query over many documents reads the same constant again and
/// again. Points are read faster than they are found.
class ReadingCache {
 public:
  const Reading* find(std::string_view text, bool is_planar) {
    const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) {
      return entry.is_planar == is_planar && entry.text == text;
    });
    if (found == entries_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found);
    return &found->reading;
  }

  void keep(std::string_view text, bool is_planar, const Reading& reading) {
    if (text.size() > kBytesMax) return;
    entries_.push_front({std::string(text), is_planar, reading});
    bytes_ += text.size();
    while (entries_.size() > kEntriesMax || bytes_ > kBytesMax) {
      bytes_ -= entries_.back().text.size();
      entries_.pop_back();
    }
  }

 private:
  static constexpr std::size_t kEntriesMax = 8;
  static constexpr std::size_t kBytesMax = std::size_t{4} << 20;
  struct Entry {
    std::string text;
    bool is_planar;
    Reading reading;
  };
  std::list<Entry> entries_;
  std::size_t bytes_ = 0;
};

/// Boost says by exceptions what it could not do.
template <typename Compute>
auto computed(Compute&& compute) -> std::optional<decltype(compute())> {
  try {
    return compute();
  } catch (const bg::exception&) {
    return std::nullopt;
  }
}

/// Asks a question of two shapes of the same system.
template <typename Question, typename One, typename Other>
std::optional<bool> asked(const One& a, const Other& b, const Question& question) {
  if constexpr (std::is_same_v<One, Other>) {
    return computed([&] { return std::visit(question, a, b); });
  } else {
    return std::nullopt;
  }
}

}  // namespace

Geometry::Geometry(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Geometry::~Geometry() = default;

Reading Geometry::read(const json::Value& value, bool is_planar) {
  const auto make = [&]() -> Reading {
    auto read = Outline::read(value, is_planar);
    if (auto* const reason = std::get_if<std::string>(&read)) return std::move(*reason);
    auto parts = std::make_unique<Parts>(Parts{.outline = std::move(std::get<Outline>(read)),
                                               .shape = {},
                                               .edges{is_planar},
                                               .areas = {}});
    const Outline& outline = parts->outline;
    if (is_planar) {
      parts->shape = shape_of<Plane>(outline);
    } else {
      parts->shape = shape_of<Earth>(outline);
    }
    if (outline.kind == Outline::Kind::Area) {
      const auto fault = computed([&] {
        return is_planar ? fault_in(std::get<Plane::Area>(std::get<Plane::Any>(parts->shape)))
                         : fault_in(std::get<Earth::Area>(std::get<Earth::Any>(parts->shape)));
      });
      if (!fault) return "The geometry could not be checked.";
      if (*fault) return **fault;
    }
    if (outline.kind != Outline::Kind::Area) parts->edges.add(outline.chain);
    for (const auto& polygon : outline.polygons) {
      for (const auto& ring : polygon) parts->edges.add(ring);
    }
    parts->edges.arrange();
    if (!is_planar) parts->areas.emplace(outline.polygons);
    return GeometryPtr(new Geometry(std::move(parts)));
  };

  if (value.member("type").is_string("Point")) return make();
  static thread_local ReadingCache cache;
  std::string buffer;
  std::string_view text;
  if (const auto known = value.text()) {
    text = *known;
  } else {
    text = buffer = value.to_text();
  }
  if (const Reading* const kept = cache.find(text, is_planar)) return *kept;
  Reading reading = make();
  cache.keep(text, is_planar, reading);
  return reading;
}

GeometryPtr Geometry::read_valid(const json::Value& value, bool is_planar) {
  if (!value.is_object()) return nullptr;
  auto read = Geometry::read(value, is_planar);
  auto* const geometry = std::get_if<GeometryPtr>(&read);
  return geometry != nullptr ? std::move(*geometry) : nullptr;
}

const Outline& Geometry::outline() const { return parts_->outline; }

std::optional<double> Geometry::distance(const Geometry& other) const {
  // Two points are the most common question, and have no other answer than their distance.
  const bool are_points =
      outline().kind == Outline::Kind::Point && other.outline().kind == Outline::Kind::Point;
  if (!are_points) {
    const auto touch = intersects(other);
    if (!touch) return std::nullopt;
    if (*touch) return 0;
  }
  return distance_between(parts_->edges, other.parts_->edges);
}

std::optional<bool> Geometry::is_within(const Geometry& other) const {
  using enum Outline::Kind;
  const Edges& edges = parts_->edges;
  if (is_point_off_line(other) || edges.is_far_from(other.parts_->edges)) return false;
  if (outline().kind == Line && other.outline().kind == Line) {
    return are_covered(edges, other.parts_->edges);
  }
  if (other.outline().kind == Area) {
    if (outline().kind != Point && do_cross(edges, other.parts_->edges)) return false;
    if (const auto are_inside = are_parts_inside(other)) {
      if (outline().kind == Point || !*are_inside) return are_inside;
    }
  }
  return std::visit(
      [](const auto& a, const auto& b) -> std::optional<bool> {
        constexpr bool is_plane = std::is_same_v<std::decay_t<decltype(a)>, Plane::Any>;
        return asked(a, b, Within<std::conditional_t<is_plane, Plane, Earth>>());
      },
      parts_->shape, other.parts_->shape);
}

bool Geometry::is_point_off_line(const Geometry& other) const {
  using enum Outline::Kind;
  const Edges& edges = parts_->edges;
  if (edges.is_planar() || outline().kind != Point || other.outline().kind != Line) return false;
  double metres = 1;
  return other.parts_->edges.nearest(edges.all()[0].begin, metres) == nullptr;
}

std::vector<Position> Geometry::one_of_each_part() const {
  if (outline().kind != Outline::Kind::Area) return {outline().chain[0]};
  std::vector<Position> positions;
  for (const auto& polygon : outline().polygons) positions.push_back(polygon[0][0]);
  return positions;
}

/// Boost is right only about what is not at the poles, and not on opposite sides of the earth. It
/// is left to decide about parts that begin on a border.
std::optional<bool> Geometry::are_parts_inside(const Geometry& other) const {
  if (!can_look_inside(other)) return std::nullopt;
  bool is_any_on_border = false;
  for (const Position position : one_of_each_part()) {
    const Space place = on_earth(position);
    if (other.parts_->edges.touch(place)) {
      is_any_on_border = true;
    } else if (!other.parts_->areas->contain(place)) {
      return false;
    }
  }
  if (outline().kind == Outline::Kind::Point) return !is_any_on_border;
  return is_any_on_border ? std::nullopt : std::optional(true);
}

bool Geometry::can_look_inside(const Geometry& other) const {
  constexpr std::size_t kStepsMax = std::size_t{1} << 26;
  if (!other.parts_->areas) return false;
  const std::size_t parts = std::max<std::size_t>(outline().polygons.size(), 1);
  return other.parts_->areas->steps() <= kStepsMax / parts;
}

bool Geometry::has_part_inside(const Geometry& other) const {
  return std::ranges::any_of(one_of_each_part(), [&](Position position) {
    return other.parts_->areas->contain(on_earth(position));
  });
}

std::optional<bool> Geometry::intersects(const Geometry& other) const {
  const Edges& edges = parts_->edges;
  const Edges& others = other.parts_->edges;
  if (edges.is_far_from(others)) return false;
  if (can_look_inside(other) && other.can_look_inside(*this)) {
    // Where borders do not meet, a part lies wholly in the other shape or has nothing of it.
    return do_cross(edges, others) || do_touch(edges, others) || has_part_inside(other) ||
           other.has_part_inside(*this);
  }
  return std::visit([](const auto& a, const auto& b) { return asked(a, b, Intersects()); },
                    parts_->shape, other.parts_->shape);
}

std::optional<double> Geometry::area() const {
  if (outline().kind != Outline::Kind::Area) return std::nullopt;
  double area = 0;
  for (const auto& polygon : outline().polygons) {
    // Holes go the other way round: their areas are negative.
    for (const auto& ring : polygon) area += signed_area(ring, parts_->edges.is_planar());
  }
  return area;
}

}  // namespace orrery::geo
