// The texts that a client sends to every range in place of the query's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "query/eval/aggregate.h"
#include "query/syntax/ast.h"

namespace orrery::query {

/// A placeholder that a client replaces by a condition: its position in the order, or true.
inline constexpr std::string_view kOrderFilterPlaceholder =
    "{documentdb-formattableorderbyquery-filter}";

/// How many rows a range needs to give: TOP n, or OFFSET 0 LIMIT n; nothing: all.
struct RowsWanted {
  std::optional<std::uint64_t> top = {};
  std::optional<std::uint64_t> limit = {};
};

/// The aggregate that an expression is, if it is just that.
std::optional<AggregateKind> aggregate_of(const Expression& expression);
/// Whether it calls the built-in function of that name, which is in upper case.
bool is_call_of(const Expression& expression, std::string_view upper_name);
/// Whether there is an aggregate within the expression, other than in a query of its own.
bool has_aggregate(const Selection& selection);

/// The name of the container's documents; nothing where the query goes over something else, such as
/// their parts or the rows of another query.
std::optional<std::string_view> root_name(const Query& query);

/// The select list of one row, as one expression.
std::string payload_of(const Query& query);

/// `\nFROM …`
std::string from_of(const Query& query);

/// `\nWHERE …`, with a placeholder in it if asked for; empty where nothing is left. Rows whose
/// payload is undefined are none, and leave here.
std::string where_of(const Query& query, bool has_placeholder);

/// `SELECT TOP n ` and `\nOFFSET 0 LIMIT n`.
std::string select_of(const RowsWanted& wanted);
std::string end_of(const RowsWanted& wanted);

/// The query with other numbers of rows.
std::string rewrite_counts(Query& query, const RowsWanted& wanted);

/// Rows {"_rid","orderByItems","payload"}. The query has a root name.
std::string rewrite_order(const Query& query, const RowsWanted& wanted);

/// How an aggregate's part of a range looks.
enum class AggregateForm : std::uint8_t {
  Full,
  First,  ///< clients of 2017 read only the first member: there is no other
};

/// SELECT VALUE aggregate: one row [{"item":…}].
std::string rewrite_value_aggregate(const Query& query, AggregateForm form);

/// Several aggregates, or GROUP BY: rows {"groupByItems","payload"}, without the former where there
/// is no GROUP BY.
std::string rewrite_groups(const Query& query, AggregateForm form);

}  // namespace orrery::query
