#include "storage/value_cache.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace orrery::storage {
namespace {

TEST(ValueCacheTest, WhatWasPutInIsFoundUnderItsKey) {
  ValueCache cache(1 << 20);
  EXPECT_FALSE(cache.find("a"));
  cache.insert("a", "one");
  cache.insert("b", std::string(1000, 'x'));
  EXPECT_EQ(cache.find("a").value(), "one");
  EXPECT_EQ(cache.find("b").value().size(), 1000U);
  EXPECT_GE(cache.bytes(), 1003U);
}

TEST(ValueCacheTest, ItStaysWithinItsSize) {
  ValueCache cache(1 << 20);
  for (int i = 0; i < 10'000; ++i) cache.insert(std::to_string(i), std::string(1000, 'x'));
  EXPECT_LE(cache.bytes(), std::size_t{1} << 20);
  EXPECT_FALSE(cache.find("0"));
  EXPECT_TRUE(cache.find("9999"));
}

TEST(ValueCacheTest, WhatSomebodyHoldsStays) {
  ValueCache cache(1 << 20);
  cache.insert("held", "still here");
  auto pin = cache.find("held");
  for (int i = 0; i < 10'000; ++i) cache.insert(std::to_string(i), std::string(1000, 'x'));
  const auto moved = std::move(pin);
  EXPECT_EQ(moved.value(), "still here");
}

TEST(ValueCacheTest, WithoutRoomNothingIsKept) {
  ValueCache cache(0);
  cache.insert("a", "one");
  EXPECT_FALSE(cache.find("a"));
}

}  // namespace
}  // namespace orrery::storage
