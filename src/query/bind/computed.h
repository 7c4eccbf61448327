// Validates and parses the computed properties of a container.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "query/bind/settings.h"
#include "query/syntax/ast.h"

namespace orrery::query {

/// BadRequest, naming the property and the rule, unless the query of each is `SELECT VALUE
/// expression FROM alias` over the document alone, always with the same value for the same
/// document.
Result<> check_computed(const Settings& settings);

/// Null: there is none of that name. Lives as long as the settings.
const Settings::Computed* find_computed(const Settings& settings, std::string_view name);

/// The expression of a computed property over a document named `alias`. Not bound yet.
struct ParsedComputed {
  ExpressionPtr expression;
  std::string alias;
};
Result<ParsedComputed> parse_computed(const Settings::Computed& computed);

}  // namespace orrery::query
