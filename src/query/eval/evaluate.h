// Evaluates a bound expression for one row.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <boost/container/small_vector.hpp>

#include "base/error.h"
#include "base/work_budget.h"
#include "json/value.h"
#include "query/bind/bind.h"
#include "query/syntax/ast.h"

namespace orrery::query {

/// The documents, elements and rows of subqueries that an expression is evaluated over, as far as
/// it reads them: one pass over each.
class Row {
 public:
  /// For expressions without sources.
  Row() = default;
  /// With all sources undefined.
  explicit Row(const Sources& sources);

  /// The source is this from now on. Refers to what the document refers to.
  void set(std::size_t source, const json::Value& document);

  const json::Value& at(const Path& path) const { return found_[begin_[path.source] + path.slot]; }

 private:
  const Sources* sources_ = nullptr;
  boost::container::small_vector<json::Value, 8> found_;
  boost::container::small_vector<std::size_t, 2> begin_;  ///< of each source, in found_
};

/// Strings that one evaluation makes may have so many bytes in all; beyond that they are undefined.
inline constexpr std::size_t kMadeBytesMax = std::size_t{16} << 20;

/// A row, and a value of a subquery, may have so many bytes; beyond that the query is refused.
inline constexpr std::size_t kValueBytesMax = std::size_t{16} << 20;

/// The memory limit of the groups of a subquery, in all.
inline constexpr std::size_t kSubqueryGroupsBytesMax = std::size_t{64} << 20;

/// How many rows the subqueries of one row may have: a short text can nest loops over a large
/// document.
inline constexpr std::uint64_t kSubqueryRowsMax = 1'000'000;

/// The cost of finding and reading a document besides its length: see WorkBudget.
inline constexpr std::uint64_t kDocumentSteps = 8;

/// The state of an evaluation. One thread's.
struct Frame {
  Frame() = default;
  explicit Frame(const Sources& sources) : row(sources) {}
  /// Over documents, one for each source, in their order; undefined where there is none.
  Frame(const Sources& sources, std::span<const json::Value> documents);

  /// Another row begins: what was spent for the last one does not count any more.
  void begin_row() {
    made_bytes = 0;
    subquery_rows = 0;
  }

  Row row;
  const Surroundings* surroundings = nullptr;  ///< null: none
  const UserFunctions* user_functions = nullptr;
  /// Of the grouped query whose select list is evaluated.
  std::span<const json::Value> aggregates;
  std::span<const json::Value> group;

  /// Spends steps for what is done next. False when it must not be done: the failure says why.
  bool spend(std::uint64_t steps = 1) {
    return work == nullptr || work->spend(steps) || interrupted();
  }
  bool spend_for(const json::Value& value);
  /// Whether the last computation was told to end.
  bool is_interrupted() { return work != nullptr && work->has_stopped() && !interrupted(); }

  WorkBudget* work = nullptr;  ///< null: without a bound
  std::size_t made_bytes = 0;
  std::uint64_t subquery_rows = 0;
  std::optional<Error> failure;  ///< what ends the query: a user-defined function, a limit

 private:
  bool interrupted();
};

/// Never fails: what makes no sense is undefined. The value is in `scratch`, or in the expression
/// or the row, and refers to nothing else. Threads may share the expression.
const json::Value& evaluate(const Expression& expression, Frame& frame, json::Value& scratch);

/// Whether it is true: not false, not undefined, not anything else.
bool is_true(const Expression& expression, Frame& frame);

/// A number that is the place of an element: an integer, not negative.
std::optional<std::uint64_t> array_index(const json::Value& value);

}  // namespace orrery::query
