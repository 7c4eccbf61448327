#include "query/plan/plan.h"

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/value.h"
#include "query/plan/test_plan.h"
#include "query/syntax/lexer.h"

namespace orrery::query {
namespace {

using testing::HasSubstr;

TEST_F(PlanTest, HasAllMembersInTheirOrder) {
  EXPECT_EQ(
      planned("SELECT VALUE COUNT(1) FROM c"),
      R"({"partitionedQueryExecutionInfoVersion":2,"queryInfo":{"distinctType":"None","top":null,)"
      R"("offset":null,"limit":null,"orderBy":[],"orderByExpressions":[],"groupByExpressions":[],)"
      R"("groupByAliases":[],"aggregates":["Count"],"groupByAliasToAggregateType":{},)"
      R"("rewrittenQuery":"SELECT VALUE [{\"item\": COUNT(1)}]\nFROM c","hasSelectValue":true,)"
      R"("dCountInfo":null,"hasNonStreamingOrderBy":false},"queryRanges":[{"min":"","max":"FF",)"
      R"("isMinInclusive":true,"isMaxInclusive":false}],"hybridSearchQueryInfo":null})");
}

TEST_F(PlanTest, NothingIsLeftToDoForRowsAsTheyCome) {
  expect_plan("SELECT * FROM c", {});
  expect_plan("SELECT c.id, c.x + 1 FROM c JOIN t IN c.tags WHERE c.x > 1", {});
  expect_plan("SELECT VALUE c.id FROM c", {{"hasSelectValue", "true"}});
  expect_plan("SELECT (SELECT VALUE COUNT(1) FROM t IN c.tags) AS n FROM c", {});
  expect_plan("SELECT * FROM (SELECT c.a FROM c WHERE c.a > 1) x", {});
}

TEST_F(PlanTest, TopIsCountedByTheRangesAndByTheClient) {
  expect_plan("SELECT TOP 5 * FROM c", {{"top", "5"}});
  parameters_.set("@n", json::Value::number(std::int64_t{7}));
  expect_plan("SELECT TOP @n * FROM c", {{"top", "7"}});
}

TEST_F(PlanTest, OffsetIsSkippedByTheClientOnly) {
  expect_plan("SELECT * FROM c WHERE c.x = 'a' OFFSET 2 LIMIT 3",
              {{"offset", "2"},
               {"limit", "3"},
               {"rewrittenQuery", "SELECT *\nFROM c\nWHERE (c.x = \"a\")\nOFFSET 0 LIMIT 5"}});
  parameters_.set("@o", json::Value::number(std::int64_t{10}));
  parameters_.set("@l", json::Value::number(std::int64_t{20}));
  expect_plan("SELECT * FROM c OFFSET @o LIMIT @l",
              {{"offset", "10"},
               {"limit", "20"},
               {"rewrittenQuery", "SELECT *\nFROM c\nOFFSET 0 LIMIT 30"}});
  // The sum is still one that a range takes.
  expect_plan("SELECT * FROM c OFFSET 4294967295 LIMIT 4294967295",
              {{"offset", "4294967295"},
               {"limit", "4294967295"},
               {"rewrittenQuery", "SELECT *\nFROM c\nOFFSET 0 LIMIT 4294967295"}});
}

TEST_F(PlanTest, TopBesideOffsetCannotBeCountedByARange) {
  expect_plan("SELECT TOP 2 * FROM c OFFSET 5 LIMIT 10",
              {{"top", "2"},
               {"offset", "5"},
               {"limit", "10"},
               {"rewrittenQuery", "SELECT *\nFROM c\nOFFSET 0 LIMIT 15"}});
}

TEST_F(PlanTest, OnePartitionKeyLeavesCountingToTheServer) {
  expect_plan("SELECT TOP 5 * FROM c WHERE c.pk = 1", {});
  // Zero is two keys, which may be in two ranges.
  expect_plan("SELECT TOP 5 * FROM c WHERE c.pk = 0", {{"top", "5"}});
  expect_plan("SELECT * FROM c WHERE c.pk = 1 OFFSET 2 LIMIT 3", {});
  EXPECT_THAT(planned("SELECT * FROM c WHERE c.pk = 1 OFFSET 2 LIMIT 3"),
              HasSubstr(R"("isMaxInclusive":true}])"));
  // But not where the client still has to put something together.
  expect_plan(
      "SELECT TOP 5 VALUE COUNT(1) FROM c WHERE c.pk = 1",
      {{"top", "5"},
       {"aggregates", R"(["Count"])"},
       {"hasSelectValue", "true"},
       {"rewrittenQuery", "SELECT VALUE [{\"item\": COUNT(1)}]\nFROM c\nWHERE (c.pk = 1)"}});
  expect_plan("SELECT DISTINCT TOP 5 c.x FROM c WHERE c.pk = 1",
              {{"top", "5"},
               {"distinctType", R"("Unordered")"},
               {"rewrittenQuery", "SELECT DISTINCT c.x\nFROM c\nWHERE (c.pk = 1)"}});
  expect_plan("SELECT c.x FROM c WHERE c.pk = 1 GROUP BY c.x OFFSET 1 LIMIT 2",
              {{"offset", "1"},
               {"limit", "2"},
               {"groupByExpressions", R"(["c.x"])"},
               {"groupByAliases", R"(["x"])"},
               {"groupByAliasToAggregateType", R"({"x":null})"},
               {"rewrittenQuery",
                "SELECT [{\"item\": c.x}] AS groupByItems, {\"x\": c.x} AS payload\nFROM c\n"
                "WHERE (c.pk = 1)\nGROUP BY c.x"}});
}

TEST_F(PlanTest, AQueryWithoutDocumentsIsServedByOneRange) {
  for (const std::string_view text :
       {"SELECT TOP 1 1 AS x", "SELECT DISTINCT 1 AS x", "SELECT COUNT(1) AS n",
        "SELECT COUNT(1) AS n FROM (SELECT 1 AS x) s"}) {
    expect_plan(text, {});
    EXPECT_THAT(planned(text), HasSubstr(R"("queryRanges":[{"min":"","max":"","isMinInclusive":)"
                                         R"(true,"isMaxInclusive":true}])"));
  }
}

TEST_F(PlanTest, AQueryThatFindsNothingIsServedByOneRange) {
  for (const std::string_view text :
       {"SELECT TOP 2 * FROM c WHERE false", "SELECT * FROM c WHERE c.pk = undefined",
        "SELECT * FROM c WHERE c.pk = 1 AND c.pk = 2 OFFSET 1 LIMIT 2"}) {
    expect_plan(text, {});
    EXPECT_THAT(planned(text), HasSubstr(R"("queryRanges":[{"min":"","max":"","isMinInclusive":)"
                                         R"(true,"isMaxInclusive":true}])"));
  }
}

TEST_F(PlanTest, DistinctRowsAreCountedByTheClient) {
  expect_plan("SELECT DISTINCT c.x FROM c", {{"distinctType", R"("Unordered")"}});
  expect_plan("SELECT DISTINCT TOP 3 c.x FROM c",
              {{"distinctType", R"("Unordered")"},
               {"top", "3"},
               {"rewrittenQuery", "SELECT DISTINCT c.x\nFROM c"}});
  expect_plan("SELECT DISTINCT VALUE c.x FROM c OFFSET 1 LIMIT 2",
              {{"distinctType", R"("Unordered")"},
               {"offset", "1"},
               {"limit", "2"},
               {"hasSelectValue", "true"},
               {"rewrittenQuery", "SELECT DISTINCT VALUE c.x\nFROM c"}});
}

TEST_F(PlanTest, DistinctRowsInTheirOwnOrder) {
  expect_plan("SELECT DISTINCT VALUE c.x FROM c ORDER BY c.x",
              {{"distinctType", R"("Ordered")"},
               {"orderBy", R"(["Ascending"])"},
               {"orderByExpressions", R"(["c.x"])"},
               {"hasSelectValue", "true"},
               {"rewrittenQuery",
                "SELECT c._rid, [{\"item\": c.x}] AS orderByItems, c.x AS payload\nFROM c\n"
                "WHERE ((@filter) AND IS_DEFINED(c.x))\nORDER BY c.x"}});
  expect_plan("SELECT DISTINCT TOP 4 c.x FROM c ORDER BY c.y DESC",
              {{"distinctType", R"("Unordered")"},
               {"top", "4"},
               {"orderBy", R"(["Descending"])"},
               {"orderByExpressions", R"(["c.y"])"},
               {"rewrittenQuery",
                "SELECT c._rid, [{\"item\": c.y}] AS orderByItems, {\"x\": c.x} AS payload\n"
                "FROM c\nWHERE (@filter)\nORDER BY c.y DESC"}});
}

TEST_F(PlanTest, OrderByShowsWhatTheClientMergesBy) {
  expect_plan(R"(SELECT c.id, c.t + 1 FROM c WHERE c.k = "a" ORDER BY c.t DESC, c.u)",
              {{"orderBy", R"(["Descending","Ascending"])"},
               {"orderByExpressions", R"(["c.t","c.u"])"},
               {"rewrittenQuery",
                "SELECT c._rid, [{\"item\": c.t}, {\"item\": c.u}] AS orderByItems, "
                "{\"id\": c.id, \"$1\": (c.t + 1)} AS payload\n"
                "FROM c\n"
                "WHERE ((c.k = \"a\") AND (@filter))\n"
                "ORDER BY c.t DESC, c.u"}});
}

TEST_F(PlanTest, OrderByOfEverySelectForm) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"SELECT * FROM c ORDER BY c.t ASC",
       "SELECT c._rid, [{\"item\": c.t}] AS orderByItems, c AS payload\nFROM c\n"
       "WHERE (@filter)\nORDER BY c.t ASC"},
      {"SELECT * FROM root r WHERE r.a > 1 ORDER BY r.t",
       "SELECT r._rid, [{\"item\": r.t}] AS orderByItems, r AS payload\nFROM root AS r\n"
       "WHERE ((r.a > 1) AND (@filter))\nORDER BY r.t"},
      {"SELECT VALUE c.a FROM c ORDER BY c.t",
       "SELECT c._rid, [{\"item\": c.t}] AS orderByItems, c.a AS payload\nFROM c\n"
       "WHERE ((@filter) AND IS_DEFINED(c.a))\nORDER BY c.t"},
      {"SELECT VALUE c.a FROM c WHERE c.k = 1 ORDER BY c.t",
       "SELECT c._rid, [{\"item\": c.t}] AS orderByItems, c.a AS payload\nFROM c\n"
       "WHERE (((c.k = 1) AND (@filter)) AND IS_DEFINED(c.a))\nORDER BY c.t"},
      {"SELECT t AS \"a tag\" FROM c JOIN t IN c.tags ORDER BY c.t",
       "SELECT c._rid, [{\"item\": c.t}] AS orderByItems, {\"a tag\": t} AS payload\nFROM c\n"
       "JOIN t IN c.tags\nWHERE (@filter)\nORDER BY c.t"},
  };
  for (const auto& [text, rewritten] : cases) expect_rewritten(text, rewritten);
}

