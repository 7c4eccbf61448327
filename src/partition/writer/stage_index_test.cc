// Secondary indexes: their entries come and go with versions, are built for what was there before,
// and survive whatever happens in between. audit() checks the entries.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "partition/writer/stage.h"
#include "partition/writer/test_stage.h"

namespace orrery::partition {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

using Kind = Write::Kind;

class StageIndexTest : public StageTest {
 protected:
  /// How many there are once everything is committed.
  std::size_t entries() {
    commit();
    return audit(*store, kPartition).index_entries;
  }
  /// Each index with how far it has come: "/a complete", "/b 7".
  std::vector<std::string> indexes() const {
    std::vector<std::string> found;
    if (!stage.head().indexes) return found;
    for (const auto& index : *stage.head().indexes) {
      found.push_back(index.spec + (index.is_complete()
                                        ? " complete"
                                        : " " + std::to_string(sequence(index.built_up_to))));
    }
    return found;
  }
  static std::uint64_t sequence(DocumentNumber number) {
    return number.value & kDocumentSequenceMax;
  }
  void add(std::vector<std::string> specs) { ASSERT_TRUE(change_indexes(std::move(specs))); }
  /// Until it is done; how many steps that took.
  int build_all() {
    for (int steps = 1;; ++steps) {
      const auto built = build_indexes();
      EXPECT_TRUE(built);
      commit();
      if (!built || !built->more) return steps;
    }
  }
  void write_many(std::size_t count, std::size_t padding = 0) {
    for (std::size_t i = 0; i < count; ++i) {
      write(
          {.id = std::to_string(i), .padding = padding, .members = R"("a":)" + std::to_string(i)});
    }
  }
};

// ── which there are ──────────────────────────────────────────────────────────────────────────────

TEST_F(StageIndexTest, AnIndexOfAnEmptyPartitionIsCompleteAtOnce) {
  const auto changed = change_indexes({"/a", "/b/[]"});
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->lsn, Lsn{1}) << "it takes no LSN";
  EXPECT_TRUE(stage.staged_anything());
  EXPECT_THAT(indexes(), ElementsAre("/a complete", "/b/[] complete"));
  commit();
  EXPECT_EQ(stored_head(), stage.head());
}

TEST_F(StageIndexTest, WhatIsThereStaysAndWhatIsNotThereNeedNotGo) {
  add({"/a", "/b", "/a"});
  EXPECT_THAT(indexes(), ElementsAre("/a complete", "/b complete"));
  const auto before = stage.head();
  ASSERT_TRUE(change_indexes({"/b", "/\"a\""}, {"/c"}));
  EXPECT_EQ(stage.head(), before);
  EXPECT_FALSE(stage.staged_anything());
}

TEST_F(StageIndexTest, IdsAreNeverGivenAgain) {
  add({"/a", "/b"});
  ASSERT_TRUE(change_indexes({}, {"/b"}));
  ASSERT_TRUE(change_indexes({"/b"}, {"/a"}));
  EXPECT_EQ(storage::find_index(stage.head().indexes, "/b")->id, 3u);
  ASSERT_TRUE(change_indexes({}, {"/b"}));
  EXPECT_FALSE(stage.head().indexes);
  commit();
  restart();
  add({"/b"});
  EXPECT_EQ(storage::find_index(stage.head().indexes, "/b")->id, 4u);
}

TEST_F(StageIndexTest, RefusesWhatIsNoSpecAndMoreThanThereMayBe) {
  EXPECT_EQ(change_indexes({"/a", "b"}).error().code(), ErrorCode::BadRequest);
  EXPECT_EQ(change_indexes({"/" + std::string(5000, 'x')}).error().code(), ErrorCode::BadRequest);
  EXPECT_THAT(indexes(), IsEmpty());
  std::vector<std::string> many;
  for (std::size_t i = 0; i < storage::kIndexesMax; ++i) many.push_back("/a" + std::to_string(i));
  add(many);
  EXPECT_EQ(change_indexes({"/b"}).error().code(), ErrorCode::Forbidden);
  EXPECT_EQ(stage.head().indexes->size(), storage::kIndexesMax);
  ASSERT_TRUE(change_indexes({"/b"}, {"/a0"})) << "what goes makes room";
}

