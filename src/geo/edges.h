// The edges of a shape, and how far two shapes are from each other.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "geo/earth.h"

namespace orrery::geo {

/// In a plane, or lines on the earth. Never changes once made.
class Edges {
 public:
  struct Edge {
    Position from;
    Position to;  ///< the same of a single point
    Space begin;  ///< in a plane z is 0
    Space end;
  };

  explicit Edges(bool is_planar) : is_planar_(is_planar) {}
  /// Edges from each to the next; one position is a point.
  void add(std::span<const Position> chain);
  /// After all were added.
  void arrange();

  bool is_planar() const { return is_planar_; }
  const std::vector<Edge>& all() const { return edges_; }

  /// The edge that is nearest to a place, if it is nearer than `distance`, which then becomes its
  /// distance, straight through space; or nothing.
  const Edge* nearest(Space to, double& distance) const;

  /// Whether a place is on one of them, as far as rounding lets that be told.
  bool touch(Space place) const;

  /// Whether two shapes with these edges, each on less than half of the earth, cannot meet. Not all
  /// that cannot are told.
  bool is_far_from(const Edges& other) const;

  /// Asks all edges that could meet `edge`, and perhaps some more, until one says true: whether
  /// one did.
  bool any_near(const Edge& edge, const std::function<bool(const Edge&)>& ask) const;

 private:
  struct Box {
    Space low;
    Space high;
  };
  Box box_of(const Edge& edge) const;
  /// All directions from the centre of the earth in which there is something of a shape.
  struct Cone {
    Space middle;
    double angle;  ///< from there to its side
  };
  Cone cone() const;

  bool is_planar_;
  std::vector<Edge> edges_;
  /// Of blocks of edges that follow each other: those of the node i are the blocks of 2i and 2i+1.
  std::vector<Box> boxes_;
  std::size_t blocks_ = 0;  ///< a power of two
};

/// Between edges that do not cross: metres on the earth, else units of the plane.
double distance_between(const Edges& a, const Edges& b);

/// Whether an edge of the one and one of the other cross each other for certain, and do not only
/// touch.
bool do_cross(const Edges& a, const Edges& b);

/// Whether an edge of the one touches one of the other: not if they only cross.
bool do_touch(const Edges& a, const Edges& b);

/// Whether all of the edges of `parts` lie on edges of `whole`.
bool are_covered(const Edges& parts, const Edges& whole);

}  // namespace orrery::geo
