#include "partition/writer/stage.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "partition/test_audit.h"
#include "partition/test_environment.h"
#include "partition/writer/test_stage.h"
#include "storage/keys.h"
#include "storage/test_store.h"

namespace orrery::partition {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Kind = Write::Kind;

// ── create, upsert, replace, delete ──────────────────────────────────────────────────────────────

TEST_F(StageTest, ACreatedDocumentIsStoredWithItsSystemProperties) {
  const auto written = write({.id = "a"});
  EXPECT_EQ(written.kind, Written::Kind::Created);
  EXPECT_EQ(written.position, (storage::LogPosition{Lsn{2}, 0}));
  EXPECT_EQ(written.header.number, DocumentNumber::make(kRange, 1));
  EXPECT_EQ(written.header.ts, clock.unix_seconds());
  EXPECT_EQ(written.text_size, written.text.size());
  const std::string rid = Rid::document(container_rid(), written.header.number).text();
  EXPECT_EQ(written.text,
            R"({"id":"a","_rid":")" + rid + R"(","_self":"dbs/AAAAAQ==/colls/AAAAAYAAAAE=/docs/)" +
                rid + R"(/","_etag":"\")" + std::string(written.etag().text().substr(1, 36)) +
                R"(\"","_attachments":"attachments/","_ts":1743508800})");
  commit();
  EXPECT_EQ(stored_text("a"), written.text);
}

TEST_F(StageTest, AnIdCanBeCreatedOncePerKey) {
  EXPECT_EQ(attempt({.id = "a"}), "ok");
  EXPECT_EQ(attempt({.id = "a"}), "conflict") << "staged";
  EXPECT_EQ(attempt({.id = "a", .partition_key = "q"}), "ok");
  commit();
  EXPECT_EQ(attempt({.id = "a"}), "conflict") << "committed";
  EXPECT_EQ(stage.head().documents, 2u);
}

TEST_F(StageTest, AnUpsertCreatesThenReplacesAndKeepsTheNumber) {
  const auto created = write({.kind = Kind::Upsert, .id = "a"});
  EXPECT_EQ(created.kind, Written::Kind::Created);
  const auto staged = write({.kind = Kind::Upsert, .id = "a"});
  EXPECT_EQ(staged.kind, Written::Kind::Replaced);
  commit();
  const auto committed = write({.kind = Kind::Upsert, .id = "a", .padding = 10});
  EXPECT_EQ(committed.kind, Written::Kind::Replaced);
  EXPECT_EQ(staged.header.number, created.header.number);
  EXPECT_EQ(committed.header.number, created.header.number);
  EXPECT_NE(committed.etag(), created.etag());
  commit();
  EXPECT_EQ(stored_text("a"), committed.text);
}

TEST_F(StageTest, WhatIsNotThereCannotBeReplacedOrDeleted) {
  EXPECT_EQ(attempt({.kind = Kind::Replace, .id = "a"}), "not found");
  EXPECT_EQ(attempt({.kind = Kind::Delete, .id = "a"}), "not found");
  write({.id = "a", .partition_key = "q"});
  EXPECT_EQ(attempt({.kind = Kind::Replace, .id = "a"}), "not found") << "another key's";
  EXPECT_EQ(stage.head().lsn, Lsn{2}) << "refusals take no LSN";
}

TEST_F(StageTest, ADeletedDocumentIsGoneAndItsIdCanBeUsedAgain) {
  const auto first = write({.id = "a"});
  commit();
  const auto deleted = write({.kind = Kind::Delete, .id = "a"});
  EXPECT_EQ(deleted.kind, Written::Kind::Deleted);
  EXPECT_EQ(deleted.text, "");
  EXPECT_EQ(deleted.text_size, first.text_size);
  EXPECT_EQ(deleted.header.number, first.header.number);
  EXPECT_EQ(attempt({.kind = Kind::Delete, .id = "a"}), "not found");
  const auto second = write({.id = "a"});
  EXPECT_GT(second.header.number, first.header.number) << "numbers are not used again";
  commit();
  EXPECT_THAT(stored_ids(), ElementsAre("a"));
  write({.kind = Kind::Delete, .id = "a"});
  commit();
  EXPECT_THAT(stored_ids(), IsEmpty());
}

TEST_F(StageTest, AWriteByRidMeansThatDocumentOnly) {
  const auto first = write({.id = "a"});
  EXPECT_EQ(attempt({.kind = Kind::Replace, .id = "a", .number = first.header.number}), "ok");
  write({.kind = Kind::Delete, .id = "a"});
  write({.id = "a"});
  EXPECT_EQ(attempt({.kind = Kind::Replace, .id = "a", .number = first.header.number}),
            "not found");
  EXPECT_EQ(attempt({.kind = Kind::Delete, .id = "a", .number = first.header.number}), "not found");
}

// ── conditions ───────────────────────────────────────────────────────────────────────────────────

TEST_F(StageTest, AWriteWithAnEtagNeedsThatVersion) {
  const std::string first(write({.id = "a"}).etag().text());
  EXPECT_EQ(attempt({.kind = Kind::Replace, .id = "a", .if_match = first}), "ok");
  for (const auto kind : {Kind::Replace, Kind::Upsert, Kind::Delete}) {
    EXPECT_EQ(attempt({.kind = kind, .id = "a", .if_match = first}), "precondition failed");
  }
  commit();
  for (const auto kind : {Kind::Replace, Kind::Upsert, Kind::Delete}) {
    EXPECT_EQ(attempt({.kind = kind, .id = "a", .if_match = first}), "precondition failed");
  }
  EXPECT_EQ(attempt({.kind = Kind::Replace, .id = "a", .if_match = "*"}), "ok");
}

