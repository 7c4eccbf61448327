// The cost of one document is bounded: whatever an expression does, it can be stopped.
#include <atomic>
#include <chrono>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_work_clock.h"
#include "json/value.h"
#include "query/eval/execution.h"
#include "query/eval/predicate.h"
#include "query/eval/projection.h"
#include "query/eval/row_finder.h"

namespace orrery::query {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

PreparedQueryPtr budget_query(const std::string& text) {
  auto query = PreparedQuery::prepare(text, {}, {});
  EXPECT_TRUE(query) << query.error().message();
  return query ? *query : nullptr;
}

/// `each` with the numbers below `count` in it, one after the other.
std::string repeated(std::size_t count, const std::string& each, const std::string& separator) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) text += separator;
    text += fmt::format(fmt::runtime(each), i);
  }
  return text;
}

/// A list of ten thousand numbers, a string of a hundred thousand letters, an object with a
/// thousand members.
const std::string& large_document() {
  static const std::string document =
      fmt::format(R"({{"id":"1","n":1,"list":[{}],"s":"{}","o":{{{}}},"words":"{}"}})",
                  repeated(10'000, "{}", ","), std::string(100'000, 'a'),
                  repeated(1000, R"("m{}":1)", ","), repeated(10'000, "word{}", " "));
  return document;
}

/// Conditions that take much longer than it takes to read the document once.
std::vector<std::string> expensive_conditions() {
  return {
      "EXISTS(SELECT 1 FROM a IN c.list JOIN b IN c.list WHERE a + b < 0)",
      "ARRAY_LENGTH(ARRAY(SELECT VALUE a FROM a IN c.list JOIN (SELECT VALUE c.s) b)) < 0",
      fmt::format("c.s LIKE '%_{}b%'", std::string(2000, 'a')),
      fmt::format("ARRAY_CONTAINS_ANY(c.list, {})", repeated(3000, "-1{}", ",")),
      fmt::format("ARRAY_CONTAINS_ALL(c.list, {})", repeated(3000, "{}", ",")),
      "ARRAY_CONTAINS([c.o, c.o, c.o, c.o, c.o, c.o], c.o, true) AND "
      "ARRAY_CONTAINS([c.o, c.o, c.o, c.o, c.o, c.o, {'x': 1}], SetUnion(c.list, c.list), true)",
      fmt::format("CONTAINS_ANY_CS(c.s, {})", repeated(1000, "'b{}'", ",")),
      "ARRAY_LENGTH(SETUNION(c.list, c.list)) < 0",
      "SETEQUAL(c.list, c.list) AND false",
      "REGEXMATCH(REGEXREPLACEALL(c.s, 'a', 'b'), 'c')",
      "ARRAY_LENGTH(REGEXEXTRACTALL(c.s, 'a')) < 0",
      repeated(300, "c.list = c.list", " AND ") + " AND false",
      fmt::format("c.list IN ({})", repeated(1000, "[{}]", ",")),
      fmt::format("c.n + {} < 0", repeated(2000, "LENGTH(c.s)", " + ")),
      fmt::format("(c.x ?? {}) = 1", repeated(1000, "c.list[{} - 1000000 + c.n]", " ?? ")),
      fmt::format("FULLTEXTCONTAINSANY(c.words, {})", repeated(500, "'other{}'", ",")),
  };
}

class ExecutionBudgetTest : public testing::Test {
 protected:
  /// Each look at the clock is a millisecond after the last one.
  ExecutionBudgetTest() { clock.pace = 1ms; }

  Error failure_of(const std::string& text) {
    Execution execution(budget_query(text), {});
    WorkBudget work({.item_time_max = 50ms}, cancellation, clock);
    execution.work_with(&work);
    execution.begin_slice({});
    execution.take(large_document(), DocumentNumber{1});
    const auto finished = execution.finish();
    EXPECT_FALSE(finished) << text.substr(0, 200);
    return finished ? Error(ErrorCode::Internal, "") : finished.error();
  }

  ManualWorkClock clock;
  Cancellation cancellation;
};

TEST_F(ExecutionBudgetTest, OneDocumentMayTakeOnlySoLong) {
  for (const std::string& condition : expensive_conditions()) {
    const Error error = failure_of("SELECT VALUE c.id FROM c WHERE " + condition);
    EXPECT_EQ(error.code(), ErrorCode::BadRequest) << condition.substr(0, 200);
    EXPECT_THAT(error.message(), HasSubstr("more than 50 ms of processor time"));
  }
}

TEST_F(ExecutionBudgetTest, SoMayWhatIsShownOfItAndSortedAndGroupedBy) {
  for (const auto* text :
       {"SELECT VALUE {} FROM c", "SELECT {} AS x FROM c", "SELECT DISTINCT VALUE {} FROM c",
        "SELECT VALUE {} FROM c ORDER BY c.id", "SELECT VALUE COUNT({}) FROM c",
        "SELECT VALUE COUNT(1) FROM c GROUP BY {}",
        "SELECT VALUE c.n FROM c JOIN (SELECT VALUE {}) x",
        "SELECT VALUE x FROM (SELECT DISTINCT VALUE {} FROM c) x"}) {
    const Error error =
        failure_of(fmt::format(fmt::runtime(text), "ARRAY_LENGTH(SETUNION(c.list, c.list))"));
    EXPECT_THAT(error.message(), HasSubstr("of processor time")) << text;
  }
}

TEST_F(ExecutionBudgetTest, ManyDocumentsMayTakeLongerThanOne) {
  Execution execution(budget_query("SELECT VALUE ARRAY_LENGTH(c.list) FROM c"), {});
  WorkBudget work({.item_time_max = 50ms}, nullptr, clock);
  execution.work_with(&work);
  execution.begin_slice({});
  for (std::uint64_t i = 1; i <= 200; ++i) execution.take(large_document(), DocumentNumber{i});
  EXPECT_TRUE(execution.finish());
  EXPECT_EQ(execution.count(), 200U);
}

TEST_F(ExecutionBudgetTest, ADocumentIsGivenUpWhenTheClientHasGone) {
  cancellation = std::make_shared<std::atomic<bool>>(true);
  const Error error = failure_of("SELECT VALUE c.id FROM c WHERE " + expensive_conditions()[0]);
  EXPECT_EQ(error.code(), ErrorCode::ClientGone);
}

TEST_F(ExecutionBudgetTest, WhatIsConstantIsNotComputedForLongBeforeTheQueryRuns) {
  const auto query = PreparedQuery::prepare(
      fmt::format("SELECT VALUE c.id FROM c WHERE CONCAT({}) LIKE '%_{}b%'",
                  repeated(600, "REPLICATE('a', 10000)", ","), std::string(1000, 'a')),
      {}, {});
  ASSERT_TRUE(query);
  Execution execution(*query, {});
  WorkBudget work({.item_time_max = 50ms}, nullptr, clock);
  execution.work_with(&work);
  execution.begin_slice({});
  execution.take(R"({"id":"1"})", DocumentNumber{1});
  EXPECT_FALSE(execution.finish());
}

TEST_F(ExecutionBudgetTest, ARowFinderLeavesToTheQueryWhatTakesTooLong) {
  const auto query = budget_query("SELECT VALUE 1 FROM c WHERE " + expensive_conditions()[0]);
  WorkBudget work({.item_time_max = 50ms}, nullptr, clock);
  RowFinder rows(*query, work);
  EXPECT_TRUE(rows.finds_row_in(large_document()));
  EXPECT_TRUE(work.has_stopped());
  EXPECT_TRUE(rows.finds_row_in(R"({"id":"1","list":[]})")) << "nothing is known any more";
}

TEST_F(ExecutionBudgetTest, FiltersAndProjectionsOfAFeedAreBounded) {
  const std::string_view alias = "c";
  const auto filter = Predicate::parse(expensive_conditions()[0], {&alias, 1});
  ASSERT_TRUE(filter);
  WorkBudget filtering({.item_time_max = 50ms}, nullptr, clock);
  const auto document = json::Value::of_checked(large_document());
  const auto holds = filter->is_true_of(document, &filtering);
  ASSERT_FALSE(holds);
  EXPECT_THAT(holds.error().message(), HasSubstr("of processor time"));

  const auto shown = Projection::parse("ARRAY_LENGTH(SETUNION(c.list, c.list)) AS n", {&alias, 1});
  ASSERT_TRUE(shown);
  WorkBudget showing({.item_time_max = 50ms}, nullptr, clock);
  std::string out;
  EXPECT_FALSE(shown->show(out, {&document, 1}, &showing));
  EXPECT_EQ(out, "");
}

}  // namespace
}  // namespace orrery::query
