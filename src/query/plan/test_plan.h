// Shared by the tests of plans.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "json/value.h"
#include "query/plan/plan.h"

namespace orrery::query {

inline constexpr std::string_view kWholeContainer =
    R"([{"min":"","max":"FF","isMinInclusive":true,"isMaxInclusive":false}])";

/// As .NET announces them, but for the form of hybrid search.
inline constexpr std::string_view kAllFeatures =
    "Aggregate, CompositeAggregate, Distinct, GroupBy, MultipleAggregates, MultipleOrderBy, "
    "OffsetAndLimit, OrderBy, Top, NonValueAggregate, DCount, NonStreamingOrderBy, "
    "ListAndSetAggregate, CountIf, HybridSearch, WeightedRankFusion";

/// Texts write @filter where the placeholder is.
inline std::string filled(std::string_view text) {
  constexpr std::string_view kPlaceholder = "{documentdb-formattableorderbyquery-filter}";
  std::string filled(text);
  constexpr std::string_view kMark = "@filter";
  for (std::size_t at = 0; (at = filled.find(kMark)) != std::string::npos;) {
    filled.replace(at, kMark.size(), kPlaceholder);
  }
  return filled;
}

inline std::string as_json(std::string_view text) { return json::Value::string_at(text).to_text(); }

class PlanTest : public testing::Test {
 protected:
  Result<std::string> plan(std::string_view text) const {
    return make_plan({text, parameters_, settings_, definition_, features_});
  }
  Result<std::optional<std::string>> first_chance(std::string_view text,
                                                  bool is_parallel = false) const {
    return make_first_chance_plan(
        {text, parameters_, settings_, definition_, std::nullopt, is_parallel});
  }

  std::string planned(std::string_view text) const {
    const auto json = plan(text);
    EXPECT_TRUE(json.has_value()) << text << '\n' << json.error().message();
    return json.value_or("{}");
  }

  std::string error_of(std::string_view text) const {
    const auto json = plan(text);
    EXPECT_FALSE(json.has_value()) << text << '\n' << *json;
    if (json) return "";
    EXPECT_EQ(json.error().code(), ErrorCode::BadRequest);
    return json.error().message();
  }

  /// Members of queryInfo that are not as in the plan of a query with nothing left to do, each as
  /// its JSON text; the rewritten text as such.
  using Members = std::map<std::string, std::string>;
  static void expect_info(const json::Value& info, std::string_view text, const Members& expected) {
    Members all = {
        {"distinctType", R"("None")"},
        {"top", "null"},
        {"offset", "null"},
        {"limit", "null"},
        {"orderBy", "[]"},
        {"orderByExpressions", "[]"},
        {"groupByExpressions", "[]"},
        {"groupByAliases", "[]"},
        {"aggregates", "[]"},
        {"groupByAliasToAggregateType", "{}"},
        {"rewrittenQuery", ""},
        {"hasSelectValue", "false"},
        {"dCountInfo", "null"},
        {"hasNonStreamingOrderBy", "false"},
    };
    for (const auto& [name, value] : expected) all[name] = value;
    all["rewrittenQuery"] = as_json(filled(all["rewrittenQuery"]));
    EXPECT_EQ(info.size(), all.size()) << text;
    for (const auto& [name, value] : all) {
      EXPECT_EQ(info.member(name).to_text(), value) << name << " of " << text;
    }
  }

  void expect_plan(std::string_view text, const Members& expected) const {
    const std::string json = planned(text);
    const json::Value value = json::Value::of_checked(json);
    EXPECT_TRUE(value.member("hybridSearchQueryInfo").is_null()) << text;
    expect_info(value.member("queryInfo"), text, expected);
  }

  void expect_rewritten(std::string_view text, std::string_view rewritten) const {
    const std::string json = planned(text);
    EXPECT_EQ(json::Value::of_checked(json).member("queryInfo").member("rewrittenQuery").to_text(),
              as_json(filled(rewritten)))
        << text;
  }

  Parameters parameters_;
  Settings settings_;
  PartitionKeyDefinition definition_ = {.paths = {{"pk"}}, .version = 2};
  std::optional<std::string> features_ = std::string(kAllFeatures);
};

}  // namespace orrery::query
