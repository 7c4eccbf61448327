#include "executor/rank.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_work_clock.h"
#include "catalog/test_catalog.h"
#include "executor/suspended_queries.h"
#include "executor/test_query.h"

namespace orrery::executor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Documents 0 to 9: the more often the word stands in one, the better. That with all of them is 9.
constexpr int kRankDocuments = 10;
constexpr const auto* kBest = "SELECT VALUE c.id FROM c ORDER BY RANK FullTextScore(c.t, 'sun')";

class QueryRankTest : public testing::Test {
 protected:
  QueryRankTest() {
    environment.suspended = &suspended;
    for (int i = 0; i < kRankDocuments; ++i) put(i);
  }
  ~QueryRankTest() override { suspended.stop(); }

  const catalog::Range& range() const { return container->ranges.all()[0]; }

  void submit(partition::WriteOf write) {
    ASSERT_TRUE(range().partition->submit_and_wait(partition::transaction_of({std::move(write)})));
  }
  void put(int number) {
    std::string text;
    for (int i = 0; i < kRankDocuments; ++i) text += i < number ? "sun " : "moon ";
    submit({.id = std::to_string(number),
            .members = R"("t":")" + text + R"(","n":)" + std::to_string(number) +
                       R"(,"parts":[{"v":[0,1],"x":"far"},{"v":[1,0],"x":"near"}])"});
  }

  QueryJob job_of(const std::string& text) const { return job_over(container, text); }

  Result<QueryPage> page_of(const QueryJob& job) {
    WorkBudget work({.deadline = deadline});
    return run_ranked_page(environment, job, {}, work);
  }

  /// The rows of each page.
  std::vector<std::string> pages_of(QueryJob job) {
    std::vector<std::string> pages;
    while (true) {
      auto page = page_of(job);
      EXPECT_TRUE(page) << page.error().message();
      if (!page) return pages;
      pages.push_back(page->rows);
      if (!page->next) return pages;
      job.from = *page->next;
      if (forgets_between_pages) suspended.stop();
    }
  }

  catalog::TestCatalog catalog;
  boost::asio::thread_pool blocking{1};
  BackgroundPool scans{1, [] { return false; }};
  Environment environment{catalog.home.store(), catalog.home.clock()};
  SuspendedQueries suspended{blocking};
  catalog::ContainerPtr container = catalog.create_container(
      "c", R"(,"partitionKey":{"paths":["/pk"],"kind":"Hash","version":2})");
  WorkLimits::TimePoint deadline = WorkLimits::TimePoint::max();  // Of each page.
  bool forgets_between_pages = false;
};

TEST_F(QueryRankTest, TheBestComeFirst) {
  EXPECT_THAT(pages_of(job_of(kBest)), ElementsAre(R"("9","8","7","6","5","4","3","2","1","0")"));
  EXPECT_THAT(pages_of(job_of("SELECT TOP 3 c.n FROM c ORDER BY RANK FullTextScore(c.t, 'sun')")),
              ElementsAre(R"({"n":9},{"n":8},{"n":7})"));
  EXPECT_THAT(pages_of(job_of("SELECT VALUE c.n FROM c WHERE c.n < 8 ORDER BY RANK "
                              "FullTextScore(c.t, 'sun') OFFSET 1 LIMIT 2")),
              ElementsAre("6,5"));
}

TEST_F(QueryRankTest, SeveralScoresCountTogether) {
  for (const auto* top : {"", "TOP 10 "}) {
    const std::string text = std::string("SELECT ") + top +
                             "VALUE c.n FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'moon'), "
                             "FullTextScore(c.t, 'sun'), [3, 1])";
    EXPECT_THAT(pages_of(job_of(text)), ElementsAre("0,1,2,3,4,5,6,7,8,9")) << text;
  }
}

TEST_F(QueryRankTest, OfSeveralRowsOfADocumentTheBestIsShown) {
  for (const auto* top : {"", "TOP 2 "}) {
    const std::string text = std::string("SELECT ") + top +
                             "VALUE p.x FROM c JOIN p IN c.parts WHERE c.n IN (7, 8) "
                             "ORDER BY RANK VectorDistance(p.v, [1, 0])";
    EXPECT_THAT(pages_of(job_of(text)), ElementsAre(R"("near","near")")) << text;
  }
}

TEST_F(QueryRankTest, PagesGoOnWhetherTheRankingWasKeptOrNot) {
  for (const bool forgets : {false, true}) {
    forgets_between_pages = forgets;
    QueryJob job = job_of(kBest);
    job.limits.rows_max = 4;
    EXPECT_THAT(pages_of(job),
                ElementsAre(R"("9","8","7","6")", R"("5","4","3","2")", R"("1","0")"));
  }
  environment.suspended = nullptr;
  QueryJob job = job_of(kBest);
  job.limits.rows_max = 5;
  EXPECT_THAT(pages_of(job), ElementsAre(R"("9","8","7","6","5")", R"("4","3","2","1","0")"));
}

