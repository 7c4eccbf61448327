// Functions of arrays and objects, and those that choose.
#include <algorithm>
#include <compare>
#include <functional>
#include <optional>

#include "json/order.h"
#include "query/eval/arithmetic.h"
#include "query/eval/evaluate.h"
#include "query/functions/functions.h"

namespace orrery::query {
namespace {

using json::Kind;
using json::Number;
using json::Reader;
using json::Value;

/// The elements of an array, as they may be returned: an argument may own what they are in, and
/// ends with the call.
std::vector<Value> elements_of(const Value& array) {
  std::vector<Value> elements;
  for (Reader reader(array); reader.next();) {
    Value& element = elements.emplace_back(reader.value());
    if (array.owns_something()) element.own();
  }
  return elements;
}

/// Nothing if one of them is no number.
std::optional<std::vector<Number>> numbers_of(const Value& array) {
  if (!array.is_array()) return std::nullopt;
  std::vector<Number> numbers;
  for (Reader reader(array); reader.next();) {
    const Value element = reader.value();
    if (!element.is_number()) return std::nullopt;
    numbers.push_back(element.as_number());
  }
  return numbers;
}

Number sum_of(const std::vector<Number>& numbers) {
  Number sum = Number::of(std::int64_t{0});
  for (const Number number : numbers) sum = add(sum, number);
  return sum;
}

Value array_sum(Arguments arguments) {
  const auto numbers = numbers_of(*arguments[0]);
  return numbers ? Value::number(sum_of(*numbers)) : Value();
}

Value array_avg(Arguments arguments) {
  const auto numbers = numbers_of(*arguments[0]);
  if (!numbers || numbers->empty()) return {};
  return Value::number(sum_of(*numbers).real / static_cast<double>(numbers->size()));
}

Value array_median(Arguments arguments) {
  auto numbers = numbers_of(*arguments[0]);
  if (!numbers || numbers->empty()) return {};
  std::ranges::sort(*numbers, [](Number a, Number b) { return json::compare(a, b) < 0; });
  const Number high = (*numbers)[numbers->size() / 2];
  if (numbers->size() % 2 == 1) return Value::number(high);
  const Number low = (*numbers)[numbers->size() / 2 - 1];
  return Value::number(divide(add(low, high), Number::of(std::int64_t{2})));
}

/// The first of all in the order, or the last.
Value extreme(const Value& array, bool last) {
  if (!array.is_array()) return {};
  Value best;
  for (Reader reader(array); reader.next();) {
    Value element = reader.value();
    if (element.is_array() || element.is_object()) return {};
    const auto order = json::compare(element, best);
    if (best.is_undefined() || (last ? order > 0 : order < 0)) best = std::move(element);
  }
  if (array.owns_something()) best.own();
  return best;
}

Value array_min(Arguments arguments) { return extreme(*arguments[0], false); }
Value array_max(Arguments arguments) { return extreme(*arguments[0], true); }

Value array_concat(Arguments arguments) {
  std::vector<Value> all;
  for (const Value* array : arguments) {
    if (!array->is_array()) return {};
    for (Value& element : elements_of(*array)) all.push_back(std::move(element));
    // More would be undefined anyway: see kMadeBytesMax.
    if (all.size() * sizeof(Value) > kMadeBytesMax) return {};
  }
  return Value::array(std::move(all));
}

/// Whether `object` has all the members of `part`, with equal values.
bool has_members(const Value& object, const Value& part) {
  std::string buffer;
  for (Reader reader(part); reader.next();) {
    const Value name = reader.name();
    if (!json::equal(object.member(name.as_string(buffer)), reader.value())) return false;
  }
  return true;
}

/// Once more over all of it.
bool spend_for(Arguments arguments, const Value& array) {
  return arguments.spend(1 + WorkBudget::steps_of(array.weight()));
}

bool is_in_array(Arguments arguments, const Value& wanted, bool in_part) {
  const std::size_t members = in_part ? wanted.size() : 0;
  for (Reader reader(*arguments[0]); reader.next();) {
    const Value element = reader.value();
    // Each member is looked for from the beginning.
    if (members > 1 && !arguments.spend(members * (1 + WorkBudget::steps_of(element.weight())))) {
      return false;
    }
    if (in_part && wanted.is_object() && element.is_object() ? has_members(element, wanted)
                                                             : json::equal(element, wanted)) {
      return true;
    }
  }
  return false;
}

Value array_contains(Arguments arguments) {
  if (!arguments[0]->is_array() || arguments[1]->is_undefined()) return {};
  bool in_part = false;
  if (arguments.size() == 3 && !arguments[2]->is_undefined()) {
    if (!arguments[2]->is_boolean()) return {};
    in_part = arguments[2]->as_boolean();
  }
  return Value::boolean(is_in_array(arguments, *arguments[1], in_part));
}

/// One that decides wins over one that is undefined.
Value array_contains_several(Arguments arguments, bool decisive) {
  if (!arguments[0]->is_array()) return {};
  bool any_undefined = false;
  for (const Value* wanted : arguments.subspan(1)) {
    if (wanted->is_undefined()) {
      any_undefined = true;
    } else if (!spend_for(arguments, *arguments[0])) {
      return {};
    } else if (is_in_array(arguments, *wanted, false) == decisive) {
      return Value::boolean(decisive);
    }
  }
  return any_undefined ? Value() : Value::boolean(!decisive);
}

Value array_contains_any(Arguments arguments) { return array_contains_several(arguments, true); }
Value array_contains_all(Arguments arguments) { return array_contains_several(arguments, false); }

Value array_length(Arguments arguments) {
  if (!arguments[0]->is_array()) return {};
  return Value::number(static_cast<std::int64_t>(arguments[0]->size()));
}

Value array_slice(Arguments arguments) {
  if (!arguments[0]->is_array() || !arguments[1]->is_number()) return {};
  const auto start = integral(arguments[1]->as_number());
  if (!start) return {};
  std::vector<Value> elements = elements_of(*arguments[0]);
  const auto size = static_cast<std::int64_t>(elements.size());
  const std::int64_t begin = *start < 0 ? std::max<std::int64_t>(size + std::max(*start, -size), 0)
                                        : std::min(*start, size);
  std::int64_t count = size - begin;
  if (arguments.size() == 3) {
    if (!arguments[2]->is_number()) return {};
    const auto length = integral(arguments[2]->as_number());
    if (!length) return {};
    count = std::clamp<std::int64_t>(*length, 0, count);
  }
  elements.erase(elements.begin() + begin + count, elements.end());
  elements.erase(elements.begin(), elements.begin() + begin);
  return Value::array(std::move(elements));
}

Value choose(Arguments arguments) {
  if (!arguments[0]->is_number()) return {};
  const auto index = integral(arguments[0]->as_number());
  if (!index || *index < 1 || *index >= static_cast<std::int64_t>(arguments.size())) return {};
  return *arguments[static_cast<std::size_t>(*index)];
}

Value iif(Arguments arguments) { return arguments[0]->is_true() ? *arguments[1] : *arguments[2]; }

Value object_to_array(Arguments arguments) {
  if (!arguments[0]->is_object()) return {};
  std::string names[2] = {"k", "v"};
  std::string buffer;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    if (!arguments[i]->is_string()) return {};
    names[i - 1] = arguments[i]->as_string(buffer);
  }
  if (names[0] == names[1]) return {};
  std::vector<Value> elements;
  for (Reader reader(*arguments[0]); reader.next();) {
    Value pair = Value::object();
    Value name = reader.name();
    Value value = reader.value();
    if (arguments[0]->owns_something()) name.own(), value.own();
    pair.set_member(names[0], std::move(name));
    pair.set_member(names[1], std::move(value));
    elements.push_back(std::move(pair));
  }
  return Value::array(std::move(elements));
}

// ── Sets ─────────────────────────────────────────────────────────────────────────────────────────

/// Leaves a sort that takes too long, which nothing else does.
struct Interrupted {};

/// Compares values for one call.
class Comparison {
 public:
  explicit Comparison(Arguments arguments) : arguments_(arguments) {}

