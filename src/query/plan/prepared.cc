#include "query/plan/prepared.h"

#include <algorithm>
#include <utility>

#include "json/sort_key.h"
#include "query/eval/aggregate.h"
#include "query/syntax/lexer.h"
#include "query/syntax/nesting.h"
#include "query/syntax/parser.h"
#include "query/syntax/walk.h"

namespace orrery::query {
namespace {

/// The identity of the query: continuation tokens of others are refused. Clients that put sorted
/// ranges together by themselves write into the filter where each goes on, and send the range's
/// token with it: there everything but the filter counts.
std::string identity_of(const Query& query, const std::string& text) {
  const bool is_clients = std::ranges::any_of(
      query.selection.items, [](const auto& item) { return item.name == "orderByItems"; });
  if (!is_clients || query.order_by.empty() || !query.where) return text;
  std::string_view before = std::string_view(text).substr(0, query.where->span.begin);
  std::string_view after = std::string_view(text).substr(query.where->span.end);
  // An expression is told without the brackets around it.
  while (before.ends_with('(') || before.ends_with(' ')) before.remove_suffix(1);
  while (after.starts_with(')') || after.starts_with(' ')) after.remove_prefix(1);
  return std::string(before).append(after);
}

PreparedQuery::Shape shape_of(const Query& query, bool has_inner) {
  using Shape = PreparedQuery::Shape;
  if (query.is_rank) return Shape::Ranked;
  if (query.is_grouped()) return Shape::Grouped;
  if (!query.order_by.empty()) return Shape::Ordered;
  return has_inner ? Shape::Grouped : Shape::Stream;
}

bool shows_whole_documents(const Query& query, const Sources& sources) {
  if (query.is_distinct || query.is_grouped() || query.from.size() != 1) return false;
  if (query.from.front().source != 0) return false;
  if (query.selection.kind == Selection::Kind::Star) return true;
  if (query.selection.kind != Selection::Kind::Value) return false;
  const auto* path = std::get_if<Path>(&query.selection.items.front().expression->node);
  return path != nullptr && path->source == 0 && sources.steps(*path).empty();
}

bool is_plain_expression(const Expression& expression) {
  return !any_within(expression, [](const Expression& each) {
    return std::holds_alternative<Call>(each.node) || std::holds_alternative<Subquery>(each.node);
  });
}

bool is_plain_query(const Query& query) {
  if (query.is_rank || query.is_grouped() || query.from.size() > 1) return false;
  const bool is_over_documents = query.from.empty() || query.from.front().is_document();
  return is_over_documents && (!query.where || is_plain_expression(*query.where)) &&
         std::ranges::all_of(
             query.selection.items,
             [](const auto& item) { return is_plain_expression(*item.expression); }) &&
         std::ranges::all_of(query.order_by, [](const auto& item) {
           return is_plain_expression(*item.expression);
         });
}

}  // namespace

Result<QueryPtr> parse_query(const std::string& text) {
  ORRERY_TRY(check_text(text));
  return Parser(text).parse_query();
}

Result<PreparedQueryPtr> PreparedQuery::prepare(const std::string& text,
                                                const Parameters& parameters,
                                                const Settings& settings) {
  ORRERY_TRY(auto tree, parse_query(text));
  return prepare(std::move(tree), text, parameters, settings);
}

Result<PreparedQueryPtr> PreparedQuery::prepare(QueryPtr tree, const std::string& text,
                                                const Parameters& parameters,
                                                const Settings& settings) {
  // Not make_shared: the constructor is private.
  std::shared_ptr<PreparedQuery> query(new PreparedQuery());
  query->text_ = text;
  query->parameters_ = parameters;
  query->surroundings_ = settings.surroundings;
  query->user_functions_ = settings.user_functions;
  query->identity_ = identity_of(*tree, text);
  query->reads_documents_ = reads_container(*tree);
  const Query* subquery = subquery_of(*tree);
  // One with ORDER BY is refused below.
  if (subquery != nullptr && !is_row_by_row(*subquery) && subquery->order_by.empty()) {
    FromItem& first = tree->from.front();
    QueryPtr inner = std::move(std::get<Subquery>(first.collection->node).query);
    ORRERY_TRY(query->inner_, prepare(std::move(inner), text, parameters, settings));
    first.collection->node = Name{first.alias};
  }
  BindContext context{.sources = query->sources_,
                      .text = query->text_,
                      .parameters = &query->parameters_,
                      .settings = &settings,
                      .is_over_rows = query->inner_ != nullptr};
  ORRERY_TRY(bind_query(*tree, context));
  query->tree_ = std::move(tree);
  query->shape_ = shape_of(*query->tree_, query->inner_ != nullptr);
  query->shows_documents_ = shows_whole_documents(*query->tree_, query->sources_);
  query->is_plain_ = query->inner_ == nullptr && is_plain_query(*query->tree_);
  return query;
}

std::uint64_t PreparedQuery::hash() const {
  std::vector<json::Value> parts;
  parts.push_back(json::Value::string_at(identity_));
  for (const auto& [name, value] : parameters_.all()) {
    parts.push_back(json::Value::string_at(name));
    // Undefined cannot stand in an array, and null is another value.
    parts.push_back(json::Value::boolean(!value.is_undefined()));
    if (!value.is_undefined()) parts.push_back(json::Value::referring_to(value));
  }
  return json::hash_of(json::Value::array(std::move(parts))).low;
}

}  // namespace orrery::query
