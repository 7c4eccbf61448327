#include "partition/committer.h"

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "partition/test_environment.h"
#include "storage/test_store.h"

namespace orrery::partition {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Fault = FaultyCommitLog::Fault;

class CommitterTest : public testing::Test {
 protected:
  void open(CommitterLimits limits) {
    committer.emplace(log, limits);
    committer->on_recovered([this] {
      ++reloads;
      return reload ? reload() : Result<>();
    });
    committer->start();
  }
  void SetUp() override { open({.recovery_interval = 5ms}); }
  void TearDown() override {
    log.release();
    if (committer) committer->stop();
  }

  static storage::Batch batch_of(std::string_view key, std::size_t bytes = 1) {
    storage::Batch batch;
    batch.put(storage::Family::Log, key, std::string(bytes, 'v'));
    return batch;
  }
  /// Submits one write; what comes of it is told to `told` as "key:ok" or "key:refused".
  void submit(const std::string& key, std::size_t bytes = 1) {
    submit_in(committer->generation(), key, bytes);
  }
  void submit_in(StoreGeneration generation, const std::string& key, std::size_t bytes = 1) {
    Committer::Staged staged;
    staged.batch = batch_of(key, bytes);
    staged.generation = generation;
    staged.done = [this, key](const Result<>& outcome) {
      std::lock_guard lock(mutex);
      told.push_back(key + (outcome ? ":ok" : ":refused"));
    };
    committer->submit(std::move(staged));
  }
  /// Submits a move of the head of partition 1, and nothing else.
  void submit_move(Lsn from, Lsn to) {
    Committer::Staged staged;
    staged.generation = committer->generation();
    staged.partition = PartitionNumber{1};
    staged.head = {from, storage::Head{.lsn = to}};
    staged.done = [this](const Result<>&) {
      std::lock_guard lock(mutex);
      told.push_back("head");
    };
    committer->submit(std::move(staged));
  }
  std::vector<std::string> told_so_far() {
    std::lock_guard lock(mutex);
    return told;
  }
  bool told_count(std::size_t count) {
    return eventually([&] { return told_so_far().size() == count; });
  }
  bool recovered() {
    return eventually([this] { return committer->accepts(); });
  }
  std::string stored_keys() {
    std::string keys;
    const auto snapshot = store->snapshot();
    for (const auto& [key, value] : contents(*snapshot, storage::Family::Log)) keys += key;
    return keys;
  }

