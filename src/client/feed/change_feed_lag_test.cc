#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/feed/test_change_feed.h"
#include "orrery/exception.h"

namespace orrery::client {
namespace {

TEST_F(ChangeFeedTest, LagIsTheSumOverSlices) {
  make_ranges(3);
  write(20);
  auto all = feed();
  const std::string begin = all.continuation();
  server_->set_time(1'700'000'030);
  auto lag = container_.change_feed_lag(begin);
  ASSERT_TRUE(lag);
  EXPECT_EQ(lag->documents, 20u);
  EXPECT_EQ(lag->bytes, 200u);
  EXPECT_EQ(lag->age, 30s);
  server_->split(0);
  EXPECT_EQ(container_.change_feed_lag(begin)->documents, 20u);
  drain(all);
  lag = container_.change_feed_lag(all.continuation());
  EXPECT_EQ(lag->documents, 0u);
  EXPECT_EQ(lag->age, 0s);
  server_->set_offers_lag(false);
  EXPECT_EQ(container_.change_feed_lag(begin), std::nullopt);
  EXPECT_THROW(container_.change_feed_lag("garbage"), CosmosException);
}

}  // namespace
}  // namespace orrery::client