TEST_F(StageTest, AConditionOnWhatIsMissingIsNotFoundAndAnUpsertCreates) {
  EXPECT_EQ(attempt({.kind = Kind::Replace, .id = "a", .if_match = "*"}), "not found");
  EXPECT_EQ(attempt({.kind = Kind::Delete, .id = "a", .if_match = "x"}), "not found");
  EXPECT_EQ(attempt({.kind = Kind::Upsert, .id = "a", .if_match = "x"}), "ok");
}

// ── renaming ─────────────────────────────────────────────────────────────────────────────────────

TEST_F(StageTest, AReplaceWithAnotherIdRenames) {
  const auto before = write({.id = "a"});
  commit();
  const auto after = write({.kind = Kind::Replace, .id = "a", .new_id = "b"});
  EXPECT_EQ(after.kind, Written::Kind::Replaced);
  EXPECT_EQ(after.header.number, before.header.number);
  EXPECT_EQ(attempt({.kind = Kind::Replace, .id = "a"}), "not found");
  EXPECT_EQ(attempt({.kind = Kind::Replace, .id = "b"}), "ok");
  EXPECT_EQ(attempt({.id = "a"}), "ok") << "the old id is free";
  commit();
  EXPECT_THAT(stored_ids(), ElementsAre("a", "b"));
  EXPECT_EQ(stage.head().documents, 2u);
}

TEST_F(StageTest, ARenameOntoATakenIdIsAConflictAndChangesNothing) {
  write({.id = "a"});
  write({.id = "b"});
  EXPECT_EQ(attempt({.kind = Kind::Replace, .id = "a", .new_id = "b"}), "conflict");
  commit();
  EXPECT_EQ(attempt({.kind = Kind::Replace, .id = "a", .new_id = "b"}), "conflict");
  EXPECT_THAT(stored_ids(), ElementsAre("a", "b"));
}

TEST_F(StageTest, ARenameOntoAnExpiredDocumentTakesItsPlace) {
  rules = rules_with_unique_keys(-1);
  write({.id = "old", .ttl = 10, .unique = {"x"}});
  write({.id = "a", .unique = {"y"}});
  commit();
  clock.advance(10s);
  EXPECT_EQ(attempt({.kind = Kind::Replace, .id = "a", .new_id = "old", .unique = {"x"}}), "ok");
  EXPECT_EQ(stage.head().documents, 1u);
  commit();
  EXPECT_THAT(stored_ids(), ElementsAre("old"));
  EXPECT_EQ(attempt({.id = "b", .unique = {"y"}}), "ok");
  EXPECT_EQ(attempt({.id = "c", .unique = {"x"}}), "conflict");
}

TEST_F(StageTest, ARenameBackAndForthInOneTransactionLeavesOneDocument) {
  write({.id = "a"});
  commit();
  ASSERT_TRUE(stage_writes({{.kind = Kind::Replace, .id = "a", .new_id = "b"},
                            {.kind = Kind::Replace, .id = "b", .new_id = "c"},
                            {.kind = Kind::Replace, .id = "c", .new_id = "a"}}));
  EXPECT_EQ(stage.head().documents, 1u);
  commit();
  EXPECT_THAT(stored_ids(), ElementsAre("a"));
}

// ── expiry ───────────────────────────────────────────────────────────────────────────────────────

TEST_F(StageTest, AnExpiredDocumentIsNotThereAndMakesWay) {
  rules.default_ttl = 60;
  const auto first = write({.id = "a"});
  commit();
  clock.advance(59s);
  EXPECT_EQ(attempt({.id = "a"}), "conflict");
  clock.advance(1s);
  EXPECT_EQ(attempt({.kind = Kind::Replace, .id = "a"}), "not found");
  EXPECT_EQ(attempt({.kind = Kind::Delete, .id = "a"}), "not found");
  const auto second = write({.id = "a"});
  EXPECT_EQ(second.kind, Written::Kind::Created);
  EXPECT_GT(second.header.number, first.header.number) << "it is another document";
  EXPECT_EQ(stage.head().documents, 1u);
  commit();
  EXPECT_EQ(stored_text("a"), second.text);
}

TEST_F(StageTest, AnUpsertOfAnExpiredDocumentCreatesWhateverTheCondition) {
  rules.default_ttl = 60;
  const auto first = write({.id = "a"});
  commit();
  clock.advance(60s);
  const auto second = write({.kind = Kind::Upsert, .id = "a", .if_match = "\"another\""});
  EXPECT_EQ(second.kind, Written::Kind::Created);
  EXPECT_GT(second.header.number, first.header.number);
}

TEST_F(StageTest, ADocumentThatExpiresWhileItIsStagedMakesWayToo) {
  rules.default_ttl = 60;
  write({.id = "a"});
  clock.advance(60s);
  EXPECT_EQ(attempt({.kind = Kind::Replace, .id = "a"}), "not found");
  EXPECT_EQ(attempt({.id = "a"}), "ok");
  EXPECT_EQ(stage.head().documents, 1u);
}

