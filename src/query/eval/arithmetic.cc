#include "query/eval/arithmetic.h"

#include <cmath>
#include <limits>

namespace orrery::query {

using json::Number;

Number add(Number a, Number b) {
  std::int64_t sum = 0;
  if (a.is_integer && b.is_integer && !__builtin_add_overflow(a.integer, b.integer, &sum)) {
    return Number::of(sum);
  }
  return Number::of(a.real + b.real);
}

Number subtract(Number a, Number b) {
  std::int64_t difference = 0;
  if (a.is_integer && b.is_integer && !__builtin_sub_overflow(a.integer, b.integer, &difference)) {
    return Number::of(difference);
  }
  return Number::of(a.real - b.real);
}

Number multiply(Number a, Number b) {
  std::int64_t product = 0;
  if (a.is_integer && b.is_integer && !__builtin_mul_overflow(a.integer, b.integer, &product)) {
    return Number::of(product);
  }
  return Number::of(a.real * b.real);
}

Number negate(Number a) {
  // Minus zero is a double.
  if (!a.is_integer || a.integer == 0) return Number::of(-a.real);
  return subtract(Number::of(std::int64_t{0}), a);
}

Number divide(Number a, Number b) { return Number::of(a.real / b.real); }

Number modulo(Number a, Number b) {
  if (!a.is_integer || !b.is_integer) return Number::of(std::fmod(a.real, b.real));
  if (b.integer == 0) return Number::of(std::numeric_limits<double>::quiet_NaN());
  if (b.integer == -1) return Number::of(std::int64_t{0});  // The smallest one would overflow.
  return Number::of(a.integer % b.integer);
}

std::int32_t to_int32(Number a) {
  if (!std::isfinite(a.real)) return 0;
  constexpr double kModulus = 4294967296.0;
  double rest = std::fmod(std::trunc(a.real), kModulus);
  if (rest < 0) rest += kModulus;
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(rest));
}

std::optional<std::int64_t> integral(Number a) {
  if (a.is_integer) return a.integer;
  constexpr double kBeyond = 9223372036854775808.0;  // 2⁶³
  if (!(a.real >= -kBeyond && a.real < kBeyond) || std::trunc(a.real) != a.real) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(a.real);
}

}  // namespace orrery::query
