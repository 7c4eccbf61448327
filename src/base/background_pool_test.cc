#include "base/background_pool.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <future>
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

}  // namespace
}  // namespace orrery
