#include "processor/leases/renewal_pacer.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::processor {
namespace {

using namespace std::chrono_literals;

constexpr MonotonicTime kStart{1h};

TEST(RenewalPacer, TheFirstRenewalComesAfterHalfAnInterval) {
  RenewalPacer pacer(10s);
  EXPECT_EQ(pacer.next(), MonotonicTime::max());
  pacer.acquired("a", kStart);
  EXPECT_EQ(pacer.next(), kStart + 5s);
  EXPECT_FALSE(pacer.take(kStart + 4999ms));
  EXPECT_EQ(pacer.take(kStart + 5s), "a");
  EXPECT_EQ(pacer.next(), kStart + 15s);
}

TEST(RenewalPacer, ACheckpointIsARenewal) {
  RenewalPacer pacer(10s);
  pacer.acquired("a", kStart);
  pacer.written("a", kStart + 4s);
  EXPECT_EQ(pacer.next(), kStart + 14s);
}

TEST(RenewalPacer, WhatFailedComesSoonAgain) {
  RenewalPacer pacer(10s);
  pacer.acquired("a", kStart);
  ASSERT_EQ(pacer.take(kStart + 5s), "a");
  pacer.failed("a", kStart + 6s);
  EXPECT_EQ(pacer.next(), kStart + 8500ms);
  pacer.hasten("a", kStart + 7s);
  EXPECT_EQ(pacer.next(), kStart + 7s);
}

TEST(RenewalPacer, WhatWasRemovedStaysAway) {
  RenewalPacer pacer(10s);
  pacer.acquired("a", kStart);
  pacer.remove("a");
  pacer.written("a", kStart);
  EXPECT_EQ(pacer.next(), MonotonicTime::max());
}

TEST(RenewalPacer, AThousandLeasesAcquiredAtOnceAreWrittenEvenly) {
  constexpr int kLeases = 1000;
  constexpr auto kInterval = 17s;
  RenewalPacer pacer(kInterval);
  for (int i = 0; i < kLeases; ++i) pacer.acquired(std::to_string(i), kStart);
  std::map<std::string, MonotonicTime> last;
  std::vector<MonotonicTime> writes;
  MonotonicTime now = kStart;
  while (now < kStart + 10 * kInterval) {
    now = std::max(now, pacer.next());
    const auto id = pacer.take(now);
    ASSERT_TRUE(id);
    if (last.contains(*id)) {
      EXPECT_GE(now - last[*id], kInterval);
      EXPECT_LE(now - last[*id], kInterval * 3 / 2);
    } else {
      EXPECT_LE(now - kStart, kInterval * 3 / 2);
    }
    last[*id] = now;
    writes.push_back(now);
  }
  EXPECT_EQ(last.size(), static_cast<std::size_t>(kLeases));
  // In no window of half a second are there more than twice as many as the mean.
  const double mean = kLeases * 0.5 / 17;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const auto end = std::ranges::upper_bound(writes, writes[i] + 500ms);
    EXPECT_LE(static_cast<double>(end - writes.begin()) - static_cast<double>(i), 2 * mean);
  }
}

}  // namespace
}  // namespace orrery::processor
