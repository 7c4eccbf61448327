#include "processor/leases/lease_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "processor/leases/test_leases.h"

namespace orrery::processor {
namespace {

using client::FeedRange;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LeaseSplitTest : public LeasesTest {
 protected:
  const FeedRange whole{"", "FF"};
  const FeedRange left{"", "1F"};
  const FeedRange right{"1F", "FF"};

  Lease acquired(const std::string& token, std::optional<FeedRange> range,
                 const std::string& position = "\"10\"", LeaseFormat format = LeaseFormat::Net3,
                 const std::map<std::string, std::string>& properties = {}) {
    auto seen = put_lease(token, range, position, "", format, properties);
    auto lease = get(manager.acquire(seen)).lease;
    return lease;
  }
  Replacement replace(const Lease& gone, const std::string& position = "\"12\"") {
    return get(replace_lease(manager, feed, gone, position));
  }
};

TEST_F(LeaseSplitTest, ASplitRangeLeaseBecomesOneForEachChild) {
  const Lease gone = acquired("0", whole, "\"10\"", LeaseFormat::Net3, {{"mine", "kept"}});
  feed.current = {{"1", left, {"0"}}, {"2", right, {"0"}}};
  const auto replacement = replace(gone);
  EXPECT_THAT(tokens(), ElementsAre("1", "2"));
  ASSERT_EQ(replacement.leases.size(), 2U);
  for (const Lease& lease : replacement.leases) {
    EXPECT_EQ(lease.position, "\"12\"");
    EXPECT_EQ(lease.owner, "");
    EXPECT_EQ(lease.properties.at("mine"), "kept");
    EXPECT_EQ(lease.epoch(), gone.epoch());
    EXPECT_EQ(lease.format, LeaseFormat::Net3);
    EXPECT_EQ(get(manager.acquire(lease)).kind, LeaseChange::Kind::Done);
  }
  EXPECT_EQ(replacement.leases[0].range, left);
  EXPECT_EQ(replacement.leases[1].range, right);
}

TEST_F(LeaseSplitTest, AllChildrenAreThereBeforeTheParentGoes) {
  const Lease gone = acquired("0", whole);
  feed.current = {{"1", left, {"0"}}, {"2", right, {"0"}}};
  replace(gone);
  const auto& calls = store.calls();
  const auto removed = std::ranges::find(calls, "remove " + gone.id);
  ASSERT_NE(removed, calls.end());
  EXPECT_LT(std::ranges::find(calls, "create " + ids.lease("1")), removed);
  EXPECT_LT(std::ranges::find(calls, "create " + ids.lease("2")), removed);
}

// At every step.
TEST_F(LeaseSplitTest, ACrashAnywhereIsCompletedByTheNextOwner) {
  feed.current = {{"1", left, {"0"}}, {"2", right, {"0"}}};
  for (std::size_t steps = 0; steps < 8; ++steps) {
    for (const auto& token : tokens()) {
      ASSERT_TRUE(run(store.memory().remove(ids.lease(token), {})));
    }
    const Lease gone = acquired("0", whole);
    store.set_before([left = steps](const std::string&) mutable -> std::optional<Error> {
      if (left == 0) return Error(ErrorCode::Unavailable, "the host has crashed");
      --left;
      return std::nullopt;
    });
    const auto crashed = run(replace_lease(manager, feed, gone, "\"12\""));
    store.set_before({});
    manager.forget(gone.id);
    if (crashed) break;

    // The first child is taken by somebody and advances.
    if (exists(ids.lease("1"))) {
      Lease child = lease_at("1");
      child.position = "\"50\"";
      put(child.id, write_lease(child));
    }
    LeaseManager next(store, ids, "host-2", runtime);
    ASSERT_TRUE(exists(gone.id)) << "nothing is lost, step " << steps;
    ASSERT_EQ(get(next.acquire(lease_at("0"))).kind, LeaseChange::Kind::Done);
    const auto advanced = exists(ids.lease("1"));
    ASSERT_TRUE(run(replace_lease(next, feed, lease_at("0"), lease_at("0").position)));
    EXPECT_THAT(tokens(), ElementsAre("1", "2")) << "step " << steps;
    if (advanced) {
      EXPECT_EQ(lease_at("1").position, "\"50\"") << "not overwritten";
    }
    EXPECT_NE(lease_at("2").position, std::nullopt);
  }
}

TEST_F(LeaseSplitTest, AParentFoundAfterItsChildrenHaveAdvancedIsJustDeleted) {
  const Lease gone = acquired("0", whole);
  put_lease("1", left, "\"30\"", "host-2");
  put_lease("2", right, "\"40\"", "host-3");
  feed.current = {{"1", left, {"0"}}, {"2", right, {"0"}}};
  replace(gone);
  EXPECT_THAT(tokens(), ElementsAre("1", "2"));
  EXPECT_EQ(lease_at("1").position, "\"30\"");
  EXPECT_EQ(lease_at("1").owner, "host-2");
  EXPECT_EQ(lease_at("2").position, "\"40\"");
}

TEST_F(LeaseSplitTest, OnlyItsOwnerReplacesALease) {
  const Lease gone = acquired("0", whole);
  LeaseManager thief(store, ids, "host-2", runtime);
  ASSERT_EQ(get(thief.acquire(lease_at("0"))).kind, LeaseChange::Kind::Done);
  feed.current = {{"1", left, {"0"}}, {"2", right, {"0"}}};
  EXPECT_TRUE(replace(gone).lost);
  EXPECT_THAT(tokens(), ElementsAre("0"));
  EXPECT_EQ(lease_at("0").position, "\"10\"");
}

TEST_F(LeaseSplitTest, MergedRangesKeepALeaseEachForThePartThatWasTheirs) {
  const Lease first = acquired("1", left, "\"10\"");
  const Lease second = acquired("2", right, "\"20\"");
  feed.current = {{"3", whole, {"0", "1", "2"}}};
  EXPECT_EQ(replace(first, "\"11\"").leases[0].token, "-1F");
  EXPECT_EQ(replace(second, "\"21\"").leases[0].token, "1F-FF");
  EXPECT_THAT(tokens(), ElementsAre("-1F", "1F-FF"));
  EXPECT_EQ(lease_at("-1F").position, "\"11\"");
  EXPECT_EQ(lease_at("1F-FF").position, "\"21\"");
  EXPECT_THAT(text_at("-1F"), ::testing::HasSubstr("\"version\":1"));
  EXPECT_EQ(targets_of(lease_at("-1F"), feed.current), (std::vector<FeedTarget>{{"3", left}}));

  // And split again, elsewhere.
  feed.current = {{"4", {"", "0F"}, {"0", "1", "2", "3"}},
                  {"5", {"0F", "FF"}, {"0", "1", "2", "3"}}};
  const Lease part = get(manager.acquire(lease_at("-1F"))).lease;
  const auto again = replace(part, "\"15\"");
  EXPECT_FALSE(again.kept);
  EXPECT_THAT(tokens(), ElementsAre("-0F", "0F-1F", "1F-FF"));
  EXPECT_EQ(lease_at("0F-1F").position, "\"15\"");
}

TEST_F(LeaseSplitTest, AnEpkLeaseWithinOneRangeIsKept) {
  const Lease part = acquired("", left);
  feed.current = {{"7", {"", "2F"}, {"1"}}, {"8", {"2F", "FF"}, {"1"}}};
  EXPECT_TRUE(replace(part).kept);
  EXPECT_THAT(tokens(), ElementsAre("-1F"));
  EXPECT_EQ(targets_of(part, feed.current), (std::vector<FeedTarget>{{"7", left}}));
}

TEST_F(LeaseSplitTest, ALeaseWhoseRangeIsThereIsKept) {
  const Lease lease = acquired("0", whole);
  EXPECT_TRUE(replace(lease).kept);
  EXPECT_THAT(tokens(), ElementsAre("0"));
}

TEST_F(LeaseSplitTest, NewRangesThatReachBeyondTheOldOneAreCut) {
  // Split into 3 and 4, and 4 merged with the neighbour 2 into 5.
  const Lease gone = acquired("1", left);
  feed.current = {{"3", {"", "0F"}, {"1"}}, {"5", {"0F", "FF"}, {"1", "4", "2"}}};
  replace(gone);
  EXPECT_THAT(tokens(), ElementsAre("0F-1F", "3"));
  EXPECT_EQ(lease_at("0F-1F").range, (FeedRange{"0F", "1F"}));
}

TEST_F(LeaseSplitTest, WhatLaterLeasesCoverIsLeftToThem) {
  // Somebody crashed after making leases 1 and 2; 1 was merged away since and became -1F.
  const Lease gone = acquired("0", whole);
  put_lease("", left, "\"90\"", "host-2", LeaseFormat::Net3, {{"orrery.generation", "2"}});
  feed.current = {{"2", right, {"0"}}, {"6", {"", "1F"}, {"0", "1"}}};
  replace(gone);
  EXPECT_THAT(tokens(), ElementsAre("-1F", "2"));
}

TEST_F(LeaseSplitTest, EarlierAndEquallyLateLeasesAreNotReliedOn) {
  // They may be about to go, relying on this one.
  const Lease gone = acquired("1", left, "\"10\"", LeaseFormat::Net3, {{"orrery.generation", "1"}});
  put_lease("0", whole, "\"3\"");
  put_lease("", whole, "\"3\"", "", LeaseFormat::Net3, {{"orrery.generation", "1"}});
  feed.current = {
      {"3", {"", "0F"}, {"0", "1"}}, {"4", {"0F", "1F"}, {"0", "1"}}, {"2", right, {"0"}}};
  replace(gone);
  EXPECT_THAT(tokens(), ElementsAre("-FF", "0", "3", "4"));
  EXPECT_EQ(lease_at("3").generation(), 2U);
}

TEST_F(LeaseSplitTest, Net2AndJavaPkFollowASplitByParents) {
  for (const auto format : {LeaseFormat::Net2, LeaseFormat::JavaPk}) {
    const Lease gone = acquired("0", std::nullopt, "\"10\"", format);
    feed.current = {{"1", left, {"0"}}, {"2", right, {"0"}}};
    replace(gone);
    EXPECT_THAT(tokens(), ElementsAre("1", "2"));
    for (const auto& token : {"1", "2"}) {
      EXPECT_EQ(lease_at(token).format, format);
      EXPECT_EQ(lease_at(token).position, "\"12\"");
      ASSERT_TRUE(run(store.memory().remove(ids.lease(token), {})));
    }
  }
}

TEST_F(LeaseSplitTest, JavaPkMergesAtTheLowestPosition) {
  const Lease first = acquired("1", left, "\"20\"", LeaseFormat::JavaPk);
  const Lease second = acquired("2", right, "\"10\"", LeaseFormat::JavaPk);
  feed.current = {{"3", whole, {"1", "2"}}};
  replace(first, "\"25\"");
  EXPECT_THAT(tokens(), ElementsAre("2", "3"));
  EXPECT_EQ(lease_at("3").position, "\"10\"");
  replace(second, "\"13\"");
  EXPECT_THAT(tokens(), ElementsAre("3"));
  EXPECT_EQ(lease_at("3").position, "\"10\"");
}

// The host that acquired it while its range was there knows its area, others do not.
TEST_F(LeaseSplitTest, Net2MergesAtTheLowestPositionWhateverTheOwnerHappensToKnow) {
  Lease first = acquired("1", std::nullopt, "\"20\"", LeaseFormat::Net2);
  first.range = left;
  const Lease second = acquired("2", std::nullopt, "\"10\"", LeaseFormat::Net2);
  feed.current = {{"3", whole, {"1", "2"}}};
  replace(first, "\"25\"");
  EXPECT_THAT(tokens(), ElementsAre("2", "3"));
  EXPECT_EQ(lease_at("3").position, "\"10\"");
  EXPECT_EQ(lease_at("3").format, LeaseFormat::Net2);
  replace(second, "\"13\"");
  EXPECT_THAT(tokens(), ElementsAre("3"));
}

TEST_F(LeaseSplitTest, ALeaseOfUnknownAreaLeavesAloneWhatOthersSayTheyCover) {
  const Lease gone = acquired("2", std::nullopt, "\"10\"", LeaseFormat::Net2);
  put_lease("1", left, "\"20\"", "host-2");
  feed.current = {{"3", whole, {"1", "2"}}};
  replace(gone);
  EXPECT_THAT(tokens(), ElementsAre("1", "1F-FF"));
  EXPECT_EQ(lease_at("1F-FF").position, "\"12\"");
}

TEST_F(LeaseSplitTest, WhatWasHalfReplacedIsReplacedAlthoughItFitsOneRangeAgain) {
  const Lease gone = acquired("", whole);
  put_lease("", left, "\"90\"", "host-2", LeaseFormat::Net3, {{"orrery.generation", "1"}});
  feed.current = {{"3", whole, {"1", "2"}}};
  EXPECT_FALSE(replace(gone).kept);
  EXPECT_THAT(tokens(), ElementsAre("-1F", "1F-FF"));
  EXPECT_EQ(lease_at("-1F").position, "\"90\"");
  EXPECT_EQ(lease_at("1F-FF").position, "\"12\"");
}

TEST_F(LeaseSplitTest, OnlyLaterLeasesSupersede) {
  const auto lease = [&](const std::string& id, FeedRange range, const char* generation) {
    Lease each;
    each.id = id;
    each.range = std::move(range);
    each.properties["orrery.generation"] = generation;
    return each;
  };
  EXPECT_THAT(superseded_leases({lease("a", whole, "1"), lease("b", left, "2")}), ElementsAre("a"));
  EXPECT_THAT(superseded_leases({lease("a", left, "1"), lease("b", whole, "2")}), ElementsAre("a"));
  EXPECT_THAT(superseded_leases({lease("a", whole, "1"), lease("b", left, "1")}), IsEmpty());
  EXPECT_THAT(superseded_leases({lease("a", left, "1"), lease("b", right, "2")}), IsEmpty());
}

TEST_F(LeaseSplitTest, JavaEpkLeasesSplitWithTheirState) {
  const Lease gone = acquired("", whole, "\"10\"", LeaseFormat::JavaEpk);
  feed.current = {{"1", left, {"0"}}, {"2", right, {"0"}}};
  replace(gone);
  EXPECT_THAT(tokens(), ElementsAre("-1F", "1F-FF"));
  for (const auto& token : {"-1F", "1F-FF"}) {
    EXPECT_EQ(lease_at(token).format, LeaseFormat::JavaEpk);
    EXPECT_EQ(lease_at(token).position, "\"12\"");
    EXPECT_EQ(lease_at(token).container_rid, "qYcAAPEvJBQ=");
  }
}

TEST_F(LeaseSplitTest, RangesThatDoNotTellYetAreAskedAgain) {
  const Lease gone = acquired("0", whole);
  feed.current = {{"1", left, {"0"}}};
  const auto replaced = run(replace_lease(manager, feed, gone, "\"12\""));
  ASSERT_FALSE(replaced.has_value());
  EXPECT_EQ(replaced.error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(tokens(), ElementsAre("0"));
}

TEST(LeaseAreaTest, WhatIsLeftUncovered) {
  EXPECT_THAT(uncovered({"", "FF"}, {{"", "FF"}}), IsEmpty());
  EXPECT_THAT(uncovered({"", "FF"}, {}), ElementsAre(FeedRange{"", "FF"}));
  EXPECT_THAT(uncovered({"", "FF"}, {{"1F", "2F"}, {"0F", "1F"}}),
              ElementsAre(FeedRange{"", "0F"}, FeedRange{"2F", "FF"}));
  EXPECT_THAT(uncovered({"1F", "2F"}, {{"", "20"}, {"25", "FF"}}),
              ElementsAre(FeedRange{"20", "25"}));
}

}  // namespace
}  // namespace orrery::processor
