#include "executor/parallel_scan.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "executor/access_planner.h"

#include "base/background_pool.h"
#include "partition/writer/test_stage.h"

namespace orrery::executor {
namespace {

using partition::Write;
using testing::ElementsAreArray;

using partition::kPartition;

constexpr std::string_view kFew = "SELECT VALUE c.id FROM c WHERE c.n % 97 = 3";

class ParallelScanTest : public partition::StageTest {
 protected:
  /// Documents "0", "1", … with the same numbers in `n`; every `step`th of them.
  void fill(int count, int step = 1, Write::Kind kind = Write::Kind::Create) {
    std::vector<partition::WriteOf> writes;
    for (int i = 0; i < count; i += step) {
      writes.push_back(
          {.kind = kind, .id = std::to_string(i), .members = "\"n\":" + std::to_string(i)});
      if (writes.size() < 50 && i + step < count) continue;
      ASSERT_TRUE(stage_writes(std::exchange(writes, {})));
      commit();
    }
  }

  struct Walked {
    std::vector<std::string> ids;
    std::size_t pauses = 0;
    SourceReport report;
  };
  /// With `ahead`, or alone.
  Walked walk(std::string_view text, const ScanHelpers* ahead, DocumentNumber after = {}) {
    const auto query = query::PreparedQuery::prepare(std::string(text), {}, {}).value();
    const auto snapshot = store->snapshot();
    const SourceScope scope{.snapshot = *snapshot,
                            .partition = kPartition,
                            .documents = stage.head().documents,
                            .filter = {},
                            .after = after,
                            .from_key = {},
                            .choice = AccessChoice::Scan,
                            .helpers = ahead};
    const auto walk = open_source(scope, *query, query::access_of(*query)).value();
    Walked walked;
    DocumentNumber last;
    while (walk->next()) {
      if (walk->is_in_order()) {
        EXPECT_GE(walk->number(), last);
        last = walk->number();
      }
      if (walk->is_pause()) {
        ++walked.pauses;
        continue;
      }
      const auto document = walk->text();
      walked.ids.emplace_back(document.substr(7, document.find('"', 7) - 7));
    }
    EXPECT_TRUE(walk->status());
    walked.report = walk->report();
    return walked;
  }

  /// The wanted documents, in the order of a scan without helpers.
  std::vector<std::string> wanted(std::string_view text, bool (*is_wanted)(int)) {
    std::vector<std::string> ids = walk(text, nullptr).ids;
    std::erase_if(ids, [&](const std::string& id) { return !is_wanted(std::stoi(id)); });
    return ids;
  }
  static bool is_one_of_few(int n) { return n % 97 == 3; }