TEST_F(StageTest, TtlCountsOnlyWhileTheContainerSaysSo) {
  write({.id = "a", .ttl = 10});
  commit();
  clock.advance(1000s);
  EXPECT_EQ(attempt({.id = "a"}), "conflict") << "TTL is off";
  rules.default_ttl = -1;
  EXPECT_EQ(attempt({.id = "a"}), "ok") << "and counts from the moment it is switched on";
}

// ── unique keys ──────────────────────────────────────────────────────────────────────────────────

class UniqueKeyTest : public StageTest {
 protected:
  UniqueKeyTest() { rules = rules_with_unique_keys(-1); }
};

TEST_F(UniqueKeyTest, ValuesAreHeldByOneDocumentOfALogicalPartition) {
  EXPECT_EQ(attempt({.id = "a", .unique = {"x"}}), "ok");
  EXPECT_EQ(attempt({.id = "b", .unique = {"x"}}), "conflict") << "staged";
  EXPECT_EQ(attempt({.id = "b", .partition_key = "q", .unique = {"x"}}), "ok");
  commit();
  EXPECT_EQ(attempt({.id = "b", .unique = {"x"}}), "conflict") << "committed";
  EXPECT_EQ(attempt({.kind = Kind::Upsert, .id = "b", .unique = {"x"}}), "conflict");
  EXPECT_EQ(attempt({.id = "b", .unique = {"y"}}), "ok");
}

TEST_F(UniqueKeyTest, EachUniqueKeyIsCheckedOnItsOwn) {
  write({.id = "a", .unique = {"x", "y"}});
  EXPECT_EQ(attempt({.id = "b", .unique = {"y", "x"}}), "ok")
      << "the same values under other keys are no conflict";
  EXPECT_EQ(attempt({.id = "c", .unique = {"new", "y"}}), "conflict");
  EXPECT_EQ(attempt({.id = "c", .unique = {"x", "new"}}), "conflict");
  EXPECT_EQ(attempt({.id = "c", .unique = {"new", "new"}}), "ok")
      << "what the refused ones would have claimed is free";
}

TEST_F(UniqueKeyTest, ADocumentMayKeepAndChangeItsOwnValues) {
  write({.id = "a", .unique = {"x", "y"}});
  EXPECT_EQ(attempt({.kind = Kind::Replace, .id = "a", .unique = {"x", "y"}}), "ok") << "staged";
  commit();
  EXPECT_EQ(attempt({.kind = Kind::Replace, .id = "a", .unique = {"x", "y"}}), "ok") << "committed";
  EXPECT_EQ(attempt({.kind = Kind::Upsert, .id = "a", .unique = {"x", "z"}}), "ok");
  EXPECT_EQ(attempt({.id = "b", .unique = {"w", "y"}}), "ok") << "what it gave up is free";
  EXPECT_EQ(attempt({.id = "c", .unique = {"x", "v"}}), "conflict") << "what it kept is not";
  commit();
  EXPECT_EQ(attempt({.id = "c", .unique = {"x", "v"}}), "conflict");
  EXPECT_EQ(attempt({.id = "c", .unique = {"u", "z"}}), "conflict");
}

TEST_F(UniqueKeyTest, ADeletedDocumentGivesUpItsValues) {
  write({.id = "a", .unique = {"x"}});
  write({.kind = Kind::Delete, .id = "a"});
  EXPECT_EQ(attempt({.id = "b", .unique = {"x"}}), "ok");
  commit();
  write({.kind = Kind::Delete, .id = "b"});
  commit();
  EXPECT_EQ(attempt({.id = "c", .unique = {"x"}}), "ok");
}

TEST_F(UniqueKeyTest, TwoDocumentsCanSwapTheirValuesByWayOfAThirdInOneTransaction) {
  write({.id = "a", .unique = {"x"}});
  write({.id = "b", .unique = {"y"}});
  commit();
  EXPECT_EQ(outcome_of(stage_writes({{.kind = Kind::Replace, .id = "a", .unique = {"y"}},
                                     {.kind = Kind::Replace, .id = "b", .unique = {"x"}}})),
            "conflict")
      << "each write must be valid when its turn comes";
  ASSERT_TRUE(stage_writes({{.kind = Kind::Replace, .id = "a", .unique = {"parked"}},
                            {.kind = Kind::Replace, .id = "b", .unique = {"x"}},
                            {.kind = Kind::Replace, .id = "a", .unique = {"y"}}}));
  EXPECT_EQ(attempt({.id = "c", .unique = {"parked"}}), "ok");
  commit();
  EXPECT_EQ(attempt({.id = "d", .unique = {"x"}}), "conflict");
  EXPECT_EQ(attempt({.id = "d", .unique = {"y"}}), "conflict");
  write({.kind = Kind::Delete, .id = "b"});
  EXPECT_EQ(attempt({.id = "d", .unique = {"x"}}), "ok");
}

TEST_F(UniqueKeyTest, ARenamedDocumentKeepsItsValues) {
  write({.id = "a", .unique = {"x"}});
  commit();
  EXPECT_EQ(attempt({.kind = Kind::Replace, .id = "a", .new_id = "b", .unique = {"x"}}), "ok");
  EXPECT_EQ(attempt({.id = "c", .unique = {"x"}}), "conflict");
  commit();
  EXPECT_EQ(attempt({.id = "c", .unique = {"x"}}), "conflict");
}

