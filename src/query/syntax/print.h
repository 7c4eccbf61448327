// From tree to text: the canonical form that rewritten queries have.
#pragma once

#include <string>

#include "query/syntax/ast.h"

namespace orrery::query {

/// The text of an expression as the parser made it (not bound). Strings in double quotes with JSON
/// escapes; every binary, unary, ternary and coalesce expression in parentheses; a function's name,
/// property paths and aliases as they were written; names of object members in quotes. To parse it
/// again gives the same tree.
std::string print(const Expression& expression);

/// The text of a query: a new line before FROM, JOIN, WHERE, GROUP BY, ORDER BY and OFFSET; AS
/// before every alias; a direction only where it was written.
std::string print(const Query& query);

/// Parts of it, to build another query around them.
std::string print_from(const Query& query);  ///< "FROM c\nJOIN x IN c.items"; empty without
std::string print_selection(const Selection& selection);  ///< what stands after SELECT

}  // namespace orrery::query
