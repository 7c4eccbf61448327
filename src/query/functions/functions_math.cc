// Functions of numbers.
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <random>

#include "query/eval/arithmetic.h"
#include "query/functions/functions.h"

namespace orrery::query {
namespace {

using json::Number;
using json::Value;

template <double (*function)(double)>
Value real_of(Arguments arguments) {
  if (!arguments[0]->is_number()) return {};
  return Value::number(function(arguments[0]->as_number().real));
}

/// The same for functions of which integers are their own value.
template <double (*function)(double)>
Value rounded(Arguments arguments) {
  if (!arguments[0]->is_number()) return {};
  const Number number = arguments[0]->as_number();
  return Value::number(number.is_integer ? number : Number::of(function(number.real)));
}

template <Number (*function)(double, double)>
Value real_of_two(Arguments arguments) {
  if (!arguments[0]->is_number() || !arguments[1]->is_number()) return {};
  return Value::number(function(arguments[0]->as_number().real, arguments[1]->as_number().real));
}

double cot(double x) { return 1 / std::tan(x); }
double degrees(double x) { return x * (180 / std::numbers::pi); }
double radians(double x) { return x * (std::numbers::pi / 180); }
Number atn2(double y, double x) { return Number::of(std::atan2(y, x)); }
Number power(double x, double y) { return Number::of(std::pow(x, y)); }

// The overloads of <cmath> have no address of their own.
double acos(double x) { return std::acos(x); }
double asin(double x) { return std::asin(x); }
double atan(double x) { return std::atan(x); }
double ceil(double x) { return std::ceil(x); }
double cos(double x) { return std::cos(x); }
double exp(double x) { return std::exp(x); }
double floor(double x) { return std::floor(x); }
double log10(double x) { return std::log10(x); }
double sin(double x) { return std::sin(x); }
double sqrt(double x) { return std::sqrt(x); }
double tan(double x) { return std::tan(x); }
double trunc(double x) { return std::trunc(x); }

Value absolute(Arguments arguments) {
  if (!arguments[0]->is_number()) return {};
  const Number number = arguments[0]->as_number();
  if (!number.is_integer) return Value::number(std::fabs(number.real));
  return Value::number(number.integer < 0 ? negate(number) : number);
}

Value sign(Arguments arguments) {
  if (!arguments[0]->is_number()) return {};
  const double number = arguments[0]->as_number().real;
  if (std::isnan(number)) return Value::number(number);
  return Value::number(std::int64_t{(number > 0) - (number < 0)});
}

Value square(Arguments arguments) {
  if (!arguments[0]->is_number()) return {};
  const Number number = arguments[0]->as_number();
  return Value::number(multiply(number, number));
}

Value log(Arguments arguments) {
  if (!arguments[0]->is_number()) return {};
  const double number = arguments[0]->as_number().real;
  if (arguments.size() == 1) return Value::number(std::log(number));
  if (!arguments[1]->is_number()) return {};
  return Value::number(std::log(number) / std::log(arguments[1]->as_number().real));
}

/// From 0 to below 1, in steps of 2⁻⁵³.
Value random_number(Arguments) {
  thread_local std::mt19937_64 generator(std::random_device{}());
  return Value::number(std::ldexp(static_cast<double>(generator() >> 11), -53));
}

Value pi(Arguments) { return Value::number(std::numbers::pi); }

/// To a multiple of ten to the `zeros`, of which there are 18 at most.
Number round_integer(std::int64_t number, std::int64_t zeros) {
  std::int64_t scale = 1;
  for (; zeros > 0; --zeros) scale *= 10;
  const std::int64_t rest = number % scale;
  const Number cut = Number::of(number - rest);
  if (std::abs(rest) < scale - std::abs(rest)) return cut;
  return add(cut, Number::of(rest < 0 ? -scale : scale));
}

double round_real(double number, std::int64_t digits) {
  const double scale = std::pow(10.0, std::fabs(static_cast<double>(digits)));
  if (digits >= 0) {
    // More digits than a double has: there is nothing to round.
    constexpr double kWhole = 4503599627370496.0;  // 2⁵²
    const double scaled = number * scale;
    return std::fabs(scaled) < kWhole ? std::round(scaled) / scale : number;
  }
  if (!std::isfinite(number)) return number;
  // All numbers are nearer to zero.
  if (!std::isfinite(scale)) return 0;
  return std::round(number / scale) * scale;
}

/// Half goes away from zero.
Value round(Arguments arguments) {
  if (!arguments[0]->is_number()) return {};
  const Number number = arguments[0]->as_number();
  if (arguments.size() == 1) {
    return Value::number(number.is_integer ? number : Number::of(std::round(number.real)));
  }
  if (!arguments[1]->is_number()) return {};
  const auto digits = integral(arguments[1]->as_number());
  if (!digits) return {};
  if (!number.is_integer) return Value::number(round_real(number.real, *digits));
  if (*digits >= 0) return Value::number(number);
  constexpr std::int64_t kZerosMax = 18;
  if (*digits >= -kZerosMax) return Value::number(round_integer(number.integer, -*digits));
  return Value::number(round_real(number.real, *digits));
}

/// The largest multiple of `size` not above `number`; for a negative size, the smallest not below.
Number bin_of_integer(Number number, Number size) {
  const std::int64_t rest = modulo(number, size).integer;
  if (rest == 0) return number;
  const std::int64_t quotient = number.integer / size.integer;
  const bool is_rounded_up = (rest < 0) != (size.integer < 0);
  return multiply(Number::of(is_rounded_up ? quotient - 1 : quotient), size);
}

Value number_bin(Arguments arguments) {
  if (!arguments[0]->is_number()) return {};
  const Number all = arguments[0]->as_number();
  Number step = Number::of(std::int64_t{1});
  if (arguments.size() == 2) {
    if (!arguments[1]->is_number()) return {};
    step = arguments[1]->as_number();
  }
  if (step.real == 0) return {};
  if (const auto whole = integral(step); all.is_integer && whole) {
    return Value::number(bin_of_integer(all, Number::of(*whole)));
  }
  const double number = all.real;
  const double size = step.real;
  // The reciprocal of 0.1 is a whole number although 0.1 is not exact.
  const double bin = std::floor(number / size);
  const double reciprocal = 1 / size;
  const bool is_fraction = std::fabs(size) < 1 && std::trunc(reciprocal) == reciprocal;
  return Value::number(is_fraction ? bin / reciprocal : bin * size);
}

// ── 64-bit integers that wrap around ─────────────────────────────────────────────────────────────

template <typename Function>
Value of_integers(Arguments arguments, Function&& function) {
  if (!arguments[0]->is_number() || !arguments[1]->is_number()) return {};
  const auto a = integral(arguments[0]->as_number());
  const auto b = integral(arguments[1]->as_number());
  if (!a || !b) return {};
  return function(*a, *b);
}

template <typename Function>
Value of_words(Arguments arguments, Function&& function) {
  return of_integers(arguments, [&](std::int64_t a, std::int64_t b) {
    const std::uint64_t word =
        function(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b));
    return Value::number(static_cast<std::int64_t>(word));
  });
}

Value int_add(Arguments arguments) {
  return of_words(arguments, [](std::uint64_t a, std::uint64_t b) { return a + b; });
}
Value int_sub(Arguments arguments) {
  return of_words(arguments, [](std::uint64_t a, std::uint64_t b) { return a - b; });
}
Value int_mul(Arguments arguments) {
  return of_words(arguments, [](std::uint64_t a, std::uint64_t b) { return a * b; });
}
Value int_bit_and(Arguments arguments) {
  return of_words(arguments, [](std::uint64_t a, std::uint64_t b) { return a & b; });
}
Value int_bit_or(Arguments arguments) {
  return of_words(arguments, [](std::uint64_t a, std::uint64_t b) { return a | b; });
}
Value int_bit_xor(Arguments arguments) {
  return of_words(arguments, [](std::uint64_t a, std::uint64_t b) { return a ^ b; });
}
Value int_bit_left_shift(Arguments arguments) {
  return of_words(arguments, [](std::uint64_t a, std::uint64_t b) { return a << (b & 63); });
}
Value int_bit_right_shift(Arguments arguments) {
  return of_integers(arguments,
                     [](std::int64_t a, std::int64_t b) { return Value::number(a >> (b & 63)); });
}
Value int_bit_not(Arguments arguments) {
  if (!arguments[0]->is_number()) return {};
  const auto a = integral(arguments[0]->as_number());
  return a ? Value::number(~*a) : Value();
}
// The smallest integer divided by -1 is not one.
Value int_div(Arguments arguments) {
  return of_integers(arguments, [](std::int64_t a, std::int64_t b) {
    if (b == 0) return Value();
    return Value::number(b == -1 ? static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(a))
                                 : a / b);
  });
}
Value int_mod(Arguments arguments) {
  return of_integers(arguments, [](std::int64_t a, std::int64_t b) {
    if (b == 0) return Value();
    return Value::number(b == -1 ? std::int64_t{0} : a % b);
  });
}

