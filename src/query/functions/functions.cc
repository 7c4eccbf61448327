#include "query/functions/functions.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

namespace orrery::query {
namespace {

constexpr std::pair<std::string_view, AggregateKind> kAggregates[] = {
    {"AVG", AggregateKind::Avg},         {"COUNT", AggregateKind::Count},
    {"COUNTIF", AggregateKind::CountIf}, {"MAKELIST", AggregateKind::MakeList},
    {"MAKESET", AggregateKind::MakeSet}, {"MAX", AggregateKind::Max},
    {"MIN", AggregateKind::Min},         {"SUM", AggregateKind::Sum},
};

/// Other spellings of the same functions.
constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"CONTAINSALLCI", "CONTAINS_ALL_CI"},
    {"CONTAINSALLCS", "CONTAINS_ALL_CS"},
    {"CONTAINSANYCI", "CONTAINS_ANY_CI"},
    {"CONTAINSANYCS", "CONTAINS_ANY_CS"},
    {"INDEXOF", "INDEX_OF"},
    {"INTBITWISEAND", "INTBITAND"},
    {"INTBITWISELEFTSHIFT", "INTBITLEFTSHIFT"},
    {"INTBITWISENOT", "INTBITNOT"},
    {"INTBITWISEOR", "INTBITOR"},
    {"INTBITWISERIGHTSHIFT", "INTBITRIGHTSHIFT"},
    {"INTBITWISEXOR", "INTBITXOR"},
    {"IS_BOOLEAN", "IS_BOOL"},
};

using Table = std::unordered_map<std::string_view, const Function*>;

Table make_table() {
  Table table;
  for (const auto part :
       {type_functions(), text_functions(), math_functions(), array_functions(), date_functions(),
        regex_functions(), spatial_functions(), full_text_functions(), vector_functions()}) {
    for (const Function& function : part) table.emplace(function.name, &function);
  }
  for (const auto& [alias, name] : kAliases) table.emplace(alias, table.at(name));
  return table;
}

}  // namespace

const Function* find_function(std::string_view name) {
  static const Table table = make_table();
  const auto found = table.find(to_upper_ascii(name));
  return found == table.end() ? nullptr : found->second;
}

std::optional<AggregateKind> find_aggregate(std::string_view name) {
  const auto found = std::ranges::find(kAggregates, to_upper_ascii(name),
                                       &std::pair<std::string_view, AggregateKind>::first);
  return found == std::end(kAggregates) ? std::nullopt : std::optional(found->second);
}

}  // namespace orrery::query
