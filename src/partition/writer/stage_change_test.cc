// Patches and reads inside transactions, several writes of one document, and failures that are
// told.
#include <optional>
#include <string>
#include <string_view>
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
using testing::HasSubstr;
using testing::IsEmpty;

using Kind = Write::Kind;

class StageChangeTest : public StageTest {
 protected:
  /// A patch by a function that the test gives.
  Transaction patch(std::string_view id, std::function<Result<NewVersion>(std::string_view)> change,
                    std::string if_match = {}) {
    Write write;
    write.kind = Kind::Patch;
    write.key = key_of("p", id);
    write.if_match = std::move(if_match);
    write.change = std::move(change);
    return {.rules = rules, .work = DocumentWrites{{std::move(write)}}};
  }
  /// The ids in the log, oldest first.
  std::vector<std::string> logged_ids() {
    std::vector<std::string> ids;
    const auto snapshot = store->snapshot();
    for (const auto& [key, value] : contents(*snapshot, storage::Family::Log)) {
      ids.emplace_back(storage::VersionRecord::parse(value)->id);
    }
    return ids;
  }
};

// ── patch ────────────────────────────────────────────────────────────────────────────────────────

TEST_F(StageChangeTest, APatchIsGivenTheStoredTextAndMakesTheNextVersion) {
  const auto created = write({.id = "a", .padding = 3});
  commit();
  std::string seen;
  const auto committed = stage_all(patch("a", [&](std::string_view text) -> Result<NewVersion> {
    seen = text;
    return WriteOf{.id = "a", .ttl = 60, .padding = 5}.version();
  }));
  ASSERT_TRUE(committed);
  EXPECT_EQ(seen, created.text);
  const Written& patched = committed->writes.at(0);
  EXPECT_EQ(patched.kind, Written::Kind::Replaced);
  EXPECT_EQ(patched.header.number, created.header.number);
  EXPECT_EQ(patched.header.own_ttl, 60);
  EXPECT_NE(patched.etag(), created.etag());
  commit();
  EXPECT_EQ(stored_text("a"), patched.text);
  EXPECT_THAT(patched.text, HasSubstr("\"xxxxx\""));
}

TEST_F(StageChangeTest, PatchesOfOneDocumentBuildOnEachOtherCommittedOrNot) {
  write({.id = "a", .padding = 1});
  write({.kind = Kind::Patch, .id = "a", .padding = 1});
  write({.kind = Kind::Patch, .id = "a", .padding = 1});
  store_staged();  // The records are let go here, but the stage has not heard of the commit yet.
  write({.kind = Kind::Patch, .id = "a", .padding = 1});
  const auto last = write({.kind = Kind::Patch, .id = "a", .padding = 1});
  EXPECT_THAT(last.text, HasSubstr("\"xxxxx\""));
  commit();
  EXPECT_EQ(stored_text("a"), last.text);
}

TEST_F(StageChangeTest, APatchIsJudgedInTheOrderOfTheService) {
  bool called = false;
  const auto refuse = [&](std::string_view) -> Result<NewVersion> {
    called = true;
    return Error(ErrorCode::BadRequest, "no such path");
  };
  EXPECT_EQ(outcome_of(stage_all(patch("a", refuse, "\"x\""))), "not found");
  write({.id = "a"});
  EXPECT_EQ(outcome_of(stage_all(patch("a", refuse, "\"x\""))), "precondition failed");
  EXPECT_FALSE(called);
  EXPECT_EQ(outcome_of(stage_all(patch("a", refuse))), "? no such path");
  EXPECT_TRUE(called);

  rules = rules_with_unique_keys();
  write({.id = "b", .unique = {"x"}});
  write({.id = "c", .unique = {"y"}});
  EXPECT_EQ(attempt({.kind = Kind::Patch, .id = "c", .unique = {"x"}}), "conflict");
  EXPECT_EQ(attempt({.kind = Kind::Patch, .id = "c", .unique = {"z"}}), "ok");
  EXPECT_EQ(attempt({.id = "d", .unique = {"y"}}), "ok") << "what the patched one gave up is free";
}