constexpr Function kMathFunctions[] = {
    {"ABS", 1, 1, absolute},
    {"ACOS", 1, 1, real_of<acos>},
    {"ASIN", 1, 1, real_of<asin>},
    {"ATAN", 1, 1, real_of<atan>},
    {"ATN2", 2, 2, real_of_two<atn2>},
    {"CEILING", 1, 1, rounded<ceil>},
    {"COS", 1, 1, real_of<cos>},
    {"COT", 1, 1, real_of<cot>},
    {"DEGREES", 1, 1, real_of<degrees>},
    {"EXP", 1, 1, real_of<exp>},
    {"FLOOR", 1, 1, rounded<floor>},
    {"INTADD", 2, 2, int_add},
    {"INTBITAND", 2, 2, int_bit_and},
    {"INTBITLEFTSHIFT", 2, 2, int_bit_left_shift},
    {"INTBITNOT", 1, 1, int_bit_not},
    {"INTBITOR", 2, 2, int_bit_or},
    {"INTBITRIGHTSHIFT", 2, 2, int_bit_right_shift},
    {"INTBITXOR", 2, 2, int_bit_xor},
    {"INTDIV", 2, 2, int_div},
    {"INTMOD", 2, 2, int_mod},
    {"INTMUL", 2, 2, int_mul},
    {"INTSUB", 2, 2, int_sub},
    {"LOG", 1, 2, log},
    {"LOG10", 1, 1, real_of<log10>},
    {"NUMBERBIN", 1, 2, number_bin},
    {"PI", 0, 0, pi},
    {"POWER", 2, 2, real_of_two<power>},
    {"RADIANS", 1, 1, real_of<radians>},
    {"RAND", 0, 0, random_number, false, Function::Kind::PerRow},
    {"ROUND", 1, 2, round},
    {"SIGN", 1, 1, sign},
    {"SIN", 1, 1, real_of<sin>},
    {"SQRT", 1, 1, real_of<sqrt>},
    {"SQUARE", 1, 1, square},
    {"TAN", 1, 1, real_of<tan>},
    {"TRUNC", 1, 1, rounded<trunc>},
};

}  // namespace

std::span<const Function> math_functions() { return kMathFunctions; }

}  // namespace orrery::query