  std::weak_ordering operator()(const Value& a, const Value& b) const {
    if (!arguments_.spend(1 + WorkBudget::steps_of(a.weight()))) throw Interrupted();
    return json::compare(a, b);
  }
  bool is_before(const Value& a, const Value& b) const { return (*this)(a, b) < 0; }

 private:
  Arguments arguments_;
};

void sort(std::vector<Value>& values, const Comparison& comparison) {
  std::ranges::sort(values, std::bind_front(&Comparison::is_before, &comparison));
}

/// A set of values that can be asked quickly.
class ValueSet {
 public:
  ValueSet(const Value& array, const Comparison& comparison)
      : sorted_(elements_of(array)), comparison_(comparison) {
    sort(sorted_, comparison_);
  }
  bool has(const Value& value) const {
    return std::ranges::binary_search(sorted_, value,
                                      std::bind_front(&Comparison::is_before, &comparison_));
  }

 private:
  std::vector<Value> sorted_;
  const Comparison& comparison_;
};

/// The first of each value, in their order.
std::vector<Value> distinct(std::vector<Value> values, const Comparison& comparison) {
  std::vector<std::size_t> places(values.size());
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
  std::ranges::sort(places, [&](std::size_t a, std::size_t b) {
    const auto order = comparison(values[a], values[b]);
    return order != 0 ? order < 0 : a < b;
  });
  const auto repeated = std::ranges::unique(
      places, [&](std::size_t a, std::size_t b) { return comparison(values[a], values[b]) == 0; });
  places.erase(repeated.begin(), repeated.end());
  std::ranges::sort(places);
  std::vector<Value> result;
  result.reserve(places.size());
  for (const std::size_t place : places) result.push_back(std::move(values[place]));
  return result;
}

/// A function of two arrays.
template <Value (*call)(Arguments, const Comparison&)>
Value of_sets(Arguments arguments) {
  if (!arguments[0]->is_array() || !arguments[1]->is_array()) return {};
  try {
    return call(arguments, Comparison(arguments));
  } catch (const Interrupted&) {
    return {};
  }
}

Value set_intersect(Arguments arguments, const Comparison& comparison) {
  const ValueSet first(*arguments[0], comparison);
  auto result = distinct(elements_of(*arguments[1]), comparison);
  std::erase_if(result, [&](const Value& value) { return !first.has(value); });
  return Value::array(std::move(result));
}

Value set_difference(Arguments arguments, const Comparison& comparison) {
  const ValueSet second(*arguments[1], comparison);
  auto result = distinct(elements_of(*arguments[0]), comparison);
  std::erase_if(result, [&](const Value& value) { return second.has(value); });
  return Value::array(std::move(result));
}

Value set_union(Arguments arguments, const Comparison& comparison) {
  auto all = elements_of(*arguments[0]);
  for (Value& value : elements_of(*arguments[1])) all.push_back(std::move(value));
  return Value::array(distinct(std::move(all), comparison));
}

Value set_equal(Arguments arguments, const Comparison& comparison) {
  auto first = distinct(elements_of(*arguments[0]), comparison);
  auto second = distinct(elements_of(*arguments[1]), comparison);
  sort(first, comparison);
  sort(second, comparison);
  return Value::boolean(std::ranges::equal(
      first, second, [&](const Value& a, const Value& b) { return comparison(a, b) == 0; }));
}

constexpr Function kArrayFunctions[] = {
    {"ARRAY_AVG", 1, 1, array_avg},
    {"ARRAY_CONCAT", 2, kAnyNumber, array_concat},
    {"ARRAY_CONTAINS", 2, 3, array_contains, true},
    {"ARRAY_CONTAINS_ALL", 2, kAnyNumber, array_contains_all, true},
    {"ARRAY_CONTAINS_ANY", 2, kAnyNumber, array_contains_any, true},
    {"ARRAY_LENGTH", 1, 1, array_length},
    {"ARRAY_MAX", 1, 1, array_max},
    {"ARRAY_MEDIAN", 1, 1, array_median},
    {"ARRAY_MIN", 1, 1, array_min},
    {"ARRAY_SLICE", 2, 3, array_slice},
    {"ARRAY_SUM", 1, 1, array_sum},
    {"CHOOSE", 2, kAnyNumber, choose, true},
    {"IIF", 3, 3, iif, true},
    {"OBJECTTOARRAY", 1, 3, object_to_array},
    {"SETDIFFERENCE", 2, 2, of_sets<set_difference>},
    {"SETEQUAL", 2, 2, of_sets<set_equal>},
    {"SETINTERSECT", 2, 2, of_sets<set_intersect>},
    {"SETUNION", 2, 2, of_sets<set_union>},
};

}  // namespace

std::span<const Function> array_functions() { return kArrayFunctions; }

}  // namespace orrery::query
