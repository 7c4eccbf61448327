#include "base/background_pool.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <iterator>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace orrery {
namespace {

using namespace std::chrono_literals;

/// Any moment of waiting is reason enough to rest for ever.
constexpr BackgroundPool::Rest kForEver{.factor = 1'000'000'000, .max = 24h};

/// Work that has to wait for something.
void run_something_that_waits(BackgroundPool& pool) {
  std::promise<void> go_on;
  std::promise<void> ended;
  std::promise<void> begun;
  pool.post([&] {
    begun.set_value();
    go_on.get_future().wait();
    ended.set_value();
  });
  begun.get_future().wait();
  const auto began = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() == began) std::this_thread::yield();
  go_on.set_value();
  ended.get_future().wait();
}

TEST(BackgroundPoolTest, ItsThreadsHaveALowerPriorityThanOthers) {
  BackgroundPool pool(2, [] { return false; });
  std::promise<int> niceness;
  pool.post(
      [&] { niceness.set_value(::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()))); });
  EXPECT_GT(niceness.get_future().get(), ::getpriority(PRIO_PROCESS, 0));
}

TEST(BackgroundPoolTest, RestsWhileOthersPressAfterItHadToWait) {
  std::atomic<bool> pressed = true;
  std::atomic<int> looks = 0;
  BackgroundPool pool(
      1,
      [&] {
        ++looks;
        looks.notify_all();
        return pressed.load();
      },
      kForEver);
  run_something_that_waits(pool);
  std::atomic<bool> done = false;
  pool.post([&] { done = true; });
  while (looks < 3) looks.wait(looks);
  EXPECT_FALSE(done);
  pressed = false;
  pool.join();
  EXPECT_TRUE(done);
}

TEST(BackgroundPoolTest, NeverRestsWhileNobodyPresses) {
  BackgroundPool pool(1, [] { return false; }, kForEver);
  run_something_that_waits(pool);
  run_something_that_waits(pool);
}

TEST(BackgroundPoolTest, NobodyRestsWhenItIsToEnd) {
  BackgroundPool pool(1, [] { return true; }, kForEver);
  run_something_that_waits(pool);
  std::atomic<bool> done = false;
  pool.post([&] { done = true; });
  pool.join();
  EXPECT_TRUE(done);
}

constexpr ClientId kGreedy{.client = 1, .connection = 1};
constexpr ClientId kModest{.client = 2, .connection = 1};

/// Work that lasts until it is told to end.
class Gate {
 public:
  BackgroundPool::Work work() {
    return [this] {
      ++begun;
      begun.notify_all();
      is_open.wait(false);
    };
  }
  void open() {
    is_open = true;
    is_open.notify_all();
  }
  void wait_for(int count) {
    for (int seen = begun; seen < count; seen = begun) begun.wait(seen);
  }

  std::atomic<int> begun = 0;
  std::atomic<bool> is_open = false;
};

TEST(BackgroundPoolTest, NoClientHasAllThreads) {
  Gate gate;
  BackgroundPool pool(3, [] { return false; });
  ASSERT_EQ(pool.threads_per_client(), 2U);
  for (int i = 0; i < 10; ++i) pool.post(gate.work(), kGreedy);
  gate.wait_for(2);
  std::promise<void> ran;
  pool.post([&] { ran.set_value(); }, kModest);
  ran.get_future().wait();
  EXPECT_EQ(gate.begun, 2);
  gate.open();
}

std::size_t threads_of_this_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST(BackgroundPoolTest, ThreadsAreStartedWhenThereIsWorkForThem) {
  const std::size_t before = threads_of_this_process();
  Gate gate;
  BackgroundPool pool(3, [] { return false; });
  EXPECT_EQ(threads_of_this_process(), before + 1);
  for (std::uint64_t i = 1; i <= 5; ++i) {
    pool.post(gate.work(), {.client = i, .connection = 1});
    gate.wait_for(static_cast<int>(std::min<std::uint64_t>(i, 3)));
    EXPECT_EQ(threads_of_this_process(), before + std::min<std::uint64_t>(i, 3));
  }
  gate.open();
}

TEST(BackgroundPoolTest, ClientsTakeTurns) {
  Gate gate;
  BackgroundPool pool(1, [] { return false; });
  pool.post(gate.work(), kGreedy);
  gate.wait_for(1);
  std::string order;
  for (int i = 0; i < 3; ++i) pool.post([&] { order += 'g'; }, kGreedy);
  pool.post([&] { order += 'm'; }, kModest);
  pool.post([&] { order += 's'; });
  gate.open();
  pool.join();
  EXPECT_EQ(order, "gmsgg");
}

TEST(BackgroundPoolTest, ConnectionsOfAClientTakeTurns) {
  Gate gate;
  BackgroundPool pool(1, [] { return false; });
  pool.post(gate.work(), kGreedy);
  gate.wait_for(1);
  std::string order;
  for (int i = 0; i < 3; ++i) pool.post([&] { order += '1'; }, {.client = 1, .connection = 1});
  for (int i = 0; i < 2; ++i) pool.post([&] { order += '2'; }, {.client = 1, .connection = 2});
  gate.open();
  pool.join();
  EXPECT_EQ(order, "12121");
}

TEST(BackgroundPoolTest, WorkThatPostsWorkDoesItInTheNameOfItsClient) {
  Gate gate;
  BackgroundPool pool(2, [] { return false; });
  ASSERT_EQ(pool.threads_per_client(), 1U);
  std::promise<void> posted;
  pool.post(
      [&] {
        // It cannot run beside this one, which is of the same client.
        pool.post(gate.work());
        posted.set_value();
        std::promise<void> ran;
        pool.post([&] { ran.set_value(); }, kModest);
        ran.get_future().wait();
        EXPECT_EQ(gate.begun, 0);
      },
      kGreedy);
  posted.get_future().wait();
  gate.open();
  pool.join();
  EXPECT_EQ(gate.begun, 1);
}

}  // namespace
}  // namespace orrery
