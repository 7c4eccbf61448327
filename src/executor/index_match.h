// How an index serves a query: which of its keys are wanted, and whether they are in the order.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "json/sort_key.h"
#include "protocol/container/index_path.h"
#include "query/plan/access.h"

namespace orrery::executor {

/// An index whose first parts have conditions on them.
struct ConditionMatch {
  std::vector<json::KeyInterval> intervals;             ///< of the index's keys; sorted, disjoint
  std::vector<const query::PathCondition*> conditions;  ///< those that it serves; one per part
  bool is_equality = true;                              ///< all of them are
};

/// Nothing when there is no condition on its first part.
std::optional<ConditionMatch> match_conditions(const IndexSpec& index,
                                               std::span<const query::PathCondition> conditions);

/// An index whose last parts are what is ordered by, and whose parts before that have one value
/// each.
struct OrderMatch {
  bool is_backward = false;
  std::size_t bound_parts = 0;  ///< so many have one value each
  std::size_t bound_size = 0;   ///< and their part of a key so many bytes
  std::vector<IndexSpec::Part> ordered;
  std::vector<json::KeyInterval> intervals;  ///< of the index's keys; sorted, disjoint

  /// Whether the values that it was made of need not be in the order in which the keys are: a
  /// string of the order is cut.
  bool is_cut(std::string_view key) const;
};

/// Nothing when it does not yield the order. `from_key`: the sort key of a row, where strings are
/// whole, from which on entries are wanted.
std::optional<OrderMatch> match_order(const IndexSpec& index,
                                      std::span<const query::PathCondition> conditions,
                                      std::span<const query::QueryAccess::Order> order,
                                      std::optional<std::string_view> from_key);

}  // namespace orrery::executor
