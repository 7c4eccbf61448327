#include "geo/edges.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include <boost/container/static_vector.hpp>

#include "geo/geodesic.h"

namespace orrery::geo {

namespace {

constexpr std::size_t kBlockEdges = 8;
/// On the way down one child of each level waits, and there are fewer levels than a size has bits.
constexpr std::size_t kDepthMax = 66;

Space nearest_on_segment(Space a, Space b, Space to) {
  const Space way = b - a;
  const double square = dot(way, way);
  if (square == 0) return a;
  return a + way * std::clamp(dot(to - a, way) / square, 0.0, 1.0);
}

Space about_nearest(const Edges::Edge& edge, Space to, bool is_planar) {
  if (edge.from == edge.to) return edge.begin;
  return is_planar ? nearest_on_segment(edge.begin, edge.end, to)
                   : about_nearest_on_line(edge.begin, edge.end, to);
}

double beyond(double value, double low, double high) {
  return std::max({low - value, value - high, 0.0});
}

}  // namespace

void Edges::add(std::span<const Position> chain) {
  const auto in_space = [&](Position position) {
    return is_planar_ ? Space{position.x, position.y, 0} : on_earth(position);
  };
  if (chain.size() == 1) {
    edges_.push_back({chain[0], chain[0], in_space(chain[0]), in_space(chain[0])});
  }
  for (std::size_t i = 1; i < chain.size(); ++i) {
    edges_.push_back({chain[i - 1], chain[i], in_space(chain[i - 1]), in_space(chain[i])});
  }
}

Edges::Box Edges::box_of(const Edge& edge) const {
  const Space a = edge.begin;
  const Space b = edge.end;
  // A line on the earth stands out over the straight one between its ends.
  double bulge = 0;
  if (!is_planar_) {
    const double half = std::min(1.0, length(b - a) / 2 / kPolarMetres);
    bulge = kEquatorMetres * (1 - std::sqrt(1 - half * half)) * (1 + 4 * kFlattening);
  }
  const Space margin = {bulge, bulge, bulge};
  return {Space{std::min(a.x, b.x), std::min(a.y, b.y), std::min(a.z, b.z)} - margin,
          Space{std::max(a.x, b.x), std::max(a.y, b.y), std::max(a.z, b.z)} + margin};
}

Edges::Cone Edges::cone() const {
  const auto& [low, high] = boxes_[1];
  const Space middle = normalized((low + high) * 0.5);
  double cosine = 1;
  for (const double x : {low.x, high.x}) {
    for (const double y : {low.y, high.y}) {
      for (const double z : {low.z, high.z}) {
        cosine = std::min(cosine, dot(middle, normalized({x, y, z})));
      }
    }
  }
  return {middle, std::acos(std::clamp(cosine, -1.0, 1.0))};
}

bool Edges::is_far_from(const Edges& other) const {
  // A cone that is not too wide holds a shape if it holds the corners of the box around its edges.
  constexpr double kAngleMax = 1.4;
  constexpr double kSlack = 0.02;
  if (is_planar_ || edges_.empty() || other.edges_.empty()) return false;
  const Cone a = cone();
  const Cone b = other.cone();
  if (!(a.angle < kAngleMax) || !(b.angle < kAngleMax)) return false;
  const double between = std::acos(std::clamp(dot(a.middle, b.middle), -1.0, 1.0));
  return between > a.angle + b.angle + kSlack;
}

void Edges::arrange() {
  blocks_ = std::bit_ceil(edges_.size() / kBlockEdges + 1);
  constexpr double kFar = std::numeric_limits<double>::infinity();
  boxes_.assign(2 * blocks_, Box{{kFar, kFar, kFar}, {-kFar, -kFar, -kFar}});
  const auto widen = [](Box& box, const Box& other) {
    box.low = {std::min(box.low.x, other.low.x), std::min(box.low.y, other.low.y),
               std::min(box.low.z, other.low.z)};
    box.high = {std::max(box.high.x, other.high.x), std::max(box.high.y, other.high.y),
                std::max(box.high.z, other.high.z)};
  };
  for (std::size_t i = 0; i < edges_.size(); ++i) {
    widen(boxes_[blocks_ + i / kBlockEdges], box_of(edges_[i]));
  }
  for (std::size_t node = blocks_ - 1; node > 0; --node) {
    widen(boxes_[node], boxes_[2 * node]);
    widen(boxes_[node], boxes_[2 * node + 1]);
  }
}

const Edges::Edge* Edges::nearest(Space to, double& distance) const {
  const auto bound = [&](std::size_t node) {
    const Box& box = boxes_[node];
    return length({beyond(to.x, box.low.x, box.high.x), beyond(to.y, box.low.y, box.high.y),
                   beyond(to.z, box.low.z, box.high.z)});
  };
  boost::container::static_vector<std::pair<std::size_t, double>, kDepthMax> waiting;
  waiting.emplace_back(1, bound(1));
  const Edge* found = nullptr;
  while (!waiting.empty()) {
    const auto [node, at_least] = waiting.back();
    waiting.pop_back();
    if (at_least >= distance) continue;
    if (node < blocks_) {
      std::pair nearer(2 * node, bound(2 * node));
      std::pair farther(2 * node + 1, bound(2 * node + 1));
      if (farther.second < nearer.second) std::swap(nearer, farther);
      waiting.push_back(farther);
      waiting.push_back(nearer);
      continue;
    }
    const std::size_t begin = (node - blocks_) * kBlockEdges;
    const std::size_t end = std::min(begin + kBlockEdges, edges_.size());
    for (std::size_t i = begin; i < end; ++i) {
      const double off = length(about_nearest(edges_[i], to, is_planar_) - to);
      if (off >= distance) continue;
      distance = off;
      found = &edges_[i];
    }
  }
  return found;
}

bool Edges::touch(Space place) const {
  // A micrometre on the earth: what rounding can make of it.
  double distance = is_planar_ ? 1e-12 * length(place) : 1e-6;
  return nearest(place, distance) != nullptr;
}

bool Edges::any_near(const Edge& edge, const std::function<bool(const Edge&)>& ask) const {
  const Box near = box_of(edge);
  const auto meets = [&](std::size_t node) {
    const Box& box = boxes_[node];
    return near.low.x <= box.high.x && box.low.x <= near.high.x && near.low.y <= box.high.y &&
           box.low.y <= near.high.y && near.low.z <= box.high.z && box.low.z <= near.high.z;
  };
  boost::container::static_vector<std::size_t, kDepthMax> waiting = {1};
  while (!waiting.empty()) {
    const std::size_t node = waiting.back();
    waiting.pop_back();
    if (!meets(node)) continue;
    if (node < blocks_) {
      waiting.push_back(2 * node);
      waiting.push_back(2 * node + 1);
      continue;
    }
    const std::size_t begin = (node - blocks_) * kBlockEdges;
    const std::size_t end = std::min(begin + kBlockEdges, edges_.size());
    for (std::size_t i = begin; i < end; ++i) {
      if (ask(edges_[i])) return true;
    }
  }
  return false;
}

double distance_between(const Edges& a, const Edges& b) {
  const auto is_point = [](const Edges& edges) {
    return edges.all().size() == 1 && edges.all()[0].from == edges.all()[0].to;
  };
  if (!a.is_planar() && is_point(a) && is_point(b)) {
    return metres_between(a.all()[0].from, b.all()[0].from);
  }
  // Edges that do not cross are nearest at an end of one of them.
  double distance = std::numeric_limits<double>::infinity();
  const Edges::Edge* nearest = nullptr;
  Position from{};
  Space place{};
  const auto look = [&](const Edges& edges, Position position, Space at) {
    if (const auto* found = edges.nearest(at, distance)) {
      nearest = found;
      from = position;
      place = at;
    }
  };
  const auto look_from_all = [&](const Edges& ends, const Edges& edges) {
    for (std::size_t i = 0; i < ends.all().size(); ++i) {
      const auto& end = ends.all()[i];
      look(edges, end.from, end.begin);
      // Mostly the next one begins there.
      const bool is_last = i + 1 == ends.all().size() || ends.all()[i + 1].from != end.to;
      if (is_last) look(edges, end.to, end.end);
    }
  };
  look_from_all(a, b);
  look_from_all(b, a);
  if (nearest == nullptr || a.is_planar()) return distance;
  if (nearest->from == nearest->to) return metres_between(from, nearest->from);
  const Space foot = nearest_on_line(nearest->begin, nearest->end, place);
  return metres_between(from, position_towards(foot));
}

bool do_cross(const Edges& a, const Edges& b) {
  const bool is_planar = a.is_planar();
  // On which side of the line through `from` and `to` a place is: 1 or -1, 0 where rounding could
  // say so.
  const auto side = [&](Space from, Space to, Space place) {
    constexpr double kRounding = 1e-12;
    const Space normal = is_planar ? Space{from.y - to.y, to.x - from.x, 0} : cross(from, to);
    const double off = is_planar ? dot(normal, place - from) : dot(normal, place);
    const double size = is_planar ? std::max(length(from), length(place)) : length(place);
    const double bound = kRounding * length(normal) * size;
    return off > bound ? 1 : off < -bound ? -1 : 0;
  };
  return std::ranges::any_of(a.all(), [&](const Edges::Edge& one) {
    return b.any_near(one, [&](const Edges::Edge& other) {
      const int begin = side(one.begin, one.end, other.begin);
      const int end = side(one.begin, one.end, other.end);
      if (begin * end != -1) return false;
      const int one_begin = side(other.begin, other.end, one.begin);
      const int one_end = side(other.begin, other.end, one.end);
      if (one_begin * one_end != -1) return false;
      // Great circles cross twice: not if each arc has its crossing on the other side of the earth.
      return is_planar || begin == one_end;
    });
  });
}

bool do_touch(const Edges& a, const Edges& b) {
  const auto is_touched = [](const Edges& edges) {
    return [&edges](const Edges::Edge& edge) {
      return edges.touch(edge.begin) || edges.touch(edge.end);
    };
  };
  return std::ranges::any_of(a.all(), is_touched(b)) || std::ranges::any_of(b.all(), is_touched(a));
}

namespace {

/// A part of an edge, from 0 at its beginning to 1 at its end.
struct Stretch {
  double from;
  double to;
};

/// Places along an edge.
class Track {
 public:
  Track(const Edges::Edge& edge, bool is_planar)
      : edge_(edge), is_planar_(is_planar), arc_(edge.begin, edge.end) {}