  BackgroundPool pool_{3, [] { return false; }};
  const ScanHelpers ahead_{[this](BackgroundPool::Work work) { pool_.post(std::move(work)); }, 3,
                           1000, 256};
};

TEST_F(ParallelScanTest, HandsOnWhatHasRowsInTheOrderOfTheScan) {
  fill(20'000);
  for (int step : {0, 3, 2}) {
    // In the order in which they were written, then reordered, then with gaps.
    if (step > 0) fill(20'000, step, step == 3 ? Write::Kind::Upsert : Write::Kind::Delete);
    for (const std::string_view text : {kFew, std::string_view("SELECT COUNT(1) FROM c WHERE "
                                                               "c.n % 97 = 3")}) {
      const auto walked = walk(text, &ahead_);
      EXPECT_THAT(walked.ids, ElementsAreArray(wanted(text, is_one_of_few))) << text << step;
      EXPECT_GT(walked.pauses, 20U);
      EXPECT_EQ(walked.report.documents_read, stage.head().documents);
      EXPECT_EQ(walked.report.documents_passed + walked.ids.size(), stage.head().documents);
      EXPECT_GT(walked.report.bytes_passed, 20 * walked.report.documents_passed);
    }
  }
}

TEST_F(ParallelScanTest, BeginsWhereItIsTold) {
  fill(5000);
  for (const bool is_reordered : {false, true}) {
    if (is_reordered) fill(5000, 7, Write::Kind::Upsert);
    const auto all = walk(kFew, &ahead_).ids;
    for (const std::uint64_t after : {1, 1000, 1017, 4990, 5000}) {
      std::vector<std::string> rest = all;
      std::erase_if(rest, [&](const auto& id) { return std::stoull(id) < after; });
      EXPECT_THAT(walk(kFew, &ahead_, DocumentNumber::make(partition::kRange, after)).ids,
                  ElementsAreArray(rest));
    }
  }
}

TEST_F(ParallelScanTest, GoesOnAloneWhereManyHaveRows) {
  fill(5000);
  const std::string_view text = "SELECT VALUE c.id FROM c WHERE c.n >= 1000 AND c.n % 2 = 0";
  const auto walked = walk(text, &ahead_);
  EXPECT_GE(walked.ids.size(), 2000U);
  EXPECT_LT(walked.ids.size(), 4500U) << "the first part was looked at ahead";
  EXPECT_EQ(walked.report.documents_read, 5000U);
  const auto is_wanted = [](int n) { return n >= 1000 && n % 2 == 0; };
  for (const auto& id : wanted(text, is_wanted)) EXPECT_THAT(walked.ids, testing::Contains(id));
}

TEST_F(ParallelScanTest, FewDocumentsAndQueriesForAllAreReadAsEver) {
  fill(1500);
  EXPECT_EQ(walk("SELECT * FROM c", &ahead_).pauses, 0U);
  EXPECT_GT(walk(kFew, &ahead_).pauses, 0U);
  ScanHelpers others = ahead_;
  others.documents_min = 2000;
  EXPECT_EQ(walk(kFew, &others).pauses, 0U);
  others = ahead_;
  others.helpers = 0;
  EXPECT_EQ(walk(kFew, &others).pauses, 0U);
}

TEST_F(ParallelScanTest, WaitsForNobodyWhoIsNotAtWork) {
  fill(5000);
  std::vector<BackgroundPool::Work> late;
  ScanHelpers others = ahead_;
  others.post = [&](BackgroundPool::Work work) { late.push_back(std::move(work)); };
  EXPECT_THAT(walk(kFew, &others).ids, ElementsAreArray(wanted(kFew, is_one_of_few)));
  ASSERT_EQ(late.size(), 3U);
  // The snapshot is gone by now.
  for (auto& work : late) work();
}

TEST_F(ParallelScanTest, RowsWithinDocumentsCount) {
  fill(3000);
  const std::string_view text =
      "SELECT VALUE c.id FROM c JOIN (SELECT VALUE x FROM x IN (SELECT VALUE [c.n, c.n + 1])) x "
      "WHERE x % 97 = 3";
  const auto is_wanted = [](int n) { return n % 97 == 3 || n % 97 == 2; };
  EXPECT_THAT(walk(text, &ahead_).ids, ElementsAreArray(wanted(text, is_wanted)));
}

TEST_F(ParallelScanTest, MayBeLeftInTheMiddle) {
  fill(10'000);
  const auto query = query::PreparedQuery::prepare(std::string(kFew), {}, {}).value();
  for (std::size_t steps = 0; steps < 60; steps += 3) {
    const auto snapshot = store->snapshot();
    const SourceScope scope{.snapshot = *snapshot,
                            .partition = kPartition,
                            .documents = stage.head().documents,
                            .filter = {},
                            .after = {},
                            .from_key = {},
                            .choice = AccessChoice::Scan,
                            .helpers = &ahead_};
    const auto walk = open_source(scope, *query, query::access_of(*query)).value();
    for (std::size_t i = 0; i < steps; ++i) ASSERT_TRUE(walk->next());
  }
}

}  // namespace
}  // namespace orrery::executor
