// Vectors of numbers, and how similar two of them are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace orrery {

enum class DistanceFunction : std::uint8_t {
  Cosine,      ///< of the angle: 1 is the same direction, -1 the opposite one
  DotProduct,  ///< larger is more similar
  Euclidean,   ///< smaller is more similar
};
/// cosine, dotproduct or euclidean, in any case: clients write dotProduct, too.
std::optional<DistanceFunction> find_distance_function(std::string_view name);

enum class VectorDataType : std::uint8_t { Float32, Int8, UInt8 };
/// float32, int8 or uint8, in any case; and float16, whose numbers are read like those of float32.
std::optional<VectorDataType> find_vector_data_type(std::string_view name);

/// The options of a path's vectors, from its policy, and of a call of VectorDistance.
struct VectorOptions {
  DistanceFunction function = DistanceFunction::Cosine;
  VectorDataType type = VectorDataType::Float32;
  /// How many times as many candidates as rows an approximate search looks at.
  static constexpr std::uint32_t kMultiplierDefault = 5;
  std::uint32_t search_list_multiplier = kMultiplierDefault;
  std::uint32_t quantized_list_multiplier = kMultiplierDefault;

  /// Takes what an object says. False when that is not allowed: then nothing is computed, rather
  /// than something else than was asked for.
  bool take(const json::Value& given);
};

using Floats = std::vector<float>;

/// The numbers of an array. Nothing when it is none, or has none, has anything else, or (of the
/// integer types) a number that the type has not.
std::optional<Floats> read_vector(const json::Value& value,
                                  VectorDataType type = VectorDataType::Float32);

/// Of vectors of the same length. Computed with the precision of a float; not finite where there is
/// no answer: numbers too large, or the angle to a vector of zeros.
float vector_distance(std::span<const float> a, std::span<const float> b,
                      DistanceFunction function);

/// The same such that larger is always more similar.
inline float similarity(float distance, DistanceFunction function) {
  return function == DistanceFunction::Euclidean ? -distance : distance;
}

/// The double that is written with as few digits as the float needs, not with all those that tell
/// the two apart.
double shortest_double(float value);

}  // namespace orrery
