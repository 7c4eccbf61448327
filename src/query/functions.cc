#include "query/functions.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

namespace orrery::query {
namespace {

constexpr std::string_view kAggregates[] = {"AVG",     "COUNT", "COUNTIF", "MAKELIST",
                                            "MAKESET", "MAX",   "MIN",     "SUM"};

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
       {type_functions(), text_functions(), math_functions(), array_functions()}) {
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

bool is_aggregate(std::string_view name) {
  return std::ranges::find(kAggregates, to_upper_ascii(name)) != std::end(kAggregates);
}

}  // namespace orrery::query