  storage::TemporaryDirectory directory;
  std::unique_ptr<storage::Store> store = storage::open_store(directory.path());
  FaultyCommitLog log{*store};
  std::mutex mutex;
  std::vector<std::string> told;
  std::function<Result<>()> reload;
  std::atomic<int> reloads{0};
  std::optional<Committer> committer;
};

using CommitterDeathTest = CommitterTest;

TEST_F(CommitterDeathTest, AHeadThatGoesBackStopsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto move_back = [&] {
    submit_move(Lsn{5}, Lsn{4});
    (void)told_count(1);
  };
  EXPECT_DEATH(move_back(), "from <= head.lsn");
}

TEST_F(CommitterDeathTest, AGapBetweenLsnsStopsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto leave_a_gap = [&] {
    log.hold();
    submit("a");
    log.wait_for_append();
    submit_move(Lsn{1}, Lsn{2});
    submit_move(Lsn{3}, Lsn{4});
    log.release();
    (void)told_count(3);
  };
  EXPECT_DEATH(leave_a_gap(), "head.lsn == later->from");
}

TEST_F(CommitterTest, HeadsOfOnePartitionFollowOneAnother) {
  log.hold();
  submit("a");
  log.wait_for_append();
  submit_move(Lsn{1}, Lsn{2});
  submit_move(Lsn{2}, Lsn{2});
  submit_move(Lsn{2}, Lsn{5});
  log.release();
  ASSERT_TRUE(told_count(4));
  std::string value;
  ASSERT_EQ(store->get(storage::Family::Heads, storage::partition_prefix(PartitionNumber{1}), value,
                       storage::Tier::Disk),
            storage::Lookup::Found);
  EXPECT_EQ(storage::Head::parse(value)->lsn, Lsn{5}) << "only the last one is stored";
}

// ── groups ───────────────────────────────────────────────────────────────────────────────────────

TEST_F(CommitterTest, WhatIsSubmittedIsCommittedAndTold) {
  submit("a");
  ASSERT_TRUE(told_count(1));
  EXPECT_THAT(told_so_far(), ElementsAre("a:ok"));
  EXPECT_EQ(stored_keys(), "a");
}

TEST_F(CommitterTest, CommitWaitsForTheOutcome) {
  EXPECT_TRUE(committer->commit(batch_of("a"), committer->generation()));
  EXPECT_EQ(stored_keys(), "a");
}

TEST_F(CommitterTest, ManyTransactionsInOneCommitMeanContention) {
  committer->stop();
  open({.contention_transactions = 3, .contention_window = 24h});
  submit("a");
  ASSERT_TRUE(told_count(1));
  EXPECT_FALSE(committer->is_contended());
  log.hold();
  submit("b");
  log.wait_for_append();
  for (const char* key : {"c", "d", "e"}) submit(key);
  EXPECT_FALSE(committer->is_contended());
  log.release();
  ASSERT_TRUE(told_count(5));
  EXPECT_TRUE(committer->is_contended());
}

TEST_F(CommitterTest, WhatIsStagedDuringACommitGoesTogetherInTheNext) {
  log.hold();
  submit("a");
  log.wait_for_append();
  submit("b");
  submit("c");
  submit("d");
  EXPECT_THAT(told_so_far(), IsEmpty()) << "nothing is told before it is durable";
  log.release();
  ASSERT_TRUE(told_count(4));
  EXPECT_THAT(told_so_far(), ElementsAre("a:ok", "b:ok", "c:ok", "d:ok"));
  EXPECT_THAT(log.groups(), ElementsAre(1, 3));
  EXPECT_EQ(committer->stats().commits, 2u);
  EXPECT_EQ(committer->stats().groups, 4u);
  EXPECT_EQ(committer->stats().bytes, 4 * batch_of("a").byte_size());
}

TEST_F(CommitterTest, ACommitIsNotLargerThanItsLimitUnlessOneItemIs) {
  committer.reset();
  open({.group_bytes_max = 1000, .recovery_interval = 5ms});
  log.hold();
  submit("0");
  log.wait_for_append();
  submit("a", 400);
  submit("b", 400);
  submit("c", 400);
  submit("d", 5000);
  submit("e", 10);
  submit("f", 10);
  log.release();
  ASSERT_TRUE(told_count(7));
  EXPECT_THAT(told_so_far(), ElementsAre("0:ok", "a:ok", "b:ok", "c:ok", "d:ok", "e:ok", "f:ok"));
  EXPECT_THAT(log.groups(), ElementsAre(1, 2, 1, 1, 2));
}

TEST_F(CommitterTest, WritersWaitWhileTooMuchIsStaged) {
  committer.reset();
  open({.queued_bytes_max = 1000, .recovery_interval = 5ms});
  log.hold();
  submit("a");
  log.wait_for_append();
  submit("b", 2000);  // Over the limit now: the next one waits.
  std::atomic<bool> handed_over{false};
  std::thread writer([&] {
    submit("c");
    handed_over = true;
  });
  EXPECT_FALSE(eventually([&] { return handed_over.load(); }, 50ms));
  log.release();
  writer.join();
  ASSERT_TRUE(told_count(3));
  EXPECT_THAT(told_so_far(), ElementsAre("a:ok", "b:ok", "c:ok"));
}

TEST_F(CommitterTest, SubmissionsOfManyThreadsAreAllCommittedEachInItsThreadsOrder) {
  std::vector<std::thread> threads;
  for (char name = 'a'; name < 'e'; ++name) {
    threads.emplace_back([this, name] {
      for (int i = 0; i < 100; ++i) submit(std::string(1, name) + std::to_string(100 + i));
    });
  }
  for (auto& thread : threads) thread.join();
  ASSERT_TRUE(told_count(400));
  std::map<char, std::string> last;
  for (const auto& each : told_so_far()) {
    EXPECT_TRUE(each.ends_with(":ok"));
    EXPECT_LT(last[each[0]], each);
    last[each[0]] = each;
  }
}

// ── failure and recovery ─────────────────────────────────────────────────────────────────────────

TEST_F(CommitterTest, AFailureRefusesTheWholeGroupAndAllThatWasValidatedBefore) {
  const auto generation = committer->generation();
  log.hold();
  submit("a");
  log.wait_for_append();
  submit("b");
  submit("c");
  log.fail_next(Fault::BeforeWriting, /*recoverable=*/false);
  log.release();
  ASSERT_TRUE(told_count(3));
  EXPECT_THAT(told_so_far(), ElementsAre("a:refused", "b:refused", "c:refused"));
  EXPECT_FALSE(committer->accepts());
  EXPECT_NE(committer->generation(), generation);
  EXPECT_EQ(committer->refusal().code(), ErrorCode::Unavailable);
  EXPECT_THAT(committer->refusal().message(), HasSubstr("the disk is broken"));
  EXPECT_EQ(committer->stats().commit_failures, 1u);
  EXPECT_EQ(stored_keys(), "");
}

TEST_F(CommitterTest, WhileWritesAreSuspendedEverythingIsRefusedWhateverItsEpoch) {
  log.fail_next(Fault::BeforeWriting, /*recoverable=*/false);
  submit("a");
  ASSERT_TRUE(told_count(1));
  submit("b");
  submit_in(StoreGeneration{1}, "c");
  ASSERT_TRUE(told_count(3));
  EXPECT_THAT(told_so_far(), ElementsAre("a:refused", "b:refused", "c:refused"));
  EXPECT_FALSE(committer->probe());
  EXPECT_THAT(log.groups(), IsEmpty());
}

TEST_F(CommitterTest, AfterRecoveryOnlyWhatWasValidatedSinceIsAccepted) {
  const auto stale = committer->generation();
  log.fail_next(Fault::BeforeWriting);
  submit("a");
  ASSERT_TRUE(told_count(1));
  ASSERT_TRUE(recovered());
  submit_in(stale, "b");
  submit("c");
  ASSERT_TRUE(told_count(3));
  EXPECT_THAT(told_so_far(), ElementsAre("a:refused", "b:refused", "c:ok"));
  EXPECT_EQ(stored_keys(), "c");
  EXPECT_EQ(committer->stats().recoveries, 1u);
}

TEST_F(CommitterTest, WhoeverKeepsStateReadsItAnewBeforeWritesAreAccepted) {
  std::atomic<bool> accepted_during_reload{false};
  std::atomic<int> refusals{2};
  reload = [&]() -> Result<> {
    accepted_during_reload = accepted_during_reload || committer->accepts();
    if (refusals-- > 0) return Error(ErrorCode::Unavailable, "not yet");
    return {};
  };
  log.fail_next(Fault::BeforeWriting);
  submit("a");
  ASSERT_TRUE(told_count(1));
  ASSERT_TRUE(recovered());
  EXPECT_FALSE(accepted_during_reload);
  EXPECT_EQ(reloads, 3);
  EXPECT_TRUE(committer->probe());
}

TEST_F(CommitterTest, RecoveryIsTriedUntilItSucceeds) {
  log.fail_next(Fault::BeforeWriting, /*recoverable=*/false);
  submit("a");
  ASSERT_TRUE(eventually([this] { return log.recoveries_tried() >= 3; }));
  EXPECT_FALSE(committer->accepts());
  EXPECT_EQ(reloads, 0) << "nothing to read anew while the disk refuses";
  log.make_recoverable();
  ASSERT_TRUE(recovered());
  EXPECT_TRUE(committer->commit(batch_of("b"), committer->generation()));
}

TEST_F(CommitterTest, SubmissionsThatKeepComingDoNotKeepRecoveryFromBeingTried) {
  // As when a client creates a database in a loop: changes of the catalog come here also while
  // writes are suspended.
  log.fail_next(Fault::BeforeWriting, /*recoverable=*/true);
  submit("a");
  ASSERT_TRUE(eventually([this] { return committer->stats().commit_failures == 1; }));
  const bool resumed = eventually(
      [this] {
        (void)committer->commit(batch_of("b"), committer->generation());
        return committer->accepts();
      },
      2s);
  EXPECT_TRUE(resumed) << "2 s of refused submissions, and recovery was tried "
                       << log.recoveries_tried() << " times at intervals of 5 ms";
}

TEST_F(CommitterTest, ItFailsAndRecoversAgainAndAgain) {
  for (int round = 0; round < 5; ++round) {
    const auto generation = committer->generation();
    log.fail_next(round % 2 == 0 ? Fault::BeforeWriting : Fault::AfterWriting);
    EXPECT_FALSE(committer->commit(batch_of("lost"), generation));
    ASSERT_TRUE(recovered());
    EXPECT_NE(committer->generation(), generation);
    EXPECT_TRUE(committer->commit(batch_of("kept"), committer->generation()));
  }
  EXPECT_EQ(committer->stats().commit_failures, 5u);
}

TEST_F(CommitterTest, AProbeIsAWriteThatNoPartitionSees) {
  EXPECT_TRUE(committer->probe());
  EXPECT_THAT(log.groups(), ElementsAre(1));
  log.fail_next(Fault::BeforeWriting, /*recoverable=*/false);
  EXPECT_FALSE(committer->probe());
  EXPECT_FALSE(committer->probe()) << "also without trying";
}

// ── stopping ─────────────────────────────────────────────────────────────────────────────────────

TEST_F(CommitterTest, StoppingCommitsWhatIsQueuedAndRefusesWhatComesLater) {
  log.hold();
  submit("a");
  log.wait_for_append();
  submit("b");
  submit("c");
  std::thread stopper([this] { committer->stop(); });
  log.release();
  stopper.join();
  EXPECT_THAT(told_so_far(), ElementsAre("a:ok", "b:ok", "c:ok"));
  submit("d");
  EXPECT_THAT(told_so_far(), ElementsAre("a:ok", "b:ok", "c:ok", "d:refused"));
  EXPECT_EQ(committer->commit(batch_of("e"), committer->generation()).error().code(),
            ErrorCode::Unavailable);
  EXPECT_EQ(stored_keys(), "abc");
  committer->stop();  // Once more does no harm.
}

TEST_F(CommitterTest, StoppingDoesNotWaitForABrokenDisk) {
  log.fail_next(Fault::BeforeWriting, /*recoverable=*/false);
  submit("a");
  ASSERT_TRUE(told_count(1));
  submit("b");
  committer->stop();
  EXPECT_THAT(told_so_far(), ElementsAre("a:refused", "b:refused"));
}

TEST_F(CommitterTest, WritersThatWaitForSpaceAreServedWhenItStops) {
  committer.reset();
  open({.queued_bytes_max = 10, .recovery_interval = 5ms});
  log.hold();
  submit("a");
  log.wait_for_append();
  submit("b", 100);
  std::vector<std::thread> writers;
  for (const auto* key : {"c", "d", "e"}) {
    writers.emplace_back([this, key] { submit(key); });
  }
  std::thread stopper([this] { committer->stop(); });
  log.release();
  stopper.join();
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(told_so_far().size(), 5u) << "committed or refused, but told";
}

TEST_F(CommitterTest, WhatWasQueuedBeforeAStopThatCameBeforeTheStartIsTold) {
  committer->stop();
  committer.emplace(log, CommitterLimits{});
  submit("a");
  committer->stop();
  EXPECT_EQ(told_so_far().size(), 1u) << "whoever waits for it would wait for ever";
}

}  // namespace
}  // namespace orrery::partition
