#include "executor/page_run.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_work_clock.h"
#include "catalog/test_catalog.h"
#include "executor/parallel_scan.h"
#include "executor/suspended_queries.h"
#include "executor/test_query.h"

namespace orrery::executor {
namespace {

using testing::HasSubstr;

constexpr int kDocuments = 500;

/// Pages that have no time at all: each ends as soon as the clock is looked at.
class QueryPageRunTest : public testing::Test {
 protected:
  QueryPageRunTest() {
    environment.suspended = &suspended;
    for (int i = 0; i < kDocuments; ++i) {
      partition::Transaction transaction = partition::transaction_of(
          {{.id = std::to_string(i), .members = "\"n\":" + std::to_string(i % 7)}});
      EXPECT_TRUE(range().partition->submit_and_wait(std::move(transaction)));
    }
  }
  ~QueryPageRunTest() override { suspended.stop(); }

  const catalog::Range& range() const { return container->ranges.all()[0]; }

  QueryJob job_of(const std::string& text) const { return job_over(container, text); }

  Result<QueryPage> run(const QueryJob& job) {
    WorkBudget work({.deadline = deadline});
    return run_query_page(environment, job, work);
  }

  /// All rows; how many pages it took is in `pages`.
  std::string rows_of(QueryJob job) {
    std::string rows;
    for (pages = 1;; ++pages) {
      auto page = run(job);
      EXPECT_TRUE(page) << page.error().message();
      if (!page) return "";
      if (page->count > 0 && !rows.empty()) rows += ',';
      rows += page->rows;
      if (!page->next) return rows;
      job.from = *page->next;
      if (forgets_between_pages) {
        suspended.stop();
        deadline = kNever;
      }
    }
  }

