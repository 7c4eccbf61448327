// Expiry entries: written with versions, built for what was there before, and purged.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "partition/expiry.h"
#include "partition/writer/stage.h"
#include "partition/writer/test_stage.h"

namespace orrery::partition {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

using Kind = Write::Kind;
using Expiry = storage::RetentionSettings::Expiry;

class StageExpiryTest : public StageTest {
 protected:
  StageExpiryTest() { rules.default_ttl = 60; }

  std::size_t entries() {
    commit();
    return audit(*store, kPartition).expiry_entries;
  }
  Result<Committed> build() { return stage_all({.work = ExpiryBuildStep{}}); }
  void build_all() {
    for (bool more = true; more;) {
      const auto built = build();
      ASSERT_TRUE(built);
      more = built->more;
      commit();
    }
    ASSERT_EQ(stage.head().retention.expiry, Expiry::Complete);
  }
  DueQueue::Due find_due() {
    const auto snapshot = store->snapshot();
    auto due = queue.find(*snapshot, kPartition, rules.default_ttl, clock.unix_seconds());
    EXPECT_TRUE(due);
    return due ? *due : DueQueue::Due{};
  }
  Result<Committed> purge(const std::vector<PurgeCandidate>& candidates) {
    return stage_all({.rules = rules, .work = ExpiryPurge{candidates}});
  }
  /// One step of a purge, committed; how many documents it took.
  std::size_t purge_step() {
    const auto due = find_due();
    if (due.candidates.empty()) return 0;
    const auto purged = purge(due.candidates);
    EXPECT_TRUE(purged);
    commit();
    queue.passed(due.candidates);
    return purged ? purged->tidied : 0;
  }