TEST_F(PlanTest, OrderByWithCounts) {
  expect_plan("SELECT TOP 3 * FROM c ORDER BY c.t",
              {{"top", "3"},
               {"orderBy", R"(["Ascending"])"},
               {"orderByExpressions", R"(["c.t"])"},
               {"rewrittenQuery",
                "SELECT TOP 3 c._rid, [{\"item\": c.t}] AS orderByItems, c AS payload\nFROM c\n"
                "WHERE (@filter)\nORDER BY c.t"}});
  expect_plan("SELECT * FROM c ORDER BY c.t OFFSET 2 LIMIT 3",
              {{"offset", "2"},
               {"limit", "3"},
               {"orderBy", R"(["Ascending"])"},
               {"orderByExpressions", R"(["c.t"])"},
               {"rewrittenQuery",
                "SELECT c._rid, [{\"item\": c.t}] AS orderByItems, c AS payload\nFROM c\n"
                "WHERE (@filter)\nORDER BY c.t\nOFFSET 0 LIMIT 5"}});
  expect_plan("SELECT TOP 1 * FROM c ORDER BY c.t OFFSET 2 LIMIT 3",
              {{"top", "1"},
               {"offset", "2"},
               {"limit", "3"},
               {"orderBy", R"(["Ascending"])"},
               {"orderByExpressions", R"(["c.t"])"},
               {"rewrittenQuery",
                "SELECT c._rid, [{\"item\": c.t}] AS orderByItems, c AS payload\nFROM c\n"
                "WHERE (@filter)\nORDER BY c.t\nOFFSET 0 LIMIT 5"}});
}