TEST_F(StageChangeTest, APatchOfWhatHasExpiredIsNotFound) {
  rules.default_ttl = 10;
  write({.id = "a"});
  commit();
  clock.advance(10s);
  EXPECT_EQ(attempt({.kind = Kind::Patch, .id = "a"}), "not found");
}

TEST_F(StageChangeTest, APatchWhoseBaseWasNeverStoredIsNotAnswered) {
  write({.id = "a"});
  batch.clear();
  (void)stage.take_records();  // The commit has failed; the writer has not heard of it yet.
  const auto outcome = stage_writes({{.kind = Kind::Patch, .id = "a"}});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), ErrorCode::Unavailable);
  EXPECT_TRUE(stage.outcome_rests_on_staged()) << "so that the committer refuses it";
  fail_commit();
  EXPECT_EQ(attempt({.kind = Kind::Patch, .id = "a"}), "not found");
}

// ── reading inside a transaction ─────────────────────────────────────────────────────────────────

TEST_F(StageChangeTest, AReadTellsTheDocumentAndTakesNoLsn) {
  const auto created = write({.id = "a", .padding = 3});
  commit();
  const auto head = stage.head();
  const auto committed = stage_writes({{.kind = Kind::Read, .id = "a"}});
  ASSERT_TRUE(committed);
  const Written& read = committed->writes.at(0);
  EXPECT_EQ(read.kind, Written::Kind::Read);
  EXPECT_EQ(read.text, created.text);
  EXPECT_EQ(read.text_size, created.text_size);
  EXPECT_EQ(read.etag(), created.etag());
  EXPECT_EQ(committed->lsn, head.lsn);
  EXPECT_EQ(stage.head(), head);
  EXPECT_TRUE(batch.empty());
  EXPECT_FALSE(stage.staged_anything());
  EXPECT_FALSE(stage.outcome_rests_on_staged());
}

TEST_F(StageChangeTest, AReadSeesTheEarlierWritesOfItsTransaction) {
  const auto committed = stage_writes({{.id = "a", .padding = 1},
                                       {.kind = Kind::Read, .id = "a"},
                                       {.kind = Kind::Patch, .id = "a", .padding = 1},
                                       {.kind = Kind::Read, .id = "a"},
                                       {.kind = Kind::Replace, .id = "a", .new_id = "b"},
                                       {.kind = Kind::Read, .id = "b"}});
  ASSERT_TRUE(committed);
  const auto& writes = committed->writes;
  EXPECT_EQ(writes[1].text, writes[0].text);
  EXPECT_EQ(writes[3].text, writes[2].text);
  EXPECT_THAT(writes[3].text, HasSubstr("\"xx\""));
  EXPECT_EQ(writes[5].text, writes[4].text);
  EXPECT_FALSE(stage.outcome_rests_on_staged()) << "on nobody else's";
  EXPECT_EQ(attempt({.kind = Kind::Read, .id = "a"}), "not found");
}

TEST_F(StageChangeTest, AReadThatNamesTheCurrentVersionIsNotModifiedWhicheverTheCondition) {
  const std::string etag(write({.id = "a"}).etag().text());
  const auto kind_of = [&](WriteOf read) { return write(std::move(read)).kind; };
  EXPECT_EQ(kind_of({.kind = Kind::Read, .id = "a", .if_none_match = etag}),
            Written::Kind::NotModified);
  EXPECT_EQ(kind_of({.kind = Kind::Read, .id = "a", .if_match = etag}), Written::Kind::NotModified);
  EXPECT_EQ(kind_of({.kind = Kind::Read, .id = "a", .if_none_match = "\"other\""}),
            Written::Kind::Read);
  EXPECT_EQ(kind_of({.kind = Kind::Read, .id = "a", .if_match = "\"other\""}), Written::Kind::Read);
  EXPECT_EQ(attempt({.kind = Kind::Read, .id = "b", .if_none_match = etag}), "not found");
}

// ── several writes of one document ───────────────────────────────────────────────────────────────

