#include "processor/hosting/runtime.h"

#include <future>

#include <gmock/gmock.h>
#include <boost/asio/co_spawn.hpp>

#include "processor/hosting/observer_calls.h"

namespace orrery::processor {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

/// Runs it on the runtime's thread and waits.
template <typename T>
T await(Runtime& runtime, asio::awaitable<T> task) {
  std::promise<T> done;
  asio::co_spawn(runtime.executor(), std::move(task),
                 [&](const std::exception_ptr&, T value) { done.set_value(std::move(value)); });
  return done.get_future().get();
}

asio::awaitable<bool> wait_briefly(Runtime& runtime, Signal& signal) {
  co_return co_await signal.wait_until(runtime.now() + 5ms);
}

TEST(ThreadRuntime, ASignalWakesItsWaiterAndOtherwiseTimeDoes) {
  ThreadRuntime runtime(1);
  Signal signal(runtime);
  EXPECT_FALSE(await(runtime, wait_briefly(runtime, signal)));
  runtime.post([&] { signal.notify(); });
  EXPECT_TRUE(await(runtime, wait_briefly(runtime, signal)));
  EXPECT_FALSE(await(runtime, wait_briefly(runtime, signal)));
}

asio::awaitable<std::vector<int>> wait_in_order(Runtime& runtime) {
  std::vector<int> order;
  TaskGroup group(runtime);
  struct Waiter {
    static asio::awaitable<void> wait(Runtime& on, std::vector<int>& seen, int ms) {
      co_await pause_until(on, on.now() + std::chrono::milliseconds(ms));
      seen.push_back(ms);
    }
  };
  for (const int ms : {30, 10, 20}) group.spawn(Waiter::wait(runtime, order, ms));
  co_await group.join();
  co_return order;
}

TEST(ThreadRuntime, WaitsEndInTheOrderOfTheirDeadlines) {
  ThreadRuntime runtime(1);
  EXPECT_THAT(await(runtime, wait_in_order(runtime)), ElementsAre(10, 20, 30));
}

asio::awaitable<std::vector<int>> take_turns(Runtime& runtime) {
  std::vector<int> order;
  Turns turns(runtime);
  TaskGroup group(runtime);
  struct Worker {
    static asio::awaitable<void> work(Runtime& on, Turns& turns, std::vector<int>& seen, int id) {
      const Turns::Turn turn = co_await turns.take();
      seen.push_back(id);
      co_await pause_until(on, on.now() + 1ms);
      seen.push_back(id);
    }
  };
  for (const int id : {1, 2, 3}) group.spawn(Worker::work(runtime, turns, order, id));
  co_await group.join();
  co_return order;
}

TEST(Turns, GoInTheOrderOfAskingAndNeverOverlap) {
  ThreadRuntime runtime(1);
  EXPECT_THAT(await(runtime, take_turns(runtime)), ElementsAre(1, 1, 2, 2, 3, 3));
}

asio::awaitable<bool> pause_long(Stop& stop) { co_return co_await stop.pause_for(1h); }

TEST(Stop, CutsPausesShort) {
  ThreadRuntime runtime(1);
  Stop stop(runtime);
  runtime.post([&] { stop.request(); });
  EXPECT_TRUE(await(runtime, pause_long(stop)));
  EXPECT_TRUE(stop.token().stop_requested());
}

TEST(ObserverCalls, WhatIsThrownComesBackInWords) {
  ThreadRuntime runtime(1);
  ObserverThreads threads;
  ObserverCalls calls(runtime, [&](std::function<void()> work) { threads.run(std::move(work)); });
  const CallResult result =
      await(runtime, calls.run([]() -> Outcome { throw std::runtime_error("no"); }));
  EXPECT_EQ(result.error, "no");
}

TEST(ObserverThreads, AsManyRunAtOnceAsThereAreCalls) {
  ObserverThreads threads;
  constexpr int kCalls = 20;
  std::atomic<int> entered = 0;
  std::promise<void> all;
  const std::shared_future<void> go = all.get_future().share();
  for (int i = 0; i < kCalls; ++i) {
    threads.run([&entered, &all, go] {
      if (++entered == kCalls) all.set_value();
      go.wait();
    });
  }
  EXPECT_EQ(go.wait_for(10s), std::future_status::ready);
  threads.stop(10s);
}

TEST(ObserverThreads, StopDoesNotWaitForEver) {
  ObserverThreads threads;
  auto release = std::make_shared<std::promise<void>>();
  threads.run([gone = release->get_future().share()] { gone.wait(); });
  threads.stop(10ms);
  release->set_value();
}

}  // namespace
}  // namespace orrery::processor
