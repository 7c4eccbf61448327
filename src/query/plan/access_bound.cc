#include "query/plan/access_bound.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

namespace orrery::query {
namespace {

// A text may have tens of thousands of conditions. Beyond these bounds less is said than could be.
/// Conditions that all hold, and alternatives of which one does.
constexpr std::size_t kConditionsMax = 100;
/// Intervals of a set that is made smaller.
constexpr std::size_t kIntervalsMax = 2000;

/// Adds a branch of an OR to the alternatives: its best condition besides those that all branches
/// have, or alternatives of its own. False when it has none.
bool add_branch(std::map<IndexTarget, std::vector<KeySet>>& sets, const AccessBound& branch,
                const std::set<std::string>& shared) {
  const ValueCondition* best = nullptr;
  for (const auto& [value, condition] : branch.conditions) {
    if (shared.contains(value)) continue;
    if (best == nullptr || (condition.keys.is_points && !best->keys.is_points)) best = &condition;
  }
  if (best != nullptr) {
    sets[best->target].push_back(best->keys);
    return true;
  }
  if (branch.alternatives.empty()) return false;
  for (const auto& [target, keys] : branch.alternatives.front()) sets[target].push_back(keys);
  return true;
}

}  // namespace

AccessBound AccessBound::never() {
  AccessBound bound;
  bound.is_never = true;
  return bound;
}

void AccessBound::add(AccessBound other) {
  if (is_never || other.is_never) {
    *this = never();
    return;
  }
  for (auto& [value, condition] : other.conditions) {
    const bool is_full = conditions.size() >= kConditionsMax;
    if (is_full && !conditions.contains(value)) continue;
    const auto [at, is_new] = conditions.try_emplace(value, std::move(condition));
    if (is_new) continue;
    if (at->second.keys.intervals.size() + condition.keys.intervals.size() > kIntervalsMax) {
      continue;
    }
    at->second.keys = intersection_of(at->second.keys, condition.keys);
    if (at->second.keys.empty()) {
      *this = never();
      return;
    }
  }
  for (Alternatives& each : other.alternatives) {
    if (alternatives.size() == kConditionsMax) break;
    alternatives.push_back(std::move(each));
  }
}

AccessBound AccessBound::one_of(std::vector<AccessBound> branches) {
  std::erase_if(branches, [](const AccessBound& branch) { return branch.is_never; });
  if (branches.empty()) return never();
  if (branches.size() == 1) return std::move(branches.front());
  AccessBound any;
  if (std::ranges::any_of(branches, &AccessBound::says_nothing)) return any;
  std::set<std::string> shared;
  for (const auto& [value, condition] : branches.front().conditions) {
    std::vector<KeySet> sets;
    for (const AccessBound& branch : branches) {
      const auto found = branch.conditions.find(value);
      if (found == branch.conditions.end()) break;
      sets.push_back(found->second.keys);
    }
    if (sets.size() < branches.size()) continue;
    any.conditions.emplace(value, ValueCondition{condition.target, union_of(sets)});
    shared.insert(value);
  }
  std::map<IndexTarget, std::vector<KeySet>> sets;
  const bool all_have_one = std::ranges::all_of(
      branches, [&](const AccessBound& branch) { return add_branch(sets, branch, shared); });
  if (!all_have_one || sets.size() > kConditionsMax) return any;
  Alternatives alternatives;
  for (const auto& [target, of_it] : sets) alternatives.emplace(target, union_of(of_it));
  any.alternatives.push_back(std::move(alternatives));
  return any;
}

}  // namespace orrery::query
