#include "processor/hosting/rate_limit.h"

#include <gtest/gtest.h>

namespace orrery::processor {
namespace {

using namespace std::chrono_literals;

constexpr MonotonicTime kStart{};

TEST(RateLimiter, WithoutLimitsNobodyWaits) {
  RateLimiter limiter({}, kStart);
  limiter.spend({1e9, 1e12, 1e9}, kStart);
  EXPECT_EQ(limiter.free_at(kStart), kStart);
}

TEST(RateLimiter, ADebtIsPaidOffByTime) {
  RateLimiter limiter({.documents = 100.0, .bytes = {}, .request_units = {}}, kStart);
  limiter.spend({250, 0, 0}, kStart);
  EXPECT_EQ(limiter.free_at(kStart), kStart + 2500ms);
  EXPECT_EQ(limiter.free_at(kStart + 2500ms), kStart + 2500ms);
}

TEST(RateLimiter, UnusedBudgetIsKeptForOneSecondOnly) {
  RateLimiter limiter({.documents = {}, .bytes = 1000.0, .request_units = {}}, kStart);
  limiter.spend({0, 1000, 0}, kStart + 1h);
  EXPECT_EQ(limiter.free_at(kStart + 1h), kStart + 1h);
  limiter.spend({0, 1000, 0}, kStart + 1h);
  EXPECT_EQ(limiter.free_at(kStart + 1h), kStart + 1h + 1s);
}

TEST(RateLimiter, TheScarcestDecides) {
  RateLimiter limiter({.documents = 1000.0, .bytes = {}, .request_units = 10.0}, kStart);
  limiter.spend({1000, 0, 40}, kStart);
  EXPECT_EQ(limiter.free_at(kStart), kStart + 4s);
}

}  // namespace
}  // namespace orrery::processor