TEST_F(PlanTest, OrderByOfPartsOfDocumentsIsOnlyForOneKey) {
  EXPECT_THAT(error_of("SELECT * FROM c.home h ORDER BY h.x"),
              HasSubstr("Order-by over correlated collections is not supported."));
  definition_.paths = {{"home", "pk"}};
  expect_plan("SELECT * FROM c.home h WHERE h.pk = 1 ORDER BY h.x", {});
}

TEST_F(PlanTest, AggregatesAreSentInParts) {
  const std::tuple<std::string_view, std::string_view, std::string_view> cases[] = {
      {"COUNT(c.x)", "Count", R"({"item": COUNT(c.x)})"},
      {"SUM(c.x)", "Sum", R"({"item": SUM(c.x)})"},
      {"AVG(c.x)", "Average", R"({"item": {"sum": SUM(c.x), "count": COUNT(c.x)}})"},
      {"MIN(c.x)", "Min", R"({"item": MIN(c.x), "item2": {"min": MIN(c.x), "count": COUNT(c.x)}})"},
      {"MAX(c.x + 1)", "Max",
       R"({"item": MAX((c.x + 1)), "item2": {"max": MAX((c.x + 1)), "count": COUNT((c.x + 1))}})"},
      {"COUNTIF(c.x)", "CountIf", R"({"item": COUNTIF(c.x)})"},
      {"MAKELIST(c.x)", "MakeList", R"({"item": MAKELIST(c.x)})"},
      {"MAKESET(c.x)", "MakeSet", R"({"item": MAKESET(c.x)})"},
  };
  for (const auto& [item, name, part] : cases) {
    expect_plan("SELECT VALUE " + std::string(item) + " FROM c",
                {{"aggregates", "[" + as_json(name) + "]"},
                 {"hasSelectValue", "true"},
                 {"rewrittenQuery", "SELECT VALUE [" + std::string(part) + "]\nFROM c"}});
  }
  expect_rewritten(R"(SELECT VALUE AVG(c.mag) FROM c WHERE c.kind = "star")",
                   "SELECT VALUE [{\"item\": {\"sum\": SUM(c.mag), \"count\": COUNT(c.mag)}}]\n"
                   "FROM c\nWHERE (c.kind = \"star\")");
}

