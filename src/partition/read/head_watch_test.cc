// Readers that wait for a head to move.
#include "partition/read/head_watch.h"

#include <gtest/gtest.h>

#include <malloc.h>

#include <atomic>
#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include "partition/test_environment.h"

namespace orrery::partition {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;

/// A head as a partition has one.
struct TestHead {
  std::atomic<std::uint64_t> lsn{1};
  HeadWatch watch{lsn};

  void move_to(std::uint64_t head) {
    lsn.store(head, std::memory_order_release);
    watch.moved();
  }
};

/// A reader on a loop: what it waits for, and what came of it.
class TestReader {
 public:
  TestReader(WaitingRoom& room, TestLoop& loop) : loop_(loop) {
    run([&] { waiter_.emplace(room, loop.context().get_executor()); });
  }
  ~TestReader() {
    run([this] { waiter_.reset(); });
  }

  std::future<WakeReason> wait(std::vector<Waiter::Target> targets,
                               TimePoint deadline = TimePoint::max()) {
    auto outcome = std::make_shared<std::promise<WakeReason>>();
    auto future = outcome->get_future();
    asio::co_spawn(
        loop_.context(), wait_for(std::move(targets), deadline),
        [outcome](const std::exception_ptr&, WakeReason woken) { outcome->set_value(woken); });
    loop_.settle();
    return future;
  }
  void interrupt() {
    run([this] { waiter_->interrupt(); });
  }

 private:
  asio::awaitable<WakeReason> wait_for(std::vector<Waiter::Target> targets, TimePoint deadline) {
    co_return co_await waiter_->wait(targets, deadline);
  }
  template <typename Work>
  void run(Work work) {
    asio::post(loop_.context(), work);
    loop_.settle();
  }

  TestLoop& loop_;
  std::optional<Waiter> waiter_;
};

bool still_waits(std::future<WakeReason>& woken) {
  return woken.wait_for(std::chrono::seconds(0)) == std::future_status::timeout;
}

class HeadWatchTest : public testing::Test {
 protected:
  WakeReason outcome(std::future<WakeReason>& woken) {
    EXPECT_EQ(woken.wait_for(kPatience), std::future_status::ready);
    return woken.get();
  }

  TestLoop loop;
  WaitingRoom room;
  TestHead head;
};

TEST_F(HeadWatchTest, AHeadThatIsAlreadyAboveNeedsNoWaiting) {
  TestReader reader(room, loop);
  head.move_to(5);
  auto woken = reader.wait({{&head.watch, Lsn{4}}});
  EXPECT_EQ(outcome(woken), WakeReason::Head);
}

TEST_F(HeadWatchTest, AReaderWakesWhenTheHeadPassesWhatItHasSeen) {
  TestReader reader(room, loop);
  auto woken = reader.wait({{&head.watch, Lsn{1}}});
  EXPECT_TRUE(still_waits(woken));
  head.move_to(2);
  EXPECT_EQ(outcome(woken), WakeReason::Head);
}

TEST_F(HeadWatchTest, AReaderAheadOfTheHeadWaitsOn) {
  TestReader reader(room, loop);
  auto woken = reader.wait({{&head.watch, Lsn{3}}});
  head.move_to(2);
  head.move_to(3);
  loop.settle();
  EXPECT_TRUE(still_waits(woken));
  head.move_to(4);
  EXPECT_EQ(outcome(woken), WakeReason::Head);
}

TEST_F(HeadWatchTest, AReaderOfSeveralPartitionsWakesForAnyOfThem) {
  TestHead other;
  TestReader reader(room, loop);
  for (TestHead* moving : {&head, &other}) {
    auto woken =
        reader.wait({{&head.watch, head.watch.head()}, {&other.watch, other.watch.head()}});
    EXPECT_TRUE(still_waits(woken));
    moving->move_to(moving->lsn + 1);
    EXPECT_EQ(outcome(woken), WakeReason::Head);
  }
}

TEST_F(HeadWatchTest, AReaderMayWaitAgainAndAgain) {
  TestReader reader(room, loop);
  for (std::uint64_t lsn = 1; lsn < 100; ++lsn) {
    auto woken = reader.wait({{&head.watch, Lsn{lsn}}});
    head.move_to(lsn + 1);
    EXPECT_EQ(outcome(woken), WakeReason::Head);
  }
}

TEST_F(HeadWatchTest, ADeadlineEndsTheWait) {
  TestReader early(room, loop);
  TestReader late(room, loop);
  const auto start = std::chrono::steady_clock::now();
  auto woken_late = late.wait({{&head.watch, Lsn{1}}}, start + std::chrono::milliseconds(150));
  auto woken_early = early.wait({{&head.watch, Lsn{1}}}, start + std::chrono::milliseconds(10));
  EXPECT_EQ(outcome(woken_early), WakeReason::Deadline);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(10));
  EXPECT_EQ(outcome(woken_late), WakeReason::Deadline);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(150));
}

