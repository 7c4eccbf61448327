#include "query/plan/query_info.h"

#include "json/value.h"

namespace orrery::query {
namespace {

std::string_view name_of(QueryInfo::Distinct distinct) {
  switch (distinct) {
    case QueryInfo::Distinct::None:
      return "None";
    case QueryInfo::Distinct::Ordered:
      return "Ordered";
    case QueryInfo::Distinct::Unordered:
      return "Unordered";
  }
  return "None";
}

std::string_view name_of(AggregateKind kind) {
  switch (kind) {
    case AggregateKind::Avg:
      return "Average";
    case AggregateKind::Count:
      return "Count";
    case AggregateKind::CountIf:
      return "CountIf";
    case AggregateKind::MakeList:
      return "MakeList";
    case AggregateKind::MakeSet:
      return "MakeSet";
    case AggregateKind::Max:
      return "Max";
    case AggregateKind::Min:
      return "Min";
    case AggregateKind::Sum:
      return "Sum";
  }
  return "Count";
}

std::string_view name_of(bool value) { return value ? "true" : "false"; }

/// Members of an object, elements of an array: what comes between them.
class Separator {
 public:
  explicit Separator(std::string& json) : json_(json) {}
  void next() {
    if (!is_first_) json_ += ',';
    is_first_ = false;
  }

 private:
  std::string& json_;
  bool is_first_ = true;
};

template <typename List, typename Append>
void append_array(std::string& json, const List& list, Append append) {
  json += '[';
  Separator separator(json);
  for (const auto& element : list) {
    separator.next();
    append(element);
  }
  json += ']';
}

void append_count(std::string& json, std::string_view name, std::optional<std::uint64_t> count) {
  json += '"';
  json += name;
  json += "\":";
  json += count ? std::to_string(*count) : "null";
}

}  // namespace

void append_string(std::string& json, std::string_view text) {
  json::Value::string_at(text).append_to(json);
}

void QueryInfo::append_to(std::string& json) const {
  const auto append_text = [&](std::string_view text) { append_string(json, text); };

  json += R"({"distinctType":)";
  append_text(name_of(distinct));
  json += ',';
  append_count(json, "top", top);
  json += ',';
  append_count(json, "offset", offset);
  json += ',';
  append_count(json, "limit", limit);
  json += R"(,"orderBy":)";
  append_array(json, order_by, [&](const Order& order) {
    append_text(order.is_descending ? "Descending" : "Ascending");
  });
  json += R"(,"orderByExpressions":)";
  append_array(json, order_by, [&](const Order& order) { append_text(order.expression); });
  json += R"(,"groupByExpressions":)";
  append_array(json, group_by, append_text);
  json += R"(,"groupByAliases":)";
  append_array(json, outputs, [&](const Output& output) { append_text(output.alias); });
  json += R"(,"aggregates":[)";
  if (aggregate) append_text(name_of(*aggregate));
  json += R"(],"groupByAliasToAggregateType":{)";
  Separator separator(json);
  for (const Output& output : outputs) {
    separator.next();
    append_text(output.alias);
    json += ':';
    if (output.aggregate) {
      append_text(name_of(*output.aggregate));
    } else {
      json += "null";
    }
  }
  json += R"(},"rewrittenQuery":)";
  append_text(rewritten);
  json += R"(,"hasSelectValue":)";
  json += name_of(has_select_value);
  json += R"(,"dCountInfo":)";
  if (distinct_count_alias) {
    json += R"({"dCountAlias":)";
    append_text(*distinct_count_alias);
    json += '}';
  } else {
    json += "null";
  }
  json += R"(,"hasNonStreamingOrderBy":)";
  json += name_of(has_non_streaming_order_by);
  json += '}';
}

void RankInfo::append_to(std::string& json) const {
  json += R"({"globalStatisticsQuery":)";
  append_string(json, statistics_query);
  json += R"(,"componentQueryInfos":)";
  append_array(json, components, [&](const QueryInfo& component) { component.append_to(json); });
  json += R"(,"componentWithoutPayloadQueryInfos":[],"projectionQueryInfo":null)";
  json += R"(,"componentWeights":)";
  append_array(json, weights,
               [&](double weight) { json::append_number(json, json::Number::of(weight)); });
  json += ',';
  append_count(json, "skip", skip);
  json += ',';
  append_count(json, "take", take);
  json += R"(,"requiresGlobalStatistics":)";
  json += name_of(needs_statistics);
  json += '}';
}

void append_ranges(std::string& json, std::span<const QueryRange> ranges) {
  append_array(json, ranges, [&](const QueryRange& range) {
    json += R"({"min":)";
    append_string(json, range.min.hex());
    json += R"(,"max":)";
    append_string(json, range.max.hex());
    json += R"(,"isMinInclusive":)";
    json += name_of(range.is_min_inclusive);
    json += R"(,"isMaxInclusive":)";
    json += name_of(range.is_max_inclusive);
    json += '}';
  });
}

}  // namespace orrery::query
