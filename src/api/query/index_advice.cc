#include "api/query/index_advice.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "executor/index_match.h"

namespace orrery::api {

using query::PathCondition;
using query::QueryAccess;

namespace {

/// The index that serves just this condition.
IndexSpec index_for(const PathCondition& condition) {
  return IndexSpec::single(condition.path, condition.kind);
}

/// Whether an index could find what the condition wants among all the rest: it is about places, or
/// certain values, or values of one type, or about whether there is a value at all.
bool is_worth_an_index(const PathCondition& condition) {
  if (condition.kind != IndexKind::Values) return true;
  const auto tag_of = [](char byte) { return static_cast<unsigned char>(byte) & 0xF0; };
  const auto is_within_type = [&](const json::KeyInterval& interval) {
    return tag_of(interval.low.front()) == tag_of(interval.high.front());
  };
  if (condition.is_equality || std::ranges::all_of(condition.intervals, is_within_type)) {
    return true;
  }
  return condition.intervals.size() == 1 &&
         condition.intervals.front().low.front() == static_cast<char>(json::SortTag::Null);
}

void add_once(std::vector<IndexSpec>& list, IndexSpec spec) {
  if (std::ranges::find(list, spec) == list.end()) list.push_back(std::move(spec));
}

/// Whether it may be part of a composite index: values at a path without `[]`.
bool may_be_part(const PathCondition& condition) {
  return condition.kind == IndexKind::Values && is_worth_an_index(condition) &&
         std::ranges::none_of(condition.path.steps, &IndexPath::Step::is_element);
}

/// Certain values first, then an order or a range, which has to come last.
std::optional<IndexSpec> composite_for(const QueryAccess& access) {
  IndexSpec spec;
  const auto has = [&](const IndexPath& path) {
    return std::ranges::find(spec.parts, path, &IndexSpec::Part::path) != spec.parts.end();
  };
  for (const PathCondition& condition : access.conditions) {
    if (condition.is_equality && may_be_part(condition)) spec.parts.push_back({condition.path});
  }
  if (spec.parts.empty()) return std::nullopt;
  if (!access.order.empty()) {
    for (const auto& [path, is_descending] : access.order) {
      if (!has(path)) spec.parts.push_back({path, is_descending});
    }
  } else {
    const auto range = std::ranges::find_if(access.conditions, [](const auto& condition) {
      return !condition.is_equality && may_be_part(condition);
    });
    if (range != access.conditions.end()) spec.parts.push_back({range->path});
  }
  if (!spec.is_composite()) return std::nullopt;
  return spec;
}

/// One for each path of the key.
std::vector<IndexSpec> indexes_of(const PartitionKeyDefinition& key) {
  std::vector<IndexSpec> indexes;
  for (const auto& names : key.paths) {
    IndexPath path;
    for (const std::string& name : names) path.steps.push_back({.name = name});
    indexes.push_back(IndexSpec::single(std::move(path)));
  }
  return indexes;
}

}  // namespace

std::vector<IndexSpec> helpful_indexes(const QueryAccess& access,
                                       const ContainerDefinition& definition) {
  std::vector<IndexSpec> helpful;
  const auto add = [&](IndexSpec spec) {
    if (definition.allows(spec)) add_once(helpful, std::move(spec));
  };
  const auto composites = definition.composite_indexes();
  if (!access.order.empty()) {
    for (const IndexSpec& spec : composites) {
      if (executor::match_order(spec, access.conditions, access.order, {})) add(spec);
    }
  }
  for (const IndexSpec& spec : composites) {
    const auto match = executor::match_conditions(spec, access.conditions);
    if (match && match->conditions.size() > 1) add(spec);
  }
  for (const bool equality : {true, false}) {
    for (const PathCondition& condition : access.conditions) {
      if (condition.is_equality == equality && is_worth_an_index(condition)) {
        add(index_for(condition));
      }
    }
  }
  if (access.order.size() == 1) add(IndexSpec::single(access.order.front().path));
  for (const auto& alternatives : access.alternatives) {
    const bool all_allowed = std::ranges::all_of(alternatives, [&](const auto& condition) {
      return is_worth_an_index(condition) && definition.allows(index_for(condition));
    });
    if (!all_allowed) continue;
    for (const PathCondition& condition : alternatives) add(index_for(condition));
  }
  return helpful;
}

std::vector<IndexSpec> helpful_within_key(std::vector<IndexSpec> helpful,
                                          const PartitionKeyDefinition& key) {
  const auto of_key = indexes_of(key);
  std::erase_if(helpful, [&](const IndexSpec& spec) {
    return std::ranges::find(of_key, spec) != of_key.end();
  });
  return helpful;
}

std::vector<IndexSpec> key_indexes(const ContainerDefinition& definition) {
  auto indexes = indexes_of(definition.partition_key());
  std::erase_if(indexes, [&](const IndexSpec& spec) { return !definition.allows(spec); });
  return indexes;
}

std::vector<IndexSpec> potential_indexes(const QueryAccess& access,
                                         const ContainerDefinition& definition) {
  std::vector<IndexSpec> potential;
  const auto add_excluded = [&](const PathCondition& condition) {
    auto spec = index_for(condition);
    if (is_worth_an_index(condition) && !definition.allows(spec)) {
      add_once(potential, std::move(spec));
    }
  };
  for (const PathCondition& condition : access.conditions) add_excluded(condition);
  for (const auto& alternatives : access.alternatives) {
    for (const PathCondition& condition : alternatives) add_excluded(condition);
  }
  const auto helpful = helpful_indexes(access, definition);
  if (std::ranges::any_of(helpful, &IndexSpec::is_composite)) return potential;
  if (auto composite = composite_for(access)) potential.push_back(std::move(*composite));
  return potential;
}

}  // namespace orrery::api