TEST_F(UniqueKeyTest, AnExpiredHolderHoldsNoLonger) {
  write({.id = "a", .ttl = 10, .unique = {"x"}});
  commit();
  EXPECT_EQ(attempt({.id = "b", .unique = {"x"}}), "conflict");
  clock.advance(10s);
  EXPECT_EQ(attempt({.id = "b", .unique = {"x"}}), "ok");
  commit();
  // The expired one makes way at last, and must not take along what is another's now.
  EXPECT_EQ(attempt({.id = "a", .unique = {"y"}}), "ok");
  EXPECT_EQ(attempt({.id = "c", .unique = {"x"}}), "conflict");
  commit();
  EXPECT_EQ(attempt({.id = "c", .unique = {"x"}}), "conflict");
}

TEST_F(UniqueKeyTest, AHolderThatExpiresWhileItIsStagedHoldsNoLonger) {
  write({.id = "a", .ttl = 10, .unique = {"x"}});
  clock.advance(10s);
  EXPECT_EQ(attempt({.kind = Kind::Replace, .id = "a", .unique = {"x"}}), "not found");
  EXPECT_EQ(attempt({.id = "b", .unique = {"x"}}), "ok");
}

TEST_F(UniqueKeyTest, AnExpiredDocumentOfTheSameIdGivesUpItsValues) {
  write({.id = "a", .ttl = 10, .unique = {"x"}});
  commit();
  clock.advance(10s);
  EXPECT_EQ(attempt({.id = "a", .unique = {"y"}}), "ok");
  commit();
  EXPECT_EQ(attempt({.id = "b", .unique = {"x"}}), "ok");
}

// ── transactions ─────────────────────────────────────────────────────────────────────────────────

