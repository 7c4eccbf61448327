#include "protocol/vector.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/header_name.h"

namespace orrery {
namespace {

float to_float(double number) {
  constexpr double kMax = std::numeric_limits<float>::max();
  if (std::fabs(number) > kMax) {
    return std::copysign(std::numeric_limits<float>::infinity(), number > 0 ? 1.0F : -1.0F);
  }
  return static_cast<float>(number);
}

bool has(VectorDataType type, double number) {
  switch (type) {
    case VectorDataType::Float32:
      return true;
    case VectorDataType::Int8:
      return std::trunc(number) == number && number >= -128 && number <= 127;
    case VectorDataType::UInt8:
      return std::trunc(number) == number && number >= 0 && number <= 255;
  }
  return false;
}

/// 1 to 100, as the service has it.
bool take_multiplier(const json::Value& value, std::uint32_t& multiplier) {
  constexpr double kMultiplierMax = 100;
  if (!value.is_number()) return false;
  const double number = value.as_number().real;
  if (!(number >= 1 && number <= kMultiplierMax) || std::trunc(number) != number) return false;
  multiplier = static_cast<std::uint32_t>(number);
  return true;
}

bool is_json_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/// Reads the numbers of an array straight from its text, which is JSON. False at anything else.
bool read_text(std::string_view text, VectorDataType type, Floats& out) {
  const char* at = text.data() + 1;  // behind the [
  const char* const end = text.data() + text.size();
  for (;;) {
    while (at != end && is_json_space(*at)) ++at;
    double number = 0;
    const auto [after, error] = std::from_chars(at, end, number);
    // A number that from_chars refuses may still be valid: too large or too small.
    if (error == std::errc::result_out_of_range) {
      number = json::Number::parse({at, after}).real;
    } else if (error != std::errc()) {
      return false;
    }
    if (!has(type, number)) return false;
    out.push_back(to_float(number));
    at = after;
    while (at != end && is_json_space(*at)) ++at;
    if (at == end) return false;
    if (*at == ']') return true;
    ++at;  // the comma
  }
}

// Sums of as many parts as a vector register has at most: the compiler may not reorder the
// additions of floats by itself.
constexpr std::size_t kLanes = 16;

template <typename Term>
float sum_of(std::span<const float> a, std::span<const float> b, Term&& term) {
  std::array<float, kLanes> sums{};
  std::size_t i = 0;
  for (; i + kLanes <= a.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += term(a[i + lane], b[i + lane]);
  }
  for (std::size_t lane = 0; i < a.size(); ++i, ++lane) sums[lane] += term(a[i], b[i]);
  for (std::size_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::size_t lane = 0; lane < width; ++lane) sums[lane] += sums[lane + width];
  }
  return sums[0];
}

float dot_product(std::span<const float> a, std::span<const float> b) {
  return sum_of(a, b, [](float x, float y) { return x * y; });
}

}  // namespace

std::optional<DistanceFunction> find_distance_function(std::string_view name) {
  if (equal_ignoring_case(name, "cosine")) return DistanceFunction::Cosine;
  if (equal_ignoring_case(name, "dotproduct")) return DistanceFunction::DotProduct;
  if (equal_ignoring_case(name, "euclidean")) return DistanceFunction::Euclidean;
  return std::nullopt;
}

std::optional<VectorDataType> find_vector_data_type(std::string_view name) {
  const auto is = [&](std::string_view known) { return equal_ignoring_case(name, known); };
  if (is("float32") || is("float16")) return VectorDataType::Float32;
  if (is("int8")) return VectorDataType::Int8;
  if (is("uint8")) return VectorDataType::UInt8;
  return std::nullopt;
}

bool VectorOptions::take(const json::Value& given) {
  if (!given.is_object()) return false;
  for (json::Reader reader(given); reader.next();) {
    const json::Value name = reader.name();
    const json::Value value = reader.value();
    std::string buffer;
    const std::string_view text = value.is_string() ? value.as_string(buffer) : std::string_view();
    if (name.is_string("distanceFunction")) {
      const auto named = find_distance_function(text);
      if (!named) return false;
      function = *named;
    } else if (name.is_string("dataType")) {
      const auto named = find_vector_data_type(text);
      if (!named) return false;
      type = *named;
    } else if (name.is_string("searchListSizeMultiplier")) {
      if (!take_multiplier(value, search_list_multiplier)) return false;
    } else if (name.is_string("quantizedVectorListMultiplier")) {
      if (!take_multiplier(value, quantized_list_multiplier)) return false;
    } else if (name.is_string("filterPriority")) {
      // Which is looked at first makes no difference here: filter and distance are both exact.
      if (!value.is_number() || !(value.as_number().real >= 0 && value.as_number().real <= 1)) {
        return false;
      }
    } else {
      return false;
    }
  }
  return true;
}

std::optional<Floats> read_vector(const json::Value& value, VectorDataType type) {
  if (!value.is_array()) return std::nullopt;
  Floats out;
  if (const auto text = value.text()) {
    if (!read_text(*text, type, out)) return std::nullopt;
    return out;
  }
  for (json::Reader reader(value); reader.next();) {
    const json::Value element = reader.value();
    if (!element.is_number()) return std::nullopt;
    const double number = element.as_number().real;
    if (!has(type, number)) return std::nullopt;
    out.push_back(to_float(number));
  }
  if (out.empty()) return std::nullopt;
  return out;
}

float vector_distance(std::span<const float> a, std::span<const float> b,
                      DistanceFunction function) {
  switch (function) {
    case DistanceFunction::Cosine: {
      // The last steps with more digits, so that the cosine of a vector and itself is 1.
      const double squares = double{dot_product(a, a)} * double{dot_product(b, b)};
      const double cosine = double{dot_product(a, b)} / std::sqrt(squares);
      if (std::isnan(cosine)) return std::numeric_limits<float>::quiet_NaN();
      return static_cast<float>(std::clamp(cosine, -1.0, 1.0));
    }
    case DistanceFunction::DotProduct:
      return dot_product(a, b);
    case DistanceFunction::Euclidean:
      return std::sqrt(sum_of(a, b, [](float x, float y) { return (x - y) * (x - y); }));
  }
  return std::numeric_limits<float>::quiet_NaN();
}

double shortest_double(float value) {
  std::array<char, 32> text{};
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value);
  double result = 0;
  const auto read = std::from_chars(text.data(), written.ptr, result);
  return read.ec == std::errc() ? result : static_cast<double>(value);
}

}  // namespace orrery
