#include "processor/hosting/options.h"

#include <gtest/gtest.h>

#include "orrery/exception.h"

namespace orrery::processor {
namespace {

using namespace std::chrono_literals;

bool refused(const ChangeFeedHostOptions& options, const MonitoredFeedOptions& feed = {},
             const std::string& host = "host-1") {
  try {
    check_options(host, feed, options);
    return false;
  } catch (const client::CosmosException& exception) {
    EXPECT_EQ(exception.failure(), client::Failure::Argument);
    return true;
  }
}

TEST(HostOptions, DefaultsAreThoseOfTheOriginalsAndFine) {
  const ChangeFeedHostOptions options;
  EXPECT_EQ(options.lease_renew_interval, 17s);
  EXPECT_EQ(options.lease_acquire_interval, 13s);
  EXPECT_EQ(options.lease_expiration_interval, 60s);
  EXPECT_EQ(options.feed_poll_delay, 5s);
  EXPECT_EQ(options.change_feed_timeout, 10min);
  EXPECT_EQ(options.degree_of_parallelism, 25);
  EXPECT_TRUE(check_options("host-1", {}, options).empty());
}

TEST(HostOptions, AHostNeedsAName) {
  EXPECT_TRUE(refused({}, {}, ""));
  EXPECT_TRUE(refused({}, {}, "  "));
}

TEST(HostOptions, APrefixMustBeFitForAnId) {
  ChangeFeedHostOptions options;
  for (const char* const prefix : {"a/b", "a\\b", "a?b", "a#b"}) {
    options.lease_prefix = prefix;
    EXPECT_TRUE(refused(options)) << prefix;
  }
  options.lease_prefix = "billing.";
  EXPECT_FALSE(refused(options));
}

TEST(HostOptions, RenewalsMustComeTwiceBeforeALeaseExpires) {
  ChangeFeedHostOptions options;
  options.lease_renew_interval = 31s;
  EXPECT_TRUE(refused(options));
  options.lease_renew_interval = 30s;
  EXPECT_FALSE(refused(options));
  EXPECT_EQ(check_options("host-1", {}, options).size(), 1u);
  options.lease_renew_interval = 20s;
  EXPECT_TRUE(check_options("host-1", {}, options).empty());
}

TEST(HostOptions, IntervalsAndCountsMustMakeSense) {
  const auto with = [](auto change) {
    ChangeFeedHostOptions options;
    change(options);
    return options;
  };
  using Options = ChangeFeedHostOptions;
  EXPECT_TRUE(refused(with([](Options& o) { o.lease_acquire_interval = 0ms; })));
  EXPECT_TRUE(refused(with([](Options& o) { o.feed_poll_delay = -1ms; })));
  EXPECT_FALSE(refused(with([](Options& o) { o.feed_poll_delay = 0ms; })));
  EXPECT_TRUE(refused(with([](Options& o) {
    o.min_partition_count = 3;
    o.max_partition_count = 2;
  })));
  EXPECT_TRUE(refused(with([](Options& o) { o.lanes = 0; })));
  EXPECT_TRUE(refused(with([](Options& o) { o.close_after_deadline = true; })));
  EXPECT_TRUE(refused(with([](Options& o) { o.limits.documents = 0; })));
  EXPECT_TRUE(refused(with([](Options& o) {
    o.lanes = 4;
    o.checkpoint_frequency.explicit_checkpoint = true;
  })));
}

TEST(HostOptions, DeadLettersNeedOnePlaceToGo) {
  ChangeFeedHostOptions options;
  options.retry.max_attempts = 3;
  EXPECT_TRUE(refused(options));
  options.dead_letter_callback = [](const DeadLetter&) {};
  EXPECT_FALSE(refused(options));
  options.dead_letter_callback = nullptr;
  options.retry.then = RetryPolicy::Then::HaltRange;
  EXPECT_FALSE(refused(options));
}

TEST(HostOptions, AllVersionsBeginNowOrAtAContinuation) {
  MonitoredFeedOptions feed;
  feed.mode = client::ChangeFeedMode::AllVersionsAndDeletes;
  EXPECT_FALSE(refused({}, feed));
  feed.start_from_beginning = true;
  EXPECT_TRUE(refused({}, feed));
}

}  // namespace
}  // namespace orrery::processor