TEST_F(StageTest, ATransactionTakesOneLsnAndItsWritesRisingIndexes) {
  write({.id = "0"});
  const auto committed =
      stage_writes({{.id = "a"}, {.id = "b"}, {.kind = Kind::Delete, .id = "0"}, {.id = "c"}});
  ASSERT_TRUE(committed);
  EXPECT_EQ(committed->lsn, Lsn{3});
  std::vector<std::uint32_t> indexes;
  for (const auto& written : committed->writes) {
    EXPECT_EQ(written.position.lsn, Lsn{3});
    indexes.push_back(written.position.index);
  }
  EXPECT_THAT(indexes, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(stage.head().lsn, Lsn{3});
  EXPECT_EQ(committed->writes[0].etag(), committed->writes[3].etag());
}

TEST_F(StageTest, AWriteSeesTheEarlierOnesOfItsTransaction) {
  ASSERT_TRUE(stage_writes({{.id = "a"},
                            {.kind = Kind::Replace, .id = "a", .padding = 5},
                            {.kind = Kind::Delete, .id = "a"},
                            {.id = "a", .padding = 9},
                            {.id = "b"}}));
  EXPECT_EQ(stage.head().documents, 2u);
  commit();
  EXPECT_THAT(stored_ids(), ElementsAre("a", "b"));
  EXPECT_THAT(stored_text("a"), HasSubstr("xxxxxxxxx"));
}

TEST_F(StageTest, ATransactionThatFailsLeavesNothingBehind) {
  rules = rules_with_unique_keys();
  write({.id = "committed", .unique = {"c"}});
  commit();
  write({.id = "staged", .unique = {"s"}});
  const auto head = stage.head();
  const auto bytes = batch.byte_size();

  EXPECT_EQ(outcome_of(stage_writes(
                {{.id = "new", .unique = {"n"}},
                 {.kind = Kind::Replace, .id = "staged", .unique = {"s2"}},
                 {.kind = Kind::Replace, .id = "staged", .unique = {"s3"}},
                 {.kind = Kind::Delete, .id = "committed"},
                 {.kind = Kind::Replace, .id = "staged", .new_id = "renamed", .unique = {"c"}},
                 {.kind = Kind::Delete, .id = "not there"}})),
            "not found");

  EXPECT_EQ(stage.head(), head);
  EXPECT_EQ(batch.byte_size(), bytes);
  EXPECT_EQ(attempt({.id = "staged", .unique = {"z"}}), "conflict") << "still there";
  EXPECT_EQ(attempt({.id = "committed", .unique = {"z"}}), "conflict") << "still there";
  EXPECT_EQ(attempt({.id = "z", .unique = {"s"}}), "conflict") << "still held";
  EXPECT_EQ(attempt({.id = "z", .unique = {"c"}}), "conflict") << "still held";
  EXPECT_EQ(attempt({.id = "new", .unique = {"n"}}), "ok") << "never claimed";
  EXPECT_EQ(attempt({.id = "renamed", .unique = {"s2"}}), "ok") << "never claimed";
  EXPECT_EQ(attempt({.id = "z", .unique = {"s3"}}), "ok") << "never claimed";
  commit();
  EXPECT_THAT(stored_ids(), ElementsAre("committed", "new", "renamed", "staged", "z"));
}

TEST_F(StageTest, AFailedTransactionGivesNoNumbersAway) {
  EXPECT_EQ(outcome_of(stage_writes({{.id = "a"}, {.kind = Kind::Delete, .id = "b"}})),
            "not found");
  EXPECT_EQ(write({.id = "c"}).header.number, DocumentNumber::make(kRange, 1));
}

TEST_F(StageTest, AnEmptyTransactionTakesNoLsn) {
  const auto committed = stage_writes({});
  ASSERT_TRUE(committed);
  EXPECT_EQ(committed->lsn, Lsn{1});
  EXPECT_TRUE(batch.empty());
}

// ── the head ─────────────────────────────────────────────────────────────────────────────────────

TEST_F(StageTest, LsnsAreDense) {
  for (std::uint64_t lsn = 2; lsn < 10; ++lsn) {
    EXPECT_EQ(write({.kind = Kind::Upsert, .id = "a"}).position.lsn, Lsn{lsn});
    if (lsn % 3 == 0) commit();
    EXPECT_EQ(attempt({.id = "a"}), "conflict");
  }
}

TEST_F(StageTest, TimeDoesNotGoBackWhenTheClockDoes) {
  const auto first = write({.id = "a"});
  clock.advance(-100s);
  const auto second = write({.id = "b"});
  EXPECT_EQ(second.header.ts, first.header.ts);
  commit();
  clock.advance(50s);
  EXPECT_EQ(write({.id = "c"}).header.ts, first.header.ts);
  clock.advance(51s);
  EXPECT_EQ(write({.id = "d"}).header.ts, first.header.ts + 1);
}

TEST_F(StageTest, TheHeadCountsDocumentsAndTheirBytesExactly) {
  const auto a = write({.id = "a"});
  const auto b = write({.id = "b", .padding = 1000});
  EXPECT_EQ(stage.head().documents, 2u);
  EXPECT_EQ(stage.head().text_bytes, a.text_size + b.text_size);
  commit();
  const auto smaller = write({.kind = Kind::Replace, .id = "b"});
  EXPECT_EQ(stage.head().text_bytes, a.text_size + smaller.text_size);
  write({.kind = Kind::Delete, .id = "a"});
  EXPECT_EQ(stage.head().documents, 1u);
  EXPECT_EQ(stage.head().text_bytes, smaller.text_size);
  write({.kind = Kind::Delete, .id = "b"});
  EXPECT_EQ(stage.head().documents, 0u);
  EXPECT_EQ(stage.head().text_bytes, 0u);
  EXPECT_EQ(stage.head().lsn, Lsn{6}) << "a delete has an LSN too";
  EXPECT_EQ(stage.head().document_sequence, 2u);
}

TEST_F(StageTest, AStageOnAStoredHeadGoesOnFromThere) {
  write({.id = "a"});
  write({.id = "b"});
  commit();
  const auto head = audit(*store, kPartition).head;
  EXPECT_EQ(head, stage.head());
  stage.reset(head);
  const auto next_one = write({.id = "c"});
  EXPECT_EQ(next_one.position.lsn, Lsn{4});
  EXPECT_EQ(next_one.header.number, DocumentNumber::make(kRange, 3));
}

TEST_F(StageTest, AResetForgetsWhatNeverBecameDurable) {
  rules = rules_with_unique_keys();
  write({.id = "a", .unique = {"x"}});
  commit();
  const auto head = stage.head();
  write({.id = "lost", .unique = {"y"}});
  write({.kind = Kind::Delete, .id = "a"});
  batch.clear();  // The commit failed.
  stage.reset(head);
  EXPECT_EQ(stage.head(), head);
  EXPECT_EQ(attempt({.id = "a", .unique = {"z"}}), "conflict");
  EXPECT_EQ(attempt({.id = "b", .unique = {"x"}}), "conflict");
  EXPECT_EQ(attempt({.id = "lost", .unique = {"y"}}), "ok");
}

// ── what is staged and not yet committed ─────────────────────────────────────────────────────────

TEST_F(StageTest, AnOutcomeThatLookedAtStagedDocumentsRestsOnThem) {
  write({.id = "committed"});
  commit();
  EXPECT_EQ(attempt({.id = "committed"}), "conflict");
  EXPECT_FALSE(stage.outcome_rests_on_staged());
  EXPECT_EQ(attempt({.kind = Kind::Replace, .id = "missing"}), "not found");
  EXPECT_FALSE(stage.outcome_rests_on_staged());

  write({.id = "staged"});
  EXPECT_EQ(attempt({.id = "committed"}), "conflict");
  EXPECT_FALSE(stage.outcome_rests_on_staged()) << "what others staged does not matter";
  EXPECT_EQ(attempt({.id = "staged"}), "conflict");
  EXPECT_TRUE(stage.outcome_rests_on_staged());
  EXPECT_EQ(attempt({.kind = Kind::Replace, .id = "staged", .if_match = "x"}),
            "precondition failed");
  EXPECT_TRUE(stage.outcome_rests_on_staged());

  write({.kind = Kind::Delete, .id = "committed"});
  EXPECT_EQ(attempt({.kind = Kind::Delete, .id = "committed"}), "not found");
  EXPECT_TRUE(stage.outcome_rests_on_staged());

  commit();
  EXPECT_EQ(attempt({.id = "staged"}), "conflict");
  EXPECT_FALSE(stage.outcome_rests_on_staged());
}

TEST_F(StageTest, AConflictWithAStagedUniqueValueOrANewNameRestsOnIt) {
  rules = rules_with_unique_keys();
  write({.id = "a", .unique = {"x"}});
  commit();
  write({.id = "b", .unique = {"y"}});
  EXPECT_EQ(attempt({.id = "c", .unique = {"y"}}), "conflict");
  EXPECT_TRUE(stage.outcome_rests_on_staged());
  EXPECT_EQ(attempt({.id = "c", .unique = {"x"}}), "conflict");
  EXPECT_FALSE(stage.outcome_rests_on_staged());
  EXPECT_EQ(attempt({.kind = Kind::Replace, .id = "a", .new_id = "b", .unique = {"x"}}),
            "conflict");
  EXPECT_TRUE(stage.outcome_rests_on_staged());
}

TEST_F(StageTest, ForgettingEarlierCommitsKeepsWhatIsStillStaged) {
  write({.id = "a"});
  store_staged();
  const Lsn committed = stage.head().lsn;
  // Staged while that commit was under way.
  write({.kind = Kind::Replace, .id = "a", .padding = 3});
  write({.id = "b"});
  stage.forget_committed(committed);
  EXPECT_EQ(attempt({.id = "b"}), "conflict");
  EXPECT_TRUE(stage.outcome_rests_on_staged());
  const auto third = write({.kind = Kind::Replace, .id = "a", .padding = 7});
  commit();
  EXPECT_EQ(stored_text("a"), third.text);
  EXPECT_THAT(stored_ids(), ElementsAre("a", "b"));
}

// ── from memory alone
// ──────────────────────────────────────────────────────────────────────────────

class MemoryStageTest : public StageTest {
 protected:
  /// Stages without touching the disk, and says what came of it.
  std::string attempt_in_memory(WriteOf one) {
    const auto outcome = stage.stage(transaction_of({std::move(one)}, rules), clock.unix_seconds(),
                                     batch, storage::Tier::Memory);
    return stage.would_block() ? "would block" : outcome_of(outcome);
  }
  /// From here on the data is in tables only, and in no cache.
  void forget_memory() {
    commit();
    // Above what is worth a flush.
    storage::Batch ballast;
    ballast.put(storage::Family::Catalog, "ballast", std::string(3 << 20, 'x'));
    ASSERT_TRUE(storage::commit(*store, ballast));
    store->flush();
    store.reset();
    store = storage::open_store(directory.path());
    const auto head = stage.head();
    std::destroy_at(&stage);
    std::construct_at(&stage, *store, kPartition, kRange, container_rid(), head);
  }
};

TEST_F(MemoryStageTest, WhatMemoryTellsIsDecidedThere) {
  EXPECT_EQ(attempt_in_memory({.id = "a"}), "ok");
  EXPECT_EQ(attempt_in_memory({.id = "a"}), "conflict");
  commit();
  EXPECT_EQ(attempt_in_memory({.id = "a"}), "conflict");
  EXPECT_EQ(attempt_in_memory({.kind = Kind::Replace, .id = "b"}), "not found");
}

TEST_F(MemoryStageTest, WhatOnlyTheDiskKnowsWouldBlockAndLeavesNothingBehind) {
  rules = rules_with_unique_keys();
  write({.id = "a", .unique = {"x"}});
  forget_memory();
  const auto head = stage.head();
  EXPECT_EQ(attempt_in_memory({.kind = Kind::Replace, .id = "a", .unique = {"x"}}), "would block");
  EXPECT_EQ(attempt_in_memory({.kind = Kind::Delete, .id = "a"}), "would block");
  EXPECT_TRUE(batch.empty());
  EXPECT_EQ(stage.head(), head);
  // Asked again where it may block, it is decided.
  EXPECT_EQ(attempt({.kind = Kind::Replace, .id = "a", .unique = {"x"}}), "ok");
  EXPECT_FALSE(stage.would_block());
  EXPECT_EQ(attempt_in_memory({.kind = Kind::Replace, .id = "a", .unique = {"y"}}), "ok")
      << "it is staged now";
}

TEST_F(MemoryStageTest, ATransactionThatWouldBlockHalfwayLeavesNothingBehind) {
  write({.id = "on disk"});
  forget_memory();
  const auto head = stage.head();
  auto transaction = transaction_of(
      {{.kind = Kind::Upsert, .id = "new"}, {.kind = Kind::Delete, .id = "on disk"}});
  // Make the first write one that memory decides.
  write({.kind = Kind::Upsert, .id = "new"});
  const auto staged_head = stage.head();
  const auto bytes = batch.byte_size();
  (void)stage.stage(transaction, clock.unix_seconds(), batch, storage::Tier::Memory);
  ASSERT_TRUE(stage.would_block());
  EXPECT_EQ(stage.head(), staged_head);
  EXPECT_EQ(batch.byte_size(), bytes);
  EXPECT_GT(staged_head.lsn, head.lsn);
  ASSERT_TRUE(stage_all(transaction));
  EXPECT_EQ(stage.head().documents, 1u);
}

TEST_F(MemoryStageTest, DeletingAllOfAKeyIsNothingForMemory) {
  write({.id = "a"});
  const Transaction transaction{.work = DeleteByKey{key_of("p", "")}};
  (void)stage.stage(transaction, clock.unix_seconds(), batch, storage::Tier::Memory);
  EXPECT_TRUE(stage.would_block());
}

// ── deleting all of a key ────────────────────────────────────────────────────────────────────────

TEST_F(StageTest, DeleteAllTakesCommittedAndStagedDocumentsOfOneKey) {
  rules = rules_with_unique_keys();
  write({.id = "a", .unique = {"1"}});
  write({.id = "b", .unique = {"2"}});
  write({.id = "gone", .unique = {"3"}});
  write({.id = "a", .partition_key = "q", .unique = {"1"}});
  commit();
  write({.id = "c", .unique = {"4"}});
  write({.kind = Kind::Replace, .id = "b", .unique = {"5"}});
  write({.kind = Kind::Delete, .id = "gone"});

  const auto committed = delete_all("p");
  ASSERT_TRUE(committed);
  EXPECT_TRUE(stage.outcome_rests_on_staged());
  EXPECT_EQ(committed->writes.size(), 3u);
  EXPECT_FALSE(committed->more);
  EXPECT_EQ(committed->lsn, stage.head().lsn);
  EXPECT_EQ(stage.head().documents, 1u);
  for (const auto* value : {"1", "2", "4", "5"}) {
    EXPECT_EQ(attempt({.id = std::string("new") + value, .unique = {value}}), "ok");
  }
  commit();
  EXPECT_THAT(stored_ids("p"), ElementsAre("new1", "new2", "new4", "new5"));
  EXPECT_THAT(stored_ids("q"), ElementsAre("a"));
}

TEST_F(StageTest, DeleteAllOfAKeyWithoutDocumentsTakesNoLsn) {
  write({.id = "a", .partition_key = "q"});
  const auto head = stage.head();
  const auto committed = delete_all("p");
  ASSERT_TRUE(committed);
  EXPECT_THAT(committed->writes, IsEmpty());
  EXPECT_EQ(committed->lsn, head.lsn);
  EXPECT_EQ(stage.head(), head);
}

TEST_F(StageTest, DeleteAllGoesOnBeyondWhatOneTransactionHolds) {
  for (std::size_t at = 0; at < kDeleteByKeyDocumentsMax + 5;) {
    std::vector<WriteOf> writes;
    for (int i = 0; i < 1000 && at < kDeleteByKeyDocumentsMax + 5; ++i, ++at) {
      writes.push_back({.id = std::to_string(at)});
    }
    ASSERT_TRUE(stage_writes(std::move(writes)));
  }
  commit();
  write({.id = "staged"});
  const auto first = delete_all("p");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->writes.size(), kDeleteByKeyDocumentsMax);
  EXPECT_TRUE(first->more);
  const auto second = delete_all("p");  // Before the first is committed.
  ASSERT_TRUE(second);
  EXPECT_EQ(second->writes.size(), 6u);
  EXPECT_FALSE(second->more);
  EXPECT_EQ(stage.head().documents, 0u);
  commit();
  EXPECT_THAT(stored_ids(), IsEmpty());
}

