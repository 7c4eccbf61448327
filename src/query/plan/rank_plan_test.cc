// ORDER BY RANK: what becomes of it in plans, and what the server does with it.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/value.h"
#include "query/plan/plan.h"
#include "query/plan/test_plan.h"
#include "query/syntax/parser.h"

namespace orrery::query {
namespace {

using testing::HasSubstr;

class RankPlanTest : public PlanTest {
 protected:
  std::string score(std::size_t index, std::string_view arguments) const {
    const std::string name = "{documentdb-formattablehybridsearchquery-";
    const std::string number = std::to_string(index);
    return "_FullTextScore(" + std::string(arguments) + ", " + name + "totaldocumentcount}, " +
           name + "totalwordcount-" + number + "}, " + name + "hitcountsarray-" + number + "})";
  }

  static constexpr std::string_view kHybrid =
      R"(SELECT TOP 10 c.id FROM c ORDER BY RANK RRF(FullTextScore(c.t, "sun", "spot"), )"
      R"(VectorDistance(c.v, [1, 2]), [2, 1]))";
  const std::string text_score_ = score(0, R"(c.t, ["sun", "spot"])");
  const std::string vector_score_ = "_VectorScore(c.v, [1, 2])";
};

TEST_F(RankPlanTest, TakesHybridSearchApart) {
  const std::string json = planned(kHybrid);
  const json::Value value = json::Value::of_checked(json);
  EXPECT_TRUE(value.member("queryInfo").is_null());
  EXPECT_EQ(value.member("queryRanges").to_text(), kWholeContainer);
  const json::Value rank = value.member("hybridSearchQueryInfo");
  EXPECT_EQ(rank.member("globalStatisticsQuery").to_text(),
            as_json("SELECT COUNT(1) AS documentCount, [{\"totalWordCount\": "
                    "SUM(_FullTextWordCount(c.t)), \"hitCounts\": [COUNTIF(FullTextContains(c.t, "
                    "\"sun\")), COUNTIF(FullTextContains(c.t, \"spot\"))]}] AS "
                    "fullTextStatistics\nFROM c"));
  EXPECT_EQ(rank.member("requiresGlobalStatistics").to_text(), "true");
  EXPECT_EQ(rank.member("componentWithoutPayloadQueryInfos").to_text(), "[]");
  EXPECT_TRUE(rank.member("projectionQueryInfo").is_null());
  EXPECT_EQ(rank.member("componentWeights").to_text(), "[2,1]");
  EXPECT_TRUE(rank.member("skip").is_null());
  EXPECT_EQ(rank.member("take").to_text(), "10");
  EXPECT_EQ(rank.size(), 8);

  ASSERT_EQ(rank.member("componentQueryInfos").size(), 2);
  const auto rewritten = [&](const std::string& ordered_by, std::string_view direction) {
    return "SELECT TOP 120 c._rid, [{\"item\": " + ordered_by +
           "}] AS orderByItems, {\"payload\": {\"id\": c.id}, \"componentScores\": [(" +
           text_score_ + " ?? -1), (" + vector_score_ +
           " ?? -1.79769e+308)]} AS payload\nFROM c\nWHERE (@filter)\nORDER BY " + ordered_by +
           std::string(direction);
  };
  expect_info(rank.member("componentQueryInfos").element(0), "full text",
              {{"top", "120"},
               {"orderBy", R"(["Descending"])"},
               {"orderByExpressions", "[" + as_json(text_score_) + "]"},
               {"hasNonStreamingOrderBy", "true"},
               {"rewrittenQuery", rewritten(text_score_, " DESC")}});
  expect_info(rank.member("componentQueryInfos").element(1), "vector",
              {{"top", "120"},
               {"orderBy", R"(["Descending"])"},
               {"orderByExpressions", "[" + as_json(vector_score_) + "]"},
               {"hasNonStreamingOrderBy", "true"},
               {"rewrittenQuery", rewritten(vector_score_, "")}});
}

TEST_F(RankPlanTest, ScoresNeedNoOrderForClientsThatKnowIt) {
  *features_ += ", HybridSearchSkipOrderByRewrite";
  const std::string json = planned(kHybrid);
  const json::Value rank = json::Value::of_checked(json).member("hybridSearchQueryInfo");
  expect_info(rank.member("componentQueryInfos").element(0), "scored",
              {{"rewrittenQuery", "SELECT TOP 120 c._rid, {\"id\": c.id} AS payload, [(" +
                                      text_score_ + " ?? -1), (" + vector_score_ +
                                      " ?? -1.79769e+308)] AS componentScores\nFROM c\nORDER BY " +
                                      text_score_ + " DESC"}});
}

TEST_F(RankPlanTest, OneScoreKeepsItsOrder) {
  *features_ += ", HybridSearchSkipOrderByRewrite";
  const std::string json = planned(
      "SELECT TOP 100 VALUE c.id FROM c WHERE c.a = 1 ORDER BY RANK FullTextScore(c.t, 'x')");
  const json::Value rank = json::Value::of_checked(json).member("hybridSearchQueryInfo");
  const std::string only = score(0, R"(c.t, ["x"])");
  EXPECT_EQ(rank.member("componentWeights").to_text(), "[]");
  EXPECT_EQ(rank.member("take").to_text(), "100");
  ASSERT_EQ(rank.member("componentQueryInfos").size(), 1);
  expect_info(rank.member("componentQueryInfos").element(0), "one",
              {{"top", "200"},
               {"orderBy", R"(["Descending"])"},
               {"orderByExpressions", "[" + as_json(only) + "]"},
               {"hasNonStreamingOrderBy", "true"},
               {"rewrittenQuery", "SELECT TOP 200 c._rid, [{\"item\": " + only +
                                      "}] AS orderByItems, {\"payload\": c.id, "
                                      "\"componentScores\": [(" +
                                      only +
                                      " ?? -1)]} AS payload\nFROM c\nWHERE (((c.a = 1) AND "
                                      "(@filter)) AND IS_DEFINED(c.id))\nORDER BY " +
                                      only + " DESC"}});
}

TEST_F(RankPlanTest, NegativeWeightsTurnAComponentAround) {
  const std::string_view text =
      "SELECT c.id FROM c ORDER BY RANK RRF(VectorDistance(c.v, [1]), FullTextScore(c.t, 'x'), "
      "[-0.5, @w]) OFFSET 10 LIMIT 100";
  parameters_.set("@w", json::Value::number(std::int64_t{-3}));
  // Their number is that among those of full text.
  const std::string second = score(0, R"(c.t, ["x"])");
  {
    const std::string json = planned(text);
    const json::Value rank = json::Value::of_checked(json).member("hybridSearchQueryInfo");
    EXPECT_EQ(rank.member("componentWeights").to_text(), "[0.5,3]");
    EXPECT_EQ(rank.member("skip").to_text(), "10");
    EXPECT_EQ(rank.member("take").to_text(), "100");
    expect_info(rank.member("componentQueryInfos").element(0), "turned",
                {{"offset", "0"},
                 {"limit", "220"},
                 {"orderBy", R"(["Ascending"])"},
                 {"orderByExpressions", R"~(["_VectorScore(c.v, [1])"])~"},
                 {"hasNonStreamingOrderBy", "true"},
                 {"rewrittenQuery",
                  "SELECT c._rid, [{\"item\": _VectorScore(c.v, [1])}] AS orderByItems, "
                  "{\"payload\": {\"id\": c.id}, \"componentScores\": [(_VectorScore(c.v, [1]) ?? "
                  "1.79769e+308), (" +
                      second +
                      " ?? 1.79769e+308)]} AS payload\nFROM c\nWHERE (@filter)\nORDER BY "
                      "_VectorScore(c.v, [1]) ASC\nOFFSET 0 LIMIT 220"}});
  }
  *features_ += ", HybridSearchSkipOrderByRewrite";
  const std::string json = planned(text);
  const json::Value rank = json::Value::of_checked(json).member("hybridSearchQueryInfo");
  expect_info(rank.member("componentQueryInfos").element(1), "turned and scored",
              {{"rewrittenQuery",
                "SELECT c._rid, {\"id\": c.id} AS payload, [(-1 * (_VectorScore(c.v, [1]) ?? "
                "1.79769e+308)), (-1 * (" +
                    second + " ?? 1.79769e+308))] AS componentScores\nFROM c\nORDER BY " + second +
                    " ASC\nOFFSET 0 LIMIT 220"}});
}

TEST_F(RankPlanTest, AllRowsWhereNoneAreCounted) {
  const std::string json = planned("SELECT * FROM c ORDER BY RANK VectorDistance(c.v, [1])");
  const json::Value rank = json::Value::of_checked(json).member("hybridSearchQueryInfo");
  EXPECT_EQ(rank.member("globalStatisticsQuery").to_text(),
            as_json("SELECT COUNT(1) AS documentCount, [] AS fullTextStatistics\nFROM c"));
  EXPECT_EQ(rank.member("requiresGlobalStatistics").to_text(), "false");
  EXPECT_TRUE(rank.member("take").is_null());
  EXPECT_THAT(rank.member("componentQueryInfos").element(0).to_text(),
              HasSubstr(R"("rewrittenQuery":"SELECT c._rid, )"));
}

TEST_F(RankPlanTest, RefusesWhatCannotBeRanked) {
  EXPECT_THAT(error_of("SELECT * FROM c ORDER BY RANK ABS(c.x)"), HasSubstr("RANK takes"));
  EXPECT_THAT(error_of("SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'a'), ABS(c.x))"),
              HasSubstr("RANK takes"));
  EXPECT_THAT(error_of("SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'a'), "
                       "VectorDistance(c.v, [1]), [1])"),
              HasSubstr("as many weights"));
  EXPECT_THAT(error_of("SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'a'), "
                       "VectorDistance(c.v, [1]), ['a', 'b'])"),
              HasSubstr("array of numbers"));
  EXPECT_THAT(error_of("SELECT DISTINCT * FROM c ORDER BY RANK FullTextScore(c.t, 'a')"),
              HasSubstr("not allowed with DISTINCT"));
  EXPECT_THAT(error_of("SELECT * FROM c ORDER BY RANK FullTextScore(c.t, 'a') ASC"),
              HasSubstr("cannot be ascending"));
}

TEST_F(RankPlanTest, ServerFillsInTheStatistics) {
  const std::string text =
      "SELECT TOP 3 c.id FROM c ORDER BY RANK RRF(VectorDistance(c.v, [1]), "
      "FullTextScore(c.t, 'a', 'b'), [1, -2])";
  const auto query = Parser(text).parse_query();
  ASSERT_TRUE(query.has_value());
  const auto plan = make_rank_plan(**query, text, parameters_);
  ASSERT_TRUE(plan.has_value());
  EXPECT_TRUE(plan->needs_statistics);
  EXPECT_EQ(plan->weights, (std::vector<double>{1, 2}));
  EXPECT_EQ(plan->take, 3);
  EXPECT_EQ(plan->skip, std::nullopt);
  ASSERT_EQ(plan->components.size(), 2);
  EXPECT_FALSE(plan->components[0].is_ascending);
  EXPECT_TRUE(plan->components[1].is_ascending);

  const RankStatistics statistics = {.document_count = 7,
                                     .full_text = {{.total = 50, .hits = {3, 4}}}};
  EXPECT_EQ(with_statistics(plan->components[0].query, statistics),
            "SELECT TOP 120 c._rid, {\"id\": c.id} AS payload, [(_VectorScore(c.v, [1]) ?? "
            "-1.79769e+308), (_FullTextScore(c.t, [\"a\", \"b\"], 7, 50, [3,4]) ?? "
            "1.79769e+308)] AS componentScores\nFROM c\nORDER BY _VectorScore(c.v, [1])");
}

}  // namespace
}  // namespace orrery::query
