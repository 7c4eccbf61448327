// Readers of the change feed that wait for changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "client/feed/test_change_feed.h"
#include "orrery/exception.h"

namespace orrery::client {
namespace {

using ::testing::ElementsAre;

TEST_F(ChangeFeedTest, ALongPollReturnsOnAWriteToAnyRange) {
  make_ranges(3);
  auto changes = feed(waiting(30s));
  for (int i = 0; i < 20; ++i) {
    auto page = std::async(std::launch::async, [&] { return changes.next(); });
    while (server_->held_count() < 4) std::this_thread::yield();
    const int version = server_->write(key_of(i));
    const auto found = page.get();
    EXPECT_THAT(versions_of(found), ElementsAre(version));
    EXPECT_TRUE(found.waited);
  }
}

TEST_F(ChangeFeedTest, PollsThatWereNotNeededStayAndAreNotLost) {
  make_ranges(3);
  auto changes = feed(waiting(30s));
  auto first = std::async(std::launch::async, [&] { return versions_of(changes.next()); });
  while (server_->held_count() < 4) std::this_thread::yield();
  auto written = write(20);
  Versions found = first.get();
  EXPECT_LT(server_->held_count(), 4u);
  while (found.size() < written.size()) {
    const auto more = versions_of(changes.next());
    found.insert(found.end(), more.begin(), more.end());
  }
  EXPECT_THAT(found, ::testing::UnorderedElementsAreArray(written));
}

TEST_F(ChangeFeedTest, AWaitEndsWithOnePageThatSaysSo) {
  make_ranges(3);
  auto changes = feed(waiting(1s));
  const auto begun = std::chrono::steady_clock::now();
  const auto page = changes.next();
  EXPECT_TRUE(page.not_modified);
  EXPECT_TRUE(page.waited);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 500ms);
  EXPECT_LE(std::chrono::steady_clock::now() - begun, 10s);
  const int version = server_->write(key_of(1));
  EXPECT_THAT(versions_of(changes.next()), ElementsAre(version));
}

TEST_F(ChangeFeedTest, AServerThatDoesNotWaitIsNotAskedOverAndOver) {
  make_ranges(3);
  server_->set_offers_wait(false);
  auto changes = feed(waiting(30s));
  const auto page = changes.next();
  EXPECT_TRUE(page.not_modified);
  EXPECT_FALSE(page.waited);
  EXPECT_LE(server_->seen().size(), 12u) << "where now is, once in turn, once asked to wait";
  const auto written = write(20);
  EXPECT_THAT(drain(changes), ::testing::UnorderedElementsAreArray(written));
}

TEST_F(ChangeFeedTest, WaitingMeansNothingBeforeAllIsCaughtUp) {
  make_ranges(3);
  const auto written = write(20);
  ChangeFeedOptions options;
  options.wait = 30s;
  auto changes = feed(options);
  Versions found;
  while (found.size() < written.size()) {
    const auto more = versions_of(changes.next());
    found.insert(found.end(), more.begin(), more.end());
  }
  EXPECT_THAT(found, ::testing::UnorderedElementsAreArray(written));
  EXPECT_EQ(server_->held_count(), 0u);
}

TEST_F(ChangeFeedTest, ALongPollFollowsSplitsAndMerges) {
  auto changes = feed(waiting(30s));
  auto page = std::async(std::launch::async, [&] { return versions_of(changes.next()); });
  while (server_->held_count() < 1) std::this_thread::yield();
  server_->split(0);
  while (server_->held_count() < 2) std::this_thread::yield();
  server_->merge(0);
  while (server_->held_count() < 2) std::this_thread::yield();
  const int version = server_->write(key_of(1));
  EXPECT_THAT(page.get(), ElementsAre(version));
}

TEST_F(ChangeFeedTest, ALongPollCanBeCancelled) {
  make_ranges(3);
  std::stop_source stop;
  ChangeFeedOptions options = waiting(30s);
  options.stop = stop.get_token();
  auto changes = feed(options);
  auto page = std::async(std::launch::async, [&] { return changes.next(); });
  while (server_->held_count() < 4) std::this_thread::yield();
  stop.request_stop();
  try {
    page.get();
    FAIL() << "it was not cancelled";
  } catch (const CosmosException& failure) {
    EXPECT_EQ(failure.failure(), Failure::Cancelled);
  }
}

TEST_F(ChangeFeedTest, AnIteratorThatEndsTakesItsPollsWithIt) {
  make_ranges(3);
  {
    auto changes = feed(waiting(30s));
    auto page = std::async(std::launch::async, [&] { return changes.next(); });
    while (server_->held_count() < 4) std::this_thread::yield();
    server_->write(key_of(1));
    page.get();
    auto moved = std::move(changes);
  }
  while (server_->held_count() > 0) std::this_thread::yield();
}

}  // namespace
}  // namespace orrery::client
