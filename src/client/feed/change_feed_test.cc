#include "orrery/change_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "client/feed/change_feed_continuation.h"
#include "client/feed/test_change_feed.h"
#include "orrery/exception.h"

namespace orrery::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(ChangeFeedTest, AnEmptyContainerHasNothingNew) {
  auto all = feed();
  const auto page = all.next();
  EXPECT_TRUE(page.not_modified);
  EXPECT_FALSE(page.waited);
  EXPECT_EQ(page.size(), 0u);
  EXPECT_EQ(page.status, 304);
  EXPECT_EQ(page.feed_range, FeedRange{});
  EXPECT_EQ(page.continuation, all.continuation());
}

TEST_F(ChangeFeedTest, ReadsAllRangesInTurnThenSaysThatThereIsNothing) {
  make_ranges(3);
  const auto written = write(40);
  ChangeFeedOptions options;
  options.page_size = 3;
  auto all = feed(options);
  std::set<std::string> in_turn;
  for (int i = 0; i < 4; ++i) in_turn.insert(all.next().feed_range.min);
  EXPECT_EQ(in_turn.size(), 4u) << "each range has its turn before one has a second";
  auto rest = feed(options);
  const Versions latest(written.end() - 20, written.end());
  EXPECT_THAT(drain(rest), ::testing::UnorderedElementsAreArray(latest));
  server_->forget_seen();
  EXPECT_TRUE(rest.next().not_modified);
  EXPECT_EQ(server_->seen().size(), 4u) << "one request per range";
  const int more = server_->write(key_of(3));
  EXPECT_THAT(drain(rest), ElementsAre(more));
}

TEST_F(ChangeFeedTest, SaysWhatARequestNeedsToSay) {
  ChangeFeedOptions options;
  options.filter = "c.name LIKE 'a%'";
  options.select = "c.id";
  feed(options).next();
  const auto plain = server_->seen().back();
  EXPECT_EQ(plain.method, "GET");
  EXPECT_EQ(plain.at("a-im"), "Incremental Feed");
  EXPECT_EQ(plain.at("x-ms-documentdb-partitionkeyrangeid"), "0");
  EXPECT_EQ(plain.at("x-ms-max-item-count"), "-1");
  EXPECT_THAT(plain.at("x-orrery-feed-filter"), HasSubstr("a%25"));
  EXPECT_EQ(plain.at("x-orrery-feed-select"), "c.id");
  for (const char* absent : {"if-none-match", "if-modified-since", "prefer", "x-ms-start-epk",
                             "x-ms-end-epk", "x-ms-cosmos-changefeed-wire-format-version"}) {
    EXPECT_FALSE(plain.has(absent)) << absent;
  }

  options = from(ChangeFeedStart::now());
  options.mode = ChangeFeedMode::AllVersionsAndDeletes;
  options.feed_range = FeedRange{"", "1f"};
  options.page_size = 7;
  feed(options).next();
  const auto all = server_->seen().back();
  EXPECT_EQ(all.at("a-im"), "Full-Fidelity Feed");
  EXPECT_EQ(all.at("x-ms-cosmos-changefeed-wire-format-version"), "2021-09-15");
  EXPECT_EQ(all.at("x-ms-max-item-count"), "7");
  EXPECT_FALSE(all.has("x-ms-start-epk")) << "empty is what it is without the header";
  EXPECT_EQ(all.at("x-ms-end-epk"), "1F");
  EXPECT_EQ(all.at("x-ms-read-key-type"), "EffectivePartitionKeyRange");
  EXPECT_EQ(all.at("if-none-match"), "\"1\"");
}

TEST_F(ChangeFeedTest, NowIsFixedForAllRangesByTheFirstCall) {
  make_ranges(3);
  write(20);
  auto by_page = feed(from(ChangeFeedStart::now()));
  auto by_token = feed(from(ChangeFeedStart::now()));
  EXPECT_TRUE(by_page.next().not_modified);
  const std::string token = by_token.continuation();
  const auto written = write(20);
  EXPECT_THAT(drain(by_page), ::testing::UnorderedElementsAreArray(written));
  EXPECT_THAT(drain(by_token), ::testing::UnorderedElementsAreArray(written));
  auto later = feed(from(ChangeFeedStart::continuation(token)));
  EXPECT_THAT(drain(later), ::testing::UnorderedElementsAreArray(written));
}

