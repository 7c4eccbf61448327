#include "executor/index_match.h"

#include <algorithm>
#include <utility>

namespace orrery::executor {

using json::key_successor;
using json::KeyInterval;
using json::kIndexedStringBytesMax;
using json::SortTag;
using query::PathCondition;

namespace {

/// Values of several parts multiply: no more combinations than this.
constexpr std::size_t kCombinationsMax = 1000;
/// After all keys: no tag begins with it, inverted or not.
constexpr char kAfterAllTags = '\xFF';
constexpr std::size_t kNumberKeySize = 11;
constexpr std::size_t kHashKeySize = 17;
constexpr std::size_t kCutHashSize = 8;

void invert(std::string& bytes) {
  for (char& byte : bytes) byte = static_cast<char>(~byte);
}

std::string inverted(std::string bytes) {
  invert(bytes);
  return bytes;
}

/// The same values, where keys are inverted. No key begins with another one, but a bound may be the
/// beginning of a key, which is then above it in both.
KeyInterval inverted(const KeyInterval& interval) {
  return {key_successor(inverted(interval.high)), key_successor(inverted(interval.low))};
}

/// Those of a part, in the order of its keys.
std::vector<KeyInterval> intervals_of(const IndexSpec::Part& part, const PathCondition& condition) {
  std::vector<KeyInterval> intervals = condition.intervals;
  if (!part.is_descending) return intervals;
  for (KeyInterval& interval : intervals) {
    interval = condition.is_equality ? KeyInterval{inverted(interval.low), {}} : inverted(interval);
  }
  std::ranges::reverse(intervals);
  return intervals;
}

/// The best condition on a path that an index of this kind can serve, or null.
const PathCondition* condition_on(const IndexPath& path, IndexKind kind,
                                  std::span<const PathCondition> conditions) {
  const PathCondition* best = nullptr;
  for (const PathCondition& condition : conditions) {
    if (condition.path != path || condition.kind != kind) continue;
    if (best == nullptr || (condition.is_equality && !best->is_equality)) best = &condition;
  }
  return best;
}

/// The first value in a key.
struct KeyPart {
  std::size_t size = 0;
  /// Of a string with more than kIndexedStringBytesMax bytes: how many of the key's stand for
  /// those.
  std::optional<std::size_t> head_size;
};

std::optional<KeyPart> string_part(std::string_view key, char flip) {
  KeyPart part;
  std::size_t at = 1;
  for (std::size_t bytes = 0; at + 1 < key.size(); ++bytes) {
    const bool is_zero = (key[at] ^ flip) == 0;
    const char after = static_cast<char>(key[at + 1] ^ flip);
    const bool is_whole_end = is_zero && after == '\x01';
    const bool is_cut_end = is_zero && after == '\x02';
    if (bytes == kIndexedStringBytesMax && !is_whole_end) part.head_size = at;
    if (is_whole_end || is_cut_end) {
      part.size = at + 2 + (is_cut_end ? kCutHashSize : 0);
      return part.size <= key.size() ? std::optional(part) : std::nullopt;
    }
    at += is_zero ? 2 : 1;
  }
  return std::nullopt;
}

/// Nothing when there is none: the key is at its end, or is no key.
std::optional<KeyPart> first_part(std::string_view key, bool is_descending) {
  if (key.empty()) return std::nullopt;
  const char flip = is_descending ? '\xFF' : '\0';
  std::size_t size = 1;
  switch (static_cast<SortTag>(static_cast<unsigned char>(key[0] ^ flip))) {
    case SortTag::Undefined:
    case SortTag::Null:
    case SortTag::False:
    case SortTag::True:
      break;
    case SortTag::Number:
      size = kNumberKeySize;
      break;
    case SortTag::String:
      return string_part(key, flip);
    case SortTag::Array:
    case SortTag::Object:
      size = kHashKeySize;
      break;
    default:
      return std::nullopt;
  }
  if (size > key.size()) return std::nullopt;
  return KeyPart{.size = size, .head_size = {}};
}

/// The prefix of index keys for a bound at `key`. Parts after a string that the index cuts are left
/// out: they are not in that order.
std::string cut_key(std::string_view key, std::span<const IndexSpec::Part> parts) {
  std::string cut;
  for (const IndexSpec::Part& part : parts) {
    const auto first = first_part(key, part.is_descending);
    if (!first) break;
    if (first->head_size) {
      cut += key.substr(0, *first->head_size);
      const std::string end("\0\x02", 2);
      cut += part.is_descending ? inverted(end) : end;
      break;
    }
    cut += key.substr(0, first->size);
    key.remove_prefix(first->size);
  }
  return cut;
}

}  // namespace

std::optional<ConditionMatch> match_conditions(const IndexSpec& index,
                                               std::span<const PathCondition> conditions) {
  ConditionMatch match;
  std::vector<std::string> keys = {""};  // Of the parts that have single values.
  for (const IndexSpec::Part& part : index.parts) {
    const PathCondition* condition = condition_on(part.path, index.kind, conditions);
    if (condition == nullptr) break;
    const auto intervals = intervals_of(part, *condition);
    if (keys.size() > 1 && keys.size() * intervals.size() > kCombinationsMax) break;
    match.conditions.push_back(condition);
    if (!condition->is_equality) {
      match.is_equality = false;
      for (const std::string& key : keys) {
        for (const auto& [low, high] : intervals) {
          match.intervals.push_back({key + low, key + high});
        }
      }
      return match;
    }
    std::vector<std::string> longer;
    for (const std::string& key : keys) {
      for (const KeyInterval& interval : intervals) longer.push_back(key + interval.low);
    }
    keys = std::move(longer);
  }
  if (match.conditions.empty()) return std::nullopt;
  for (std::string& key : keys) {
    std::string end = key_successor(key);
    match.intervals.push_back({std::move(key), std::move(end)});
  }
  return match;
}

bool OrderMatch::is_cut(std::string_view key) const {
  if (key.size() < bound_size + kIndexedStringBytesMax) return false;
  key.remove_prefix(bound_size);
  for (const IndexSpec::Part& part : ordered) {
    const auto first = first_part(key, part.is_descending);
    if (!first || first->head_size) return true;
    key.remove_prefix(first->size);
  }
  return false;
}

std::optional<OrderMatch> match_order(const IndexSpec& index,
                                      std::span<const PathCondition> conditions,
                                      std::span<const query::QueryAccess::Order> order,
                                      std::optional<std::string_view> from_key) {
  if (order.empty() || index.parts.size() < order.size() || index.is_spatial()) {
    return std::nullopt;
  }
  OrderMatch match;
  match.bound_parts = index.parts.size() - order.size();
  match.ordered.assign(index.parts.begin() + static_cast<std::ptrdiff_t>(match.bound_parts),
                       index.parts.end());
  match.is_backward = match.ordered.front().is_descending != order.front().is_descending;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const IndexSpec::Part& part = match.ordered[i];
    if (part.path != order[i].path || part.path.has_elements()) return std::nullopt;
    if ((part.is_descending != order[i].is_descending) != match.is_backward) return std::nullopt;
  }
  std::string bound;
  for (std::size_t i = 0; i < match.bound_parts; ++i) {
    const PathCondition* condition = condition_on(index.parts[i].path, index.kind, conditions);
    if (condition == nullptr || !condition->is_equality || condition->intervals.size() != 1) {
      return std::nullopt;
    }
    bound += intervals_of(index.parts[i], *condition).front().low;
  }
  match.bound_size = bound.size();

  std::string low = bound;
  std::string high = bound.empty() ? std::string(1, kAfterAllTags) : key_successor(bound);
  if (from_key) {
    // Where all directions are the other way round, so is every byte.
    std::string from(*from_key);
    if (match.is_backward) invert(from);
    from = bound + cut_key(from, match.ordered);
    if (match.is_backward) {
      if (!from.empty()) high = std::min(high, key_successor(std::move(from)));
    } else {
      low = std::move(from);
    }
  }
  const PathCondition* condition = condition_on(match.ordered.front().path, index.kind, conditions);
  if (condition == nullptr) {
    if (low < high) match.intervals.push_back({std::move(low), std::move(high)});
    return match;
  }
  for (auto& [begin, end] : intervals_of(match.ordered.front(), *condition)) {
    KeyInterval interval{bound + begin, bound + (end.empty() ? key_successor(begin) : end)};
    interval.low = std::max(interval.low, low);
    interval.high = std::min(interval.high, high);
    if (interval.low < interval.high) match.intervals.push_back(std::move(interval));
  }
  return match;
}

}  // namespace orrery::executor
