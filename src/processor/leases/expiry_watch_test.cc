#include "processor/leases/expiry_watch.h"

#include <gtest/gtest.h>

namespace orrery::processor {
namespace {

using std::chrono::seconds;

Lease lease(std::string etag, std::string id = "P..0") {
  Lease made;
  made.id = std::move(id);
  made.etag = std::move(etag);
  made.owner = "host-2";
  return made;
}

MonotonicTime at(seconds time) { return MonotonicTime(time); }

TEST(ExpiryWatchTest, ALeaseThatDoesNotChangeExpires) {
  ExpiryWatch watch(seconds(60));
  for (int time = 0; time <= 60; time += 13) watch.observe({lease("a")}, at(seconds(time)));
  EXPECT_FALSE(watch.expired("P..0", at(seconds(60))));
  EXPECT_TRUE(watch.expired("P..0", at(seconds(61))));
  EXPECT_EQ(watch.unchanged_for("P..0", at(seconds(61))), seconds(61));
}

TEST(ExpiryWatchTest, EveryChangeIsASignOfLife) {
  ExpiryWatch watch(seconds(60));
  watch.observe({lease("a")}, at(seconds(0)));
  watch.observe({lease("b")}, at(seconds(50)));
  EXPECT_FALSE(watch.expired("P..0", at(seconds(100))));
  EXPECT_TRUE(watch.expired("P..0", at(seconds(111))));
}

TEST(ExpiryWatchTest, TimestampsOfOtherClocksDoNotCount) {
  ExpiryWatch watch(seconds(60));
  Lease early = lease("a");
  early.timestamp = WallTime(seconds(5));
  early.ts = 5;
  watch.observe({early}, at(seconds(1'000'000)));
  EXPECT_FALSE(watch.expired("P..0", at(seconds(1'000'059))));
  EXPECT_TRUE(watch.expired("P..0", at(seconds(1'000'061))));
}

TEST(ExpiryWatchTest, TheClockOfTheStoreSpeedsUpTheFirstDecision) {
  ExpiryWatch watch(seconds(60));
  Lease old = lease("a");
  old.ts = 1'000;
  old.store_now = 1'100;
  watch.observe({old}, at(seconds(500)));
  EXPECT_TRUE(watch.expired("P..0", at(seconds(500))));
  Lease young = lease("b", "P..1");
  young.ts = 1'000;
  young.store_now = 1'017;
  watch.observe({old, young}, at(seconds(500)));
  EXPECT_FALSE(watch.expired("P..1", at(seconds(544))));
  EXPECT_TRUE(watch.expired("P..1", at(seconds(545))));
}

TEST(ExpiryWatchTest, ThatSomebodyWantsALeaseIsNoSignOfLifeOfItsOwner) {
  ExpiryWatch watch(seconds(60));
  Lease wanted = lease("a");
  watch.observe({wanted}, at(seconds(0)));
  wanted.etag = "b";
  wanted.properties["orrery.wanted-by"] = "host-3";
  watch.observe({wanted}, at(seconds(30)));
  EXPECT_TRUE(watch.expired("P..0", at(seconds(61))));
  wanted.etag = "c";
  wanted.timestamp = WallTime(seconds(9));
  watch.observe({wanted}, at(seconds(62)));
  EXPECT_FALSE(watch.expired("P..0", at(seconds(63))));
}

TEST(ExpiryWatchTest, TheNextExpiryIsThatOfAnotherHost) {
  ExpiryWatch watch(seconds(60));
  EXPECT_EQ(watch.next_expiry("host-1", at(seconds(0))), MonotonicTime::max());
  Lease free = lease("a", "P..2");
  free.owner.clear();
  watch.observe({lease("a"), lease("a", "P..1"), free}, at(seconds(0)));
  watch.observe(lease("b", "P..1"), at(seconds(10)));
  EXPECT_EQ(watch.next_expiry("host-2", at(seconds(20))), MonotonicTime::max());
  const MonotonicTime next = watch.next_expiry("host-1", at(seconds(20)));
  EXPECT_FALSE(watch.expired("P..0", next - std::chrono::milliseconds(1)));
  EXPECT_TRUE(watch.expired("P..0", next));
  // An expired lease is not waited for again.
  EXPECT_GT(watch.next_expiry("host-1", next), at(seconds(70)));
}

TEST(ExpiryWatchTest, WhatIsNotListedAnyMoreIsForgotten) {
  ExpiryWatch watch(seconds(60));
  watch.observe({lease("a")}, at(seconds(0)));
  watch.observe(std::vector<Lease>{}, at(seconds(30)));
  watch.observe({lease("a")}, at(seconds(50)));
  EXPECT_FALSE(watch.expired("P..0", at(seconds(61))));
  EXPECT_FALSE(watch.expired("unknown", at(seconds(1'000))));
}

TEST(ExpiryWatchTest, OneLeaseIsObservedWithoutForgettingTheOthers) {
  ExpiryWatch watch(seconds(60));
  watch.observe({lease("a"), lease("a", "P..1")}, at(seconds(0)));
  watch.observe(lease("b"), at(seconds(40)));
  EXPECT_FALSE(watch.expired("P..0", at(seconds(61))));
  EXPECT_TRUE(watch.expired("P..1", at(seconds(61))));
}

}  // namespace
}  // namespace orrery::processor
