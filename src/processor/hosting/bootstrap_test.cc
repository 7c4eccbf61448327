#include "processor/hosting/bootstrap.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "processor/leases/lease_split.h"
#include "processor/leases/test_leases.h"

namespace orrery::processor {
namespace {

using client::FeedRange;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BootstrapTest : public LeasesTest {
 protected:
  BootstrapTest() {
    feed.current = {{"0", left, {}}, {"1", right, {}}};
    options.feed.start_from_beginning = true;
  }

  const FeedRange whole{"", "FF"};
  const FeedRange left{"", "1F"};
  const FeedRange right{"1F", "FF"};
  BootstrapOptions options;

  LeaseGroupKey group(LeaseFormat format = LeaseFormat::Net3) {
    LeaseGroupKey key;
    key.ids = ids;
    key.format = format;
    key.identity = {"localhost", "qYcAAA==", "qYcAAPEvJBQ=", "sky", "stars"};
    return key;
  }
  Async<BootstrapReport> start(LeaseFormat format = LeaseFormat::Net3) {
    return bootstrap(store, feed, group(format), options, runtime);
  }
  bool complete() { return exists(ids.marker()) && !exists(ids.lock()); }

  /// Range 0 becomes 2 and 3, and so does its lease.
  Async<> split_by_others() {
    feed.current = {{"2", {"", "0F"}, {"0"}}, {"3", {"0F", "1F"}, {"0"}}, {"1", right, {}}};
    for (const auto& range : {feed.current[0], feed.current[1]}) {
      const auto lease = new_lease(ids, LeaseFormat::Net3, range.id, range.range, "\"5\"",
                                   client::ChangeFeedMode::LatestVersion, {});
      ORRERY_CO_TRY(co_await store.memory().create(lease->id, write_lease(*lease)));
    }
    co_return co_await store.memory().remove(ids.lease("0"), {});
  }
};

TEST_F(BootstrapTest, MakesALeaseForEachRangeAndTheMarkerAndLeavesNoLock) {
  const auto report = get(start());
  EXPECT_TRUE(report.initialised);
  EXPECT_EQ(report.created, 2U);
  EXPECT_THAT(tokens(), ElementsAre("0", "1"));
  EXPECT_TRUE(complete());
  EXPECT_EQ(lease_at("0").range, left);
  EXPECT_EQ(lease_at("0").owner, "");
  EXPECT_EQ(get(start()).created, 0U);
}

TEST_F(BootstrapTest, LeasesAreOfTheFormatOfTheGroup) {
  for (const auto format : {LeaseFormat::Net2, LeaseFormat::JavaPk, LeaseFormat::JavaEpk}) {
    ids.group = fmt::format("group{}", static_cast<int>(format));
    get(start(format));
    const auto token = format == LeaseFormat::JavaEpk ? "-1F" : "0";
    EXPECT_EQ(lease_at(token).format, format);
    EXPECT_EQ(lease_at(token).position, "\"0\"");
  }
}

TEST_F(BootstrapTest, TheMarkerComesLast) {
  get(start());
  const auto& calls = store.calls();
  const auto marked = std::ranges::find(calls, "create " + ids.marker());
  for (const auto* token : {"0", "1"}) {
    EXPECT_LT(std::ranges::find(calls, "create " + ids.lease(token)), marked);
  }
  EXPECT_LT(marked, std::ranges::find(calls, "remove " + ids.lock()));
}

TEST_F(BootstrapTest, ACrashAnywhereIsRepeatedHarmlessly) {
  for (std::size_t steps = 0;; ++steps) {
    ASSERT_LT(steps, 30U);
    ids.group = fmt::format("crash{}", steps);
    store.set_before([left = steps](const std::string&) mutable -> std::optional<Error> {
      if (left == 0) return Error(ErrorCode::Unavailable, "the host has crashed");
      --left;
      return std::nullopt;
    });
    const auto crashed = run(start());
    store.set_before({});
    ASSERT_TRUE(run(start())) << "step " << steps;
    EXPECT_THAT(tokens(), ElementsAre("0", "1")) << "step " << steps;
    EXPECT_TRUE(exists(ids.marker())) << "step " << steps;
    if (crashed) break;
  }
}

TEST_F(BootstrapTest, RangesAreReadBeforeLeases) {
  bool ranges_read = false;
  feed.before_ranges = [&] { ranges_read = true; };
  store.set_before([&](const std::string& call) -> std::optional<Error> {
    if (call.starts_with("list")) {
      EXPECT_TRUE(ranges_read);
    }
    return std::nullopt;
  });
  get(start());
}

TEST_F(BootstrapTest, ASplitThatIsCompletedMeanwhileDoesNotLookLikeAMissingLease) {
  put_lease("0", left, "\"5\"");
  put_lease("1", right, "\"6\"");
  put(ids.marker(), "{}");
  // After the ranges were read, another host replaces 0 by 2 and 3.
  store.set_before([this, done = false](const std::string& call) mutable -> std::optional<Error> {
    if (!call.starts_with("list") || std::exchange(done, true)) return std::nullopt;
    // It has its turn before the list is made.
    runtime.begin(split_by_others());
    return std::nullopt;
  });
  EXPECT_EQ(get(start()).created, 0U);
}

TEST_F(BootstrapTest, TwoHostsAtOnceMakeEachLeaseOnce) {
  const auto first = runtime.begin(start());
  const auto second = runtime.begin(start());
  runtime.run_until([&] { return first->has_value() && second->has_value(); });
  EXPECT_EQ((**first)->created + (**second)->created, 2U);
  EXPECT_NE((**first)->initialised, (**second)->initialised);
  EXPECT_THAT(tokens(), ElementsAre("0", "1"));
  EXPECT_TRUE(complete());
}

// The store knows no time to live.
TEST_F(BootstrapTest, ALockWhoseHolderDiedIsBrokenAfterItsTime) {
  put(ids.lock(), R"({"ttl":30})");
  const auto before = runtime.elapsed();
  get(start());
  EXPECT_TRUE(complete());
  EXPECT_GE(runtime.elapsed() - before, std::chrono::seconds(30));
  EXPECT_LE(runtime.elapsed() - before, std::chrono::seconds(46));
}

TEST_F(BootstrapTest, ALockWithATimeThatIsNoneHoldsAsLongAsOurs) {
  for (const char* ttl : {"0.5", "-1", "1e300", "999999999999", "\"soon\""}) {
    put(ids.lock(), std::string(R"({"ttl":)") + ttl + "}");
    const auto before = runtime.elapsed();
    get(start());
    EXPECT_GE(runtime.elapsed() - before, std::chrono::seconds(30)) << ttl;
    EXPECT_LE(runtime.elapsed() - before, std::chrono::seconds(46)) << ttl;
    ASSERT_TRUE(run(store.memory().remove(ids.marker(), {})));
  }
}

TEST_F(BootstrapTest, AnOldLockIsBrokenAtOnceByTheClockOfTheStore) {
  put(ids.lock(), R"({"ttl":30})");
  runtime.advance(std::chrono::seconds(32));
  const auto before = runtime.elapsed();
  get(start());
  EXPECT_EQ(runtime.elapsed(), before);
  EXPECT_TRUE(complete());
}

TEST_F(BootstrapTest, ALockThatIsReleasedIsNotWaitedForLongerThanNeeded) {
  const auto lock = put(ids.lock(), R"({"ttl":30})");
  const auto started = runtime.begin(start());
  const auto before = runtime.elapsed();
  runtime.run_until([&] { return runtime.elapsed() - before >= std::chrono::seconds(15); });
  ASSERT_TRUE(run(store.memory().remove(ids.lock(), lock.etag)));
  runtime.run_until([&] { return started->has_value(); });
  EXPECT_LE(runtime.elapsed() - before, std::chrono::seconds(31));
}

// When the group was not complete.
TEST_F(BootstrapTest, ChildrenOfARangeWhoseLeaseIsThereGetNoneOfTheirOwn) {
  put_lease("0", left, "\"17\"");
  feed.current = {{"2", {"", "0F"}, {"0"}}, {"3", {"0F", "1F"}, {"0"}}, {"1", right, {}}};
  EXPECT_EQ(get(start()).created, 1U);
  EXPECT_THAT(tokens(), ElementsAre("0", "1"));
  // The host that acquires it hands its position on.
  const Lease parent = get(manager.acquire(lease_at("0"))).lease;
  get(replace_lease(manager, feed, parent, parent.position));
  EXPECT_THAT(tokens(), ElementsAre("1", "2", "3"));
  EXPECT_EQ(lease_at("2").position, "\"17\"");
  EXPECT_EQ(lease_at("3").position, "\"17\"");
}

TEST_F(BootstrapTest, TheSameIsTrueOfLeasesThatDoNotTellTheirBounds) {
  put_lease("0", std::nullopt, "\"17\"", "", LeaseFormat::Net2);
  feed.current = {{"2", {"", "0F"}, {"0"}}, {"3", {"0F", "1F"}, {"0"}}, {"1", right, {}}};
  get(start(LeaseFormat::Net2));
  EXPECT_THAT(tokens(), ElementsAre("0", "1"));
}

TEST_F(BootstrapTest, WhatEpkLeasesCoverIsCoveredAndTheRestIsNot) {
  put_lease("", FeedRange{"", "0F"}, "\"17\"");
  get(start());
  EXPECT_THAT(tokens(), ElementsAre("-0F", "0F-1F", "1"));
}

TEST_F(BootstrapTest, AStoreThatDoesNotAnswerIsNotAnEmptyOne) {
  store.set_before([](const std::string& call) -> std::optional<Error> {
    if (call.ends_with(".info")) return Error(ErrorCode::TooManyRequests, "made up");
    return std::nullopt;
  });
  const auto started = run(start());
  ASSERT_FALSE(started.has_value());
  EXPECT_EQ(started.error().code(), ErrorCode::TooManyRequests);
  EXPECT_THAT(tokens(), IsEmpty());
  EXPECT_FALSE(exists(ids.lock()));
}

TEST_F(BootstrapTest, AMissingLeaseOfACompleteGroupIsMadeAgain) {
  get(start());
  ASSERT_TRUE(run(store.memory().remove(ids.lease("1"), {})));
  const auto report = get(start());
  EXPECT_EQ(report.created, 1U);
  EXPECT_FALSE(report.initialised);
  EXPECT_THAT(tokens(), ElementsAre("0", "1"));
}

TEST_F(BootstrapTest, NowIsFixedWhenTheLeaseIsMade) {
  options.feed.start_from_beginning = false;
  feed.etag = "\"40\"";
  get(start());
  EXPECT_EQ(lease_at("0").position, "\"40\"");
  ASSERT_EQ(feed.requests.size(), 2U);
  EXPECT_EQ(feed.requests[0].after, "*");
  EXPECT_EQ(feed.requests[0].range_id, "0");
}

TEST_F(BootstrapTest, ATimeIsFixedWhenTheLeaseIsMade) {
  options.feed.start_time = WallTime(std::chrono::seconds(99));
  feed.answer = [](const FeedRequest& request) -> std::optional<FeedAnswer> {
    EXPECT_EQ(request.since, WallTime(std::chrono::seconds(99)));
    return page_of({}, "\"33\"");
  };
  get(start());
  EXPECT_EQ(lease_at("0").position, "\"33\"");
}

TEST_F(BootstrapTest, ATimeWhoseFirstPageShowsChangesBeginsBeforeThem) {
  options.feed.start_time = WallTime(std::chrono::seconds(99));
  feed.answer = [](const FeedRequest&) -> std::optional<FeedAnswer> {
    return page_of({R"({"id":"a","_lsn":21})"}, "\"21\"");
  };
  get(start());
  EXPECT_EQ(lease_at("0").position, "\"20\"");
}

TEST_F(BootstrapTest, TheBeginningIsAPositionToo) {
  get(start());
  EXPECT_EQ(lease_at("0").position, "\"0\"");
  EXPECT_THAT(feed.requests, IsEmpty());
}

TEST_F(BootstrapTest, AContinuationGoesBeforeTimeAndBeginning) {
  options.feed.start_continuation = "\"77\"";
  options.feed.start_time = WallTime(std::chrono::seconds(99));
  get(start());
  EXPECT_EQ(lease_at("0").position, "\"77\"");
}

TEST_F(BootstrapTest, AllVersionsBeginNowOrAtAToken) {
  options.feed.mode = client::ChangeFeedMode::AllVersionsAndDeletes;
  const auto refused = run(start());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), ErrorCode::BadRequest);
  EXPECT_THAT(store.calls(), IsEmpty());
  options.feed.start_from_beginning = false;
  get(start());
  EXPECT_EQ(lease_at("0").mode, client::ChangeFeedMode::AllVersionsAndDeletes);
  EXPECT_EQ(feed.requests[0].mode, client::ChangeFeedMode::AllVersionsAndDeletes);
}

