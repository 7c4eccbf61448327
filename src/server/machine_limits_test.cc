#include "server/machine_limits.h"

#include <gtest/gtest.h>

namespace orrery::server {
namespace {

TEST(DescriptorPlan, LeavesTheStoreItsFilesHoweverManyConnectionsAreWanted) {
  for (const std::size_t limit : {128u, 256u, 1024u, 4096u, 20'000u, 1'048'576u}) {
    const auto plan = plan_descriptors(limit, 1'000'000).value();
    EXPECT_LT(plan.connections + plan.turning_away + plan.store_files, limit) << limit;
    EXPECT_GE(plan.store_files, 64u) << limit;
    EXPECT_GE(plan.connections, 16u) << limit;
  }
}

TEST(DescriptorPlan, GivesWhatIsAskedForWhereThereIsEnough) {
  const auto plan = plan_descriptors(20'000, 10'000).value();
  EXPECT_EQ(plan.connections, 10'000u);
  EXPECT_EQ(plan.store_files, 512u);
  EXPECT_EQ(plan.turning_away, 256u);
}

TEST(DescriptorPlan, KeepsConnectionsBelowTheUsualLimit) {
  const auto plan = plan_descriptors(1024, 10'000).value();
  EXPECT_EQ(plan.connections, 336u);
  EXPECT_EQ(plan.turning_away, 48u);
  EXPECT_EQ(plan.store_files, 512u);
}

TEST(DescriptorPlan, SaysHowToGetMoreWhenThereAreTooFew) {
  const auto plan = plan_descriptors(64, 10);
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message().find("ulimit -n"), std::string::npos);
}

TEST(RequestMemory, FollowsTheMachineWithinBounds) {
  EXPECT_EQ(request_memory_of(std::size_t{256} << 20), std::size_t{64} << 20);
  EXPECT_EQ(request_memory_of(std::size_t{2} << 30), std::size_t{256} << 20);
  EXPECT_EQ(request_memory_of(std::size_t{64} << 30), std::size_t{1} << 30);
  EXPECT_GE(default_request_memory(), std::size_t{64} << 20);
}

}  // namespace
}  // namespace orrery::server