  Space at(double part) const {
    if (part == 0) return edge_.begin;
    if (part == 1) return edge_.end;
    return is_planar_ ? edge_.begin + (edge_.end - edge_.begin) * part
                      : surface_towards(arc_.at(arc_.angle * part));
  }
  /// The part at which it is nearest to a place.
  double nearest(Space to) const {
    if (!is_planar_) return arc_.nearest(to) / arc_.angle;
    const Space way = edge_.end - edge_.begin;
    return std::clamp(dot(to - edge_.begin, way) / dot(way, way), 0.0, 1.0);
  }

 private:
  const Edges::Edge& edge_;
  bool is_planar_;
  Arc arc_;
};

}  // namespace

bool are_covered(const Edges& parts, const Edges& whole) {
  const bool is_planar = parts.is_planar();
  return std::ranges::all_of(parts.all(), [&](const Edges::Edge& part) {
    const double size = length(part.end - part.begin);
    if (size == 0) return true;  // a position twice
    // Micrometres on the earth: what rounding can make of it.
    constexpr double kRounding = 1e-12;
    const double slack =
        is_planar ? kRounding * std::max(length(part.begin), length(part.end)) : 1e-6;
    const Track track(part, is_planar);
    const Space normal =
        normalized(is_planar ? Space{part.begin.y - part.end.y, part.end.x - part.begin.x, 0}
                             : cross(part.begin, part.end));
    std::vector<Stretch> covered;
    whole.any_near(part, [&](const Edges::Edge& edge) {
      // Most lie beside it.
      const double begin = dot(normal, edge.begin - part.begin);
      const double end = dot(normal, edge.end - part.begin);
      if (std::min(begin, end) > slack || std::max(begin, end) < -slack) return false;
      const auto [from, to] = std::minmax({track.nearest(edge.begin), track.nearest(edge.end)});
      if (from == to) return false;
      const auto is_on = [&](Space place) {
        return length(about_nearest(edge, place, is_planar) - place) <= slack;
      };
      if (is_on(track.at(from)) && is_on(track.at(to))) covered.push_back({from, to});
      return false;
    });
    std::ranges::sort(covered, {}, &Stretch::from);
    double reached = 0;
    for (const Stretch& stretch : covered) {
      if (stretch.from > reached + slack / size) break;
      reached = std::max(reached, stretch.to);
    }
    return reached >= 1 - slack / size;
  });
}

}  // namespace orrery::geo