TEST_F(StageTest, DeleteAllOfExactlyWhatOneTransactionHoldsLeavesNoMore) {
  std::vector<WriteOf> writes;
  for (std::size_t i = 0; i < kDeleteByKeyDocumentsMax; ++i) {
    writes.push_back({.id = std::to_string(i)});
  }
  ASSERT_TRUE(stage_writes(std::move(writes)));
  commit();
  const auto committed = delete_all("p");
  ASSERT_TRUE(committed);
  EXPECT_EQ(committed->writes.size(), kDeleteByKeyDocumentsMax);
  EXPECT_FALSE(committed->more);
}

TEST_F(StageTest, DeleteAllReachesTheLiveDocumentsBehindManyExpiredOnes) {
  rules.default_ttl = -1;
  std::vector<WriteOf> writes;
  for (std::size_t i = 0; i < kDeleteByKeyDocumentsMax + 1; ++i) {
    writes.push_back({.id = std::to_string(i), .ttl = 10});
  }
  writes.push_back({.id = "live"});
  ASSERT_TRUE(stage_writes(std::move(writes)));
  commit();
  clock.advance(10s);
  // As often as the caller is told that there are more.
  for (bool more = true; more;) {
    const auto committed = delete_all("p");
    ASSERT_TRUE(committed);
    more = committed->more;
    commit();
  }
  EXPECT_EQ(attempt({.kind = Kind::Delete, .id = "live"}), "not found");
  EXPECT_THAT(stored_ids(), IsEmpty()) << "expired ones go with the rest";
}

