#include "query/plan/key_set.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace orrery::query {

using json::key_successor;
using json::KeyInterval;
using json::Kind;
using json::kIndexedStringBytesMax;
using json::SortTag;
using json::Value;

namespace {

constexpr std::size_t kCutHashSize = 8;

std::string tag_key(SortTag tag) { return std::string(1, static_cast<char>(tag)); }

std::string key_of(const Value& value) {
  std::string key;
  json::append_sort_key(key, value, kIndexedStringBytesMax);
  return key;
}

SortTag first_tag(Kind kind) {
  switch (kind) {
    case Kind::Undefined:
      return SortTag::Undefined;
    case Kind::Null:
      return SortTag::Null;
    case Kind::Boolean:
      return SortTag::False;
    case Kind::Number:
      return SortTag::Number;
    case Kind::String:
      return SortTag::String;
    case Kind::Array:
      return SortTag::Array;
    case Kind::Object:
      break;
  }
  return SortTag::Object;
}

SortTag last_tag(Kind kind) { return kind == Kind::Boolean ? SortTag::True : first_tag(kind); }

bool is_cut(const Value& value) {
  std::string buffer;
  return value.is_string() && value.as_string(buffer).size() > kIndexedStringBytesMax;
}

bool is_nan(const Value& value) { return value.is_number() && std::isnan(value.as_number().real); }

KeySet interval(std::string low, std::string high) {
  KeySet set;
  if (low < high) set.intervals.push_back({std::move(low), std::move(high)});
  return set;
}

/// The values of the constant's kind on one side of it.
KeySet side_of(BinaryOperator op, const Value& constant) {
  const std::string begin = tag_key(first_tag(constant.kind()));
  const std::string end = key_successor(tag_key(last_tag(constant.kind())));
  std::string key = key_of(constant);
  const bool is_above = op == BinaryOperator::Greater || op == BinaryOperator::GreaterOrEqual;
  if (is_cut(constant)) {
    // Strings that begin alike are in no order there: all of them may be meant.
    key.resize(key.size() - kCutHashSize);
    return is_above ? interval(key, end) : interval(begin, key_successor(key));
  }
  const bool is_with = op == BinaryOperator::LessOrEqual || op == BinaryOperator::GreaterOrEqual;
  if (is_above) return interval(is_with ? key : key_successor(key), end);
  return interval(begin, is_with ? key_successor(key) : key);
}

BinaryOperator inverse(BinaryOperator op) {
  switch (op) {
    case BinaryOperator::Less:
      return BinaryOperator::GreaterOrEqual;
    case BinaryOperator::LessOrEqual:
      return BinaryOperator::Greater;
    case BinaryOperator::Greater:
      return BinaryOperator::LessOrEqual;
    default:
      return BinaryOperator::Less;
  }
}

}  // namespace

bool KeySet::has_undefined() const {
  const std::string key = tag_key(SortTag::Undefined);
  return !intervals.empty() && intervals.front().low <= key && key < intervals.front().high;
}

KeySet none() { return {}; }

KeySet undefined_only() {
  KeySet set = of_kind(Kind::Undefined);
  set.is_points = true;
  return set;
}

KeySet all_defined() { return of_kinds(Kind::Null, Kind::Object); }

KeySet of_kinds(Kind first, Kind last) {
  KeySet set = interval(tag_key(first_tag(first)), key_successor(tag_key(last_tag(last))));
  set.is_points = first == Kind::Null && last == Kind::Null;
  return set;
}

KeySet equal_to(const Value& value) {
  if (value.is_undefined() || is_nan(value)) return none();
  std::string key = key_of(value);
  KeySet set = interval(key, key_successor(key));
  set.is_points = true;
  return set;
}

KeySet only(const Value& value) {
  return is_cut(value) || value.is_array() || value.is_object() ? none() : equal_to(value);
}

KeySet with_prefix(std::string_view prefix) {
  std::string key;
  json::append_sort_key_prefix(key, prefix.substr(0, kIndexedStringBytesMax));
  return interval(key, key_successor(key));
}

KeySet compared(BinaryOperator op, const Value& constant, bool is_true) {
  if (constant.is_undefined()) return none();
  if (op == BinaryOperator::Equal || op == BinaryOperator::NotEqual) {
    const bool is_equal = (op == BinaryOperator::Equal) == is_true;
    return is_equal ? equal_to(constant) : defined_except(only(constant));
  }
  if (constant.is_array() || constant.is_object()) return none();
  if (is_nan(constant)) return is_true ? none() : of_kind(Kind::Number);
  return side_of(is_true ? op : inverse(op), constant);
}

KeySet union_of(const std::vector<KeySet>& sets) {
  KeySet all;
  all.is_points =
      std::ranges::all_of(sets, [](const KeySet& set) { return set.is_points || set.empty(); });
  std::vector<KeyInterval> intervals;
  for (const KeySet& set : sets) {
    intervals.insert(intervals.end(), set.intervals.begin(), set.intervals.end());
  }
  std::ranges::sort(intervals, {}, &KeyInterval::low);
  for (KeyInterval& each : intervals) {
    if (all.intervals.empty() || all.intervals.back().high <= each.low) {
      // Those that only touch stay apart, so that points stay points.
      all.intervals.push_back(std::move(each));
    } else if (all.intervals.back().high < each.high) {
      all.intervals.back().high = std::move(each.high);
    }
  }
  return all;
}

KeySet intersection_of(const KeySet& a, const KeySet& b) {
  KeySet common;
  // No bound lies within the key of a value: what is left of a point is all of it, or nothing.
  common.is_points = a.is_points || b.is_points;
  auto in_a = a.intervals.begin();
  auto in_b = b.intervals.begin();
  while (in_a != a.intervals.end() && in_b != b.intervals.end()) {
    const std::string& low = std::max(in_a->low, in_b->low);
    const std::string& high = std::min(in_a->high, in_b->high);
    if (low < high) common.intervals.push_back({low, high});
    if (in_a->high < in_b->high) {
      ++in_a;
    } else {
      ++in_b;
    }
  }
  return common;
}

KeySet defined_except(const KeySet& values) {
  KeySet rest;
  KeyInterval all = all_defined().intervals.front();
  std::string low = all.low;
  for (const KeyInterval& value : values.intervals) {
    if (low < value.low) rest.intervals.push_back({low, value.low});
    low = std::max(low, value.high);
  }
  if (low < all.high) rest.intervals.push_back({low, all.high});
  return rest;
}

}  // namespace orrery::query
