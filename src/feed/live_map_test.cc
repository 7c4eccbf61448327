#include "feed/live_map.h"

#include <algorithm>
#include <random>
#include <set>

#include "feed/test_feed.h"

namespace orrery::feed {
namespace {

using storage::LogPosition;

LiveMap map_of(const std::set<LogPosition>& positions) {
  LiveMap::Builder builder;
  for (const LogPosition& each : positions) builder.add(each);
  return builder.finish(Lsn{UINT32_MAX});
}

TEST(LiveMap, NamesTheNextPositionFromAnywhere) {
  std::mt19937_64 random(4711);
  for (int round = 0; round < 20; ++round) {
    std::set<LogPosition> positions;
    Lsn lsn{2};
    for (int i = 0; i < 500; ++i) {
      if (random() % 4 != 0) lsn.value += 1 + random() % (round % 2 == 0 ? 3 : 100'000);
      positions.insert({lsn, static_cast<std::uint32_t>(random() % 3 == 0 ? random() % 300 : 0)});
    }
    const LiveMap map = map_of(positions);
    EXPECT_EQ(map.count(), positions.size());
    const auto expected = [&](LogPosition from) -> std::optional<LogPosition> {
      const auto found = positions.lower_bound(from);
      return found == positions.end() ? std::nullopt : std::optional(*found);
    };
    LiveMap::Walk forward(map);
    LiveMap::Walk anywhere(map);
    LogPosition at;
    while (at.lsn <= lsn) {
      ASSERT_EQ(forward.at_least(at), expected(at)) << at.lsn.value << "," << at.index;
      const LogPosition jump{Lsn{random() % (lsn.value + 10)},
                             static_cast<std::uint32_t>(random() % 400)};
      ASSERT_EQ(anywhere.at_least(jump), expected(jump));
      at = random() % 2 == 0 ? LogPosition{at.lsn, at.index + 1}
                             : LogPosition{Lsn{at.lsn.value + 1 + random() % (lsn.value / 50)}, 0};
    }
  }
}

TEST(LiveMap, IsSmall) {
  LiveMap::Builder builder;
  for (std::uint64_t i = 1; i <= 100'000; ++i) builder.add({Lsn{i * 20}, 0});
  EXPECT_LT(builder.finish(Lsn{2'000'000}).byte_size(), 150'000u);
}

TEST(LiveMap, AnEmptyOneKnowsNothing) {
  const LiveMap map = map_of({});
  EXPECT_EQ(LiveMap::Walk(map).at_least({}), std::nullopt);
}

class LiveMapsTest : public FeedTest {
 protected:
  LiveMapsTest() : FeedTest({.rest_factor = 0}) {}

  storage::Head head() {
    std::string value;
    EXPECT_EQ(home.store().get(storage::Family::Heads, storage::partition_prefix(part->number()),
                               value, storage::Tier::Disk),
              storage::Lookup::Found);
    return *storage::Head::parse(value);
  }
  bool wait_for_map() {
    return partition::eventually(
        [this] { return live_maps.of(part->number(), head()) != nullptr; });
  }
};

TEST_F(LiveMapsTest, AMapIsMadeWhenAReaderWasSlowAndAgainWhenThereIsMuchNew) {
  for (int i = 0; i < 100; ++i) upsert("hot");
  EXPECT_EQ(live_maps.of(part->number(), head()), nullptr);
  live_maps.note_slow(part->number(), head());
  EXPECT_TRUE(wait_for_map());
  const auto map = live_maps.of(part->number(), head());
  EXPECT_EQ(map->count(), 1u);
  EXPECT_EQ(map->head(), part->head());
  EXPECT_GT(live_maps.stats().bytes, 0u);
  // It was not for the lack of a map.
  upsert("hot");
  live_maps.note_slow(part->number(), head());
  for (int i = 0; i < 100; ++i) upsert("hot");
  EXPECT_EQ(live_maps.stats().built, 1u);
  live_maps.note_slow(part->number(), head());
  EXPECT_TRUE(partition::eventually([this] { return live_maps.stats().built == 2u; }));
}

TEST_F(LiveMapsTest, AMapGrowsWithTheLog) {
  for (int i = 0; i < 3000; ++i) create(std::to_string(i));
  ASSERT_TRUE(live_maps.build(part->number()));
  const Lsn before = part->head();
  for (int i = 0; i < 100; ++i) upsert("hot");
  ASSERT_TRUE(live_maps.build(part->number()));
  const auto map = live_maps.of(part->number(), head());
  ASSERT_NE(map, nullptr);
  EXPECT_GT(map->head(), before);
  EXPECT_EQ(map->count(), 3001u);
}

TEST_F(LiveMapsTest, AnOlderSnapshotThanTheMapGetsNone) {
  for (int i = 0; i < 100; ++i) upsert("hot");
  const auto old_head = head();
  for (int i = 0; i < 100; ++i) upsert("hot");
  ASSERT_TRUE(live_maps.build(part->number()));
  EXPECT_EQ(live_maps.of(part->number(), old_head), nullptr);
  EXPECT_NE(live_maps.of(part->number(), head()), nullptr);
}

TEST_F(LiveMapsTest, MapsOfAllPartitionsTogetherAreBounded) {
  LiveMaps small(home.store(), pool, {.bytes_max = 1000, .rest_factor = 0});
  for (int i = 0; i < 100; ++i) upsert("hot");
  ASSERT_TRUE(small.build(part->number()));
  EXPECT_NE(small.of(part->number(), head()), nullptr);
  for (std::uint32_t i = 2; i < 12; ++i) {
    const auto other = make_partition(PartitionNumber{i}, RangeId{i}, storage::Head{});
    ASSERT_TRUE(small.build(other->number()));
  }
  EXPECT_LE(small.stats().bytes, 1000u);
  EXPECT_EQ(small.of(part->number(), storage::Head{}), nullptr);
}

TEST_F(LiveMapsTest, AfterStopNothingIsBegun) {
  for (int i = 0; i < 100; ++i) upsert("hot");
  live_maps.stop();
  live_maps.note_slow(part->number(), head());
  pool.join();
  EXPECT_EQ(live_maps.stats().built, 0u);
}

}  // namespace
}  // namespace orrery::feed
