// Resolving what a tree names: sources, parameters, functions, aggregates, group keys.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"
#include "query/bind/settings.h"
#include "query/bind/sources.h"
#include "query/syntax/ast.h"

namespace orrery::query {

/// Where names are looked up, and what may be used.
struct BindContext {
  Sources& sources;
  std::string_view text;  ///< what the tree was parsed from, for errors
  /// Null: parameters are refused, since nobody could give them a value.
  const Parameters* parameters = nullptr;
  const Settings* settings = nullptr;  ///< null: none
  /// Of a whole query: it is over the rows of another one, which have no computed properties.
  bool is_over_rows = false;
};

/// Binds an expression over documents, in place: names become paths of the sources, calls find
/// their functions, and constants are folded. Errors in the form of text_error: SC2001 an unknown
/// name, SC2005 an unknown function, SC2050 a wrong number of arguments, SC2101 an aggregate where
/// none may be, and the others of bind_query.
Result<> bind(Expression& expression, BindContext& context);

/// Binds a query whose first source is the container: any name stands for it. Its document is the
/// source 0. Without FROM there is no source at all.
///
/// Refuses also what is only wrong in a whole query: SC2022 names twice, SC2041 * with GROUP BY,
/// SC2060 to SC2062 counts, SC2101 and SC2102 aggregates, 2206 what cannot be ordered by, ORDER BY
/// in subqueries, subqueries in GROUP BY, more JOINs than kJoinsMax.
Result<> bind_query(Query& query, BindContext& context);

inline constexpr std::size_t kJoinsMax = 10;

}  // namespace orrery::query