TEST_F(PlanTest, OneRowNeedsNeitherOrderNorDistinct) {
  expect_plan("SELECT DISTINCT TOP 2 VALUE COUNT(1) FROM c",
              {{"top", "2"},
               {"aggregates", R"(["Count"])"},
               {"hasSelectValue", "true"},
               {"rewrittenQuery", "SELECT VALUE [{\"item\": COUNT(1)}]\nFROM c"}});
}

TEST_F(PlanTest, SeveralAggregates) {
  expect_plan("SELECT COUNT(1), MAX(c.r) AS far FROM c",
              {{"groupByAliases", R"(["$1","far"])"},
               {"groupByAliasToAggregateType", R"({"$1":"Count","far":"Max"})"},
               {"rewrittenQuery",
                "SELECT {\"$1\": {\"item\": COUNT(1)}, \"far\": {\"item\": MAX(c.r), \"item2\": "
                "{\"max\": MAX(c.r), \"count\": COUNT(c.r)}}} AS payload\nFROM c"}});
}

TEST_F(PlanTest, AggregatesWithinExpressionsAreOnlyForOneKey) {
  const std::string_view message =
      R"({"Errors":["Compositions of aggregates and other expressions are not allowed."]})";
  EXPECT_EQ(error_of("SELECT VALUE COUNT(1) + 1 FROM c"), message);
  EXPECT_EQ(error_of("SELECT VALUE {\"n\": COUNT(1)} FROM c"), message);
  EXPECT_EQ(error_of("SELECT c.x, COUNT(1) + 1 AS n FROM c GROUP BY c.x"), message);
  expect_plan("SELECT COUNT(1) + 1 AS n FROM c WHERE c.pk = 'a'", {});
}

TEST_F(PlanTest, GroupsAreSentWithTheirKeys) {
  expect_plan(
      "SELECT c.cls, COUNT(1) AS n, AVG(c.mag) AS m FROM c GROUP BY c.cls",
      {{"groupByExpressions", R"(["c.cls"])"},
       {"groupByAliases", R"(["cls","n","m"])"},
       {"groupByAliasToAggregateType", R"({"cls":null,"n":"Count","m":"Average"})"},
       {"rewrittenQuery",
        "SELECT [{\"item\": c.cls}] AS groupByItems, {\"cls\": c.cls, \"n\": {\"item\": COUNT(1)}, "
        "\"m\": {\"item\": {\"sum\": SUM(c.mag), \"count\": COUNT(c.mag)}}} AS payload\n"
        "FROM c\nGROUP BY c.cls"}});
}