// ── against a model ──────────────────────────────────────────────────────────────────────────────

/// The rules as plainly as they can be said, without a store.
class Model {
 public:
  struct Document {
    UnixSeconds ts;
    std::int32_t ttl;
    std::vector<std::string> unique;
    std::string text;
  };
  using Documents = std::map<std::pair<std::string, std::string>, Document>;

  explicit Model(std::int32_t default_ttl) : default_ttl_(default_ttl) {}

  /// All or nothing.
  std::string apply(const std::vector<WriteOf>& writes, UnixSeconds now, UnixSeconds ts) {
    const Documents before = documents_;
    for (const auto& write : writes) {
      if (const auto outcome = apply(write, now, ts); outcome != "ok") {
        documents_ = before;
        return outcome;
      }
    }
    return "ok";
  }
  /// Expired ones go with the rest.
  std::size_t delete_all(const std::string& partition_key) {
    return std::erase_if(documents_,
                         [&](const auto& each) { return each.first.first == partition_key; });
  }
  const Documents& documents() const { return documents_; }
  bool live(const Document& document, UnixSeconds now) const {
    return !storage::expired(document.ts, document.ttl, default_ttl_, now);
  }

 private:
  std::string apply(const WriteOf& write, UnixSeconds now, UnixSeconds ts) {
    const std::pair key(write.partition_key, write.id);
    const auto found = documents_.find(key);
    const bool there = found != documents_.end() && live(found->second, now);
    if (write.kind == Kind::Create && there) return "conflict";
    if ((write.kind == Kind::Replace || write.kind == Kind::Delete) && !there) return "not found";
    if (write.kind == Kind::Delete) {
      documents_.erase(found);
      return "ok";
    }
    std::pair target = key;
    if (write.kind == Kind::Replace && !write.new_id.empty()) target.second = write.new_id;
    if (target != key) {
      const auto taken = documents_.find(target);
      if (taken != documents_.end() && live(taken->second, now)) return "conflict";
      documents_.erase(target);
    }
    for (const auto& [other, document] : documents_) {
      if (other == key || other.first != key.first || !live(document, now)) continue;
      for (std::size_t i = 0; i < write.unique.size(); ++i) {
        if (document.unique[i] == write.unique[i]) return "conflict";
      }
    }
    // Expired documents that hold one of the values are purged.
    std::erase_if(documents_, [&](const auto& each) {
      if (each.first.first != key.first || live(each.second, now)) return false;
      for (std::size_t i = 0; i < write.unique.size(); ++i) {
        if (each.second.unique[i] == write.unique[i]) return true;
      }
      return false;
    });
    documents_.erase(key);
    documents_[target] = {ts, write.ttl, write.unique, write.make().version.open_text};
    return "ok";
  }