TEST_F(BootstrapTest, AnotherModeIsRefused) {
  get(start());
  options.feed.mode = client::ChangeFeedMode::AllVersionsAndDeletes;
  options.feed.start_from_beginning = false;
  const auto refused = run(start());
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message(), HasSubstr("not allowed"));
}

TEST_F(BootstrapTest, ThrottledReadsAreWaitedOut) {
  options.feed.start_from_beginning = false;
  feed.answer = [count = 0](const FeedRequest&) mutable -> std::optional<FeedAnswer> {
    if (count++ >= 2) return std::nullopt;
    auto throttled = answer_of(FeedAnswer::Kind::Throttled, 429);
    throttled.retry_after = std::chrono::milliseconds(700);
    return throttled;
  };
  const auto before = runtime.elapsed();
  get(start());
  EXPECT_EQ(lease_at("0").position, "\"40\"");
  EXPECT_GE(runtime.elapsed() - before, std::chrono::milliseconds(700));
}

TEST_F(BootstrapTest, ARangeThatSplitsMeanwhileIsSeenAnew) {
  options.feed.start_from_beginning = false;
  feed.answer = [this](const FeedRequest& request) -> std::optional<FeedAnswer> {
    if (request.range_id != "1") return std::nullopt;
    feed.current = {{"0", left, {}}, {"2", {"1F", "2F"}, {"1"}}, {"3", {"2F", "FF"}, {"1"}}};
    return answer_of(FeedAnswer::Kind::Gone, 410);
  };
  get(start());
  EXPECT_THAT(tokens(), ElementsAre("0", "2", "3"));
  EXPECT_TRUE(complete());
}

