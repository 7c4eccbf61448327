// How values compare: as equal, and in the order in which Cosmos DB sorts.
#pragma once

#include <compare>
#include <cstddef>

#include "json/document_text.h"
#include "json/value.h"

namespace orrery::json {

/// Of what was checked nothing is nested deeper than this: a text of kNestingMax levels inside an
/// expression of as many. It keeps the stack safe from texts that were not.
inline constexpr std::size_t kComparedLevelsMax = 4 * kNestingMax;

/// By value, exactly, integers with doubles too. Unordered where one is not a number (NaN).
std::partial_ordering compare(Number a, Number b);

/// Undefined < null < false < true < numbers < strings < arrays < objects. Numbers by value, NaN
/// ahead of all; strings by their UTF-8; arrays by their first elements that differ; objects as the
/// arrays of their members would, sorted by name. Minus zero and zero are equivalent, 1 and 1.0
/// too. (The service sorts arrays and objects by a hash that it does not tell.)
std::weak_ordering compare(const Value& a, const Value& b);

/// The same as that: values of different kinds are not equal, the order of an object's members does
/// not matter. But NaN equals nothing.
bool equal(const Value& a, const Value& b);

}  // namespace orrery::json
