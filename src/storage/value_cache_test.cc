#include "storage/value_cache.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

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

TEST(ValueCacheTest, WhatSomebodyHoldsOutlivesTheCache) {
  ValueCache::Pin pin;
  {
    ValueCache cache(1 << 20);
    cache.insert("held", "still here");
    pin = cache.find("held");
  }
  EXPECT_EQ(pin.value(), "still here");
}

TEST(ValueCacheTest, WhatIsLookedForStaysAndOthersGo) {
  ValueCache cache(1 << 20);
  cache.insert("wanted", std::string(1000, 'w'));
  cache.insert("unwanted", std::string(1000, 'u'));
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(cache.find("wanted"));
    cache.insert(std::to_string(i), std::string(1000, 'x'));
  }
  EXPECT_FALSE(cache.find("unwanted"));
}

TEST(ValueCacheTest, AKeyKeepsItsFirstValue) {
  ValueCache cache(1 << 20);
  cache.insert("a", "one");
  const std::size_t bytes = cache.bytes();
  cache.insert("a", "one");
  EXPECT_EQ(cache.bytes(), bytes);
  EXPECT_EQ(cache.find("a").value(), "one");
}

TEST(ValueCacheTest, WhatIsTooLargeIsNotKeptAndNothingGoesForIt) {
  ValueCache cache(1 << 20);
  cache.insert("small", "one");
  cache.insert("large", std::string(2 << 20, 'x'));
  EXPECT_FALSE(cache.find("large"));
  EXPECT_TRUE(cache.find("small"));
}

TEST(ValueCacheTest, ThreadsShareIt) {
  // So small that values come and go all the time.
  ValueCache cache(64 << 10);
  const auto work = [&cache](int seed) {
    for (int i = 0; i < 20'000; ++i) {
      const std::string key = std::to_string((i * 7 + seed) % 300);
      const auto pin = cache.find(key);
      if (pin) {
        ASSERT_EQ(pin.value(), std::string(500, key.back()));
      } else {
        cache.insert(key, std::string(500, key.back()));
      }
    }
  };
  std::vector<std::thread> threads;
  for (int seed = 0; seed < 4; ++seed) threads.emplace_back(work, seed);
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(cache.bytes(), std::size_t{64} << 10);
}

TEST(ValueCacheTest, WithoutRoomNothingIsKept) {
  ValueCache cache(0);
  cache.insert("a", "one");
  EXPECT_FALSE(cache.find("a"));
}

}  // namespace
}  // namespace orrery::storage