  std::int32_t default_ttl_;
  Documents documents_;
};

class StageModelTest : public StageTest, public testing::WithParamInterface<std::uint32_t> {};

TEST_P(StageModelTest, RandomTransactionsDoWhatTheModelDoes) {
  std::mt19937 random(GetParam());
  const auto below = [&random](std::uint32_t bound) { return random() % bound; };
  rules = rules_with_unique_keys(30);
  Model model(30);
  if (GetParam() % 2 == 0) {
    // audit() then checks all that is kept besides.
    ASSERT_TRUE(keep({storage::RetentionSettings::History::All,
                      storage::RetentionSettings::PreviousImage::All,
                      storage::RetentionSettings::Expiry::Building}));
    ASSERT_FALSE(stage_all({.work = ExpiryBuildStep{}})->more);
  }
  const bool has_indexes = GetParam() % 3 == 0;
  const std::string specs[] = {"/p", "/u", "/tags/[]", "/n ASC,/id DESC", "/_ts"};
  for (int step = 0; step < 600; ++step) {
    if (has_indexes && below(10) == 0) {
      // audit() checks them, too.
      if (below(2) == 0) {
        ASSERT_TRUE(build_indexes());
      } else {
        ASSERT_TRUE(change_indexes({specs[below(5)], specs[below(5)]}, {specs[below(5)]}));
      }
    }
    const UnixSeconds now = clock.unix_seconds();
    const UnixSeconds ts = std::max(now, stage.head().ts);
    if (below(40) == 0) {
      const std::string partition_key(1, static_cast<char>('p' + below(2)));
      const auto committed = delete_all(partition_key);
      ASSERT_TRUE(committed);
      ASSERT_EQ(committed->writes.size(), model.delete_all(partition_key));
    } else {
      std::vector<WriteOf> writes;
      const std::string partition_key(1, static_cast<char>('p' + below(2)));
      for (auto count = 1 + below(3); count > 0; --count) {
        WriteOf one{.kind = static_cast<Kind>(below(4)),
                    .id = std::string(1, static_cast<char>('a' + below(6))),
                    .partition_key = partition_key};
        if (one.kind != Kind::Delete) {
          if (one.kind == Kind::Replace && below(3) == 0) {
            one.new_id = std::string(1, static_cast<char>('a' + below(6)));
          }
          if (below(3) == 0) one.ttl = below(2) == 0 ? -1 : 5;
          one.unique = {std::to_string(below(8)), std::to_string(below(12))};
          one.padding = below(50);
          if (has_indexes) {
            one.members = R"("n":)" + std::to_string(below(3)) + R"(,"tags":[)" +
                          std::to_string(below(3)) + "," + std::to_string(below(3)) + "]";
          }
        }
        writes.push_back(std::move(one));
      }
      const auto expected = model.apply(writes, now, ts);
      ASSERT_EQ(outcome_of(stage_writes(writes)), expected) << "step " << step;
    }
    ASSERT_EQ(stage.head().documents, model.documents().size()) << "step " << step;
    if (below(4) == 0) {
      commit();
      // Only here: a unique value whose staged holder expires is a story of its own.
      if (below(2) == 0) clock.advance(std::chrono::seconds(below(4)));
    }
    if (step % 50 == 49) {
      commit();
      const auto audited = audit(*store, kPartition);
      ASSERT_EQ(audited.texts.size(), model.documents().size());
      for (const auto& [key, document] : model.documents()) {
        const auto found = audited.texts.find(key_of(key.first, key.second).bytes());
        ASSERT_TRUE(found != audited.texts.end()) << key.second;
        EXPECT_TRUE(found->second.starts_with(document.text)) << found->second;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, StageModelTest, testing::Range(1u, 11u));

}  // namespace
}  // namespace orrery::partition
