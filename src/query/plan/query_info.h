// The query info of a plan, and its JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "query/plan/plan.h"
#include "query/syntax/ast.h"

namespace orrery::query {

/// The work left to the client that merges the answers of several ranges.
struct QueryInfo {
  enum class Distinct : std::uint8_t {
    None,
    Ordered,  ///< equal rows come one after the other
    Unordered,
  };
  Distinct distinct = Distinct::None;
  std::optional<std::uint64_t> top;
  std::optional<std::uint64_t> offset;
  std::optional<std::uint64_t> limit;

  struct Order {
    bool is_descending;
    std::string expression;
  };
  std::vector<Order> order_by;
  std::vector<std::string> group_by;

  struct Output {
    std::string alias;
    std::optional<AggregateKind> aggregate;
  };
  std::vector<Output> outputs;             ///< of rows of groups that are objects
  std::optional<AggregateKind> aggregate;  ///< of rows of groups that are one aggregate each

  std::string rewritten;  ///< empty: the text of the query itself
  bool has_select_value = false;
  /// The name that the number of distinct rows gets; empty: it is the result itself.
  std::optional<std::string> distinct_count_alias;
  bool has_non_streaming_order_by = false;

  void append_to(std::string& json) const;
};

/// The part of a plan for ORDER BY RANK.
struct RankInfo {
  std::string statistics_query;
  bool needs_statistics = false;
  std::vector<QueryInfo> components;
  std::vector<double> weights;
  std::optional<std::uint64_t> skip;
  std::optional<std::uint64_t> take;

  void append_to(std::string& json) const;
};

void append_ranges(std::string& json, std::span<const QueryRange> ranges);
void append_string(std::string& json, std::string_view text);

}  // namespace orrery::query
