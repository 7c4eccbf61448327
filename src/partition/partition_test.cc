#include "partition/partition.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/post.hpp>

#include "partition/test_audit.h"
#include "partition/test_environment.h"

namespace orrery::partition {
namespace {

using namespace std::chrono_literals;
using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;

using Fault = FaultyCommitLog::Fault;
using Kind = Write::Kind;
using Outcome = std::future<Result<Committed>>;

constexpr PartitionNumber kPartitionTested{1};

class PartitionTest : public testing::Test {
 protected:
  void SetUp() override {
    home.committer().start();
    partition = make_partition(kPartitionTested);
  }
  void TearDown() override {
    home.log().release();
    if (home.recovered()) {
      partition->close();
      ASSERT_TRUE(home.committer().probe()) << "what was staged before is committed now";
      audit(home.store(), kPartitionTested);
    }
  }

  std::shared_ptr<Partition> make_partition(PartitionNumber number, PartitionLimits limits = {}) {
    const storage::Head head;
    storage::Batch batch;
    batch.put(storage::Family::Heads, storage::partition_prefix(number), head.make());
    EXPECT_TRUE(home.committer().commit(std::move(batch), home.committer().generation()));
    return std::make_shared<Partition>(home.environment(), number, RangeId{0},
                                       Rid::container({0, 0, 0, 1}, {0x80, 0, 0, 1}), head, limits);
  }

  Outcome start(WriteOf write) {
    return loop.submit(partition, transaction_of({std::move(write)}));
  }
  Result<Committed> run(WriteOf write) { return start(std::move(write)).get(); }
  /// Memory alone can never decide this one: it goes to a writer thread.
  Outcome start_delete_all() {
    return loop.submit(partition, {.work = DeleteByKey{key_of("p", "")}});
  }
  static bool pending(const Outcome& outcome) {
    return outcome.wait_for(0s) != std::future_status::ready;
  }