TEST_F(BootstrapTest, AnErrorOfTheFeedIsPassedOnAndTheLockGivenBack) {
  options.feed.start_from_beginning = false;
  feed.answer = [](const FeedRequest&) -> std::optional<FeedAnswer> {
    return answer_of(FeedAnswer::Kind::NotFound, 404);
  };
  const auto started = run(start());
  ASSERT_FALSE(started.has_value());
  EXPECT_EQ(started.error().code(), ErrorCode::NotFound);
  EXPECT_FALSE(exists(ids.lock()));
  EXPECT_FALSE(exists(ids.marker()));
}

TEST_F(BootstrapTest, ExistingLeasesAreDiscardedOnRequest) {
  get(start());
  Lease lease = lease_at("0");
  lease.position = "\"99\"";
  put(lease.id, write_lease(lease));
  put_lease("old", std::nullopt, "\"1\"");
  options.discard_existing_leases = true;
  const auto report = get(start());
  EXPECT_EQ(report.discarded, 3U);
  EXPECT_EQ(report.created, 2U);
  EXPECT_THAT(tokens(), ElementsAre("0", "1"));
  EXPECT_EQ(lease_at("0").position, "\"0\"");
  EXPECT_TRUE(complete());
}

TEST_F(BootstrapTest, NoMoreLeasesAreMadeAtOnceThanAllowed) {
  feed.current.clear();
  for (int count = 0; count < 40; ++count) {
    feed.current.push_back({std::to_string(count),
                            {count == 0 ? "" : fmt::format("{:02X}", count),
                             count == 39 ? "FF" : fmt::format("{:02X}", count + 1)},
                            {}});
  }
  options.degree_of_parallelism = 3;
  EXPECT_EQ(get(start()).created, 40U);
  EXPECT_EQ(tokens().size(), 40U);
}

