// Functions of vectors. The last argument of each is what the container's policy says of the path,
// which bind appends; undefined where it says nothing.
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "protocol/vector.h"
#include "query/functions/functions.h"

namespace orrery::query {
namespace {

using json::Value;

/// Reads a vector. One of the two is the same constant for all documents: what a thread read last
/// for an argument is not read again.
class RecentVector {
 public:
  const Floats* read(const Value& value, VectorDataType type) {
    const auto text = value.text();
    if (text && is_kept_ && type_ == type && text_ == *text) return &*vector_;
    vector_ = read_vector(value, type);
    is_kept_ = vector_ && text && text->size() <= kKeptBytesMax;
    if (is_kept_) {
      text_ = *text;
      type_ = type;
    }
    return vector_ ? &*vector_ : nullptr;
  }

 private:
  static constexpr std::size_t kKeptBytesMax = std::size_t{256} << 10;
  bool is_kept_ = false;
  std::string text_;
  VectorDataType type_ = VectorDataType::Float32;
  std::optional<Floats> vector_;
};

/// (vector, vector [, brute force [, options]], policy)
template <bool is_score>
Value compared(Arguments arguments) {
  const Value& policy = *arguments.back();
  const Arguments given = arguments.first(arguments.size() - 1);
  VectorOptions options;
  if (!policy.is_undefined() && !options.take(policy)) return {};
  // Whether an index may be asked: the distance itself is always exact.
  if (given.size() > 2 && !given[2]->is_boolean()) return {};
  if (given.size() > 3 && !options.take(*given[3])) return {};

  static thread_local std::array<RecentVector, 2> recent;
  const Floats* const a = recent[0].read(*given[0], options.type);
  const Floats* const b = recent[1].read(*given[1], options.type);
  if (a == nullptr || b == nullptr || a->size() != b->size()) return {};
  const float distance = vector_distance(*a, *b, options.function);
  if (!std::isfinite(distance)) return {};
  const double shown = shortest_double(distance);
  return Value::number(is_score && options.function == DistanceFunction::Euclidean ? -shown
                                                                                   : shown);
}

template <bool is_score>
constexpr Function over_vectors(std::string_view name) {
  return {.name = name,
          .arguments_min = 2,
          .arguments_max = 4,
          .call = compared<is_score>,
          .takes_undefined = true,  // the policy may be
          .hidden = Function::Hidden::VectorPolicy};
}

constexpr std::array kVectorFunctions = {
    over_vectors<false>("VECTORDISTANCE"),
    over_vectors<true>("_VECTORSCORE"),
};

}  // namespace

std::span<const Function> vector_functions() { return kVectorFunctions; }

}  // namespace orrery::query
