// The options of a host, and its reports when things stand still; in virtual time.
#include <set>

#include <gmock/gmock.h>

#include "processor/hosting/controller.h"
#include "processor/simulation/test_group.h"

namespace orrery::processor::simulation {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ControllerOptionsTest : public GroupTest {
 protected:
  ControllerOptionsTest() : GroupTest(4) {}

  void note_requests() {
    feed_.intercept = [this](const FeedRequest& request) {
      requests_.push_back(request);
      return std::nullopt;
    };
  }
  static std::vector<std::string> messages(const Host& host, Severity severity) {
    std::vector<std::string> found;
    for (const HealthEvent& event : host.events) {
      if (event.severity == severity) found.push_back(event.message);
    }
    return found;
  }

  std::vector<FeedRequest> requests_;  // That hosts have sent to the feed.
};

TEST_F(ControllerOptionsTest, EveryReadSaysWhatTheUserWants) {
  note_requests();
  feed_options_.session_token = "0:1#5";
  feed_options_.max_item_count = 9;
  options_.change_feed_timeout = 7s;
  options_.long_poll_wait = 11s;
  start("a");
  pass(30s);
  ASSERT_FALSE(requests_.empty());
  for (const FeedRequest& request : requests_) {
    EXPECT_EQ(request.session_token, "0:1#5");
    EXPECT_EQ(request.page_size, 9u);
    EXPECT_EQ(request.time_max, 7s);
    EXPECT_EQ(request.wait, 11s);
  }
}

TEST_F(ControllerOptionsTest, WithoutLongPollNobodyWaitsAtTheServerAndThePollDelayIsKept) {
  note_requests();
  feed_.long_poll = true;
  options_.long_poll = false;
  options_.feed_poll_delay = 3s;
  start("a");
  pass(31s);
  EXPECT_GE(requests_.size(), 4 * 9u);
  EXPECT_LE(requests_.size(), 4 * 12u);
  for (const FeedRequest& request : requests_) EXPECT_EQ(request.wait, std::nullopt);
}

TEST_F(ControllerOptionsTest, NoHostTakesMoreThanItMay) {
  options_.max_partition_count = 1;
  start("a");
  start("b");
  pass(120s);
  EXPECT_EQ(owned_by("a"), 1);
  EXPECT_EQ(owned_by("b"), 1);
}

// As with the originals it takes what is free; nobody is robbed of its own share for it.
TEST_F(ControllerOptionsTest, AHostThatWantsMoreThanItsShareTakesWhatIsFree) {
  options_.max_partition_count = 1;
  start("a");
  options_.max_partition_count = 0;
  Host& b = start("b");
  pass(60s);
  EXPECT_EQ(owned_by("b"), 2);
  stop(b);
  options_.min_partition_count = 3;
  start("b");
  pass(60s);
  EXPECT_EQ(owned_by("b"), 3);
  EXPECT_EQ(owned_by("a"), 1);
}

TEST_F(ControllerOptionsTest, IntervalsAreThoseOfTheOptions) {
  options_.lease_renew_interval = 2s;
  options_.lease_acquire_interval = 1s;
  options_.lease_expiration_interval = 6s;
  start("a");
  pass(5s);
  start("b");
  ASSERT_TRUE(within(10s, [&] { return owned_by("b") == 2; }));
  pass(3s);
  const std::uint64_t before = store_.writes();
  pass(20s);
  // Four leases, each ten times; the positions of idle leases go along.
  EXPECT_GE(store_.writes() - before, 36u);
  EXPECT_LE(store_.writes() - before, 44u);
  hosts_["a"]->runtime->kill();
  EXPECT_TRUE(within(8s, [&] { return owned_by("b") == 4; }));
}

TEST_F(ControllerOptionsTest, GroupsWithDifferentPrefixesDoNotKnowOfEachOther) {
  options_.lease_prefix = "one.";
  start("a");
  options_.lease_prefix = "two.";
  start("b");
  pass(30s);
  EXPECT_EQ(owned_by("a"), 4);
  EXPECT_EQ(owned_by("b"), 4);
  EXPECT_THAT(leases(), SizeIs(8));
}

TEST_F(ControllerOptionsTest, HostsThatReachTheServerUnderOtherNamesMayShareOneGroup) {
  options_.feed_host = "agreed";
  start("a");
  for (const Lease& lease : leases()) EXPECT_THAT(lease.id, HasSubstr("agreed_db-rid"));
}

TEST_F(ControllerOptionsTest, AReaderThatIsAheadHasThePageBeforeTheBatchIsDone) {
  feed_options_.max_item_count = 1;
  feed_.write(1, 1);
  feed_.write(1, 1);
  for (const bool ahead : {false, true}) {
    options_.read_ahead = ahead;
    options_.lease_prefix = ahead ? "ahead." : "not-ahead.";
    // The first batch asks for more time until it is known what was read meanwhile.
    const Duration begin = world_.now();
    behave_ = [&](ObserverContext&, const Documents&) -> Outcome {
      return world_.now() < begin + 20s ? Outcome::retry(1s) : Outcome::done();
    };
    std::set<std::string> asked;
    feed_.intercept = [&](const FeedRequest& request) -> std::optional<FeedAnswer> {
      if (world_.now() < begin + 20s) asked.insert(request.after);
      return std::nullopt;
    };
    Host& host = start("a");
    pass(20s);
    EXPECT_EQ(asked,
              ahead ? (std::set<std::string>{"\"0\"", "\"1\""}) : (std::set<std::string>{"\"0\""}));
    stop(host);
  }
}

// ── what stands still ────────────────────────────────────────────────────────────────────────────

TEST_F(ControllerOptionsTest, ALeaseThatNobodyHasForLongIsToldOnce) {
  options_.max_partition_count = 3;
  Host& host = start("a");
  pass(2 * 60s);
  EXPECT_THAT(messages(host, Severity::Error), IsEmpty());
  pass(20 * 60s);
  EXPECT_THAT(messages(host, Severity::Error),
              ElementsAre(HasSubstr("without a living owner for more than")));
}

TEST_F(ControllerOptionsTest, AReadThatNeverEndsCostsTheHostItsLease) {
  feed_.hangs = [](const FeedRequest& request) { return request.range_id == "0"; };
  Host& host = start("a");
  ASSERT_TRUE(within(20s, [&] { return owned_by("a") == 4; }));
  // Renewals alone would keep it for ever.
  ASSERT_TRUE(within(25 * 17s + 30s + 20s, [&] { return owned_by("a") == 3; }));
  EXPECT_THAT(messages(host, Severity::Error), Contains(HasSubstr("a read does not end")));
  feed_.hangs = nullptr;
  ASSERT_TRUE(within(30s, [&] { return owned_by("a") == 4; }));
  ASSERT_THAT(seen("close"), SizeIs(1));
  EXPECT_EQ(seen("close")[0].reason, CloseReason::Unknown);
}

// ── leases that replace others ───────────────────────────────────────────────────────────────────

class SupersededTest : public GroupTest {
 protected:
  /// A part of the hash space, of a generation, as a host would have made it.
  void put_part(const std::string& min, const std::string& max, int generation,
                const std::string& position) {
    auto lease = new_lease(ids(), LeaseFormat::Net3, {}, client::FeedRange{min, max}, position,
                           client::ChangeFeedMode::LatestVersion, "container-rid");
    ASSERT_TRUE(lease);
    lease->properties["orrery.generation"] = std::to_string(generation);
    ASSERT_TRUE(store_.create(lease->id, write_lease(*lease)));
  }
  void put_marker() {
    ASSERT_TRUE(store_.create(ids().marker(), "{\"id\":\"" + ids().marker() + "\"}"));
  }
  static LeaseIds ids() { return LeaseIds::make("", "simulated", "db-rid", "container-rid"); }
  std::vector<std::string> tokens() const {
    std::vector<std::string> found;
    for (const Lease& lease : leases()) found.push_back(lease.token);
    return found;
  }
};

TEST_F(SupersededTest, ALeaseThatWasHalfReplacedIsNotReadOnAlthoughItFitsARangeAgain) {
  put_marker();
  put_part("", "FF", 1, "\"0\"");
  put_part("", "8000", 2, "\"0\"");  // Then its maker died, and the ranges were merged.
  for (int key = 0; key < 20; ++key) feed_.write(key, 1);
  start("a");
  ASSERT_TRUE(within(60s, [&] { return processed_ids().size() >= 20; }));
  pass(60s);
  EXPECT_THAT(tokens(), ElementsAre("-8000", "8000-FF"));
  EXPECT_THAT(processed_ids(), SizeIs(20));
}

TEST_F(SupersededTest, ALeaseOfWhichEverythingIsReplacedIsJustDeleted) {
  put_marker();
  put_part("", "FF", 1, "\"0\"");
  put_part("", "8000", 2, "\"0\"");
  put_part("8000", "FF", 2, "\"0\"");
  start("a");
  ASSERT_TRUE(within(60s, [&] { return leases().size() == 2; }));
  EXPECT_THAT(tokens(), ElementsAre("-8000", "8000-FF"));
}

TEST_F(SupersededTest, ItsOwnerNoticesWhatOthersHaveMadeMeanwhile) {
  put_marker();
  put_part("", "FF", 1, "\"0\"");
  start("a");
  ASSERT_TRUE(within(20s, [&] { return !seen("idle").empty(); }));
  put_part("", "8000", 2, "\"0\"");
  ASSERT_TRUE(
      within(60s, [&] { return tokens() == std::vector<std::string>{"-8000", "8000-FF"}; }));
  EXPECT_EQ(seen("close")[0].reason, CloseReason::LeaseGone);
}

// ── stops ────────────────────────────────────────────────────────────────────────────────────────

TEST_F(ControllerOptionsTest, WhatIsHandedOverToAHostThatStopsIsNotKept) {
  options_.balancing = Balancing::Weighted;
  Host& b = start("b");
  pass(20s);
  // Somebody hands a lease over, and somebody else is still asked for one.
  rewrite_lease("0", [](Lease& lease) {
    lease.owner = "b";
    lease.properties["orrery.epoch"] = "77";
  });
  rewrite_lease("1", [](Lease& lease) {
    lease.owner = "c";
    lease.properties["orrery.wanted-by"] = "b";
  });
  stop(b);
  EXPECT_EQ(owned_by("b"), 0);
  for (const Lease& lease : leases()) EXPECT_EQ(lease.wanted_by(), "") << lease.token;
  EXPECT_EQ(owned_by("c"), 1);
}

TEST_F(ControllerOptionsTest, NorWhenItsObserversDoNotReturnInTime) {
  options_.balancing = Balancing::Weighted;
  options_.shutdown_deadline = 10s;
  Host& b = start("b");
  ASSERT_TRUE(within(60s, [&] { return owned_by("b") == 4; }));
  rewrite_lease("1", [](Lease& lease) {
    lease.owner = "c";
    lease.properties["orrery.wanted-by"] = "b";
  });
  ASSERT_TRUE(within(60s, [&] { return !seen("close").empty(); })) << "it has noticed the loss";
  b.hold_calls = true;
  for (int key = 0; key < 20; ++key) feed_.write(key, 1);
  ASSERT_TRUE(within(20s, [&] { return !b.held.empty(); }));
  stop(b);
  EXPECT_FALSE(b.stopped_in_time);
  for (const Lease& lease : leases()) EXPECT_EQ(lease.wanted_by(), "") << lease.token;
  EXPECT_EQ(owned_by("c"), 1);
  release_held(b);
}

}  // namespace
}  // namespace orrery::processor::simulation