TEST_F(ChangeFeedTest, ATimeBeginsAfterItsSecond) {
  make_ranges(1);
  const UnixSeconds begin = 1'700'000'000;
  write(10, 10);
  server_->set_time(begin + 5);
  Versions wanted;
  for (int i = 10; i < 20; ++i) wanted.push_back(server_->write(key_of(i)));
  const auto time = [](UnixSeconds seconds) {
    return ChangeFeedStart::after(
        std::chrono::system_clock::time_point(std::chrono::seconds(seconds) + 700ms));
  };
  for (const bool at_once : {false, true}) {
    server_->set_times_give_changes(at_once);
    auto since = feed(from(time(begin)));
    EXPECT_THAT(drain(since), ::testing::UnorderedElementsAreArray(wanted));
    auto all = feed(from(time(begin - 1)));
    EXPECT_EQ(drain(all).size(), 20u);
    auto none = feed(from(time(begin + 5)));
    EXPECT_THAT(drain(none), IsEmpty());
    // A continuation token resumes where the iterator would have gone on.
    auto first = feed(from(time(begin)));
    auto second = feed(from(ChangeFeedStart::continuation(first.continuation())));
    EXPECT_THAT(drain(second), ::testing::UnorderedElementsAreArray(wanted));
  }
}

TEST_F(ChangeFeedTest, WhatWasWrittenAfterATimeThatHasNotPassedIsSeen) {
  make_ranges(1);
  auto future = feed(from(ChangeFeedStart::after(
      std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000)))));
  EXPECT_TRUE(future.next().not_modified);
  const auto written = write(10);
  EXPECT_THAT(drain(future), ::testing::UnorderedElementsAreArray(written));
}

