#include "processor/hosting/rate_limit.h"

#include <gtest/gtest.h>

namespace orrery::processor {
namespace {

using namespace std::chrono_literals;

constexpr MonotonicTime kRateStart{};

TEST(RateLimiter, WithoutLimitsNobodyWaits) {
  RateLimiter limiter({}, kRateStart);
  limiter.spend({1e9, 1e12, 1e9}, kRateStart);
  EXPECT_EQ(limiter.free_at(kRateStart), kRateStart);
}

TEST(RateLimiter, ADebtIsPaidOffByTime) {
  RateLimiter limiter({.documents = 100.0, .bytes = {}, .request_units = {}}, kRateStart);
  limiter.spend({250, 0, 0}, kRateStart);
  EXPECT_EQ(limiter.free_at(kRateStart), kRateStart + 2500ms);
  EXPECT_EQ(limiter.free_at(kRateStart + 2500ms), kRateStart + 2500ms);
}

TEST(RateLimiter, UnusedBudgetIsKeptForOneSecondOnly) {
  RateLimiter limiter({.documents = {}, .bytes = 1000.0, .request_units = {}}, kRateStart);
  limiter.spend({0, 1000, 0}, kRateStart + 1h);
  EXPECT_EQ(limiter.free_at(kRateStart + 1h), kRateStart + 1h);
  limiter.spend({0, 1000, 0}, kRateStart + 1h);
  EXPECT_EQ(limiter.free_at(kRateStart + 1h), kRateStart + 1h + 1s);
}

TEST(RateLimiter, TheScarcestDecides) {
  RateLimiter limiter({.documents = 1000.0, .bytes = {}, .request_units = 10.0}, kRateStart);
  limiter.spend({1000, 0, 40}, kRateStart);
  EXPECT_EQ(limiter.free_at(kRateStart), kRateStart + 4s);
}

}  // namespace
}  // namespace orrery::processor