TEST_F(StageIndexTest, AnEventLoopLeavesItToAWriter) {
  const Transaction transaction{.work = IndexChange{{"/a"}, {}}};
  (void)stage.stage(transaction, clock.unix_seconds(), batch, storage::Tier::Memory);
  EXPECT_TRUE(stage.would_block());
  EXPECT_TRUE(batch.empty());
}

// ── entries of versions ──────────────────────────────────────────────────────────────────────────

TEST_F(StageIndexTest, WithoutIndexesThereAreNoEntries) {
  write_many(3);
  EXPECT_EQ(entries(), 0u);
}

TEST_F(StageIndexTest, EntriesFollowEveryKindOfWrite) {
  add({"/a", "/tags/[]", "/a ASC,/b DESC"});
  write({.id = "x", .members = R"("a":1,"tags":["s","t","s"])"});
  EXPECT_EQ(entries(), 4u);
  write({.kind = Kind::Replace, .id = "x", .members = R"("a":1,"tags":["t","u","v"],"b":5)"});
  EXPECT_EQ(entries(), 5u);
  write({.kind = Kind::Upsert, .id = "x", .members = R"("b":5)"});
  EXPECT_EQ(entries(), 2u) << "undefined counts, too";
  write({.kind = Kind::Patch, .id = "x", .members = R"("tags":[1])"});
  EXPECT_EQ(entries(), 3u);
  write({.kind = Kind::Replace, .id = "x", .new_id = "y", .members = R"("a":2)"});
  EXPECT_EQ(entries(), 2u);
  write({.id = "z", .members = R"("a":2)"});
  EXPECT_EQ(entries(), 4u);
  write({.kind = Kind::Delete, .id = "y"});
  EXPECT_EQ(entries(), 2u);
}

TEST_F(StageIndexTest, WhatIsReplacedWithinATransactionLeavesNothing) {
  add({"/a"});
  write({.id = "x", .members = R"("a":1)"});
  commit();
  // A value of the first version that the last has not, though the one between them has it too.
  ASSERT_TRUE(stage_writes({{.kind = Kind::Replace, .id = "x", .members = R"("a":1,"b":1)"},
                            {.kind = Kind::Replace, .id = "x", .members = R"("a":2)"}}));
  EXPECT_EQ(entries(), 1u);
  ASSERT_TRUE(stage_writes({{.kind = Kind::Replace, .id = "x", .members = R"("a":3)"},
                            {.kind = Kind::Replace, .id = "x", .members = R"("a":2)"}}));
  EXPECT_EQ(entries(), 1u);
  ASSERT_TRUE(stage_writes({{.kind = Kind::Replace, .id = "x", .members = R"("a":2,"b":1)"},
                            {.kind = Kind::Delete, .id = "x"},
                            {.id = "y", .members = R"("a":5)"},
                            {.kind = Kind::Delete, .id = "y"}}));
  EXPECT_EQ(entries(), 0u);
}

TEST_F(StageIndexTest, VersionsThatAreOnlyStagedAreReplacedWithTheirEntries) {
  add({"/a"});
  write({.id = "x", .members = R"("a":1)"});
  write({.kind = Kind::Replace, .id = "x", .members = R"("a":2)"});
  write({.id = "y", .members = R"("a":1)"});
  write({.kind = Kind::Delete, .id = "y"});
  EXPECT_EQ(entries(), 1u);
}

TEST_F(StageIndexTest, AFailedTransactionLeavesNothing) {
  add({"/a"});
  write({.id = "x", .members = R"("a":1)"});
  EXPECT_FALSE(stage_writes({{.kind = Kind::Replace, .id = "x", .members = R"("a":2)"},
                             {.kind = Kind::Delete, .id = "nowhere"}}));
  EXPECT_EQ(entries(), 1u);
  write({.kind = Kind::Replace, .id = "x", .members = R"("a":2)"});
  fail_commit();
  EXPECT_EQ(entries(), 1u);
}

