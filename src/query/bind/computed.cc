#include "query/bind/computed.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "query/bind/bind.h"
#include "query/functions/functions.h"
#include "query/syntax/lexer.h"
#include "query/syntax/parser.h"
#include "query/syntax/walk.h"

namespace orrery::query {
namespace {

Error refusal(std::string_view name, std::string_view rule) {
  return Error(ErrorCode::BadRequest,
               fmt::format("computedProperties: '{}' {}", name.substr(0, 100), rule));
}

bool is_plain(const Query& query) {
  return query.selection.kind == Selection::Kind::Value && query.from.size() == 1 &&
         !query.from.front().is_iteration &&
         std::holds_alternative<Name>(query.from.front().collection->node) && !query.where &&
         query.group_by.empty() && query.order_by.empty() && !query.is_distinct && !query.top &&
         !query.offset;
}

/// A function that says something else tomorrow, or elsewhere.
bool is_changeable(const Expression& expression) {
  const auto* call = std::get_if<Call>(&expression.node);
  if (call == nullptr) return false;
  if (call->is_udf) return true;
  const Function* function = find_function(call->name);
  return function != nullptr && function->kind != Function::Kind::Pure;
}

bool is_subquery(const Expression& expression) {
  return std::holds_alternative<Subquery>(expression.node);
}

/// Whether a path of the document leads to a computed property, however its first step is written.
bool refers_to(const Sources& sources, const std::set<std::string_view>& names) {
  for (std::size_t slot = 0; slot < sources.paths(0).size(); ++slot) {
    const auto& steps = sources.steps(Path{.source = 0, .slot = slot});
    const auto* name = steps.empty() ? nullptr : std::get_if<std::string>(&steps.front());
    if (name != nullptr && names.contains(*name)) return true;
  }
  return false;
}

Result<> check_one(const Settings::Computed& computed, const std::set<std::string_view>& names) {
  const auto query = Parser(computed.query).parse_query();
  if (!query) return refusal(computed.name, query.error().message());
  if (!is_plain(**query)) {
    return refusal(computed.name, "must be SELECT VALUE expression FROM c, without other clauses.");
  }
  Expression& value = *(*query)->selection.items.front().expression;
  if (any_within(value, is_subquery)) return refusal(computed.name, "must not have a subquery.");
  if (any_within(value, is_changeable)) {
    return refusal(computed.name,
                   "must have the same value whenever it is asked for: no user-defined functions, "
                   "no RAND, no current time, no geometry.");
  }
  const std::string_view aliases[] = {(*query)->from.front().alias};
  Sources sources(aliases);
  BindContext context{.sources = sources, .text = computed.query};
  const auto bound = bind(value, context);
  if (!bound) return refusal(computed.name, bound.error().message());
  if (refers_to(sources, names)) {
    return refusal(computed.name, "must not refer to another computed property.");
  }
  return {};
}

}  // namespace

Result<> check_computed(const Settings& settings) {
  std::set<std::string_view> names;
  for (const Settings::Computed& computed : settings.computed) names.insert(computed.name);
  for (const Settings::Computed& computed : settings.computed) {
    auto others = names;
    others.erase(computed.name);
    ORRERY_TRY(check_one(computed, others));
  }
  return {};
}

const Settings::Computed* find_computed(const Settings& settings, std::string_view name) {
  const auto found = std::ranges::find(settings.computed, name, &Settings::Computed::name);
  return found == settings.computed.end() ? nullptr : &*found;
}

Result<ParsedComputed> parse_computed(const Settings::Computed& computed) {
  ORRERY_TRY(auto query, Parser(computed.query).parse_query());
  if (query->selection.kind != Selection::Kind::Value || query->from.size() != 1) {
    return Error(
        ErrorCode::BadRequest,
        fmt::format("The computed property '{}' must be SELECT VALUE … FROM c.", computed.name));
  }
  return ParsedComputed{.expression = std::move(query->selection.items.front().expression),
                        .alias = std::move(query->from.front().alias)};
}

}  // namespace orrery::query
