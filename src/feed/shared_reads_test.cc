// Reads at the tail that are shared.
#include "feed/shared_reads.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <string>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "base/test_wait.h"

namespace orrery::feed {
namespace {

using test::kPatience;
using Text = std::shared_ptr<const std::string>;

/// An event loop with a thread.
class Loop {
 public:
  Loop() : thread_([this] { context_.run(); }) {}
  ~Loop() {
    work_.reset();
    thread_.join();
  }
  asio::io_context& context() { return context_; }

 private:
  asio::io_context context_;
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  std::thread thread_;
};

class SharedReadsTest : public testing::Test {
 protected:
  /// The pool is joined first: its threads post to the loops.
  ~SharedReadsTest() override {
    release();
    pool.join();
  }

  /// A read of `key` from the store as it is when the read begins.
  SharedReads::Read reading(std::string key) {
    return [this, key = std::move(key)]() -> Result<SharedRead> {
      std::unique_lock lock(mutex);
      const auto moment = store;
      ++reads;
      changed.notify_all();
      changed.wait(lock, [this] { return !held; });
      if (broken) return Error(ErrorCode::Unavailable, "the disk is broken");
      auto text = std::make_shared<const std::string>(key + "@" + std::to_string(moment));
      return SharedRead{moment, text->size(), text};
    };
  }
  std::future<Result<Text>> ask(std::string key, std::uint64_t now, Loop* on = nullptr) {
    auto outcome = std::make_shared<std::promise<Result<Text>>>();
    auto future = outcome->get_future();
    auto read = reading(key);
    asio::co_spawn((on != nullptr ? on : &loop)->context(),
                   tail.get<std::string>(std::move(key), now, std::move(read)),
                   [outcome](const std::exception_ptr&, Result<Text> result) {
                     outcome->set_value(std::move(result));
                   });
    return future;
  }
  std::string text(std::future<Result<Text>>& asked) {
    EXPECT_EQ(asked.wait_for(kPatience), std::future_status::ready);
    const auto result = asked.get();
    return result ? **result : result.error().message();
  }
  std::string read(std::string key, std::uint64_t now) {
    auto asked = ask(std::move(key), now);
    return text(asked);
  }
  void commit(std::uint64_t head) {
    const std::lock_guard lock(mutex);
    store = head;
  }
  void hold() {
    const std::lock_guard lock(mutex);
    held = true;
  }
  void release() {
    const std::lock_guard lock(mutex);
    held = false;
    changed.notify_all();
  }
  bool wait_for_reads(int count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, kPatience, [&] { return reads == count; });
  }
  void wait_for_shared(std::uint64_t count) {
    test::eventually([&] { return tail.stats().shared >= count; });
    ASSERT_EQ(tail.stats().shared, count);
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t store = 1;
  int reads = 0;
  bool held = false;
  bool broken = false;
  asio::thread_pool pool{4};
  SharedReads tail{pool, {.entries_max = 4, .entry_bytes_max = 100}};
  Loop loop;
  Loop second_loop;
};

TEST_F(SharedReadsTest, WhatWasReadServesUntilTheHeadMoves) {
  EXPECT_EQ(read("a", 1), "a@1");
  EXPECT_EQ(read("a", 1), "a@1");
  EXPECT_EQ(reads, 1);
  commit(2);
  EXPECT_EQ(read("a", 2), "a@2");
  EXPECT_EQ(reads, 2);
}

TEST_F(SharedReadsTest, DifferentQuestionsGetDifferentAnswers) {
  EXPECT_EQ(read("a", 1), "a@1");
  EXPECT_EQ(read("b", 1), "b@1");
  EXPECT_EQ(reads, 2);
}

TEST_F(SharedReadsTest, ThoseWhoAskWhileItIsReadShareIt) {
  hold();
  auto first = ask("a", 1);
  ASSERT_TRUE(wait_for_reads(1));
  std::vector<std::future<Result<Text>>> others;
  for (int i = 0; i < 200; ++i) others.push_back(ask("a", 1, i % 2 == 0 ? &loop : &second_loop));
  wait_for_shared(200);
  release();
  EXPECT_EQ(text(first), "a@1");
  for (auto& each : others) EXPECT_EQ(text(each), "a@1");
  EXPECT_EQ(reads, 1);
  EXPECT_EQ(tail.stats().reads, 1u);
}

TEST_F(SharedReadsTest, AReadThatBeganBeforeAWriteIsNotForWhoHasSeenTheWrite) {
  hold();
  auto before = ask("a", 1);
  ASSERT_TRUE(wait_for_reads(1));
  commit(2);
  auto after = ask("a", 2);
  ASSERT_TRUE(wait_for_reads(2));
  release();
  EXPECT_EQ(text(before), "a@1");
  EXPECT_EQ(text(after), "a@2");
  EXPECT_EQ(read("a", 2), "a@2") << "the older one does not replace the newer one";
}

TEST_F(SharedReadsTest, AFailureIsToldToAllAndNotKept) {
  hold();
  auto first = ask("a", 1);
  ASSERT_TRUE(wait_for_reads(1));
  auto second = ask("a", 1);
  wait_for_shared(1);
  broken = true;
  release();
  EXPECT_EQ(text(first), "the disk is broken");
  EXPECT_EQ(text(second), "the disk is broken");
  broken = false;
  EXPECT_EQ(read("a", 1), "a@1");
}

TEST_F(SharedReadsTest, LittleIsKept) {
  for (const char* key : {"a", "b", "c", "d", "e"}) read(key, 1);
  EXPECT_EQ(reads, 5);
  read("e", 1);
  EXPECT_EQ(reads, 5);
  read("a", 1);
  EXPECT_EQ(reads, 6) << "the one that was not used for the longest time was dropped";
}

TEST_F(SharedReadsTest, WhatIsLargeIsNotKept) {
  const std::string large(100, 'x');
  read(large, 1);
  read(large, 1);
  EXPECT_EQ(reads, 2);
}

}  // namespace
}  // namespace orrery::feed
