#include "query/prepared.h"

#include <algorithm>
#include <utility>

#include "json/sort_key.h"
#include "query/aggregate.h"
#include "query/lexer.h"
#include "query/parser.h"
#include "query/walk.h"

namespace orrery::query {
namespace {

/// Whether the rows of the query do not come of one document each.
bool is_over_all_documents(const Query& query) {
  if (query.is_distinct || query.top || query.offset || !query.group_by.empty()) return true;
  return std::ranges::any_of(query.selection.items, [](const Selection::Item& item) {
    return has_aggregate(*item.expression);
  });
}

std::uint64_t hash_of_query(const std::string& text, const Parameters& parameters) {
  std::vector<json::Value> parts;
  parts.push_back(json::Value::string_at(text));
  for (const auto& [name, value] : parameters.all()) {
    parts.push_back(json::Value::string_at(name));
    parts.push_back(value.is_undefined() ? json::Value::null() : json::Value::referring_to(value));
  }
  return json::hash_of(json::Value::array(std::move(parts))).low;
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
  const bool is_over_documents = query.from.empty() || query.from.front().source == 0;
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
  if (!tree->from.empty()) {
    FromItem& first = tree->from.front();
    auto* subquery = std::get_if<Subquery>(&first.collection->node);
    if (subquery != nullptr && is_over_all_documents(*subquery->query)) {
      ORRERY_TRY(query->inner_, prepare(std::move(subquery->query), text, parameters, settings));
      first.collection->node = Name{first.alias};
    }
  }
  BindContext context{.sources = query->sources_,
                      .text = query->text_,
                      .parameters = &query->parameters_,
                      .settings = &settings};
  ORRERY_TRY(bind_query(*tree, context));
  query->tree_ = std::move(tree);
  query->shape_ = shape_of(*query->tree_, query->inner_ != nullptr);
  query->shows_documents_ = shows_whole_documents(*query->tree_, query->sources_);
  query->is_plain_ = query->inner_ == nullptr && is_plain_query(*query->tree_);
  query->hash_ = hash_of_query(query->text_, query->parameters_);
  return query;
}

}  // namespace orrery::query