TEST_F(ChangeFeedTest, OfAMergedRangeATimeShowsNothingOlder) {
  make_ranges(1);
  std::vector<int> left, right;
  for (int i = 0; i < 20; ++i) {
    server_->write(key_of(i));
    (server_->changes().back().epk < "1F" ? left : right).push_back(i);
  }
  // The right half goes far ahead. The change that is wanted has a low position, in one log with
  // older ones at higher positions.
  for (int round = 0; round < 10; ++round) {
    for (const int key : right) server_->write(key_of(key));
  }
  server_->set_time(1'700'000'010);
  const int late = server_->write(key_of(left.at(0)));
  server_->merge(0);
  auto since = feed(from(ChangeFeedStart::after(
      std::chrono::system_clock::time_point(std::chrono::seconds(1'700'000'000)))));
  EXPECT_THAT(drain(since), ElementsAre(late));
}

TEST_F(ChangeFeedTest, OneKeyIsReadAsSuch) {
  make_ranges(3);
  write(30);
  const int other = server_->write(key_of(1));
  ChangeFeedOptions options;
  options.partition_key = PartitionKey("key 1");
  auto one = feed(options);
  const auto page = one.next();
  EXPECT_THAT(versions_of(page), ElementsAre(other));
  EXPECT_EQ(server_->seen().back().at("x-ms-documentdb-partitionkey"), "[\"key 1\"]");
  EXPECT_FALSE(server_->seen().back().has("x-ms-documentdb-partitionkeyrangeid"));
  server_->split(0);
  const int more = server_->write(key_of(1));
  server_->write(key_of(2));
  EXPECT_THAT(drain(one), ElementsAre(more));
  auto again = feed(from(ChangeFeedStart::continuation(page.continuation)));
  EXPECT_THAT(drain(again), ElementsAre(more)) << "the scope comes with the continuation";
}

TEST_F(ChangeFeedTest, APrefixOfAHierarchicalKeyMayLieInSeveralRanges) {
  server_ = std::make_shared<FeedPipeline>(2);
  container_ = Container(server_, "db", "c");
  Versions wanted;
  for (int user = 0; user < 40; ++user) {
    wanted.push_back(server_->write("[\"tenant\",\"user " + std::to_string(user) + "\"]"));
    server_->write("[\"other\",\"user " + std::to_string(user) + "\"]");
  }
  ChangeFeedOptions options;
  options.partition_key = PartitionKey("tenant");
  options.page_size = 4;
  auto prefix = feed(options);
  auto first = versions_of(prefix.next());
  // Down to where the tenant itself is divided.
  for (int i = 0; i < 8; ++i) {
    for (std::size_t range = server_->range_count(); range-- > 0;) {
      if (server_->range_count() < 200) server_->split(range);
    }
  }
  const auto rest = drain(prefix);
  first.insert(first.end(), rest.begin(), rest.end());
  EXPECT_THAT(first, ::testing::UnorderedElementsAreArray(wanted));

  options.partition_key = PartitionKey("tenant").append("user 7");
  auto whole = feed(options);
  EXPECT_THAT(drain(whole), ElementsAre(wanted[7]));
  options.partition_key = PartitionKey("a").append("b").append("c");
  EXPECT_THROW(feed(options).next(), CosmosException);
  options.partition_key = PartitionKey();
  EXPECT_THROW(feed(options).next(), CosmosException);
}

TEST_F(ChangeFeedTest, AFeedRangeIsReadWhereverItsBoundsLie) {
  make_ranges(3);
  write(20);
  Versions together;
  for (const auto& [min, max] :
       {std::pair{"", "0A"}, {"0A", "1B"}, {"1B", "2C33"}, {"2C33", "FF"}}) {
    ChangeFeedOptions options;
    options.feed_range = FeedRange{min, max};
    auto part = feed(options);
    const auto found = drain(part);
    together.insert(together.end(), found.begin(), found.end());
  }
  auto all = feed();
  EXPECT_THAT(together, ::testing::UnorderedElementsAreArray(drain(all)));
}

TEST_F(ChangeFeedTest, ASplitIsFollowedWithoutLossOrRepetition) {
  const auto written = write(20);
  ChangeFeedOptions options;
  options.page_size = 5;
  auto all = feed(options);
  auto found = versions_of(all.next());
  server_->split(0);
  server_->split(1);
  const auto rest = drain(all);
  found.insert(found.end(), rest.begin(), rest.end());
  EXPECT_THAT(found, ::testing::UnorderedElementsAreArray(written));
  EXPECT_EQ(FeedContinuation::parse(all.continuation()).slices.size(), 3u);
}

TEST_F(ChangeFeedTest, AMergeIsFollowedAndItsSlicesJoinedOnceTheyAreLevel) {
  make_ranges(1);
  const auto written = write(20);
  ChangeFeedOptions options;
  options.page_size = 2;
  auto all = feed(options);
  auto found = versions_of(all.next());
  server_->merge(0);
  const auto page = all.next();
  const auto more = versions_of(page);
  found.insert(found.end(), more.begin(), more.end());
  EXPECT_EQ(FeedContinuation::parse(page.continuation).slices.size(), 2u);
  const auto rest = drain(all);
  found.insert(found.end(), rest.begin(), rest.end());
  EXPECT_THAT(found, ::testing::UnorderedElementsAreArray(written));
  EXPECT_EQ(FeedContinuation::parse(all.continuation()).slices.size(), 1u);
  server_->forget_seen();
  EXPECT_TRUE(all.next().not_modified);
  EXPECT_EQ(server_->seen().size(), 1u);
  EXPECT_FALSE(server_->seen().back().has("x-ms-end-epk"));
}

TEST_F(ChangeFeedTest, ASplitThatIsJustCompletedIsWaitedFor) {
  const auto written = write(3);
  server_->refuse_next(4, 410, 1007);
  auto all = feed();
  EXPECT_EQ(drain(all), written);
}

TEST_F(ChangeFeedTest, ARangeThatIsGoneForGoodEndsInAnError) {
  write(3);
  auto all = feed();
  server_->refuse_next(1'000, 410, 1002);
  try {
    all.next();
    FAIL() << "there is nothing to read";
  } catch (const CosmosException& gone) {
    EXPECT_TRUE(gone.is_gone());
  }
}

TEST_F(ChangeFeedTest, ACallHasItsTimeHoweverManyRequestsItTakes) {
  write(3);
  const std::string position = feed().continuation();
  server_->refuse_next(1'000'000, 410, 1002);
  const auto failure_of = [](auto call) {
    try {
      call();
    } catch (const CosmosException& failure) {
      return failure.failure();
    }
    return Failure::Response;
  };
  for (const auto& start : {ChangeFeedStart::beginning(), ChangeFeedStart::now()}) {
    ChangeFeedOptions options = from(start);
    options.timeout = 50ms;
    EXPECT_EQ(failure_of([&] { feed(options).next(); }), Failure::Timeout);
  }
  RequestOptions hurried;
  hurried.timeout = 50ms;
  EXPECT_EQ(failure_of([&] { container_.change_feed_lag(position, hurried); }), Failure::Timeout);
  // Each call has its own.
  ChangeFeedOptions options;
  options.timeout = 50ms;
  auto changes = feed(options);
  EXPECT_EQ(failure_of([&] { changes.next(); }), Failure::Timeout);
  server_->refuse_next(0, 0, 0);
  EXPECT_EQ(drain(changes).size(), 3u);
}

TEST_F(ChangeFeedTest, AnErrorLosesNothing) {
  make_ranges(3);
  const auto written = write(20);
  ChangeFeedOptions options;
  options.page_size = 2;
  auto all = feed(options);
  Versions found;
  for (int i = 0; i < 100; ++i) {
    server_->refuse_next(i % 2, 500, 0);
    try {
      const auto page = all.next();
      if (page.not_modified) break;
      const auto more = versions_of(page);
      found.insert(found.end(), more.begin(), more.end());
    } catch (const CosmosException& failure) {
      EXPECT_EQ(failure.status(), 500);
    }
  }
  EXPECT_THAT(found, ::testing::UnorderedElementsAreArray(written));
}

TEST_F(ChangeFeedTest, AContinuationOfAnotherContainerIsRefused) {
  write(3);
  auto all = feed();
  all.next();
  const std::string token = all.continuation();
  server_->set_rid("AAAAAYAAAAI=");
  auto other = feed(from(ChangeFeedStart::continuation(token)));
  try {
    other.next();
    FAIL() << "it was taken";
  } catch (const CosmosException& refusal) {
    EXPECT_EQ(refusal.failure(), Failure::Argument);
    EXPECT_THAT(refusal.what(), HasSubstr("of another container"));
  }
  // An iterator that has it open hears that its container is gone.
  try {
    all.next();
    FAIL() << "it read on in another container";
  } catch (const CosmosException& refusal) {
    EXPECT_TRUE(refusal.is_not_found());
    EXPECT_THAT(refusal.what(), HasSubstr("another has its name"));
  }
}

TEST_F(ChangeFeedTest, ScopesThatContradictEachOtherAreRefused) {
  ChangeFeedOptions options;
  options.partition_key = PartitionKey("a");
  options.feed_range = FeedRange{};
  EXPECT_THROW(feed(options), CosmosException);
  EXPECT_THROW(feed(from(ChangeFeedStart::continuation("garbage"))), CosmosException);

  const std::string whole = feed().continuation();
  options = from(ChangeFeedStart::continuation(whole));
  options.partition_key = PartitionKey("a");
  EXPECT_THROW(feed(options), CosmosException);
  options.partition_key.reset();
  options.feed_range = FeedRange{"", "1F"};
  EXPECT_THROW(feed(options), CosmosException);
  options.feed_range = FeedRange{"", "ff"};
  EXPECT_TRUE(feed(options).next().not_modified) << "the same one may be said again";
}

}  // namespace
}  // namespace orrery::client
