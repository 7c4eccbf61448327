#include "sinks/container/job.h"

#include <gtest/gtest.h>

namespace orrery::sinks {
namespace {

using Lease = processor::LeaseGroup::Lease;

Lease lease(std::string token, std::string position) {
  Lease made;
  made.token = std::move(token);
  made.position = std::move(position);
  return made;
}

processor::LeaseLag lag(std::string token, std::uint64_t documents) {
  processor::LeaseLag made;
  made.lease_token = std::move(token);
  made.documents = documents;
  return made;
}

TEST(AreaOfToken, IsWhatTheTokenSays) {
  EXPECT_EQ(area_of_token("-FF"), (client::FeedRange{"", "FF"}));
  EXPECT_EQ(area_of_token("1F-3F"), (client::FeedRange{"1F", "3F"}));
  EXPECT_FALSE(area_of_token("0"));
}

TEST(CatchUp, WaitsForEveryLease) {
  CatchUp catch_up({{{"", "1F"}, 10}, {{"1F", "FF"}, 20}});
  EXPECT_FALSE(catch_up.update({}, {}));
  EXPECT_FALSE(catch_up.update({lease("-1F", "\"10\""), lease("1F-FF", "\"19\"")},
                               {lag("-1F", 3), lag("1F-FF", 1)}));
  EXPECT_TRUE(catch_up.update({lease("-1F", "\"10\""), lease("1F-FF", "\"20\"")},
                              {lag("-1F", 3), lag("1F-FF", 5)}));
}

TEST(CatchUp, ALeaseWithNothingLeftIsThroughForGood) {
  // Its position may stay behind: what is between it and the head are deletes.
  CatchUp catch_up({{{"", "FF"}, 10}});
  EXPECT_TRUE(catch_up.update({lease("-FF", "\"4\"")}, {lag("-FF", 0)}));
  EXPECT_TRUE(catch_up.update({lease("-FF", "\"4\"")}, {lag("-FF", 2)}));
}

TEST(CatchUp, LeasesOfASplitHaveToComeAsFar) {
  CatchUp catch_up({{{"", "FF"}, 10}});
  EXPECT_FALSE(catch_up.update({lease("-1F", "\"10\""), lease("1F-FF", "\"9\"")}, {}));
  EXPECT_TRUE(catch_up.update({lease("-1F", "\"10\""), lease("1F-FF", "\"11\"")}, {}));
}

TEST(CatchUp, AMissingLeaseIsNotThrough) {
  CatchUp catch_up({{{"", "FF"}, 10}});
  EXPECT_FALSE(catch_up.update({lease("-1F", "\"10\"")}, {lag("-1F", 0)}));
}

}  // namespace
}  // namespace orrery::sinks
