// Arithmetic on numbers that are 64-bit integers or doubles.
#pragma once

#include <cstdint>
#include <optional>

#include "json/value.h"

namespace orrery::query {

// Integers stay integers as long as they fit, then become doubles.
json::Number add(json::Number a, json::Number b);
json::Number subtract(json::Number a, json::Number b);
json::Number multiply(json::Number a, json::Number b);
json::Number negate(json::Number a);
/// Always of doubles; by zero it is infinite or not a number.
json::Number divide(json::Number a, json::Number b);
/// With the sign of the dividend; by zero it is not a number.
json::Number modulo(json::Number a, json::Number b);

/// As JavaScript does it: the integral part of the double, modulo 2³².
std::int32_t to_int32(json::Number a);

/// The integer that it is, if it is one and 64 bits hold it.
std::optional<std::int64_t> integral(json::Number a);

}  // namespace orrery::query
