// The history of a stage: how changes are recorded and trimmed.
#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "partition/history.h"
#include "partition/writer/stage.h"
#include "partition/writer/test_stage.h"

namespace orrery::partition {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

using Kind = Write::Kind;
using History = storage::RetentionSettings::History;
using PreviousImage = storage::RetentionSettings::PreviousImage;
using Operation = storage::HistoryRecord::Operation;

class StageHistoryTest : public StageTest {
 protected:
  /// The history: "2 create a", "5 ttl a <4", with the LSN before, and "+c", "+p" for texts.
  std::vector<std::string> history() {
    commit();
    std::vector<std::string> out;
    const auto audited = audit(*store, kPartition);
    for (const auto& [position, change] : audited.history) {
      constexpr std::string_view kNames[] = {"", "create", "replace", "delete", "ttl"};
      std::string line = fmt::format("{} {} {}", position.lsn.value,
                                     kNames[static_cast<int>(change.operation)], change.id);
      if (change.previous > Lsn{0}) line += fmt::format(" <{}", change.previous.value);
      if (!change.current_text.empty()) line += " +c";
      if (!change.previous_text.empty()) line += " +p";
      out.push_back(std::move(line));
    }
    return out;
  }
  Result<Committed> trim(HistoryTrim by) { return stage_all({.work = by}); }
  /// Until there is nothing more to let go; how many steps that took.
  int trim_all(HistoryTrim by) {
    for (int steps = 1;; ++steps) {
      const auto trimmed = trim(by);
      EXPECT_TRUE(trimmed);
      commit();
      if (!trimmed || !trimmed->more) return steps;
      if (steps > 1000) {
        ADD_FAILURE() << "no end";
        return steps;
      }
    }
  }
  const storage::HistoryPart& part() { return stage.head().history->front(); }
};

// ── what is recorded ─────────────────────────────────────────────────────────────────────────────

TEST_F(StageHistoryTest, NothingIsRecordedUnlessItIsKept) {
  write({.id = "a"});
  write({.kind = Kind::Delete, .id = "a"});
  EXPECT_THAT(history(), IsEmpty());
}

TEST_F(StageHistoryTest, EveryChangeIsRecordedWhereAllAreKept) {
  write({.id = "before"});
  keep_history(History::All);
  EXPECT_EQ(part().all_begin, Lsn{2}) << "from the head of that moment on";
  EXPECT_EQ(part().tombstones_begin, Lsn{2});
  write({.id = "a"});
  write({.kind = Kind::Upsert, .id = "a"});
  write({.kind = Kind::Patch, .id = "a", .padding = 1});
  write({.kind = Kind::Replace, .id = "a", .new_id = "b"});
  write({.kind = Kind::Delete, .id = "before"});
  write({.kind = Kind::Delete, .id = "b"});
  EXPECT_THAT(history(), ElementsAre("3 create a +c", "4 replace a <3 +c", "5 replace a <4 +c",
                                     "6 replace b <5 +c", "7 delete before <2", "8 delete b <6"));
}

TEST_F(StageHistoryTest, ChangingWhatIsKeptTakesNoLsnAndSurvivesARestart) {
  write({.id = "a"});
  const auto head = stage.head();
  keep_history(History::All, PreviousImage::Delete);
  EXPECT_TRUE(stage.staged_anything());
  EXPECT_EQ(stage.head().lsn, head.lsn);
  EXPECT_EQ(stage.head().ts, head.ts);
  commit();
  restart();
  EXPECT_EQ(stage.head().retention.history, History::All);
  write({.kind = Kind::Delete, .id = "a"});
  EXPECT_THAT(history(), ElementsAre("3 delete a <2 +p"));
}

TEST_F(StageHistoryTest, AChangeOfWhatIsKeptThatWasNotStoredIsForgotten) {
  write({.id = "a"});
  commit();
  keep_history(History::All);
  write({.id = "b"});
  fail_commit();
  EXPECT_EQ(stage.head().retention.history, History::None);
  write({.id = "c"});
  EXPECT_THAT(history(), IsEmpty());
}

TEST_F(StageHistoryTest, OnlyDeletesAreRecordedWhereTombstonesAreKept) {
  rules.default_ttl = -1;
  keep_history(History::Tombstones, PreviousImage::All);
  write({.id = "a", .ttl = 5});
  write({.id = "b"});
  write({.kind = Kind::Replace, .id = "b"});
  write({.kind = Kind::Delete, .id = "b"});
  clock.advance(5s);
  write({.id = "a"});
  EXPECT_THAT(history(), ElementsAre("5 delete b <4", "6 ttl a <2"));
}

TEST_F(StageHistoryTest, PreviousImagesAreRecordedAsAskedFor) {
  keep_history(History::All, PreviousImage::Delete);
  write({.id = "a"});
  write({.kind = Kind::Replace, .id = "a"});
  write({.kind = Kind::Delete, .id = "a"});
  EXPECT_THAT(history(), ElementsAre("2 create a +c", "3 replace a <2 +c", "4 delete a <3 +p"));
  keep_history(History::All, PreviousImage::All);
  write({.id = "a"});
  commit();
  write({.kind = Kind::Replace, .id = "a"});
  write({.kind = Kind::Patch, .id = "a"});
  write({.kind = Kind::Delete, .id = "a"});
  EXPECT_THAT(history(),
              ElementsAre("2 create a +c", "3 replace a <2 +c", "4 delete a <3 +p", "5 create a +c",
                          "6 replace a <5 +c +p", "7 replace a <6 +c +p", "8 delete a <7 +p"));
}

TEST_F(StageHistoryTest, ATransactionIsRecordedWriteByWriteAlsoWhatItTookBack) {
  keep_history(History::All, PreviousImage::All);
  ASSERT_TRUE(stage_writes({{.id = "a"},
                            {.kind = Kind::Replace, .id = "a", .padding = 4},
                            {.id = "b"},
                            {.kind = Kind::Delete, .id = "a"}}));
  EXPECT_THAT(history(), ElementsAre("2 create a +c", "2 replace a <2 +c +p", "2 create b +c",
                                     "2 delete a <2 +p"));
}

TEST_F(StageHistoryTest, AFailedTransactionRecordsNothing) {
  keep_history(History::All);
  commit();
  const auto head = stage.head();
  EXPECT_EQ(outcome_of(stage_writes({{.id = "a"}, {.kind = Kind::Delete, .id = "b"}})),
            "not found");
  EXPECT_EQ(stage.head(), head);
  EXPECT_THAT(history(), IsEmpty());
}

TEST_F(StageHistoryTest, DeletingAKeyRecordsEachDelete) {
  rules.default_ttl = -1;
  keep_history(History::All);
  ASSERT_TRUE(stage_writes({{.id = "a"}, {.id = "b"}, {.id = "c", .ttl = 5}}));
  clock.advance(5s);
  ASSERT_TRUE(delete_all("p"));
  EXPECT_THAT(history(), ElementsAre("2 create a +c", "2 create b +c", "2 create c +c",
                                     "3 delete a <2", "3 delete b <2", "3 ttl c <2"));
}

// ── CF-146: a write that meets what has expired ──────────────────────────────────────────────────

TEST_F(StageHistoryTest, AWriteThatMeetsAnExpiredDocumentOfItsIdPurgesItFirst) {
  rules.default_ttl = 10;
  keep_history(History::All, PreviousImage::Delete);
  write({.id = "a"});
  clock.advance(10s);
  EXPECT_EQ(write({.kind = Kind::Upsert, .id = "a"}).kind, Written::Kind::Created);
  EXPECT_THAT(history(), ElementsAre("2 create a +c", "3 ttl a <2 +p", "3 create a +c"));
}

TEST_F(StageHistoryTest, AWriteThatMeetsAnExpiredHolderOfItsValuesPurgesIt) {
  rules = rules_with_unique_keys(-1);
  keep_history(History::All);
  write({.id = "a", .ttl = 10, .unique = {"x", "1"}});
  write({.id = "b", .ttl = 10, .unique = {"y", "2"}});
  write({.id = "c", .unique = {"z", "3"}});
  commit();
  clock.advance(10s);
  write({.kind = Kind::Replace, .id = "c", .unique = {"x", "2"}});
  EXPECT_EQ(stage.head().documents, 1u);
  EXPECT_EQ(attempt({.id = "d", .unique = {"y", "1"}}), "ok") << "all their values are free";
  EXPECT_THAT(history(),
              ElementsAre("2 create a +c", "3 create b +c", "4 create c +c", "5 ttl a <2",
                          "5 ttl b <3", "5 replace c <4 +c", "6 create d +c"));
}

TEST_F(StageHistoryTest, ARenameOntoAnExpiredDocumentPurgesIt) {
  rules.default_ttl = -1;
  keep_history(History::All);
  write({.id = "old", .ttl = 10});
  write({.id = "a"});
  clock.advance(10s);
  write({.kind = Kind::Replace, .id = "a", .new_id = "old"});
  EXPECT_THAT(history(), ElementsAre("2 create old +c", "3 create a +c", "4 ttl old <2",
                                     "4 replace old <3 +c"));
}

TEST_F(StageHistoryTest, AWriteThatIsRefusedPurgesNothing) {
  rules = rules_with_unique_keys(-1);
  keep_history(History::All);
  write({.id = "a", .ttl = 10, .unique = {"x", "1"}});
  write({.id = "b", .unique = {"y", "2"}});
  clock.advance(10s);
  EXPECT_EQ(attempt({.id = "a", .unique = {"x", "2"}}), "conflict");
  EXPECT_EQ(attempt({.kind = Kind::Replace, .id = "a", .unique = {"x", "1"}}), "not found");
  EXPECT_EQ(stage.head().documents, 2u);
  EXPECT_THAT(history(), ElementsAre("2 create a +c", "3 create b +c"));
}

// ── changing what is kept ────────────────────────────────────────────────────────────────────────

TEST_F(StageHistoryTest, SwitchingHistoryOffLetsAllOfItGoAndItBeginsAnew) {
  keep_history(History::All);
  write({.id = "a"});
  commit();
  write({.id = "b"});  // Staged and recorded, but not committed yet.
  keep_history(History::None);
  EXPECT_THAT(history(), IsEmpty());
  EXPECT_FALSE(stage.head().history);
  write({.id = "c"});
  keep_history(History::All);
  EXPECT_EQ(part().all_begin, Lsn{4});
  write({.id = "d"});
  EXPECT_THAT(history(), ElementsAre("5 create d +c"));
}

TEST_F(StageHistoryTest, FromTombstonesToAllIsCompleteFromThatMomentOn) {
  keep_history(History::Tombstones);
  write({.id = "a"});
  write({.kind = Kind::Delete, .id = "a"});
  keep_history(History::All);
  EXPECT_EQ(part().tombstones_begin, Lsn{1}) << "deletes are known since then";
  EXPECT_EQ(part().all_begin, Lsn{3});
  write({.id = "b"});
  EXPECT_THAT(history(), ElementsAre("3 delete a <2", "4 create b +c"));
}

TEST_F(StageHistoryTest, FromAllToTombstonesKeepsTheDeletesOnceItIsTrimmed) {
  keep_history(History::All, PreviousImage::All);
  write({.id = "a"});
  write({.kind = Kind::Replace, .id = "a"});
  write({.kind = Kind::Delete, .id = "a"});
  commit();
  keep_history(History::Tombstones);
  commit();
  trim_all({.all_before = std::numeric_limits<UnixSeconds>::max(), .tombstones_before = 0});
  EXPECT_THAT(history(), ElementsAre("4 delete a <3"));
  EXPECT_EQ(part().tombstones_begin, Lsn{1});
  EXPECT_EQ(part().all_begin, Lsn{4});
}

// ── letting go ───────────────────────────────────────────────────────────────────────────────────

class HistoryTrimTest : public StageHistoryTest {
 protected:
  HistoryTrimTest() {
    storage::RetentionSettings retention;
    retention.history = History::All;
    retention.previous_image = PreviousImage::Delete;
    EXPECT_TRUE(keep(retention));
    begin = clock.unix_seconds();
    for (const auto* id : {"a", "b", "c"}) {
      write({.id = id});  // LSN 2, 4, 6 at +0, +10, +20; each deleted at the same time.
      write({.kind = Kind::Delete, .id = id});
      clock.advance(10s);
    }
    commit();
  }
  UnixSeconds begin = 0;
};

TEST_F(HistoryTrimTest, WhatIsOldEnoughGoesAndTheBeginsMoveAlong) {
  const auto bytes = stage.head().history_bytes;
  const Lsn lsn = stage.head().lsn;
  const auto trimmed = trim({.all_before = begin + 10, .tombstones_before = begin + 10});
  ASSERT_TRUE(trimmed);
  EXPECT_EQ(trimmed->tidied, 2u);
  EXPECT_FALSE(trimmed->more);
  EXPECT_EQ(stage.head().lsn, lsn) << "nothing that a reader of the log could see";
  EXPECT_LT(stage.head().history_bytes, bytes);
  EXPECT_THAT(history(), ElementsAre("4 create b +c", "5 delete b <4 +p", "6 create c +c",
                                     "7 delete c <6 +p"));
  EXPECT_EQ(part().all_begin, Lsn{3}) << "a reader at 3 misses nothing, one at 2 would";
  EXPECT_EQ(part().tombstones_begin, Lsn{3});
}

TEST_F(HistoryTrimTest, OldChangesKeepTheirDeletesWhileTombstonesAreKeptLonger) {
  trim_all({.all_before = begin + 20, .tombstones_before = begin + 10});
  EXPECT_THAT(history(), ElementsAre("5 delete b <4", "6 create c +c", "7 delete c <6 +p"));
  EXPECT_EQ(part().tombstones_begin, Lsn{3});
  EXPECT_EQ(part().all_begin, Lsn{5});
  trim_all({.all_before = begin + 30, .tombstones_before = 0});
  EXPECT_THAT(history(), ElementsAre("5 delete b <4", "7 delete c <6")) << "for ever";
  trim_all({.all_before = begin + 40, .tombstones_before = begin + 40});
  EXPECT_THAT(history(), IsEmpty());
  EXPECT_EQ(stage.head().history_bytes, 0u);
  EXPECT_EQ(part().tombstones_begin, Lsn{7});
}

TEST_F(HistoryTrimTest, NothingToLetGoChangesNothing) {
  const auto head = stage.head();
  const auto trimmed = trim({.all_before = begin, .tombstones_before = begin});
  ASSERT_TRUE(trimmed);
  EXPECT_EQ(trimmed->tidied, 0u);
  EXPECT_FALSE(trimmed->more);
  EXPECT_FALSE(stage.staged_anything());
  EXPECT_EQ(stage.head(), head);
}

TEST_F(HistoryTrimTest, TooMuchGoesWhateverItsAgeTheOldestAndTheTextsFirst) {
  const auto bytes = stage.head().history_bytes;
  trim_all({.all_before = 0, .tombstones_before = 0, .bytes_max = bytes - 1});
  EXPECT_THAT(history(), ElementsAre("3 delete a <2 +p", "4 create b +c", "5 delete b <4 +p",
                                     "6 create c +c", "7 delete c <6 +p"));
  EXPECT_EQ(part().all_begin, Lsn{2});
  EXPECT_EQ(part().tombstones_begin, Lsn{1});
  trim_all({.all_before = 0, .tombstones_before = 0, .bytes_max = 250});
  EXPECT_THAT(history(), ElementsAre("3 delete a <2", "5 delete b <4", "7 delete c <6"));
  EXPECT_EQ(part().all_begin, Lsn{7});
  trim_all({.all_before = 0, .tombstones_before = 0, .bytes_max = 0});
  EXPECT_THAT(history(), IsEmpty());
  EXPECT_EQ(part().tombstones_begin, Lsn{7});
}

TEST_F(HistoryTrimTest, AStepIsBoundedAndGoesOnWhereItEndedAlsoWithinOneTransaction) {
  std::vector<WriteOf> writes;
  for (int i = 0; i < 2500; ++i) writes.push_back({.id = std::to_string(i)});
  ASSERT_TRUE(stage_writes(writes));
  ASSERT_TRUE(delete_all("p"));
  commit();
  clock.advance(10s);
  const HistoryTrim by{.all_before = clock.unix_seconds(), .tombstones_before = begin};
  ASSERT_TRUE(trim(by)->more);
  EXPECT_EQ(trim(by)->tidied, 0u) << "not before the first is committed";
  ASSERT_TRUE(trim(by)->more);
  commit();
  EXPECT_GE(trim_all(by), 3);
  EXPECT_EQ(history().size(), 3u + 2500u) << "the deletes";
  EXPECT_EQ(part().all_begin, stage.head().lsn);
  const HistoryTrim all{.all_before = clock.unix_seconds(),
                        .tombstones_before = clock.unix_seconds()};
  ASSERT_TRUE(trim(all)->more);
  commit();
  restart();  // In the middle of a transaction.
  trim_all(all);
  EXPECT_THAT(history(), IsEmpty());
}

TEST_F(HistoryTrimTest, AStepThatWasNotStoredIsDoneAgain) {
  const HistoryTrim by{.all_before = begin + 10, .tombstones_before = begin + 10};
  ASSERT_TRUE(trim(by));
  fail_commit();
  EXPECT_EQ(part().all_begin, Lsn{1});
  trim_all(by);
  EXPECT_EQ(history().size(), 4u);
}

TEST_F(HistoryTrimTest, EachPartOfAMergedRangeHasItsOwnBegin) {
  // As if two ranges had been merged: b lives in the right-hand part.
  auto head = stage.head();
  head.merged_at = Lsn{7};
  head.history = std::make_shared<const std::vector<storage::HistoryPart>>(
      std::vector<storage::HistoryPart>{{"", Lsn{1}, Lsn{1}}, {"f", Lsn{4}, Lsn{4}}});
  stage.reset(head);
  trim_all({.all_before = begin + 20, .tombstones_before = begin + 20});
  // All keys of this test are in the left-hand part.
  EXPECT_EQ((*stage.head().history)[0].all_begin, Lsn{5});
  EXPECT_EQ((*stage.head().history)[1].all_begin, Lsn{4}) << "nothing of it has gone";
}

TEST_F(HistoryTrimTest, TrimmingMayBlockAndSaysSo) {
  const Transaction transaction{.work = HistoryTrim{}};
  (void)stage.stage(transaction, clock.unix_seconds(), batch, storage::Tier::Memory);
  EXPECT_TRUE(stage.would_block());
}

}  // namespace
}  // namespace orrery::partition
