#include "index/vector/vector_index.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

namespace orrery::index {
namespace {

constexpr std::size_t kLevelsMax = 16;

}  // namespace

VectorIndex::VectorIndex(Options options) : options_(options), random_(options.seed) {
  options_.links_max = std::max<std::size_t>(options_.links_max, 2);
  options_.breadth = std::max(options_.breadth, options_.links_max);
}

std::size_t VectorIndex::bytes_max(const Options& options) {
  // On all levels above the lowest one together there are about as many links as there are vectors.
  constexpr std::size_t kOverhead = 64;
  const std::size_t links = 2 * options.links_max + 1;
  // As many again may have been removed.
  return 2 * options.vectors_max *
         (options.dimensions * sizeof(float) + links * sizeof(Place) + sizeof(Node) +
          sizeof(std::uint32_t) + kOverhead);
}

bool VectorIndex::prepare(std::span<const float> vector, Floats& out) const {
  if (vector.size() != options_.dimensions || vector.empty()) return false;
  out.assign(vector.begin(), vector.end());
  const float square = vector_distance(vector, vector, DistanceFunction::DotProduct);
  if (!std::isfinite(square)) return false;
  if (options_.function != DistanceFunction::Cosine) return true;
  // Of vectors of length 1 the product is the cosine.
  if (square == 0) return false;
  const float factor = 1 / std::sqrt(square);
  for (float& number : out) number *= factor;
  return std::isfinite(factor);
}

std::span<const float> VectorIndex::vector_at(Place place) const {
  return std::span(vectors_).subspan(place * options_.dimensions, options_.dimensions);
}

float VectorIndex::distance(std::span<const float> a, Place b) const {
  const bool is_euclidean = options_.function == DistanceFunction::Euclidean;
  const auto function = is_euclidean ? DistanceFunction::Euclidean : DistanceFunction::DotProduct;
  return -similarity(vector_distance(a, vector_at(b), function), function);
}

std::size_t VectorIndex::draw_level() {
  std::uniform_real_distribution<double> uniform(0, 1);
  const double scale = 1 / std::log(static_cast<double>(options_.links_max));
  const double level = -std::log(1 - uniform(random_)) * scale;
  return std::min(static_cast<std::size_t>(level), kLevelsMax - 1);
}

std::size_t VectorIndex::links_max(std::size_t level) const {
  return level == 0 ? 2 * options_.links_max : options_.links_max;
}

bool VectorIndex::add(std::uint64_t number, std::span<const float> vector) {
  remove(number);
  Floats prepared;
  if (!prepare(vector, prepared)) return false;
  if (places_.size() >= options_.vectors_max) return false;
  insert(number, prepared);
  return true;
}

bool VectorIndex::remove(std::uint64_t number) {
  const auto found = places_.find(number);
  if (found == places_.end()) return false;
  nodes_[found->second].is_removed = true;
  places_.erase(found);
  // Those that were removed are in the way of searches: never more than there are others.
  if (nodes_.size() > 2 * places_.size()) rebuild();
  return true;
}

void VectorIndex::insert(std::uint64_t number, std::span<const float> vector) {
  const auto place = static_cast<Place>(nodes_.size());
  const std::size_t level = draw_level();
  vectors_.insert(vectors_.end(), vector.begin(), vector.end());
  nodes_.push_back({.number = number, .links = {}});
  nodes_.back().links.resize(level + 1);
  seen_.push_back(0);
  places_[number] = place;
  if (!top_) {
    top_ = place;
    return;
  }
  const std::size_t highest = nodes_[*top_].links.size() - 1;
  Near from = {distance(vector, *top_), *top_};
  for (std::size_t above = highest; above > level; --above) from = descend(vector, from, above);
  for (std::size_t below = std::min(level, highest) + 1; below-- > 0;) {
    const auto near = nearest(vector, from, options_.breadth, below, true);
    nodes_[place].links[below] = choose(near, options_.links_max);
    for (const Place other : nodes_[place].links[below]) link(other, place, below);
    from = near.front();
  }
  if (level > highest) top_ = place;
}

VectorIndex::Near VectorIndex::descend(std::span<const float> query, Near from,
                                       std::size_t level) const {
  for (bool is_nearer = true; is_nearer;) {
    is_nearer = false;
    const auto& links = nodes_[from.place].links[level];
    for (const Place place : links) {
      const Near next = {distance(query, place), place};
      if (!(next < from)) continue;
      from = next;
      is_nearer = true;
      break;
    }
  }
  return from;
}

std::vector<VectorIndex::Near> VectorIndex::nearest(std::span<const float> query, Near from,
                                                    std::size_t breadth, std::size_t level,
                                                    bool with_removed) {
  if (++search_ == 0) {
    // The numbers of searches begin anew.
    std::ranges::fill(seen_, 0);
    search_ = 1;
  }
  const auto is_farther = [](const Near& a, const Near& b) { return b < a; };
  std::priority_queue<Near, std::vector<Near>, decltype(is_farther)> waiting(is_farther);
  std::priority_queue<Near> found;  // the farthest one on top
  const auto see = [&](Near near) {
    seen_[near.place] = search_;
    if (found.size() >= breadth && !(near < found.top())) return;
    waiting.push(near);
    if (nodes_[near.place].is_removed && !with_removed) return;
    found.push(near);
    if (found.size() > breadth) found.pop();
  };
  see(from);
  while (!waiting.empty()) {
    const Near next = waiting.top();
    waiting.pop();
    if (found.size() >= breadth && found.top() < next) break;
    for (const Place place : nodes_[next.place].links[level]) {
      if (seen_[place] != search_) see({distance(query, place), place});
    }
  }
  std::vector<Near> sorted(found.size());
  for (std::size_t i = sorted.size(); i-- > 0; found.pop()) sorted[i] = found.top();
  return sorted;
}

std::vector<VectorIndex::Place> VectorIndex::choose(std::span<const Near> candidates,
                                                    std::size_t count) const {
  std::vector<Place> chosen;
  std::vector<Place> others;
  for (const Near& candidate : candidates) {
    if (chosen.size() == count) return chosen;
    // One that is nearer to a chosen one is reached through that.
    const bool is_new_direction = std::ranges::none_of(chosen, [&](Place place) {
      return distance(vector_at(candidate.place), place) < candidate.distance;
    });
    (is_new_direction ? chosen : others).push_back(candidate.place);
  }
  for (const Place place : others) {
    if (chosen.size() == count) break;
    chosen.push_back(place);
  }
  return chosen;
}

void VectorIndex::link(Place from, Place to, std::size_t level) {
  auto& links = nodes_[from].links[level];
  links.push_back(to);
  if (links.size() <= links_max(level)) return;
  std::vector<Near> candidates;
  for (const Place place : links) candidates.push_back({distance(vector_at(from), place), place});
  std::ranges::sort(candidates, {}, &Near::distance);
  links = choose(candidates, links_max(level));
}

void VectorIndex::rebuild() {
  const auto vectors = std::exchange(vectors_, {});
  const auto nodes = std::exchange(nodes_, {});
  places_.clear();
  seen_.clear();
  top_.reset();
  search_ = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].is_removed) continue;
    insert(nodes[i].number,
           std::span(vectors).subspan(i * options_.dimensions, options_.dimensions));
  }
}

std::vector<VectorIndex::Found> VectorIndex::search(std::span<const float> query, std::size_t count,
                                                    std::size_t breadth) {
  Floats prepared;
  if (!top_ || count == 0 || !prepare(query, prepared)) return {};
  Near from = {distance(prepared, *top_), *top_};
  for (std::size_t level = nodes_[*top_].links.size() - 1; level > 0; --level) {
    from = descend(prepared, from, level);
  }
  std::vector<Found> out;
  for (const Near& near : nearest(prepared, from, std::max(breadth, count), 0, false)) {
    if (out.size() == count) break;
    // The score is that of the vectors as they were given, but for the last digits.
    out.push_back({nodes_[near.place].number, -near.distance});
  }
  return out;
}

}  // namespace orrery::index