TEST_F(StageChangeTest, ADocumentWrittenTwiceIsInTheLogOnceWithItsFinalContent) {
  write({.id = "old"});
  commit();
  ASSERT_TRUE(stage_writes({{.id = "a", .padding = 1},
                            {.id = "b"},
                            {.kind = Kind::Replace, .id = "a", .padding = 9},
                            {.kind = Kind::Replace, .id = "old", .padding = 1},
                            {.kind = Kind::Upsert, .id = "old", .padding = 8},
                            {.id = "gone"},
                            {.kind = Kind::Delete, .id = "gone"}}));
  EXPECT_EQ(stage.head().documents, 3u);
  commit();
  EXPECT_THAT(logged_ids(), ElementsAre("b", "a", "old"));
  EXPECT_THAT(stored_text("a"), HasSubstr("\"xxxxxxxxx\""));
  EXPECT_THAT(stored_text("old"), HasSubstr("\"xxxxxxxx\""));
}

TEST_F(StageChangeTest, AVersionThatLastedOnlyWithinItsTransactionIsNeverEmitted) {
  ASSERT_TRUE(stage_writes({{.id = "a"},
                            {.kind = Kind::Replace, .id = "a"},
                            {.id = "gone"},
                            {.kind = Kind::Delete, .id = "gone"}}));
  std::size_t log_operations = 0;
  batch.for_each([&](storage::Batch::Kind, storage::Family family, std::string_view,
                     std::string_view) { log_operations += family == storage::Family::Log; });
  EXPECT_EQ(log_operations, 1u);
}

TEST_F(StageChangeTest, ADocumentDeletedAndCreatedAgainInOneTransactionIsAnother) {
  const auto first = write({.id = "a"});
  commit();
  const auto committed = stage_writes(
      {{.kind = Kind::Delete, .id = "a"}, {.id = "a"}, {.kind = Kind::Read, .id = "a"}});
  ASSERT_TRUE(committed);
  EXPECT_EQ(committed->writes[1].kind, Written::Kind::Created);
  EXPECT_GT(committed->writes[2].header.number, first.header.number);
  commit();
  EXPECT_THAT(logged_ids(), ElementsAre("a"));
}

// ── failures as an outcome ───────────────────────────────────────────────────────────────────────

TEST_F(StageChangeTest, AFailureCanBeAnOutcomeAndWritesNothing) {
  write({.id = "there"});
  commit();
  const auto head = stage.head();
  auto transaction = transaction_of({{.id = "a"},
                                     {.kind = Kind::Read, .id = "there"},
                                     {.kind = Kind::Delete, .id = "missing"},
                                     {.id = "b"}},
                                    rules);
  writes_of(transaction).tell_failure = true;
  const auto committed = stage_all(transaction);
  ASSERT_TRUE(committed);
  ASSERT_TRUE(committed->failure);
  EXPECT_EQ(committed->failure->index, 2u);
  EXPECT_EQ(committed->failure->error.code(), ErrorCode::NotFound);
  EXPECT_THAT(committed->writes, IsEmpty());
  EXPECT_EQ(committed->lsn, head.lsn);
  EXPECT_EQ(stage.head(), head);
  EXPECT_FALSE(stage.staged_anything());
  EXPECT_TRUE(batch.empty());
  commit();
  EXPECT_THAT(stored_ids(), ElementsAre("there"));
  EXPECT_EQ(attempt({.id = "a"}), "ok");
}

TEST_F(StageChangeTest, ATransactionWhoseFailureIsToldCanSucceed) {
  auto transaction = transaction_of({{.id = "a"}, {.kind = Kind::Delete, .id = "a"}}, rules);
  writes_of(transaction).tell_failure = true;
  const auto committed = stage_all(transaction);
  ASSERT_TRUE(committed);
  EXPECT_FALSE(committed->failure);
  EXPECT_EQ(committed->writes.size(), 2u);
  EXPECT_EQ(committed->lsn, stage.head().lsn);
}

TEST_F(StageChangeTest, AFailureThatLookedAtWhatIsStagedRestsOnIt) {
  write({.id = "a"});
  auto transaction = transaction_of({{.id = "a"}}, rules);
  writes_of(transaction).tell_failure = true;
  const auto committed = stage_all(transaction);
  ASSERT_TRUE(committed);
  EXPECT_TRUE(committed->failure);
  EXPECT_TRUE(stage.outcome_rests_on_staged());
}

}  // namespace
}  // namespace orrery::partition
