#include "processor/leases/renewal_pacer.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::processor {
namespace {

using namespace std::chrono_literals;

constexpr MonotonicTime kPacerStart{1h};

TEST(RenewalPacer, TheFirstRenewalComesAfterHalfAnInterval) {
  RenewalPacer pacer(10s);
  EXPECT_EQ(pacer.next(), MonotonicTime::max());
  pacer.acquired("a", kPacerStart);
  EXPECT_EQ(pacer.next(), kPacerStart + 5s);
  EXPECT_FALSE(pacer.take(kPacerStart + 4999ms));
  EXPECT_EQ(pacer.take(kPacerStart + 5s), "a");
  EXPECT_EQ(pacer.next(), kPacerStart + 15s);
}

TEST(RenewalPacer, ACheckpointIsARenewal) {
  RenewalPacer pacer(10s);
  pacer.acquired("a", kPacerStart);
  pacer.written("a", kPacerStart + 4s);
  EXPECT_EQ(pacer.next(), kPacerStart + 14s);
}

TEST(RenewalPacer, WhatFailedComesSoonAgain) {
  RenewalPacer pacer(10s);
  pacer.acquired("a", kPacerStart);
  ASSERT_EQ(pacer.take(kPacerStart + 5s), "a");
  pacer.failed("a", kPacerStart + 6s);
  EXPECT_EQ(pacer.next(), kPacerStart + 8500ms);
  pacer.hasten("a", kPacerStart + 7s);
  EXPECT_EQ(pacer.next(), kPacerStart + 7s);
}

TEST(RenewalPacer, WhatWasRemovedStaysAway) {
  RenewalPacer pacer(10s);
  pacer.acquired("a", kPacerStart);
  pacer.remove("a");
  pacer.written("a", kPacerStart);
  EXPECT_EQ(pacer.next(), MonotonicTime::max());
}

TEST(RenewalPacer, AThousandLeasesAcquiredAtOnceAreWrittenEvenly) {
  constexpr int kLeases = 1000;
  constexpr auto kInterval = 17s;
  RenewalPacer pacer(kInterval);
  for (int i = 0; i < kLeases; ++i) pacer.acquired(std::to_string(i), kPacerStart);
  std::map<std::string, MonotonicTime> last;
  std::vector<MonotonicTime> writes;
  MonotonicTime now = kPacerStart;
  while (now < kPacerStart + 10 * kInterval) {
    now = std::max(now, pacer.next());
    const auto id = pacer.take(now);
    ASSERT_TRUE(id);
    if (last.contains(*id)) {
      EXPECT_GE(now - last[*id], kInterval);
      EXPECT_LE(now - last[*id], kInterval * 3 / 2);
    } else {
      EXPECT_LE(now - kPacerStart, kInterval * 3 / 2);
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
