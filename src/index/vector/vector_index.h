// An approximate index over vectors, in memory: finds most of the most similar ones without looking
// at all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <unordered_map>
#include <vector>

#include "protocol/vector.h"

namespace orrery::index {

/// A hierarchical navigable small world: each vector is linked to some that are near to it, on a
/// lowest level all of them, on each higher one fewer. A search goes down the levels, always on to
/// the neighbours that are nearer.
///
/// Not for several threads at a time: also a search notes where it has been.
class VectorIndex {
 public:
  struct Options {
    std::size_t dimensions;
    DistanceFunction function = DistanceFunction::Cosine;
    std::size_t vectors_max;     ///< bounds its memory: see bytes_max
    std::size_t links_max = 16;  ///< of a vector on each level; twice as many on the lowest one
    std::size_t breadth = 100;   ///< how many candidates are looked at for the links of a new one
    std::uint64_t seed = 1;      ///< of the levels, which are drawn
  };
  explicit VectorIndex(Options options);

  /// Takes the place of the one with the same number, if there is one. False when there is no room
  /// for it, or when it cannot be compared: another length, numbers that are not finite, or only
  /// zeros where the angle counts. Then there is none with that number.
  bool add(std::uint64_t number, std::span<const float> vector);
  /// Whether there was one.
  bool remove(std::uint64_t number);

  struct Found {
    std::uint64_t number;
    float score;  ///< larger is more similar: as similarity() of vector_distance()
  };
  /// The `count` most similar ones, or nearly so, the best one first. A larger breadth (at least
  /// `count` is taken) finds more of them, and takes longer.
  std::vector<Found> search(std::span<const float> query, std::size_t count, std::size_t breadth);

  std::size_t size() const { return places_.size(); }
  /// About how many bytes it has when it is full.
  static std::size_t bytes_max(const Options& options);

 private:
  using Place = std::uint32_t;  ///< of a vector among all
  /// Smaller is nearer, whatever the function.
  struct Near {
    float distance;
    Place place;
    bool operator<(const Near& other) const { return distance < other.distance; }
  };
  struct Node {
    std::uint64_t number;
    bool is_removed = false;
    std::vector<std::vector<Place>> links;  ///< by level
  };

  bool prepare(std::span<const float> vector, Floats& out) const;
  std::span<const float> vector_at(Place place) const;
  float distance(std::span<const float> a, Place b) const;
  std::size_t draw_level();
  std::size_t links_max(std::size_t level) const;
  void insert(std::uint64_t number, std::span<const float> vector);
  /// Goes on to the nearer ones from `from`, on one level, until there is none.
  Near descend(std::span<const float> query, Near from, std::size_t level) const;
  /// The nearest ones on a level, the nearest one first. Removed ones lead the way, but are only
  /// found if that is wanted.
  std::vector<Near> nearest(std::span<const float> query, Near from, std::size_t breadth,
                            std::size_t level, bool with_removed);
  /// Of candidates, the nearest one first, those that lead into different directions.
  std::vector<Place> choose(std::span<const Near> candidates, std::size_t count) const;
  void link(Place from, Place to, std::size_t level);
  /// Without those that were removed.
  void rebuild();

  Options options_;
  std::mt19937_64 random_;
  std::vector<float> vectors_;  ///< one behind the other
  std::vector<Node> nodes_;
  std::unordered_map<std::uint64_t, Place> places_;  ///< by number, without removed ones
  std::optional<Place> top_;                         ///< one on the highest level
  std::vector<std::uint32_t> seen_;                  ///< by place: the search that saw it
  std::uint32_t search_ = 0;
};

}  // namespace orrery::index