  TestEnvironment home;
  std::shared_ptr<Partition> partition;
  // One thread, so that what is submitted first also arrives first.
  TestLoop loop{1};
};

// ── committing ───────────────────────────────────────────────────────────────────────────────────

TEST_F(PartitionTest, ATransactionIsCommittedAndMovesTheHead) {
  EXPECT_EQ(partition->head(), Lsn{1});
  const auto committed = run({.id = "a"});
  ASSERT_TRUE(committed);
  EXPECT_EQ(committed->lsn, Lsn{2});
  EXPECT_EQ(partition->head(), Lsn{2});
  EXPECT_EQ(partition->documents(), 1u);
  EXPECT_EQ(partition->text_bytes(), committed->writes[0].text_size);
}

TEST_F(PartitionTest, TheHeadMovesOnlyOnceTheCommitIsDurable) {
  home.log().hold();
  auto outcome = start({.id = "a"});
  home.log().wait_for_append();
  EXPECT_EQ(partition->head(), Lsn{1});
  EXPECT_EQ(partition->documents(), 0u);
  EXPECT_TRUE(pending(outcome));
  home.log().release();
  EXPECT_TRUE(outcome.get());
  EXPECT_EQ(partition->head(), Lsn{2});
}

TEST_F(PartitionTest, WritesOfManyThreadsGetDenseUniqueLsns) {
  constexpr int kThreads = 4;
  constexpr int kWrites = 250;
  TestLoop loops(3);
  std::vector<std::vector<Outcome>> outcomes(kThreads);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kWrites; ++i) {
        outcomes[thread].push_back(loops.submit(
            partition, transaction_of({{.id = std::to_string(thread) + "-" + std::to_string(i)}})));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  std::set<Lsn> lsns;
  for (auto& of_thread : outcomes) {
    for (auto& outcome : of_thread) {
      const auto committed = outcome.get();
      ASSERT_TRUE(committed);
      EXPECT_TRUE(lsns.insert(committed->lsn).second);
    }
  }
  EXPECT_EQ(lsns.size(), kThreads * kWrites);
  EXPECT_EQ(*lsns.begin(), Lsn{2});
  EXPECT_EQ(*lsns.rbegin(), Lsn{1 + kThreads * kWrites});
  EXPECT_EQ(partition->head(), *lsns.rbegin());
  EXPECT_EQ(partition->documents(), std::uint64_t{kThreads * kWrites});
  // The committer may still be inside the call that told the last one; after another commit it is
  // not.
  EXPECT_TRUE(home.committer().probe());
}

TEST_F(PartitionTest, TransactionsAreCommittedInTheOrderInWhichTheyWereSubmitted) {
  std::vector<Outcome> outcomes;
  for (int i = 0; i < 200; ++i) {
    outcomes.push_back(start({.kind = Kind::Upsert, .id = std::to_string(i % 3)}));
  }
  Lsn last{1};
  for (auto& outcome : outcomes) {
    const auto committed = outcome.get();
    ASSERT_TRUE(committed);
    EXPECT_EQ(committed->lsn, next(last));
    last = committed->lsn;
  }
  EXPECT_EQ(partition->documents(), 3u);
}

TEST_F(PartitionTest, AWriterThatWaitsForItsAnswerReadsItsOwnWrite) {
  for (int i = 0; i < 50; ++i) {
    const auto committed = run({.kind = Kind::Upsert, .id = "a"});
    ASSERT_TRUE(committed);
    ASSERT_GE(partition->head(), committed->lsn);
    const auto audited = audit(home.store(), kPartitionTested);
    EXPECT_EQ(audited.entries.at(key_of("p", "a").bytes()).position.lsn, committed->lsn);
  }
}

TEST_F(PartitionTest, AReaderNeverSeesAHeadAboveWhatIsStored) {
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    Lsn last;
    while (!stop) {
      const Lsn head = partition->head();
      EXPECT_GE(head, last) << "the head went back";
      last = head;
      std::string value;
      home.store().get(storage::Family::Heads, storage::partition_prefix(kPartitionTested), value,
                       storage::Tier::Disk);
      EXPECT_GE(storage::Head::parse(value)->lsn, head);
    }
  });
  std::vector<Outcome> outcomes;
  for (int i = 0; i < 500; ++i) outcomes.push_back(start({.id = std::to_string(i)}));
  for (auto& outcome : outcomes) EXPECT_TRUE(outcome.get());
  stop = true;
  reader.join();
}

// ── refusals ─────────────────────────────────────────────────────────────────────────────────────

TEST_F(PartitionTest, ARefusalThatRestsOnCommittedStateIsToldAtOnce) {
  ASSERT_TRUE(run({.id = "a"}));
  home.log().hold();
  auto held = start({.id = "b"});
  home.log().wait_for_append();
  const auto refused = run({.id = "a"});
  EXPECT_EQ(refused.error().code(), ErrorCode::Conflict);
  EXPECT_TRUE(pending(held));
}

TEST_F(PartitionTest, ARefusalThatRestsOnWhatIsStagedWaitsForIt) {
  home.log().hold();
  auto created = start({.id = "a"});
  home.log().wait_for_append();
  auto conflict = start({.id = "a"});
  // This one was submitted later and needs nothing staged, so the one above has been looked at.
  EXPECT_EQ(run({.kind = Kind::Delete, .id = "missing"}).error().code(), ErrorCode::NotFound);
  EXPECT_TRUE(pending(conflict)) << "nobody may hear of a document that is not durable yet";
  home.log().release();
  EXPECT_TRUE(created.get());
  EXPECT_EQ(conflict.get().error().code(), ErrorCode::Conflict);
}

TEST_F(PartitionTest, ARefusalThatRestedOnWhatWasLostIsNotTold) {
  home.log().hold();
  auto created = start({.id = "a"});
  home.log().wait_for_append();
  auto conflict = start({.id = "a"});
  EXPECT_EQ(run({.kind = Kind::Delete, .id = "missing"}).error().code(), ErrorCode::NotFound);
  home.log().fail_next(Fault::BeforeWriting);
  home.log().release();
  EXPECT_EQ(created.get().error().code(), ErrorCode::OutcomeUnknown);
  EXPECT_EQ(conflict.get().error().code(), ErrorCode::Unavailable);
}