TEST_F(HeadWatchTest, ADeadlineOfAWaitThatIsOverHarmsNoLaterOne) {
  TestReader reader(room, loop);
  TestReader bystander(room, loop);
  auto others = bystander.wait({{&head.watch, Lsn{100}}});
  const auto start = std::chrono::steady_clock::now();
  auto first = reader.wait({{&head.watch, Lsn{1}}}, start + std::chrono::milliseconds(20));
  head.move_to(2);
  EXPECT_EQ(outcome(first), WakeReason::Head);
  auto second = reader.wait({{&head.watch, Lsn{2}}}, start + std::chrono::milliseconds(200));
  EXPECT_EQ(outcome(second), WakeReason::Deadline);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(200));
  EXPECT_TRUE(still_waits(others));
  room.close();
  EXPECT_EQ(outcome(others), WakeReason::Stopping);
}

TEST_F(HeadWatchTest, AnInterruptionEndsThisWaitAndEveryLaterOne) {
  TestReader reader(room, loop);
  auto woken = reader.wait({{&head.watch, Lsn{1}}});
  reader.interrupt();
  EXPECT_EQ(outcome(woken), WakeReason::Interrupted);
  auto again = reader.wait({{&head.watch, Lsn{0}}});
  EXPECT_EQ(outcome(again), WakeReason::Interrupted);
}

TEST_F(HeadWatchTest, APartitionThatRetiresWakesItsReadersAndTakesNoMore) {
  TestReader reader(room, loop);
  auto woken = reader.wait({{&head.watch, Lsn{1}}});
  head.watch.retire();
  EXPECT_EQ(outcome(woken), WakeReason::Retired);
  auto again = reader.wait({{&head.watch, Lsn{1}}});
  EXPECT_EQ(outcome(again), WakeReason::Retired);
}

TEST_F(HeadWatchTest, AClosedRoomWakesEverybodyAndTakesNoMore) {
  std::deque<TestReader> readers;
  std::vector<std::future<WakeReason>> woken;
  for (int i = 0; i < 200; ++i) {
    readers.emplace_back(room, loop);
    woken.push_back(readers.back().wait({{&head.watch, Lsn{1}}}));
  }
  room.close();
  for (auto& each : woken) EXPECT_EQ(outcome(each), WakeReason::Stopping);
  auto again = readers.front().wait({{&head.watch, Lsn{1}}});
  EXPECT_EQ(outcome(again), WakeReason::Stopping);
}

TEST_F(HeadWatchTest, AReaderMayGoWhileItWaits) {
  {
    asio::io_context context;
    auto waiter = std::make_unique<Waiter>(room, context.get_executor());
    const Waiter::Target target{&head.watch, Lsn{1}};
    asio::co_spawn(context, waiter->wait({&target, 1}, TimePoint::max()),
                   [](const std::exception_ptr&, WakeReason) { FAIL() << "it was never woken"; });
    context.poll();
    waiter.reset();
    head.move_to(2);
  }
  TestReader reader(room, loop);
  auto woken = reader.wait({{&head.watch, Lsn{2}}});
  head.move_to(3);
  EXPECT_EQ(outcome(woken), WakeReason::Head);
}

TEST_F(HeadWatchTest, OneMoveWakesAThousandReadersOfSeveralLoops) {
  TestLoop second;
  std::deque<TestReader> readers;
  std::vector<std::future<WakeReason>> woken;
  for (int i = 0; i < 1000; ++i) {
    readers.emplace_back(room, i % 2 == 0 ? loop : second);
    woken.push_back(readers.back().wait({{&head.watch, Lsn{1}}}));
  }
  head.move_to(2);
  for (auto& each : woken) EXPECT_EQ(outcome(each), WakeReason::Head);
}