TEST_F(PlanTest, GroupsOfOneValueEach) {
  expect_plan("SELECT VALUE c.a FROM c GROUP BY c.a, c.b",
              {{"groupByExpressions", R"(["c.a","c.b"])"},
               {"hasSelectValue", "true"},
               {"rewrittenQuery",
                "SELECT [{\"item\": c.a}, {\"item\": c.b}] AS groupByItems, c.a AS payload\n"
                "FROM c\nGROUP BY c.a, c.b"}});
  expect_plan("SELECT TOP 2 VALUE SUM(c.x) FROM c WHERE c.x > 0 GROUP BY c.a",
              {{"top", "2"},
               {"groupByExpressions", R"(["c.a"])"},
               {"aggregates", R"(["Sum"])"},
               {"hasSelectValue", "true"},
               {"rewrittenQuery",
                "SELECT [{\"item\": c.a}] AS groupByItems, [{\"item\": SUM(c.x)}] AS payload\n"
                "FROM c\nWHERE (c.x > 0)\nGROUP BY c.a"}});
}

TEST_F(PlanTest, GroupsKeepTheirOrderInTheText) {
  expect_plan("SELECT c.a FROM c GROUP BY c.a ORDER BY c.a DESC",
              {{"groupByExpressions", R"(["c.a"])"},
               {"groupByAliases", R"(["a"])"},
               {"groupByAliasToAggregateType", R"({"a":null})"},
               {"rewrittenQuery",
                "SELECT [{\"item\": c.a}] AS groupByItems, {\"a\": c.a} AS payload\nFROM c\n"
                "GROUP BY c.a\nORDER BY c.a DESC"}});
}

TEST_F(PlanTest, DistinctGroups) {
  // No two groups are alike, so there is nothing to do for it.
  expect_rewritten("SELECT DISTINCT c.a, COUNT(1) AS n FROM c GROUP BY c.a",
                   "SELECT [{\"item\": c.a}] AS groupByItems, {\"a\": c.a, \"n\": {\"item\": "
                   "COUNT(1)}} AS payload\nFROM c\nGROUP BY c.a");
  // A client would drop equal parts of different groups before it puts them together.
  EXPECT_THAT(error_of("SELECT DISTINCT COUNT(1) AS n FROM c GROUP BY c.a"),
              HasSubstr("DISTINCT with GROUP BY"));
}

TEST_F(PlanTest, DistinctValuesAreCountedByTheClient) {
  expect_plan("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.cls FROM c)",
              {{"distinctType", R"("Unordered")"},
               {"hasSelectValue", "true"},
               {"dCountInfo", R"({"dCountAlias":""})"},
               {"rewrittenQuery", "SELECT DISTINCT VALUE c.cls\nFROM c"}});
  expect_plan("SELECT COUNT(1) AS n FROM (SELECT DISTINCT c.a, c.b FROM c WHERE c.a > 1) AS d",
              {{"distinctType", R"("Unordered")"},
               {"dCountInfo", R"({"dCountAlias":"n"})"},
               {"rewrittenQuery", "SELECT DISTINCT c.a, c.b\nFROM c\nWHERE (c.a > 1)"}});
}

TEST_F(PlanTest, DistinctValuesOfOneKeyNeedNobodyToCountThem) {
  features_ = "Aggregate,Distinct";
  expect_plan("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.cls FROM c WHERE c.pk = 2)",
              {{"hasSelectValue", "true"}});
  EXPECT_EQ(error_of("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.cls FROM c)"),
            "Query contains the following features, which the calling client does not support: "
            "DCount");
}

TEST_F(PlanTest, WhatAllRangesMustMakeTogetherIsRefused) {
  for (const std::string_view text :
       {"SELECT * FROM (SELECT TOP 5 c.a FROM c) x", "SELECT * FROM (SELECT DISTINCT c.a FROM c) x",
        "SELECT VALUE SUM(x.n) FROM (SELECT COUNT(1) AS n FROM c) x",
        "SELECT * FROM (SELECT c.a FROM c GROUP BY c.a) x",
        "SELECT * FROM (SELECT c.a FROM c OFFSET 1 LIMIT 1) x"}) {
    EXPECT_THAT(error_of(text), HasSubstr("A subquery in FROM with DISTINCT")) << text;
  }
}

