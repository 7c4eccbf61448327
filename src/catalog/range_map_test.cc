#include "catalog/range_map.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::catalog {
namespace {

using testing::ElementsAre;

Epk epk(std::string_view hex) { return Epk::from_hex(hex).value(); }

Range range(std::uint32_t id, std::string_view min, std::string_view max) {
  return {RangeId{id}, {epk(min), epk(max)}, {}, 1, 0, nullptr};
}

std::vector<std::uint32_t> ids(const std::vector<const Range*>& ranges) {
  std::vector<std::uint32_t> found;
  for (const auto* each : ranges) found.push_back(each->id.value);
  return found;
}

// As after a split of range 1: not in the order of their ids.
RangeMap split_map() {
  return RangeMap({range(3, "80", "FF"), range(0, "", "40"), range(2, "40", "80")}, 2);
}

TEST(RangeMapTest, RangesLieInTheOrderOfTheirKeys) {
  const auto map = split_map();
  std::vector<std::uint32_t> order;
  for (const Range& each : map.all()) order.push_back(each.id.value);
  EXPECT_THAT(order, ElementsAre(0, 2, 3));
  EXPECT_EQ(map.version(), 2u);
}

TEST(RangeMapTest, TheNextIdIsAboveAllThatWereEverGivenOut) {
  EXPECT_EQ(split_map().next_id(), RangeId{4});
  std::vector<Range> merged = {range(2, "", "FF")};
  merged[0].parents = {RangeId{7}, RangeId{1}};
  EXPECT_EQ(RangeMap(merged, 3).next_id(), RangeId{8}) << "ancestors were given out too";
  EXPECT_EQ(RangeMap(merged, 3, RangeId{12}).next_id(), RangeId{12});
}

TEST(RangeMapTest, EveryKeyHasOneOwnerAndBoundariesBelongToTheRightHandOne) {
  const auto map = split_map();
  EXPECT_EQ(map.owner_of(epk("")).id, RangeId{0});
  EXPECT_EQ(map.owner_of(epk("3FFFFFFF")).id, RangeId{0});
  EXPECT_EQ(map.owner_of(epk("40")).id, RangeId{2});
  EXPECT_EQ(map.owner_of(epk("4000")).id, RangeId{2});
  EXPECT_EQ(map.owner_of(epk("7FFF")).id, RangeId{2});
  EXPECT_EQ(map.owner_of(epk("80")).id, RangeId{3});
  EXPECT_EQ(map.owner_of(epk("FEFFFFFF")).id, RangeId{3});
}

TEST(RangeMapTest, ARangeIsFoundByItsId) {
  const auto map = split_map();
  ASSERT_NE(map.find(RangeId{2}), nullptr);
  EXPECT_EQ(map.find(RangeId{2})->epks.min, epk("40"));
  EXPECT_EQ(map.find(RangeId{1}), nullptr) << "it was split";
}

TEST(RangeMapTest, OverlappingRangesAreThoseThatHoldAnyPart) {
  const auto map = split_map();
  EXPECT_THAT(ids(map.overlapping({})), ElementsAre(0, 2, 3));
  EXPECT_THAT(ids(map.overlapping({epk("10"), epk("20")})), ElementsAre(0));
  EXPECT_THAT(ids(map.overlapping({epk("40"), epk("80")})), ElementsAre(2));
  EXPECT_THAT(ids(map.overlapping({epk("3F"), epk("4001")})), ElementsAre(0, 2));
  EXPECT_THAT(ids(map.overlapping({epk("80"), epk("FF")})), ElementsAre(3));
}

TEST(RangeMapTest, AMapOfOneOwnsEverything) {
  const RangeMap map({range(0, "", "FF")}, 1);
  EXPECT_EQ(map.owner_of(epk("FEFE")).id, RangeId{0});
  EXPECT_THAT(ids(map.overlapping({epk("AA"), epk("AB")})), ElementsAre(0));
}

TEST(RangeMapDeathTest, AGapAnOverlapOrAMissingEndStopTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(RangeMap({range(0, "", "40"), range(1, "41", "FF")}, 1), "");
  EXPECT_DEATH(RangeMap({range(0, "", "40"), range(1, "3F", "FF")}, 1), "");
  EXPECT_DEATH(RangeMap({range(0, "", "40")}, 1), "");
  EXPECT_DEATH(RangeMap({range(0, "01", "FF")}, 1), "");
  EXPECT_DEATH(RangeMap({range(0, "", "40"), range(1, "40", "40"), range(2, "40", "FF")}, 1), "");
  EXPECT_DEATH(RangeMap({}, 1), "");
}

class DivisionTest : public testing::TestWithParam<std::uint32_t> {};

TEST_P(DivisionTest, AnEvenDivisionOfEveryKindOfKeyTilesTheWholeSpace) {
  PartitionKeyDefinition first{.paths = {{"a"}}, .kind = KeyKind::Hash, .version = 1};
  PartitionKeyDefinition second{.paths = {{"a"}}, .kind = KeyKind::Hash, .version = 2};
  PartitionKeyDefinition multi{.paths = {{"a"}, {"b"}}, .kind = KeyKind::MultiHash, .version = 2};
  for (const auto& definition : {first, second, multi}) {
    std::vector<Range> ranges;
    for (auto& epks : divide_evenly(definition, GetParam())) {
      ranges.push_back(
          {RangeId{static_cast<std::uint32_t>(ranges.size())}, epks, {}, 1, 0, nullptr});
    }
    ASSERT_EQ(ranges.size(), GetParam());
    const RangeMap map(std::move(ranges), 1);  // Asserts that they do.
    for (const Range& each : map.all()) {
      EXPECT_LT(each.epks.min, each.epks.max);
      EXPECT_EQ(&map.owner_of(each.epks.min), &each);
    }
    for (int i = 0; i < 100; ++i) {
      const PartitionKey key(std::vector<KeyComponent>(definition.paths.size(),
                                                       KeyComponent("key" + std::to_string(i))));
      const Epk hashed = effective_partition_key(definition, key);
      EXPECT_TRUE(map.owner_of(hashed).epks.contains(hashed));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, DivisionTest,
                         testing::Values(1u, 2u, 3u, 5u, 7u, 16u, 100u, 167u));

}  // namespace
}  // namespace orrery::catalog