  DueQueue queue;
};

// ── entries ──────────────────────────────────────────────────────────────────────────────────────

TEST_F(StageExpiryTest, EntriesAreWrittenOnlyWhileTheyAreKept) {
  write({.id = "a", .ttl = 5});
  EXPECT_EQ(entries(), 0u);
}

TEST_F(StageExpiryTest, EachVersionThatCanExpireHasOneEntry) {
  keep_expiry(true);
  build_all();
  write({.id = "by default"});
  write({.id = "own", .ttl = 5});
  write({.id = "never", .ttl = -1});
  EXPECT_EQ(entries(), 2u);
  write({.kind = Kind::Replace, .id = "by default", .ttl = 9});
  write({.kind = Kind::Replace, .id = "own", .new_id = "renamed"});
  EXPECT_EQ(entries(), 2u);
  ASSERT_TRUE(stage_writes({{.id = "x"},
                            {.kind = Kind::Replace, .id = "x"},
                            {.id = "y"},
                            {.kind = Kind::Delete, .id = "y"}}));
  EXPECT_EQ(entries(), 3u);
  write({.kind = Kind::Replace, .id = "x", .ttl = -1});
  ASSERT_TRUE(delete_all("p"));
  EXPECT_EQ(entries(), 0u);
}

TEST_F(StageExpiryTest, SwitchingThemOffTakesThemAway) {
  keep_expiry(true);
  build_all();
  write({.id = "a"});
  EXPECT_EQ(entries(), 1u);
  write({.id = "b"});  // Staged with its entry, and not committed yet.
  keep_expiry(false);
  write({.id = "c"});
  EXPECT_EQ(entries(), 0u);
}

// ── building ─────────────────────────────────────────────────────────────────────────────────────

TEST_F(StageExpiryTest, WhatWasThereBeforeGetsItsEntriesInSteps) {
  std::vector<WriteOf> writes;
  for (int i = 0; i < 2500; ++i) writes.push_back({.id = std::to_string(i)});
  ASSERT_TRUE(stage_writes(writes));
  commit();
  write({.id = "staged"});
  write({.kind = Kind::Replace, .id = "1"});
  write({.kind = Kind::Delete, .id = "2"});
  const Lsn lsn = stage.head().lsn;
  keep_expiry(true);
  EXPECT_EQ(stage.head().retention.expiry, Expiry::Building);
  // Staged writes are not committed yet when the first step walks.
  ASSERT_TRUE(build()->more);
  write({.kind = Kind::Replace, .id = "3"});
  write({.kind = Kind::Delete, .id = "999"});
  write({.id = "new"});
  build_all();
  EXPECT_EQ(stage.head().lsn, Lsn{lsn.value + 3}) << "building takes no LSN";
  EXPECT_EQ(entries(), 2500u);
}

TEST_F(StageExpiryTest, ABuildThatWasInterruptedIsDoneAnew) {
  std::vector<WriteOf> writes;
  for (int i = 0; i < 2500; ++i) writes.push_back({.id = std::to_string(i)});
  ASSERT_TRUE(stage_writes(writes));
  keep_expiry(true);
  commit();
  ASSERT_TRUE(build()->more);
  commit();
  restart();
  EXPECT_EQ(stage.head().retention.expiry, Expiry::Building);
  ASSERT_TRUE(build()->more) << "from the beginning";
  fail_commit();
  build_all();
  EXPECT_EQ(entries(), 2500u);
  EXPECT_FALSE(build()->more);
  EXPECT_FALSE(stage.staged_anything());
}

TEST_F(StageExpiryTest, SwitchingOffAndOnAgainBuildsAnew) {
  write({.id = "a"});
  keep_expiry(true);
  build_all();
  keep_expiry(true);
  EXPECT_EQ(stage.head().retention.expiry, Expiry::Complete) << "they are there already";
  EXPECT_FALSE(stage.staged_anything());
  keep_expiry(false);
  keep_expiry(true);
  EXPECT_EQ(stage.head().retention.expiry, Expiry::Building);
  build_all();
  EXPECT_EQ(entries(), 1u);
}

// ── what is due ──────────────────────────────────────────────────────────────────────────────────

TEST_F(StageExpiryTest, WhatIsDueIsFoundAndWhenTheNextWillBe) {
  keep_expiry(true);
  build_all();
  const UnixSeconds begin = clock.unix_seconds();
  EXPECT_EQ(find_due().next, std::nullopt);
  write({.id = "default"});
  write({.id = "short", .ttl = 10});
  write({.id = "long", .ttl = 100});
  write({.id = "never", .ttl = -1});
  commit();
  EXPECT_THAT(find_due().candidates, IsEmpty());
  EXPECT_EQ(find_due().next, begin + 10);
  clock.advance(10s);
  EXPECT_EQ(find_due().candidates.size(), 1u);
  EXPECT_EQ(find_due().next, begin + 60);
  clock.advance(90s);
  EXPECT_EQ(find_due().candidates.size(), 3u);
  rules.default_ttl = -1;
  EXPECT_EQ(find_due().candidates.size(), 2u) << "without a default only their own TTL counts";
  rules.default_ttl = std::nullopt;
  EXPECT_THAT(find_due().candidates, IsEmpty()) << "TTL is off";
  rules.default_ttl = 1000;
  EXPECT_EQ(find_due().next, begin + 1000) << "a new default moves no entry";
}

// ── purging ──────────────────────────────────────────────────────────────────────────────────────

TEST_F(StageExpiryTest, WhatHasExpiredIsPurgedUnderOneLsn) {
  rules = rules_with_unique_keys(60);
  keep_history(storage::RetentionSettings::History::All);
  keep_expiry(true);
  build_all();
  write({.id = "a", .unique = {"1"}});
  write({.id = "b", .partition_key = "q", .ttl = 5, .unique = {"1"}});
  write({.id = "c", .ttl = -1, .unique = {"2"}});
  commit();
  clock.advance(60s);
  const Lsn lsn = stage.head().lsn;
  EXPECT_EQ(purge_step(), 2u);
  EXPECT_EQ(stage.head().lsn, next(lsn));
  EXPECT_THAT(stored_ids("p"), ElementsAre("c"));
  EXPECT_THAT(stored_ids("q"), IsEmpty());
  EXPECT_EQ(purge_step(), 0u);
  EXPECT_EQ(attempt({.id = "d", .unique = {"1"}}), "ok");
  const auto audited = audit(*store, kPartition);
  ASSERT_EQ(audited.history.size(), 5u);
  EXPECT_EQ(audited.history[3].second.operation, storage::HistoryRecord::Operation::TtlDelete);
  EXPECT_EQ(audited.history[4].second.operation, storage::HistoryRecord::Operation::TtlDelete);
  EXPECT_EQ(audited.history[3].first, (storage::LogPosition{next(lsn), 0}));
  EXPECT_EQ(audited.history[4].first, (storage::LogPosition{next(lsn), 1}));
}

TEST_F(StageExpiryTest, APurgeIsBounded) {
  keep_expiry(true);
  build_all();
  std::vector<WriteOf> writes;
  for (std::size_t i = 0; i < kPurgeDocumentsMax + 50; ++i)
    writes.push_back({.id = std::to_string(i)});
  ASSERT_TRUE(stage_writes(writes));
  commit();
  clock.advance(60s);
  const auto due = find_due();
  EXPECT_EQ(due.candidates.size(), kPurgeDocumentsMax);
  EXPECT_LE(due.next, clock.unix_seconds()) << "there are more";
  EXPECT_EQ(purge_step(), kPurgeDocumentsMax);
  EXPECT_EQ(purge_step(), 50u);
  EXPECT_EQ(purge_step(), 0u);
  EXPECT_EQ(entries(), 0u);
}

TEST_F(StageExpiryTest, ADocumentThatWasChangedSinceItWasFoundIsNotPurged) {
  keep_expiry(true);
  build_all();
  write({.id = "replaced", .ttl = 5});
  write({.id = "deleted", .ttl = 5});
  write({.id = "there", .ttl = 5});
  commit();
  clock.advance(5s);
  const auto due = find_due();
  ASSERT_EQ(due.candidates.size(), 3u);
  write({.id = "replaced", .ttl = -1});
  rules.default_ttl = std::nullopt;
  write({.kind = Kind::Delete, .id = "deleted"});
  rules.default_ttl = 60;
  const auto staged = purge(due.candidates);
  ASSERT_TRUE(staged);
  EXPECT_EQ(staged->tidied, 1u);
  EXPECT_TRUE(stage.outcome_rests_on_staged());
  commit();
  EXPECT_THAT(stored_ids(), ElementsAre("replaced"));
  // The same once more, when all of it is committed.
  const Lsn lsn = stage.head().lsn;
  const auto again = purge(due.candidates);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->tidied, 0u);
  EXPECT_EQ(stage.head().lsn, lsn) << "collecting takes no LSN";
  commit();
  EXPECT_THAT(stored_ids(), ElementsAre("replaced"));
}

