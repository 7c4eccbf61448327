#include "json/order.h"

#include <algorithm>
#include <cmath>

namespace orrery::json {
namespace {

std::partial_ordering compare_mixed(std::int64_t a, double b) {
  if (std::isnan(b)) return std::partial_ordering::unordered;
  constexpr double kBeyond = 9223372036854775808.0;  // 2^63, which no std::int64_t reaches.
  if (b >= kBeyond) return std::partial_ordering::less;
  if (b < -kBeyond) return std::partial_ordering::greater;
  const double whole = std::trunc(b);
  if (const auto order = a <=> static_cast<std::int64_t>(whole); order != 0) return order;
  return whole <=> b;
}

std::partial_ordering reversed(std::partial_ordering order) { return 0 <=> order; }

std::weak_ordering compare_totally(Number a, Number b) {
  const auto order = compare(a, b);
  if (order == std::partial_ordering::less) return std::weak_ordering::less;
  if (order == std::partial_ordering::greater) return std::weak_ordering::greater;
  if (order == std::partial_ordering::equivalent) return std::weak_ordering::equivalent;
  const bool a_is_number = !std::isnan(a.real);
  const bool b_is_number = !std::isnan(b.real);
  return a_is_number <=> b_is_number;
}

std::strong_ordering compare_strings(const Value& a, const Value& b) {
  std::string a_buffer;
  std::string b_buffer;
  return a.as_string(a_buffer) <=> b.as_string(b_buffer);
}

struct PlacedMember {
  Value name;
  Value value;
  std::size_t place;
};

/// The members of an object, sorted by name, the first of each name only.
std::vector<PlacedMember> sorted_members(const Value& object) {
  std::vector<PlacedMember> members;
  for (Reader reader(object); reader.next();) {
    members.emplace_back(reader.name(), reader.value(), members.size());
  }
  std::ranges::sort(members, [](const PlacedMember& a, const PlacedMember& b) {
    const auto order = compare_strings(a.name, b.name);
    return order != 0 ? order < 0 : a.place < b.place;
  });
  const auto repeated =
      std::ranges::unique(members, [](const PlacedMember& a, const PlacedMember& b) {
        return compare_strings(a.name, b.name) == 0;
      });
  members.erase(repeated.begin(), repeated.end());
  return members;
}

std::weak_ordering compare_at(const Value& a, const Value& b, std::size_t level);

std::weak_ordering compare_arrays(const Value& a, const Value& b, std::size_t level) {
  Reader a_reader(a);
  Reader b_reader(b);
  while (true) {
    const bool a_has = a_reader.next();
    const bool b_has = b_reader.next();
    if (!a_has || !b_has) return a_has <=> b_has;
    const auto order = compare_at(a_reader.value(), b_reader.value(), level);
    if (order != 0) return order;
  }
}

std::weak_ordering compare_objects(const Value& a, const Value& b, std::size_t level) {
  const auto a_members = sorted_members(a);
  const auto b_members = sorted_members(b);
  for (std::size_t i = 0; i < std::min(a_members.size(), b_members.size()); ++i) {
    if (const auto order = compare_strings(a_members[i].name, b_members[i].name); order != 0) {
      return order;
    }
    const auto order = compare_at(a_members[i].value, b_members[i].value, level);
    if (order != 0) return order;
  }
  return a_members.size() <=> b_members.size();
}

std::weak_ordering compare_at(const Value& a, const Value& b, std::size_t level) {
  if (a.kind() != b.kind()) return a.kind() <=> b.kind();
  switch (a.kind()) {
    case Kind::Undefined:
    case Kind::Null:
      return std::weak_ordering::equivalent;
    case Kind::Boolean:
      return a.as_boolean() <=> b.as_boolean();
    case Kind::Number:
      return compare_totally(a.as_number(), b.as_number());
    case Kind::String:
      return compare_strings(a, b);
    default:
      break;
  }
  if (level >= kComparedLevelsMax) return std::weak_ordering::equivalent;
  return a.is_array() ? compare_arrays(a, b, level + 1) : compare_objects(a, b, level + 1);
}

bool equal_at(const Value& a, const Value& b, std::size_t level) {
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::Number:
      return compare(a.as_number(), b.as_number()) == 0;
    case Kind::Array:
    case Kind::Object:
      break;
    default:
      return compare_at(a, b, level) == 0;
  }
  if (level >= kComparedLevelsMax) return false;
  if (a.is_array()) {
    Reader a_reader(a);
    Reader b_reader(b);
    while (true) {
      const bool a_has = a_reader.next();
      const bool b_has = b_reader.next();
      if (!a_has || !b_has) return a_has == b_has;
      if (!equal_at(a_reader.value(), b_reader.value(), level + 1)) return false;
    }
  }
  const auto a_members = sorted_members(a);
  const auto b_members = sorted_members(b);
  return std::ranges::equal(
      a_members, b_members, [&](const PlacedMember& x, const PlacedMember& y) {
        return compare_strings(x.name, y.name) == 0 && equal_at(x.value, y.value, level + 1);
      });
}

}  // namespace

std::partial_ordering compare(Number a, Number b) {
  if (a.is_integer && b.is_integer) return a.integer <=> b.integer;
  if (a.is_integer) return compare_mixed(a.integer, b.real);
  if (b.is_integer) return reversed(compare_mixed(b.integer, a.real));
  return a.real <=> b.real;
}

std::weak_ordering compare(const Value& a, const Value& b) { return compare_at(a, b, 0); }

bool equal(const Value& a, const Value& b) { return equal_at(a, b, 0); }

}  // namespace orrery::json
