// Patches, batches, history and purges through a partition with its committer, and disk errors in
// between.
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "partition/partition.h"
#include "partition/test_audit.h"
#include "partition/test_environment.h"

namespace orrery::partition {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::SizeIs;

using Kind = Write::Kind;
using Fault = FaultyCommitLog::Fault;

constexpr PartitionNumber kNumber{5};

class PartitionChangeTest : public testing::Test {
 protected:
  PartitionChangeTest() { open({}); }
  ~PartitionChangeTest() override {
    loop.stop();
    partition.reset();
    audit(home.store(), kNumber);
    home.close();
  }
  void open(const storage::Head& head) {
    home.committer().start();
    partition = std::make_shared<Partition>(home.environment(), kNumber, RangeId{0},
                                            Rid::container({0, 0, 0, 1}, {0x80, 0, 0, 1}), head);
  }
  void reopen() {
    partition.reset();
    home.close();
    home.open();
    open(audit(home.store(), kNumber).head);
  }
  void keep_history() {
    const storage::RetentionSettings all{storage::RetentionSettings::History::All,
                                         storage::RetentionSettings::PreviousImage::All,
                                         storage::RetentionSettings::Expiry::Building};
    ASSERT_TRUE(partition->submit_and_wait({.work = RetentionChange{all}}));
  }
  Result<Committed> write(std::vector<WriteOf> writes) {
    return partition->submit_and_wait(transaction_of(std::move(writes), rules));
  }

  TestEnvironment home;
  std::shared_ptr<Partition> partition;
  Rules rules;
  TestLoop loop{2};
};

TEST_F(PartitionChangeTest, PatchesOfOneDocumentFromManySidesAllCount) {
  keep_history();
  ASSERT_TRUE(write({{.id = "a"}}));
  constexpr int kPatches = 500;
  std::vector<std::future<Result<Committed>>> patches;
  for (int i = 0; i < kPatches; ++i) {
    patches.push_back(loop.submit(
        partition, transaction_of({{.kind = Kind::Patch, .id = "a", .padding = 1}}, rules)));
  }
  for (auto& patch : patches) ASSERT_TRUE(patch.get());
  const auto audited = audit(home.store(), kNumber);
  EXPECT_THAT(audited.texts.begin()->second, HasSubstr("\"" + std::string(kPatches, 'x') + "\""));
  EXPECT_THAT(audited.history, SizeIs(kPatches + 1)) << "each with the text before it";
}

TEST_F(PartitionChangeTest, ReadsAreAnsweredWithoutACommitUnlessTheyRestOnOne) {
  ASSERT_TRUE(write({{.id = "a"}}));
  const auto commits = home.committer().stats().commits.load();
  const auto read = write({{.kind = Kind::Read, .id = "a"}});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->lsn, Lsn{2});
  EXPECT_EQ(home.committer().stats().commits.load(), commits);

  home.log().hold();
  auto replaced = loop.submit(partition, transaction_of({{.kind = Kind::Replace, .id = "a"}}));
  home.log().wait_for_append();
  auto waiting = loop.submit(partition, transaction_of({{.kind = Kind::Read, .id = "a"}}));
  EXPECT_EQ(waiting.wait_for(50ms), std::future_status::timeout)
      << "nobody is told of what is not durable";
  home.log().release();
  EXPECT_EQ(waiting.get()->writes.at(0).position.lsn, Lsn{3});
  ASSERT_TRUE(replaced.get());
}

TEST_F(PartitionChangeTest, WhatIsKeptSurvivesARestartThoughNothingElseWasCommitted) {
  keep_history();
  reopen();
  const auto head = audit(home.store(), kNumber).head;
  EXPECT_EQ(head.retention.history, storage::RetentionSettings::History::All);
  EXPECT_EQ(head.lsn, Lsn{1});
  ASSERT_TRUE(write({{.id = "a"}}));
  EXPECT_THAT(audit(home.store(), kNumber).history, SizeIs(1));
}

class PartitionChangeFaultTest : public PartitionChangeTest,
                                 public testing::WithParamInterface<Fault> {};

TEST_P(PartitionChangeFaultTest, HistoryAgreesWithTheLogAfterADiskError) {
  rules.default_ttl = -1;
  keep_history();
  ASSERT_TRUE(write({{.id = "a"}, {.id = "b", .ttl = 5}}));
  home.advance(5s);
  home.log().fail_next(GetParam());
  EXPECT_FALSE(write({{.kind = Kind::Patch, .id = "a", .padding = 1}, {.id = "b"}}));
  ASSERT_TRUE(home.recovered());
  const bool stored = GetParam() == Fault::AfterWriting;
  // audit() checks that each version has its history and its expiry entry.
  EXPECT_THAT(audit(home.store(), kNumber).history, SizeIs(stored ? 5 : 2));
  ASSERT_TRUE(write({{.kind = Kind::Patch, .id = "a", .padding = 1}}));
  const auto audited = audit(home.store(), kNumber);
  EXPECT_THAT(audited.texts.at(key_of("p", "a").bytes()), HasSubstr(stored ? "\"xx\"" : "\"x\""))
      << "built on what the disk has";
  reopen();
  ASSERT_TRUE(write({{.kind = Kind::Delete, .id = "a"}}));
}

TEST_P(PartitionChangeFaultTest, PatchesUnderWayDuringADiskErrorAreAllOrNothing) {
  ASSERT_TRUE(write({{.id = "a"}}));
  home.log().fail_next(GetParam(), true, 3);
  std::vector<std::future<Result<Committed>>> patches;
  for (int i = 0; i < 200; ++i) {
    patches.push_back(loop.submit(
        partition, transaction_of({{.kind = Kind::Patch, .id = "a", .padding = 1}}, rules)));
  }
  std::size_t told = 0;
  for (auto& patch : patches) {
    const auto outcome = patch.get();
    if (outcome) ++told;
    if (!outcome) {
      EXPECT_THAT(outcome.error().code(),
                  testing::AnyOf(ErrorCode::Unavailable, ErrorCode::OutcomeUnknown));
    }
  }
  ASSERT_TRUE(home.recovered());
  auto audited = audit(home.store(), kNumber);
  const std::string& text = audited.texts.begin()->second;
  const auto from = text.find(R"("p":")");
  const std::size_t patched = from == std::string::npos ? 0 : text.find('"', from + 5) - (from + 5);
  EXPECT_EQ(patched, audited.head.lsn.value - 2) << "one each, in order";
  EXPECT_GE(patched, told);
  if (GetParam() == Fault::BeforeWriting) EXPECT_EQ(patched, told);
}

INSTANTIATE_TEST_SUITE_P(Faults, PartitionChangeFaultTest,
                         testing::Values(Fault::BeforeWriting, Fault::AfterWriting));

}  // namespace
}  // namespace orrery::partition