TEST_F(PlanTest, FeaturesThatTheClientLacksAreNamed) {
  const std::string_view kBegin =
      "Query contains the following features, which the calling client does not support: ";
  const std::tuple<std::string_view, std::string_view, std::string_view> cases[] = {
      {"", "SELECT TOP 1 * FROM c", "Top"},
      {"None", "SELECT * FROM c OFFSET 1 LIMIT 1", "OffsetAndLimit"},
      {"top", "SELECT DISTINCT TOP 1 c.x FROM c", "Distinct"},
      {"Distinct", "SELECT * FROM c ORDER BY c.x", "OrderBy"},
      {"OrderBy", "SELECT * FROM c ORDER BY c.x, c.y", "MultipleOrderBy"},
      {"OrderBy", "SELECT TOP 1 * FROM c ORDER BY VectorDistance(c.v, [1])",
       "NonStreamingOrderBy, Top"},
      {"Top", "SELECT VALUE COUNT(1) FROM c", "Aggregate"},
      {"Aggregate, CompositeAggregate", "SELECT c.x FROM c GROUP BY c.x", "GroupBy"},
      {"Aggregate", "SELECT COUNT(1) AS n FROM c", "NonValueAggregate"},
      {"Aggregate,NonValueAggregate", "SELECT COUNT(1) AS n, SUM(c.x) AS m FROM c",
       "MultipleAggregates"},
      {"AGGREGATE", "SELECT VALUE COUNTIF(c.x) FROM c", "CountIf"},
      {"Aggregate", "SELECT VALUE MAKESET(c.x) FROM c", "ListAndSetAggregate"},
      {"Aggregate", "SELECT * FROM c ORDER BY RANK FullTextScore(c.t, 'a')", "HybridSearch"},
      {"HybridSearch",
       "SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'a'), VectorDistance(c.v, [1]), "
       "[1,2])",
       "WeightedRankFusion"},
  };
  for (const auto& [announced, text, missing] : cases) {
    features_ = announced;
    EXPECT_EQ(error_of(text), std::string(kBegin) + std::string(missing)) << text;
  }
  features_.reset();
  for (const auto& [announced, text, missing] : cases) {
    EXPECT_TRUE(plan(text).has_value()) << text;
  }
}

TEST_F(PlanTest, WrongQueriesGetTheirErrorsRatherThanPlans) {
  EXPECT_THAT(error_of("SELECT FROM c"), HasSubstr("SC1001"));
  EXPECT_THAT(error_of(""), HasSubstr("SC1002"));
  EXPECT_THAT(error_of("SELECT x.a FROM c"), HasSubstr("SC2001"));
  EXPECT_THAT(error_of("SELECT NOSUCH(c.a) FROM c"), HasSubstr("SC2005"));
  EXPECT_THAT(error_of("SELECT * FROM c ORDER BY c.x + 1"), HasSubstr("2206"));
  EXPECT_THAT(error_of("SELECT c.y, COUNT(1) AS n FROM c GROUP BY c.x"), HasSubstr("SC2102"));
  EXPECT_THAT(error_of(std::string(Lexer::kCharactersMax + 1, ' ')), HasSubstr("524288"));
}

// ── Clients of 2017 ──

class FirstChancePlanTest : public PlanTest {};

TEST_F(FirstChancePlanTest, IsNothingWhereTheServiceServes) {
  for (const std::string_view text :
       {"SELECT * FROM c WHERE c.x > 1", "SELECT t FROM c JOIN t IN c.tags", "SELECT VALUE 1",
        "SELECT * FROM (SELECT c.a FROM c) x", "SELECT TOP 1 * FROM c WHERE c.pk = 1",
        "SELECT TOP 1 * FROM c WHERE c.pk = 0", "SELECT TOP 1 * FROM c WHERE false",
        "SELECT VALUE COUNT(1) FROM c WHERE c.pk = 1 AND c.pk = 2",
        "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c)",
        "SELECT VALUE EXISTS(SELECT VALUE t FROM t IN c.tags) FROM c"}) {
    const auto plan = first_chance(text);
    ASSERT_TRUE(plan.has_value()) << text;
    EXPECT_EQ(*plan, std::nullopt) << text;
  }
}

