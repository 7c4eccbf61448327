#include "query/plan/rewrite.h"

#include <utility>

#include "json/document_text.h"
#include "query/functions/functions.h"
#include "query/syntax/print.h"
#include "query/syntax/walk.h"

namespace orrery::query {
namespace {

std::string quoted_name(std::string_view name) {
  std::string text;
  json::append_quoted(text, name);
  return text;
}

/// `[{"item": a}, {"item": b}]`
template <typename List, typename Print>
std::string items_of(const List& list, Print print_element) {
  std::string text = "[";
  for (const auto& element : list) {
    if (text.size() > 1) text += ", ";
    text += R"({"item": )" + print_element(element) + '}';
  }
  return text + ']';
}

/// `{"a": …, "b": …}`
template <typename Print>
std::string object_of(const Selection& selection, Print print_item) {
  std::string text = "{";
  for (const Selection::Item& item : selection.items) {
    if (text.size() > 1) text += ", ";
    text += quoted_name(item.name) + ": " + print_item(*item.expression);
  }
  return text + '}';
}

/// `{"item": COUNT(c.x)}`: what a range says of its rows, so that those of several can be put
/// together.
std::string partial_of(const Expression& expression, AggregateKind kind, AggregateForm form) {
  const auto& call = std::get<Call>(expression.node);
  const std::string whole = print(expression);
  std::string argument;
  for (const ExpressionPtr& given : call.arguments) {
    if (!argument.empty()) argument += ", ";
    argument += print(*given);
  }
  const std::string count = R"("count": COUNT()" + argument + ")";

  if (kind == AggregateKind::Avg) {
    return R"({"item": {"sum": SUM()" + argument + "), " + count + "}}";
  }
  const bool is_extreme = kind == AggregateKind::Min || kind == AggregateKind::Max;
  if (!is_extreme || form == AggregateForm::First) return R"({"item": )" + whole + '}';
  // Without the count nobody could tell a range that has no value from one whose value is
  // undefined.
  const std::string_view name = kind == AggregateKind::Min ? R"("min")" : R"("max")";
  std::string text = R"({"item": )" + whole + R"(, "item2": {)";
  text += name;
  text += ": " + whole + ", " + count + "}}";
  return text;
}

std::string directed(const OrderItem& item) {
  std::string text = print(*item.expression);
  // The most similar is always the first.
  if (is_call_of(*item.expression, "VECTORDISTANCE")) return text;
  if (item.is_descending) text += *item.is_descending ? " DESC" : " ASC";
  return text;
}

/// `\nORDER BY …`, as it was written; empty without.
std::string rewritten_order(const Query& query) {
  std::string text;
  for (const OrderItem& item : query.order_by) {
    text += text.empty() ? "\nORDER BY " : ", ";
    text += directed(item);
  }
  return text;
}

std::string plain_where_of(const Query& query) {
  return query.where ? "\nWHERE " + print(*query.where) : "";
}

RowCount count_of(std::uint64_t value) {
  RowCount count;
  count.written = std::make_unique<Expression>();
  count.written->node = Literal{json::Value::number(static_cast<std::int64_t>(value))};
  count.value = value;
  return count;
}

}  // namespace

std::optional<AggregateKind> aggregate_of(const Expression& expression) {
  const auto* call = std::get_if<Call>(&expression.node);
  return call && !call->is_udf ? find_aggregate(call->name) : std::nullopt;
}

bool is_call_of(const Expression& expression, std::string_view upper_name) {
  const auto* call = std::get_if<Call>(&expression.node);
  return call && !call->is_udf && to_upper_ascii(call->name) == upper_name;
}

bool has_aggregate(const Selection& selection) {
  for (const Selection::Item& item : selection.items) {
    if (has_aggregate(*item.expression)) return true;
  }
  return false;
}

std::optional<std::string_view> root_name(const Query& query) {
  if (query.from.empty()) return std::nullopt;
  const FromItem& first = query.from.front();
  if (first.is_iteration || !std::holds_alternative<Name>(first.collection->node)) {
    return std::nullopt;
  }
  return first.alias;
}

std::string payload_of(const Query& query) {
  switch (query.selection.kind) {
    case Selection::Kind::Star:
      return query.from.front().alias;
    case Selection::Kind::Value:
      return print(*query.selection.items.front().expression);
    case Selection::Kind::List:
      break;
  }
  return object_of(query.selection, [](const Expression& item) { return print(item); });
}

std::string from_of(const Query& query) { return '\n' + print_from(query); }

std::string where_of(const Query& query, bool has_placeholder) {
  std::string filter = query.where ? print(*query.where) : "";
  const auto add = [&](const std::string& condition) {
    filter = filter.empty() ? condition : '(' + filter + " AND " + condition + ')';
  };
  if (has_placeholder) add('(' + std::string(kOrderFilterPlaceholder) + ')');
  if (query.selection.kind == Selection::Kind::Value) add("IS_DEFINED(" + payload_of(query) + ')');
  return filter.empty() ? "" : "\nWHERE " + filter;
}

std::string select_of(const RowsWanted& wanted) {
  return wanted.top ? "SELECT TOP " + std::to_string(*wanted.top) + ' ' : "SELECT ";
}

std::string end_of(const RowsWanted& wanted) {
  return wanted.limit ? "\nOFFSET 0 LIMIT " + std::to_string(*wanted.limit) : "";
}

std::string rewrite_counts(Query& query, const RowsWanted& wanted) {
  query.top.reset();
  query.offset.reset();
  query.limit.reset();
  if (wanted.top) query.top = count_of(*wanted.top);
  if (wanted.limit) {
    query.offset = count_of(0);
    query.limit = count_of(*wanted.limit);
  }
  return print(query);
}

std::string rewrite_order(const Query& query, const RowsWanted& wanted) {
  const auto root = root_name(query);
  std::string text = select_of(wanted);
  text += *root;
  text += "._rid, ";
  text += items_of(query.order_by, [](const OrderItem& item) { return print(*item.expression); });
  text += " AS orderByItems, " + payload_of(query) + " AS payload" + from_of(query);
  text += where_of(query, true);
  text += rewritten_order(query);
  return text + end_of(wanted);
}

std::string rewrite_value_aggregate(const Query& query, AggregateForm form) {
  const Expression& aggregate = *query.selection.items.front().expression;
  return "SELECT VALUE [" + partial_of(aggregate, *aggregate_of(aggregate), form) + ']' +
         from_of(query) + plain_where_of(query);
}

std::string rewrite_groups(const Query& query, AggregateForm form) {
  const auto print_item = [&](const Expression& item) {
    const auto aggregate = aggregate_of(item);
    return aggregate ? partial_of(item, *aggregate, form) : print(item);
  };
  std::string text = "SELECT ";
  if (!query.group_by.empty()) {
    text += items_of(query.group_by, [](const ExpressionPtr& key) { return print(*key); });
    text += " AS groupByItems, ";
  }
  if (query.selection.kind == Selection::Kind::Value) {
    const Expression& value = *query.selection.items.front().expression;
    text += aggregate_of(value) ? '[' + print_item(value) + ']' : print(value);
  } else {
    text += object_of(query.selection, print_item);
  }
  text += " AS payload" + from_of(query) + plain_where_of(query);
  std::string keys;
  for (const ExpressionPtr& key : query.group_by) {
    keys += keys.empty() ? "\nGROUP BY " : ", ";
    keys += print(*key);
  }
  text += keys;
  // One row has no order.
  if (!query.group_by.empty()) text += rewritten_order(query);
  return text;
}

}  // namespace orrery::query