  catalog::TestCatalog catalog;
  boost::asio::thread_pool blocking{1};
  BackgroundPool scans{1, [] { return false; }};
  Environment environment{catalog.home.store(), catalog.home.clock()};
  SuspendedQueries suspended{blocking};
  catalog::ContainerPtr container = catalog.create_container(
      "c", R"(,"partitionKey":{"paths":["/pk"],"kind":"Hash","version":2})");
  static constexpr auto kNever = WorkLimits::TimePoint::max();
  WorkLimits::TimePoint deadline = WorkLimits::TimePoint::min();  // Of each page.
  bool forgets_between_pages = false;
  int pages = 0;
};

TEST_F(QueryPageRunTest, RowsThatComeOneByOneAreShownWhenTheTimeIsUp) {
  const std::string rows = rows_of(job_of("SELECT VALUE c.id FROM c"));
  EXPECT_THAT(rows, HasSubstr(R"("0","1","2")"));
  EXPECT_THAT(rows, HasSubstr(R"("499")"));
  EXPECT_GT(pages, 5);
}

TEST_F(QueryPageRunTest, WhatMustSeeAllDocumentsGoesOnWhereItWas) {
  EXPECT_EQ(rows_of(job_of("SELECT VALUE COUNT(1) FROM c")), "500");
  EXPECT_GT(pages, 5);
  EXPECT_EQ(rows_of(job_of("SELECT VALUE c.n FROM c GROUP BY c.n")), "0,1,2,3,4,5,6");
  EXPECT_GT(pages, 5);
  EXPECT_EQ(rows_of(job_of("SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC")), "6,6,6");
  EXPECT_GT(pages, 5);
}

TEST_F(QueryPageRunTest, WhatIsNoLongerKeptBeginsAgain) {
  forgets_between_pages = true;
  EXPECT_EQ(rows_of(job_of("SELECT VALUE COUNT(1) FROM c")), "500");
  EXPECT_EQ(pages, 2);
}

TEST_F(QueryPageRunTest, NothingIsLaidAsideWhereNobodyKeepsIt) {
  environment.suspended = nullptr;
  EXPECT_EQ(rows_of(job_of("SELECT VALUE COUNT(1) FROM c")), "500");
  EXPECT_EQ(pages, 1);
}

TEST_F(QueryPageRunTest, APageWithoutRowsGoesOnWhereItsTimeWasUp) {
  const ScanHelpers ahead{[&](BackgroundPool::Work work) { scans.post(std::move(work)); }, 2, 100,
                          64};
  for (const ScanHelpers* each : {static_cast<const ScanHelpers*>(nullptr), &ahead}) {
    environment.scan_helpers = each;
    EXPECT_EQ(rows_of(job_of("SELECT VALUE c.id FROM c WHERE c.n > 6")), "");
    EXPECT_GT(pages, 5);
    EXPECT_EQ(rows_of(job_of("SELECT VALUE c.id FROM c WHERE c.id IN ('13', '300', '499')")),
              R"("13","300","499")");
    EXPECT_EQ(rows_of(job_of("SELECT VALUE COUNT(1) FROM c WHERE c.id < '2'")), "112");
    EXPECT_GT(pages, 5);
    EXPECT_EQ(rows_of(job_of("SELECT DISTINCT VALUE c.n FROM c WHERE c.id IN ('13', '300')")), "6");
  }
}

TEST_F(QueryPageRunTest, WhatIsReadAheadIsCountedAsRead) {
  const ScanHelpers ahead{[&](BackgroundPool::Work work) { scans.post(std::move(work)); }, 2, 100,
                          64};
  QueryJob job = job_of("SELECT VALUE c.id FROM c WHERE c.id = '13'");
  deadline = kNever;
  const auto alone = run(job);
  environment.scan_helpers = &ahead;
  const auto together = run(job);
  ASSERT_TRUE(alone && together);
  EXPECT_EQ(alone->stats.documents, 500U);
  EXPECT_EQ(together->stats.documents, 500U);
  EXPECT_EQ(together->stats.document_bytes, alone->stats.document_bytes);
}

TEST_F(QueryPageRunTest, AShortPageOfWhatIsInMemoryIsHadAtOnce) {
  QueryJob job = job_of("SELECT TOP 20 VALUE c.n FROM c");
  const auto page = try_query_page(environment, job);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->count, 20U);
  deadline = kNever;
  EXPECT_EQ(page->rows, run(job)->rows);
}

TEST_F(QueryPageRunTest, ALongPageIsNot) {
  EXPECT_FALSE(try_query_page(environment, job_of("SELECT VALUE c.n FROM c")));
  EXPECT_FALSE(try_query_page(environment, job_of("SELECT TOP 1 VALUE c.n FROM c WHERE c.n = 9")));
  QueryJob job = job_of("SELECT TOP 20 VALUE c.n FROM c");
  job.from.suspended = 1;
  EXPECT_FALSE(try_query_page(environment, job)) << "another thread has begun it";
  EXPECT_FALSE(try_query_page(environment, job_of("SELECT DISTINCT TOP 1 VALUE c.n FROM c")));
  job = job_of("SELECT TOP 20 VALUE c.n FROM c");
  job.scope.ranges.assign(5, &range());
  EXPECT_FALSE(try_query_page(environment, job)) << "too many ranges";
}

TEST_F(QueryPageRunTest, WhatWentWrongIsToldByTheOtherWay) {
  EXPECT_FALSE(try_query_page(environment, job_of("SELECT TOP 1 VALUE 1 / 0 FROM c")));
}

TEST_F(QueryPageRunTest, TheFirstDocumentAloneMayUseUpThePage) {
  ManualWorkClock clock;
  clock.pace = std::chrono::milliseconds(1);
  QueryJob job = job_of(
      "SELECT VALUE c.id FROM c WHERE "
      "ARRAY_LENGTH(REGEXEXTRACTALL(CONCAT(REPLICATE('a', 10000), c.id), 'a')) > 0");
  WorkBudget work({.deadline = clock.now() + std::chrono::milliseconds(20),
                   .item_time_max = std::chrono::seconds(10)},
                  nullptr, clock);
  const auto page = run_query_page(environment, job, work);
  ASSERT_TRUE(page) << page.error().message();
  EXPECT_GE(page->count, 1U);
  EXPECT_LE(page->count, 2U);
  EXPECT_TRUE(page->next);
}

TEST_F(QueryPageRunTest, WhatDistinctHasToSeeAgainIsNotSeenForLongerThanAPage) {
  QueryJob job = job_of("SELECT DISTINCT VALUE c.id FROM c");
  job.limits.rows_max = 100;
  deadline = kNever;
  auto page = run(job);
  ASSERT_TRUE(page && page->next);
  job.from = *page->next;
  deadline = WorkLimits::TimePoint::min();
  page = run(job);
  ASSERT_TRUE(page) << page.error().message();
  EXPECT_EQ(page->count, 0U);
  ASSERT_TRUE(page->next);
  EXPECT_NE(page->next->suspended, 0U);
  job.from = *page->next;
  deadline = kNever;
  page = run(job);
  ASSERT_TRUE(page) << page.error().message();
  EXPECT_THAT(page->rows, testing::StartsWith(R"("100","101")"));
}

TEST_F(QueryPageRunTest, AQueryEndsWhenItsClientHasGone) {
  for (const auto* text : {"SELECT VALUE COUNT(1) FROM c", "SELECT VALUE c.id FROM c",
                           "SELECT TOP 1 VALUE c.n FROM c ORDER BY c.n"}) {
    QueryJob job = job_of(text);
    const auto gone = std::make_shared<std::atomic<bool>>(true);
    WorkBudget work({}, gone);
    const auto page = run_query_page(environment, job, work);
    ASSERT_FALSE(page) << text;
    EXPECT_EQ(page.error().code(), ErrorCode::ClientGone);
  }
}

}  // namespace
}  // namespace orrery::executor