TEST_F(QueryRankTest, APageEndsWhereItsBytesAreUsedUp) {
  QueryJob job = job_of("SELECT TOP 3 VALUE c.t FROM c ORDER BY RANK FullTextScore(c.t, 'sun')");
  job.limits.bytes_max = 1;
  EXPECT_EQ(pages_of(job).size(), 3U) << "one row always fits";
}

TEST_F(QueryRankTest, WhatIsGoneBetweenPagesIsNotShown) {
  QueryJob job = job_of(kBest);
  job.limits.rows_max = 4;
  auto page = page_of(job);
  ASSERT_TRUE(page && page->next);
  EXPECT_NE(page->next->suspended, 0U);
  submit({.kind = partition::Write::Kind::Delete, .id = "4"});
  job.from = *page->next;
  page = page_of(job);
  ASSERT_TRUE(page && page->next);
  EXPECT_EQ(page->rows, R"("5","3","2","1")");
  job.from = *page->next;
  EXPECT_EQ(page_of(job)->rows, R"("0")");
}

TEST_F(QueryRankTest, OnlyWhatIsShownIsMade) {
  QueryJob job = job_of("SELECT VALUE 1 / c.n FROM c ORDER BY RANK FullTextScore(c.t, 'sun')");
  job.limits.rows_max = 9;
  auto page = page_of(job);
  ASSERT_TRUE(page && page->next) << "the one with 0 is not among them";
  EXPECT_EQ(page->count, 9U);
  job.from = *page->next;
  page = page_of(job);
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code(), ErrorCode::NumberNotInJson);
}

TEST_F(QueryRankTest, MoreDocumentsThanFitIntoMemoryAreRefused) {
  for (const auto* text :
       {kBest, "SELECT TOP 10 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.t, 'sun')",
        "SELECT p.x FROM c JOIN p IN c.parts ORDER BY RANK VectorDistance(p.v, [1, 0])"}) {
    QueryJob job = job_of(text);
    job.limits.memory_max = 1000;
    const auto page = page_of(job);
    ASSERT_FALSE(page) << text;
    EXPECT_EQ(page.error().code(), ErrorCode::RequestTooLarge) << text;
    EXPECT_THAT(std::string(page.error().message()), HasSubstr("RANK")) << text;
  }
}

TEST_F(QueryRankTest, WhatIsLargeNeedNotFitIntoMemory) {
  QueryJob job = job_of("SELECT c.id, c.p FROM c ORDER BY RANK FullTextScore(c.t, 'sun')");
  for (int i = 0; i < 3; ++i) {
    submit({.id = "large" + std::to_string(i), .padding = 10'000, .members = R"("t":"sun")"});
  }
  job.limits.memory_max = 4000;
  const auto page = page_of(job);
  ASSERT_TRUE(page) << page.error().message();
  EXPECT_EQ(page->count, 13U);
  EXPECT_GT(page->rows.size(), 30'000U);
}

TEST_F(QueryRankTest, BeforeItsFirstRowItHasSlicesOfTimeLikeAnyOtherQuery) {
  deadline = WorkLimits::TimePoint::min();
  const auto pages = pages_of(job_of(kBest));
  EXPECT_GT(pages.size(), 20U) << "the statistics and the scores, a document at a time";
  std::string rows;
  for (const std::string& page : pages) rows += (rows.empty() || page.empty() ? "" : ",") + page;
  EXPECT_EQ(rows, R"("9","8","7","6","5","4","3","2","1","0")");
}

TEST_F(QueryRankTest, ADocumentThatTakesTooLongEndsIt) {
  ManualWorkClock clock;
  clock.pace = std::chrono::milliseconds(1);
  WorkBudget work({.item_time_max = std::chrono::milliseconds(20)}, nullptr, clock);
  const auto page = run_ranked_page(
      environment,
      job_of("SELECT VALUE c.id FROM c WHERE ARRAY_LENGTH(REGEXEXTRACTALL(CONCAT(REPLICATE('a', "
             "10000), c.id), 'a')) > 0 ORDER BY RANK FullTextScore(c.t, 'sun')"),
      {}, work);
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code(), ErrorCode::BadRequest);
}

TEST_F(QueryRankTest, ItEndsWhenItsClientHasGone) {
  const auto gone = std::make_shared<std::atomic<bool>>(true);
  WorkBudget work({}, gone);
  const auto page = run_ranked_page(environment, job_of(kBest), {}, work);
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code(), ErrorCode::ClientGone);
}

}  // namespace
}  // namespace orrery::executor
