#include "processor/hosting/checkpoint_policy.h"

#include <gtest/gtest.h>

namespace orrery::processor {
namespace {

using namespace std::chrono_literals;

constexpr MonotonicTime kStart{};

TEST(CheckpointPolicy, EveryBatchByDefault) {
  CheckpointPolicy policy({}, kStart);
  EXPECT_FALSE(policy.due(kStart));
  policy.processed(1);
  EXPECT_TRUE(policy.due(kStart));
  policy.checkpointed(kStart);
  EXPECT_FALSE(policy.due(kStart + 1h));
}

TEST(CheckpointPolicy, AfterACountAndAnewAfterEachCheckpoint) {
  CheckpointPolicy policy({100, {}, false}, kStart);
  policy.processed(99);
  EXPECT_FALSE(policy.due(kStart + 1h));
  policy.processed(1);
  EXPECT_TRUE(policy.due(kStart));
  policy.checkpointed(kStart);
  policy.processed(99);
  EXPECT_FALSE(policy.due(kStart));
  EXPECT_EQ(policy.unconfirmed(), 99u);
}

TEST(CheckpointPolicy, AfterATime) {
  CheckpointPolicy policy({{}, 5s, false}, kStart);
  policy.processed(1);
  EXPECT_FALSE(policy.due(kStart + 4999ms));
  EXPECT_TRUE(policy.due(kStart + 5s));
  policy.checkpointed(kStart + 5s);
  policy.processed(1);
  EXPECT_FALSE(policy.due(kStart + 9s));
  EXPECT_TRUE(policy.due(kStart + 10s));
}

TEST(CheckpointPolicy, WhicheverComesFirst) {
  CheckpointPolicy policy({100, 5s, false}, kStart);
  policy.processed(3);
  EXPECT_TRUE(policy.due(kStart + 5s));
  policy.checkpointed(kStart + 5s);
  policy.processed(100);
  EXPECT_TRUE(policy.due(kStart + 5s));
}

TEST(CheckpointPolicy, OnlyOnRequestWhereItIsLeftToTheObserver) {
  CheckpointPolicy policy({1, {}, true}, kStart);
  policy.processed(1000);
  EXPECT_FALSE(policy.due(kStart + 24h));
  EXPECT_TRUE(policy.is_explicit());
  policy.request();
  EXPECT_TRUE(policy.due(kStart));
  policy.checkpointed(kStart);
  EXPECT_FALSE(policy.due(kStart));
}

TEST(CheckpointPolicy, ARequestComesBeforeCountAndTime) {
  CheckpointPolicy policy({100, 5s, false}, kStart);
  policy.processed(1);
  EXPECT_FALSE(policy.due(kStart));
  policy.request();
  EXPECT_TRUE(policy.due(kStart));
}

}  // namespace
}  // namespace orrery::processor