TEST_F(StageExpiryTest, WhatNoLongerExpiresIsNotPurged) {
  keep_expiry(true);
  build_all();
  write({.id = "a"});
  commit();
  clock.advance(60s);
  const auto due = find_due();
  rules.default_ttl = -1;
  const auto purged = purge(due.candidates);
  ASSERT_TRUE(purged);
  EXPECT_EQ(purged->tidied, 0u);
  EXPECT_FALSE(stage.staged_anything());
  keep_expiry(false);
  rules.default_ttl = 60;
  EXPECT_EQ(purge(due.candidates)->tidied, 0u) << "switched off in the meantime";
  commit();
  EXPECT_THAT(stored_ids(), ElementsAre("a"));
}

TEST_F(StageExpiryTest, StaleEntriesAreCollected) {
  keep_expiry(true);
  build_all();
  const storage::ExpiryEntry stale{storage::ExpiryEntry::Kind::Own, 7, {Lsn{1}, 9}};
  batch.put(storage::Family::Expiry, storage::expiry_key(kPartition, stale), {});
  EXPECT_EQ(entries(), 1u);
  EXPECT_EQ(purge_step(), 0u);
  EXPECT_EQ(entries(), 0u);
}

TEST_F(StageExpiryTest, APurgeThatWasNotStoredIsDoneAgainAlsoAfterARestart) {
  keep_expiry(true);
  build_all();
  write({.id = "a", .ttl = 5});
  commit();
  clock.advance(5s);
  ASSERT_EQ(purge(find_due().candidates)->tidied, 1u);
  fail_commit();
  EXPECT_EQ(find_due().candidates.size(), 1u);
  restart();
  EXPECT_EQ(purge_step(), 1u);
  restart();
  EXPECT_THAT(stored_ids(), IsEmpty());
  EXPECT_EQ(entries(), 0u);
}

TEST_F(StageExpiryTest, AQueueGoesOnBehindWhatItHasPassedAndLooksAgainWhenTimeGoesBack) {
  keep_expiry(true);
  build_all();
  write({.id = "a", .ttl = 100});
  commit();
  clock.advance(100s);
  EXPECT_EQ(purge_step(), 1u);
  write({.id = "b", .ttl = 1});
  commit();
  clock.advance(1s);
  EXPECT_EQ(purge_step(), 1u);
  // An entry before what was passed, as a clock that is set back would make one.
  const storage::ExpiryEntry early{storage::ExpiryEntry::Kind::Own, 7, {Lsn{1}, 9}};
  batch.put(storage::Family::Expiry, storage::expiry_key(kPartition, early), {});
  commit();
  clock.advance(-10s);
  EXPECT_EQ(find_due().candidates.size(), 1u);
  purge_step();
}

}  // namespace
}  // namespace orrery::partition