TEST_F(BootstrapTest, TheGroupIsNamedAfterPrefixHostAndRids) {
  auto found = get(find_group(store, feed, "p.", "", LeaseFormat::Detect));
  EXPECT_EQ(found.ids.group, "p.localhost_qYcAAA==_qYcAAPEvJBQ=");
  EXPECT_EQ(found.format, LeaseFormat::Net3);
  found = get(find_group(store, feed, "", "db.internal", LeaseFormat::JavaEpk));
  EXPECT_EQ(found.ids.group, "db.internal_qYcAAA==_qYcAAPEvJBQ=");
  EXPECT_EQ(found.format, LeaseFormat::JavaEpk);
  found = get(find_group(store, feed, "p.", "", LeaseFormat::JavaPk));
  EXPECT_EQ(found.ids.group, "p.localhost_sky_stars");
}

TEST_F(BootstrapTest, TheFormatIsThatOfTheLeasesThatAreThere) {
  put_lease("0", std::nullopt, "\"1\"", "", LeaseFormat::Net2);
  EXPECT_EQ(get(find_group(store, feed, "p.", "", LeaseFormat::Detect)).format, LeaseFormat::Net2);
  const auto other = run(find_group(store, feed, "p.", "", LeaseFormat::JavaEpk));
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code(), ErrorCode::BadRequest);

  ids = LeaseIds::make("p.", "localhost", "sky", "stars");
  put_lease("0", std::nullopt, "\"1\"", "", LeaseFormat::JavaPk);
  const auto both = run(find_group(store, feed, "p.", "", LeaseFormat::Detect));
  ASSERT_FALSE(both.has_value());
  EXPECT_THAT(both.error().message(), HasSubstr("two groups"));
  EXPECT_EQ(get(find_group(store, feed, "p.", "", LeaseFormat::JavaPk)).ids, ids);
  EXPECT_EQ(get(find_group(store, feed, "p.", "", LeaseFormat::Net2)).format, LeaseFormat::Net2);
}

}  // namespace
}  // namespace orrery::processor