// ── limits ───────────────────────────────────────────────────────────────────────────────────────

/// Keeps all writer threads busy, so that what memory alone cannot decide stays in the mailbox, and
/// all that comes after it too.
class BusyWriters {
 public:
  explicit BusyWriters(Environment& environment) {
    const std::shared_future<void> free = free_.get_future().share();
    for (int i = 0; i < 2; ++i) {
      asio::post(environment.writers, [free, busy = busy_] {
        ++*busy;
        free.wait();
      });
    }
    EXPECT_TRUE(eventually([this] { return *busy_ == 2; }));
  }
  ~BusyWriters() { free_.set_value(); }

 private:
  std::promise<void> free_;
  std::shared_ptr<std::atomic<int>> busy_ = std::make_shared<std::atomic<int>>(0);
};

TEST_F(PartitionTest, MoreTransactionsThanMayWaitAreRefused) {
  partition = make_partition(kPartitionTested, {.waiting_transactions_max = 3});
  auto busy = std::make_unique<BusyWriters>(home.environment());
  std::vector<Outcome> accepted;
  accepted.push_back(start_delete_all());
  for (int i = 0; i < 2; ++i) accepted.push_back(start({.id = std::to_string(i)}));
  const auto refused = run({.id = "too many"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::TooManyRequests);
  EXPECT_THAT(refused.error().message(), HasSubstr("x-ms-retry-after-ms"));
  for (auto& outcome : accepted) EXPECT_TRUE(pending(outcome));
  busy.reset();
  for (auto& outcome : accepted) EXPECT_TRUE(outcome.get());
  EXPECT_TRUE(run({.id = "later"})) << "there is room again";
  EXPECT_EQ(partition->documents(), 3u);
}

TEST_F(PartitionTest, MoreBytesThanMayWaitAreRefused) {
  partition = make_partition(kPartitionTested, {.waiting_bytes_max = 100'000});
  std::vector<Outcome> accepted;
  {
    const BusyWriters busy(home.environment());
    accepted.push_back(start_delete_all());
    accepted.push_back(start({.id = "large", .padding = 90'000}));
    EXPECT_EQ(run({.id = "too large", .padding = 20'000}).error().code(),
              ErrorCode::TooManyRequests);
    accepted.push_back(start({.id = "small", .padding = 10}));
    loop.settle();
  }
  for (auto& outcome : accepted) EXPECT_TRUE(outcome.get());
}

TEST_F(PartitionTest, WhatMemoryCannotDecideKeepsItsPlaceBeforeWhatComesLater) {
  ASSERT_TRUE(run({.id = "a"}));
  std::vector<Outcome> outcomes;
  {
    const BusyWriters busy(home.environment());
    outcomes.push_back(start({.id = "b"}));
    outcomes.push_back(start_delete_all());
    outcomes.push_back(start({.id = "a"}));
    outcomes.push_back(start({.id = "b"}));
    loop.settle();
    EXPECT_TRUE(pending(outcomes[1]));
    EXPECT_TRUE(pending(outcomes[2])) << "it must not overtake";
  }
  Lsn last{2};
  for (auto& outcome : outcomes) {
    const auto committed = outcome.get();
    ASSERT_TRUE(committed);
    EXPECT_EQ(committed->lsn, next(last));
    last = committed->lsn;
  }
  EXPECT_EQ(partition->documents(), 2u);
}

TEST_F(PartitionTest, ManyMoreThanAnEventLoopStagesAtOnceAreAllCommitted) {
  std::vector<Outcome> outcomes;
  {
    const BusyWriters busy(home.environment());
    outcomes.push_back(start_delete_all());
    for (int i = 0; i < 500; ++i) outcomes.push_back(start({.id = std::to_string(i)}));
    loop.settle();
  }
  for (auto& outcome : outcomes) EXPECT_TRUE(outcome.get());
  EXPECT_EQ(partition->documents(), 500u);
}

TEST_F(PartitionTest, AFullCommitterHoldsWritersBackAndAllAreServedInTheEnd) {
  TestEnvironment small({.queued_bytes_max = 2000, .recovery_interval = 5ms});
  small.committer().start();
  const auto own =
      std::make_shared<Partition>(small.environment(), kPartitionTested, RangeId{0},
                                  Rid::container({0, 0, 0, 1}, {0x80, 0, 0, 1}), storage::Head{});
  small.log().hold();
  std::vector<Outcome> outcomes;
  for (int i = 0; i < 100; ++i) {
    outcomes.push_back(
        loop.submit(own, transaction_of({{.id = std::to_string(i), .padding = 500}})));
  }
  loop.settle();
  small.log().release();
  Lsn last{1};
  for (auto& outcome : outcomes) {
    const auto committed = outcome.get();
    ASSERT_TRUE(committed);
    EXPECT_EQ(committed->lsn, next(last));
    last = committed->lsn;
  }
  audit(small.store(), kPartitionTested);
}

// ── closing ──────────────────────────────────────────────────────────────────────────────────────

TEST_F(PartitionTest, AClosedPartitionRefusesAndTellsItsHighestLsn) {
  ASSERT_TRUE(run({.id = "a"}));
  ASSERT_TRUE(run({.id = "b"}));
  EXPECT_EQ(partition->close(), Lsn{3});
  EXPECT_EQ(run({.id = "c"}).error().code(), ErrorCode::OwnerNotFound);
  partition->reopen();
  EXPECT_EQ(run({.id = "c"})->lsn, Lsn{4});
}

TEST_F(PartitionTest, WhatIsStagedWhenAPartitionClosesCountsInItsHighestLsn) {
  home.log().hold();
  auto first = start({.id = "a"});
  home.log().wait_for_append();
  auto second = start({.id = "b"});
  EXPECT_EQ(run({.kind = Kind::Delete, .id = "missing"}).error().code(), ErrorCode::NotFound)
      << "so the second has been staged";
  EXPECT_EQ(partition->close(), Lsn{3});
  EXPECT_EQ(partition->head(), Lsn{1});
  home.log().release();
  EXPECT_TRUE(first.get());
  EXPECT_EQ(second.get()->lsn, Lsn{3});
}

TEST_F(PartitionTest, NothingIsStagedOnceAPartitionHasClosed) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  std::mutex mutex;
  Lsn highest;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; !stop; ++i) {
        const auto committed = run({.id = std::to_string(thread) + "-" + std::to_string(i)});
        if (!committed) {
          EXPECT_EQ(committed.error().code(), ErrorCode::OwnerNotFound);
          return;
        }
        std::lock_guard lock(mutex);
        highest = std::max(highest, committed->lsn);
      }
    });
  }
  EXPECT_TRUE(eventually([&] { return partition->head() > Lsn{50}; }));
  const Lsn last = partition->close();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(highest, last);
  EXPECT_EQ(partition->head(), last);
}

TEST_F(PartitionTest, WhatWaitsWhenAPartitionRefusesIsTold) {
  std::vector<Outcome> outcomes;
  {
    const BusyWriters busy(home.environment());
    outcomes.push_back(start_delete_all());
    for (int i = 0; i < 3; ++i) outcomes.push_back(start({.id = std::to_string(i)}));
    loop.settle();
    partition->refuse();
  }
  for (auto& outcome : outcomes) {
    EXPECT_EQ(outcome.get().error().code(), ErrorCode::OwnerNotFound);
  }
}

TEST_F(PartitionTest, AnIdlePartitionClosesAtOnceAlsoTwice) {
  EXPECT_EQ(partition->close(), Lsn{1});
  EXPECT_EQ(partition->close(), Lsn{1});
}

// ── disk errors ──────────────────────────────────────────────────────────────────────────────────

TEST_F(PartitionTest, AfterALostCommitTheLogGoesOnWhereTheDiskSays) {
  ASSERT_TRUE(run({.id = "a"}));
  home.log().fail_next(Fault::BeforeWriting);
  const auto lost = run({.id = "b"});
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code(), ErrorCode::OutcomeUnknown);
  ASSERT_TRUE(home.recovered());
  EXPECT_EQ(partition->head(), Lsn{2});
  const auto again = run({.id = "b"});
  ASSERT_TRUE(again) << "it is not there";
  EXPECT_EQ(again->lsn, Lsn{3});
  EXPECT_EQ(partition->documents(), 2u);
}

TEST_F(PartitionTest, AfterACommitOfUnknownOutcomeThatWasStoredTheLogGoesOnBehindIt) {
  ASSERT_TRUE(run({.id = "a"}));
  home.log().fail_next(Fault::AfterWriting);
  EXPECT_EQ(run({.id = "b"}).error().code(), ErrorCode::OutcomeUnknown);
  ASSERT_TRUE(home.recovered());
  EXPECT_EQ(run({.id = "b"}).error().code(), ErrorCode::Conflict) << "it is there";
  const auto third = run({.id = "c"});
  ASSERT_TRUE(third);
  EXPECT_EQ(third->lsn, Lsn{4});
  EXPECT_EQ(partition->documents(), 3u);
}

TEST_F(PartitionTest, WhileWritesAreSuspendedTheyAreRefusedAtOnce) {
  home.log().fail_next(Fault::BeforeWriting, /*recoverable=*/false);
  EXPECT_EQ(run({.id = "a"}).error().code(), ErrorCode::OutcomeUnknown);
  EXPECT_EQ(run({.id = "b"}).error().code(), ErrorCode::Unavailable);
  home.log().make_recoverable();
  ASSERT_TRUE(home.recovered());
  EXPECT_TRUE(run({.id = "b"}));
}

TEST_F(PartitionTest, WhatWasStagedOnALostCommitIsLostWithIt) {
  home.log().hold();
  auto lost = start({.id = "a"});
  home.log().wait_for_append();
  auto on_top = start({.kind = Kind::Replace, .id = "a"});
  auto beside = start({.id = "b"});
  EXPECT_EQ(run({.kind = Kind::Delete, .id = "missing"}).error().code(), ErrorCode::NotFound)
      << "so both have been staged";
  home.log().fail_next(Fault::BeforeWriting);
  home.log().release();
  EXPECT_EQ(lost.get().error().code(), ErrorCode::OutcomeUnknown);
  EXPECT_EQ(on_top.get().error().code(), ErrorCode::Unavailable);
  EXPECT_EQ(beside.get().error().code(), ErrorCode::Unavailable);
  ASSERT_TRUE(home.recovered());
  EXPECT_EQ(run({.kind = Kind::Replace, .id = "a"}).error().code(), ErrorCode::NotFound);
  EXPECT_EQ(run({.id = "b"})->lsn, Lsn{2});
}

TEST_F(PartitionTest, WhatIndexesThereAreIsNotSettledWhileAChangeIsOnItsWay) {
  const auto change = [&](IndexChange indexes) {
    return loop.submit(partition, {.work = std::move(indexes)});
  };
  EXPECT_EQ(partition->settled_indexes(), storage::IndexRecords());
  home.log().hold();
  auto added = change({{"/a"}, {}});
  home.log().wait_for_append();
  EXPECT_EQ(partition->settled_indexes(), std::nullopt);
  EXPECT_EQ(partition->indexes(), nullptr);
  home.log().release();
  ASSERT_TRUE(added.get());
  ASSERT_TRUE(partition->settled_indexes());
  EXPECT_EQ(*partition->settled_indexes(), partition->indexes());
  EXPECT_EQ(partition->indexes()->size(), 1U);

  home.log().fail_next(Fault::BeforeWriting);
  EXPECT_FALSE(change({{}, {"/a"}}).get());
  ASSERT_TRUE(eventually([&] { return home.recovered(); }));
  // The next one finds out what is stored.
  ASSERT_TRUE(eventually([&] { return run({.id = "x"}).has_value(); }));
  ASSERT_TRUE(partition->settled_indexes());
  EXPECT_EQ((*partition->settled_indexes())->size(), 1U);
}

TEST_F(PartitionTest, OneFailureSuspendsAllPartitionsAndAllGoOn) {
  const auto other = make_partition(PartitionNumber{2});
  ASSERT_TRUE(loop.submit(other, transaction_of({{.id = "x"}})).get());
  home.log().fail_next(Fault::BeforeWriting);
  EXPECT_FALSE(run({.id = "a"}));
  ASSERT_TRUE(home.recovered());
  EXPECT_EQ(loop.submit(other, transaction_of({{.id = "y"}})).get()->lsn, Lsn{3});
  EXPECT_EQ(run({.id = "a"})->lsn, Lsn{2});
  audit(home.store(), PartitionNumber{2});
}

class PartitionFaultTest : public PartitionTest,
                           public testing::WithParamInterface<std::uint32_t> {};

TEST_P(PartitionFaultTest, WhatWasAcknowledgedIsThereWhateverFailed) {
  // Writers of two partitions, and a disk that fails again and again, before or after it wrote.
  // Each writer owns its documents, and counts each one up.
  const std::vector<std::shared_ptr<Partition>> partitions = {partition,
                                                              make_partition(PartitionNumber{2})};
  constexpr int kWriters = 3;
  std::atomic<bool> stop{false};
  std::atomic<int> acknowledged_count{0};
  std::vector<std::map<std::string, Lsn>> acknowledged(2 * kWriters);
  std::vector<std::thread> writers;
  for (int at = 0; at < 2 * kWriters; ++at) {
    writers.emplace_back([&, at] {
      const auto& own = partitions[at % 2];
      Lsn last;
      for (int i = 0; !stop; ++i) {
        const std::string id = std::to_string(at) + "-" + std::to_string(i % 7);
        const auto committed =
            loop.submit(own, transaction_of({{.kind = Kind::Upsert, .id = id}})).get();
        if (!committed) {
          EXPECT_THAT(committed.error().code(),
                      AnyOf(ErrorCode::Unavailable, ErrorCode::OutcomeUnknown));
          continue;
        }
        EXPECT_GT(committed->lsn, last);
        last = committed->lsn;
        EXPECT_GE(own->head(), last);
        acknowledged[at][id] = last;
        ++acknowledged_count;
      }
    });
  }
  std::mt19937 random(GetParam());
  for (int fault = 0; fault < 25; ++fault) {
    const int seen = acknowledged_count;
    EXPECT_TRUE(
        eventually([&] { return acknowledged_count > seen + static_cast<int>(random() % 20); }));
    home.log().fail_next(random() % 2 == 0 ? Fault::BeforeWriting : Fault::AfterWriting);
    EXPECT_TRUE(eventually([&] {
      return home.committer().stats().commit_failures == static_cast<std::uint64_t>(fault + 1);
    }));
    EXPECT_TRUE(home.recovered());
  }
  stop = true;
  for (auto& writer : writers) writer.join();

  for (int number = 1; number <= 2; ++number) {
    const auto audited = audit(home.store(), PartitionNumber{static_cast<std::uint32_t>(number)});
    for (int at = number - 1; at < 2 * kWriters; at += 2) {
      for (const auto& [id, lsn] : acknowledged[at]) {
        const auto found = audited.entries.find(key_of("p", id).bytes());
        ASSERT_TRUE(found != audited.entries.end()) << id;
        EXPECT_GE(found->second.position.lsn, lsn) << id << " is older than what was acknowledged";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, PartitionFaultTest, testing::Values(1u, 2u, 3u));

}  // namespace
}  // namespace orrery::partition