TEST_F(FirstChancePlanTest, IsThereForPlainRowsThatAClientWouldReadFromAllRangesAtOnce) {
  const auto plan = first_chance("SELECT * FROM c WHERE c.x > 1", true);
  ASSERT_TRUE(plan.has_value() && plan->has_value());
  const json::Value value = json::Value::of_checked(**plan);
  expect_info(value.member("queryInfo"), "plain", {});
  EXPECT_EQ(value.member("queryRanges").to_text(), kWholeContainer);
  EXPECT_EQ(*first_chance("SELECT * FROM c WHERE c.pk = 1", true), std::nullopt);
}

TEST_F(FirstChancePlanTest, ShowsExtremesByOneMemberOnly) {
  const auto plan = first_chance("SELECT VALUE MIN(c.x) FROM c");
  ASSERT_TRUE(plan.has_value() && plan->has_value());
  const json::Value value = json::Value::of_checked(**plan);
  expect_info(value.member("queryInfo"), "MIN",
              {{"aggregates", R"(["Min"])"},
               {"hasSelectValue", "true"},
               {"rewrittenQuery", "SELECT VALUE [{\"item\": MIN(c.x)}]\nFROM c"}});
  EXPECT_EQ(value.member("queryRanges").to_text(), kWholeContainer);
  EXPECT_TRUE(value.member("hybridSearchQueryInfo").is_undefined());
}

TEST_F(FirstChancePlanTest, IsThereForWhatTheServiceLeavesToClients) {
  for (const std::string_view text :
       {"SELECT TOP 1 * FROM c", "SELECT * FROM c ORDER BY c.x", "SELECT DISTINCT c.x FROM c",
        "SELECT * FROM c OFFSET 1 LIMIT 2", "SELECT VALUE AVG(c.x) FROM c"}) {
    const auto plan = first_chance(text);
    ASSERT_TRUE(plan.has_value()) << text;
    EXPECT_TRUE(plan->has_value()) << text;
  }
}

TEST_F(FirstChancePlanTest, RefusesAggregatesThatAreNotTheValue) {
  for (const std::string_view text :
       {"SELECT COUNT(1) AS n FROM c", "SELECT c.x, COUNT(1) AS n FROM c GROUP BY c.x",
        "SELECT VALUE COUNT(1) FROM c GROUP BY c.x", "SELECT COUNT(1) FROM c WHERE c.pk = 1",
        "SELECT AVG(c.x) FROM c WHERE c.pk = 'a'"}) {
    const auto plan = first_chance(text);
    ASSERT_FALSE(plan.has_value()) << text;
    EXPECT_EQ(plan.error().message(),
              R"({"Errors":["Cross partition query only supports 'VALUE <AggregateFunc>' for )"
              R"(aggregates."]})");
  }
}

// ── Scores ──

TEST_F(PlanTest, VectorsAreOrderedByTheirDistanceFunction) {
  const auto members = [](std::string_view direction) {
    return Members{{"top", "5"},
                   {"orderBy", "[" + as_json(direction) + "]"},
                   {"orderByExpressions", R"~(["VectorDistance(c.v, [1, 2])"])~"},
                   {"hasNonStreamingOrderBy", "true"},
                   {"rewrittenQuery",
                    "SELECT TOP 5 c._rid, [{\"item\": VectorDistance(c.v, [1, 2])}] AS "
                    "orderByItems, {\"id\": c.id} AS payload\nFROM c\nWHERE (@filter)\n"
                    "ORDER BY VectorDistance(c.v, [1, 2])"}};
  };
  const std::string_view text = "SELECT TOP 5 c.id FROM c ORDER BY VectorDistance(c.v, [1,2])";
  expect_plan(text, members("Descending"));
  settings_.vectors = {{.path = {"v"}, .distance_function = "dotproduct", .data_type = "float32"}};
  expect_plan(text, members("Descending"));
  settings_.vectors[0].distance_function = "euclidean";
  expect_plan(text, members("Ascending"));

  const std::string json = planned(
      "SELECT TOP 5 c.id FROM c ORDER BY VectorDistance(c.w, [1,2], false, "
      "{\"distanceFunction\": \"euclidean\"})");
  EXPECT_THAT(json, HasSubstr(R"("orderBy":["Ascending"])"));
}

}  // namespace
}  // namespace orrery::query
