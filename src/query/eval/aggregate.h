// Functions over many rows, and groups of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "json/sort_key.h"
#include "json/value.h"
#include "query/eval/evaluate.h"
#include "query/syntax/ast.h"

namespace orrery::query {

/// Whether an aggregate function stands in the expression, not bound yet, outside of its
/// subqueries.
bool has_aggregate(const Expression& expression);

/// One aggregate function of one group. Undefined values are passed over.
class Accumulator {
 public:
  explicit Accumulator(AggregateKind kind) : kind_(kind) {}

  void add(const json::Value& value);
  /// May be undefined.
  json::Value result() const;
  /// Of what it keeps, in bytes.
  std::size_t memory() const { return memory_; }

 private:
  void add_number(const json::Value& value);
  void add_extreme(const json::Value& value);
  void keep(const json::Value& value);

  AggregateKind kind_;
  bool is_spoilt_ = false;  ///< a value came that the function is not for
  std::uint64_t count_ = 0;
  json::Number sum_ = json::Number::of(std::int64_t{0});
  json::Value extreme_;
  std::vector<json::Value> kept_;  ///< MAKELIST, MAKESET
  std::set<json::Hash128> seen_;   ///< MAKESET
  std::size_t memory_ = 0;
};

/// The groups of a query with aggregates or GROUP BY. Without GROUP BY there is one, also of no
/// rows.
class Groups {
 public:
  explicit Groups(const Query& query);

  /// The row that is in the frame.
  void add(Frame& frame);

  struct Group {
    std::vector<json::Value> keys;
    std::vector<Accumulator> accumulators;
  };
  /// In the order of their keys: the sort keys of the items of GROUP BY, where a hash stands for
  /// what is long. The views live as long as nothing is added.
  std::vector<std::pair<std::string_view, const Group*>> sorted() const;

  /// The select list of a group, materialised; undefined where VALUE is. Owns all of it.
  json::Value show(const Group& group, Frame& frame) const;
  /// The value of another expression of the query, as of ORDER BY, for a group.
  json::Value evaluate_in(const Group& group, const Expression& expression, Frame& frame) const;

  std::size_t memory() const { return memory_; }

 private:
  struct KeyHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const {
      return std::hash<std::string_view>()(key);
    }
  };
  template <typename Use>
  json::Value with_values(const Group& group, Frame& frame, Use&& use) const;

  const Query& query_;
  std::unordered_map<std::string, Group, KeyHash, std::equal_to<>> groups_;
  std::string key_;  ///< of the row at hand; kept for its memory
  std::size_t memory_ = 0;
};

}  // namespace orrery::query