TEST_F(HeadWatchTest, SeatsAreCountedAndGivenBack) {
  WaitingRoom small(2);
  auto first = small.take_seat();
  {
    auto second = small.take_seat();
    EXPECT_TRUE(second);
    EXPECT_FALSE(small.take_seat());
    EXPECT_EQ(small.readers(), 2u);
  }
  auto moved = std::move(first);
  EXPECT_EQ(small.readers(), 1u);
  EXPECT_TRUE(small.take_seat());
}

/// A reader that follows the head as fast as it can, and notes what it has seen of it.
asio::awaitable<std::uint64_t> follow(WaitingRoom& room, HeadWatch& watch, std::uint64_t until) {
  Waiter waiter(room, co_await asio::this_coro::executor);
  Lsn seen{1};
  while (seen.value < until) {
    const Waiter::Target target{&watch, seen};
    const auto woken = co_await waiter.wait({&target, 1}, TimePoint::max());
    if (woken != WakeReason::Head || watch.head() <= seen) co_return 0;
    seen = watch.head();
  }
  co_return seen.value;
}

TEST_F(HeadWatchTest, NoMoveIsMissedHoweverItFallsTogetherWithWaiting) {
  constexpr std::uint64_t kMoves = 20'000;
  TestLoop second;
  std::vector<std::future<std::uint64_t>> seen;
  for (int i = 0; i < 8; ++i) {
    auto outcome = std::make_shared<std::promise<std::uint64_t>>();
    seen.push_back(outcome->get_future());
    asio::co_spawn(
        (i % 2 == 0 ? loop : second).context(), follow(room, head.watch, kMoves),
        [outcome](const std::exception_ptr&, std::uint64_t last) { outcome->set_value(last); });
  }
  for (std::uint64_t lsn = 2; lsn <= kMoves; ++lsn) head.move_to(lsn);
  for (auto& each : seen) {
    ASSERT_EQ(each.wait_for(kPatience), std::future_status::ready);
    EXPECT_EQ(each.get(), kMoves);
  }
}

asio::awaitable<void> wait_once(WaitingRoom& room, HeadWatch& watch) {
  Waiter waiter(room, co_await asio::this_coro::executor);
  const Waiter::Target target{&watch, Lsn{1}};
  co_await waiter.wait({&target, 1}, TimePoint::max());
}

TEST_F(HeadWatchTest, AWaitingReaderTakesLessThanTwoKilobytes) {
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer) || \
    __has_feature(thread_sanitizer)
  GTEST_SKIP() << "sanitizers count otherwise";
#endif
  constexpr int kReaders = 1000;
  asio::io_context context;
  const auto before = ::mallinfo2().uordblks;
  for (int i = 0; i < kReaders; ++i) {
    asio::co_spawn(context, wait_once(room, head.watch), [](const std::exception_ptr&) {});
  }
  context.poll();
  const auto each = (::mallinfo2().uordblks - before) / kReaders;
  RecordProperty("bytes_per_reader", static_cast<int>(each));
  EXPECT_LT(each, 2048u);
  room.close();
  context.restart();
  context.run();
}

class PartitionWaitTest : public testing::Test {
 protected:
  ~PartitionWaitTest() override {
    loop.stop();
    partition.reset();
    home.close();
  }
  TestEnvironment home;
  TestLoop loop;
  WaitingRoom room;
  std::shared_ptr<Partition> partition;
};

TEST_F(PartitionWaitTest, AWriteWakesWhoWaitsForThePartition) {
  home.committer().start();
  partition =
      std::make_shared<Partition>(home.environment(), PartitionNumber{1}, RangeId{0},
                                  Rid::container({0, 0, 0, 1}, {0x80, 0, 0, 1}), storage::Head{});
  TestReader reader(room, loop);
  auto woken = reader.wait({{&partition->head_watch(), Lsn{1}}});
  EXPECT_TRUE(still_waits(woken));
  auto written = loop.submit(partition, transaction_of({{.id = "a"}}));
  ASSERT_EQ(woken.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(woken.get(), WakeReason::Head);
  EXPECT_EQ(partition->head(), Lsn{2});
  EXPECT_TRUE(written.get());
}

}  // namespace
}  // namespace orrery::partition