TEST_F(StageIndexTest, DeletingAllOfAKeyTakesTheirEntries) {
  add({"/a"});
  for (const char* id : {"x", "y", "z"}) write({.id = id, .members = R"("a":1)"});
  commit();
  write({.id = "staged", .members = R"("a":1)"});
  write({.id = "other", .partition_key = "q", .members = R"("a":1)"});
  ASSERT_TRUE(delete_all("p"));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(StageIndexTest, ExpiredDocumentsTakeTheirEntries) {
  rules.default_ttl = 10;
  keep_expiry(true);
  add({"/a"});
  write({.id = "purged", .members = R"("a":1)"});
  write({.id = "replaced", .members = R"("a":1)"});
  commit();
  clock.advance(20s);
  write({.id = "replaced", .members = R"("a":2)"});
  EXPECT_EQ(entries(), 2u) << "the write that met it has purged it";
  DueQueue queue;
  const auto due =
      queue.find(*store->snapshot(), kPartition, rules.default_ttl, clock.unix_seconds());
  ASSERT_TRUE(due);
  ASSERT_TRUE(stage_all({.rules = rules, .work = ExpiryPurge{due->candidates}}));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(StageIndexTest, UniqueKeysHoldBesides) {
  rules = rules_with_unique_keys();
  add({"/u", "/a"});
  write({.id = "x", .unique = {"1"}, .members = R"("a":1)"});
  EXPECT_EQ(attempt({.id = "y", .unique = {"1"}}), "conflict");
  write({.kind = Kind::Replace, .id = "x", .unique = {"2"}, .members = R"("a":1)"});
  write({.id = "y", .unique = {"1"}});
  EXPECT_EQ(attempt({.id = "z", .unique = {"2"}}), "conflict");
  EXPECT_EQ(entries(), 4u);
}

TEST_F(StageIndexTest, HistoryHasThePreviousTextsBesides) {
  keep_history(storage::RetentionSettings::History::All,
               storage::RetentionSettings::PreviousImage::All);
  add({"/a"});
  write({.id = "x", .members = R"("a":1)"});
  write({.kind = Kind::Replace, .id = "x", .members = R"("a":2)"});
  write({.kind = Kind::Delete, .id = "x"});
  EXPECT_EQ(entries(), 0u);
}

TEST_F(StageIndexTest, DroppingAnIndexTakesItsEntriesOnly) {
  add({"/a", "/b", "/c"});
  write_many(5);
  commit();
  ASSERT_TRUE(change_indexes({}, {"/b"}));
  EXPECT_EQ(entries(), 10u);
  EXPECT_THAT(indexes(), ElementsAre("/a complete", "/c complete"));
  write({.kind = Kind::Replace, .id = "3", .members = R"("b":1)"});
  EXPECT_EQ(entries(), 10u);
}

// ── building ─────────────────────────────────────────────────────────────────────────────────────

TEST_F(StageIndexTest, WhatWasThereBeforeIsBuiltInPieces) {
  write_many(60, 100'000);
  commit();
  add({"/a", "/p"});
  EXPECT_THAT(indexes(), ElementsAre("/a 0", "/p 0"));
  EXPECT_EQ(entries(), 0u);
  EXPECT_GT(build_all(), 3);
  EXPECT_THAT(indexes(), ElementsAre("/a complete", "/p complete"));
  EXPECT_EQ(entries(), 120u);
  const auto head = stage.head();
  EXPECT_FALSE(build_indexes()->more);
  EXPECT_EQ(stage.head(), head) << "there is nothing left to do";
  EXPECT_EQ(head.lsn, Lsn{61}) << "and it took no LSN";
}

TEST_F(StageIndexTest, WritesGoOnDuringABuild) {
  write_many(40, 100'000);
  commit();
  add({"/a"});
  ASSERT_TRUE(build_indexes()->more);
  // On both sides of where it stands; some committed before the next step, some only staged.
  for (const char* id : {"0", "39"}) {
    write({.kind = Kind::Replace, .id = id, .members = R"("a":"new")"});
  }
  write({.kind = Kind::Delete, .id = "1"});
  write({.kind = Kind::Delete, .id = "38"});
  write({.id = "more", .members = R"("a":7)"});
  commit();
  write({.kind = Kind::Replace, .id = "2", .members = R"("a":"staged")"});
  write({.kind = Kind::Replace, .id = "37", .members = R"("a":"staged")"});
  write({.kind = Kind::Delete, .id = "36"});
  for (bool more = true; more;) more = build_indexes()->more;
  EXPECT_THAT(indexes(), ElementsAre("/a complete"));
  EXPECT_EQ(entries(), 38u);
}

TEST_F(StageIndexTest, WhatIsOnlyStagedWhenAnIndexIsAddedIsInIt) {
  write({.id = "stored", .members = R"("a":1)"});
  write({.id = "replaced", .members = R"("a":1)"});
  write({.id = "deleted", .members = R"("a":1)"});
  commit();
  write({.id = "staged", .members = R"("a":1)"});
  write({.kind = Kind::Replace, .id = "replaced", .members = R"("a":2)"});
  write({.kind = Kind::Delete, .id = "deleted"});
  add({"/a"});
  // The build sees a store without any of that.
  EXPECT_FALSE(build_indexes()->more);
  EXPECT_EQ(entries(), 3u);
}

TEST_F(StageIndexTest, WhatWasCommittedBehindTheWritersBackIsBuilt) {
  write({.id = "x", .members = R"("a":1)"});
  store_staged();
  add({"/a"});
  EXPECT_FALSE(build_indexes()->more);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(StageIndexTest, ABuildGoesOnWhereItWasAfterARestart) {
  write_many(40, 100'000);
  commit();
  add({"/a"});
  ASSERT_TRUE(build_indexes()->more);
  commit();
  const auto before = indexes();
  EXPECT_NE(before, std::vector<std::string>{"/a 0"});
  restart();
  EXPECT_EQ(indexes(), before);
  write({.kind = Kind::Replace, .id = "0", .members = R"("a":"new")"});
  build_all();
  EXPECT_EQ(entries(), 40u);
}

TEST_F(StageIndexTest, AStepThatWasNotCommittedIsDoneAgain) {
  write_many(40, 100'000);
  commit();
  add({"/a"});
  commit();
  ASSERT_TRUE(build_indexes()->more);
  fail_commit();
  EXPECT_THAT(indexes(), ElementsAre("/a 0"));
  EXPECT_EQ(entries(), 0u);
  build_all();
  EXPECT_EQ(entries(), 40u);
}

TEST_F(StageIndexTest, AnIndexThatIsAddedDuringABuildCatchesUp) {
  write_many(60, 100'000);
  commit();
  add({"/a"});
  ASSERT_TRUE(build_indexes()->more);
  commit();
  add({"/p"});
  build_all();
  EXPECT_THAT(indexes(), ElementsAre("/a complete", "/p complete"));
  EXPECT_EQ(entries(), 120u);
}

TEST_F(StageIndexTest, AnIndexThatIsDroppedDuringABuildLeavesNothing) {
  write_many(40, 100'000);
  commit();
  add({"/a", "/p"});
  ASSERT_TRUE(build_indexes()->more);
  ASSERT_TRUE(change_indexes({}, {"/a"})) << "in one commit with a step of the build";
  EXPECT_THAT(indexes().size(), 1u);
  commit();
  restart();
  build_all();
  EXPECT_THAT(indexes(), ElementsAre("/p complete"));
  EXPECT_EQ(entries(), 40u);
}

TEST_F(StageIndexTest, ADropThatWasNotCommittedHasNotHappened) {
  add({"/a"});
  write_many(5);
  commit();
  ASSERT_TRUE(change_indexes({}, {"/a"}));
  fail_commit();
  EXPECT_THAT(indexes(), ElementsAre("/a complete"));
  write({.kind = Kind::Delete, .id = "0"});
  EXPECT_EQ(entries(), 4u);
  ASSERT_TRUE(change_indexes({}, {"/a"}));
  commit();
  restart();
  EXPECT_EQ(entries(), 0u);
}

}  // namespace
}  // namespace orrery::partition
