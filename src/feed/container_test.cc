// The feed of a whole container.
#include "feed/container.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <set>

#include "feed/test_feed.h"

namespace orrery::feed {
namespace {

using Ids = std::vector<std::string>;

class ContainerTest : public FeedTest {
 protected:
  ContainerTest() {
    high = make_partition(PartitionNumber{2}, RangeId{1}, storage::Head{});
    ranges = {{part->number(), {Epk::min(), middle}}, {high->number(), {middle, Epk::max()}}};
  }
  /// In the range that the key belongs to.
  Lsn put(const std::string& id, const std::string& key) {
    const bool low = Epk{real_key(key, id).epk} < middle;
    return write({{.kind = Write::Kind::Upsert, .id = id, .partition_key = key}},
                 low ? part.get() : high.get());
  }
  ContainerPage page_after(const ContainerPosition& from,
                           std::optional<std::uint32_t> count = 100) {
    const auto snapshot = home.store().snapshot();
    EXPECT_TRUE(snapshot.has_value());
    PageRequest asked = request();
    asked.count_max = count;
    auto page = read_container(reader, *snapshot, ranges, from, asked);
    EXPECT_TRUE(page.has_value()) << page.error().message();
    return std::move(*page);
  }
  static Json items_of(const ContainerPage& page) { return Json::parse("[" + page.text + "]"); }
  static Ids ids_of(const ContainerPage& page) {
    Ids found;
    for (const Json& item : items_of(page)) found.push_back(item["id"]);
    return found;
  }

  const Epk middle = *Epk::from_hex("20");
  std::shared_ptr<partition::Partition> high;
  std::vector<ContainerRange> ranges;
  // By the vectors of the hash: "aa" lies below, "a" above.
  const std::string low_key = "aa";
  const std::string high_key = "a";
};

TEST_F(ContainerTest, RangesAreMergedInTheOrderOfTime) {
  put("1", high_key);
  home.advance(std::chrono::seconds(1));
  put("2", low_key);
  put("3", high_key);
  home.advance(std::chrono::seconds(1));
  put("4", low_key);
  ContainerPage page = page_after({});
  EXPECT_EQ(ids_of(page), (Ids{"1", "2", "3", "4"}));
  EXPECT_TRUE(page.caught_up);
  EXPECT_EQ(page.position.etag(), "\"c:=3;20=3\"");
  EXPECT_EQ(page.heads, (std::vector<Lsn>{Lsn{3}, Lsn{3}}));
  page = page_after(page.position);
  EXPECT_EQ(page.count, 0u);
  EXPECT_TRUE(page.caught_up);
}

TEST_F(ContainerTest, PagesOfAnySizeMakeTheSameWhole) {
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    put(std::to_string(i), random() % 3 == 0 ? low_key : high_key);
    if (random() % 4 == 0) home.advance(std::chrono::seconds(1));
  }
  const Ids whole = ids_of(page_after({}, std::nullopt));
  EXPECT_EQ(whole.size(), 200u);
  UnixSeconds last = 0;
  for (const Json& item : items_of(page_after({}, std::nullopt))) {
    EXPECT_GE(item["_ts"].get<UnixSeconds>(), last);
    last = item["_ts"];
  }
  for (const std::uint32_t size : {1u, 3u, 50u}) {
    Ids seen;
    ContainerPosition at;
    for (;;) {
      const ContainerPage page = page_after(at, size);
      if (page.count == 0) break;
      EXPECT_LE(page.count, size);
      for (auto& id : ids_of(page)) seen.push_back(id);
      // An etag survives being written and read.
      at = *ContainerPosition::parse(page.position.etag());
    }
    EXPECT_EQ(seen, whole) << size;
  }
}

TEST_F(ContainerTest, DeletesAndOtherRangesAdvanceThePosition) {
  put("1", low_key);
  ContainerPage page = page_after({});
  EXPECT_EQ(page.position.etag(), "\"c:=2;20=1\"");
  write({{.kind = Write::Kind::Delete, .id = "1", .partition_key = low_key}});
  page = page_after(page.position);
  EXPECT_EQ(page.count, 0u);
  EXPECT_TRUE(page.caught_up);
  EXPECT_EQ(page.position.etag(), "\"c:=3;20=1\"");
}

TEST_F(ContainerTest, APositionSurvivesSplitAndMerge) {
  for (int i = 0; i < 10; ++i) put(std::to_string(i), low_key);
  for (int i = 10; i < 15; ++i) put(std::to_string(i), high_key);
  // As if two ranges had been one before: its entry covers both.
  const auto before = ContainerPosition::parse("\"c:=5\"");
  const ContainerPage after_split = page_after(*before, std::nullopt);
  EXPECT_EQ(after_split.count, 6u + 1u);
  // As if one range had been three before: each entry is a filter.
  const auto three = ContainerPosition::parse("\"c:=0;05=4;06=11;20=3\"");
  const ContainerPage after_merge = page_after(*three, std::nullopt);
  EXPECT_EQ(after_merge.count, 7u + 3u);
  // Where all entries of a range are equally far they become one again.
  EXPECT_EQ(after_merge.position.etag(), "\"c:=11;20=6\"");
}

TEST_F(ContainerTest, APositionBeyondTheHeadOfOneRangeIsRefused) {
  put("1", low_key);
  const auto snapshot = home.store().snapshot();
  ASSERT_TRUE(snapshot);
  const auto from = ContainerPosition::parse("\"c:=2;06=3;20=1\"");
  EXPECT_FALSE(read_container(reader, *snapshot, ranges, *from, request()));
  EXPECT_FALSE(container_lag(reader, *snapshot, ranges, *from, request()));
  EXPECT_EQ(reader.stats().positions_ahead, 2u);
}

TEST_F(ContainerTest, ATimeAndNowArePositionsInEachRange) {
  put("1", low_key);
  const UnixSeconds before = home.clock().unix_seconds();
  home.advance(std::chrono::seconds(2));
  put("2", high_key);
  const auto snapshot = home.store().snapshot();
  ASSERT_TRUE(snapshot);
  auto found = find_container_time(reader, *snapshot, ranges, request(), before);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->found);
  EXPECT_EQ(found->position.etag(), "\"c:=2;20=1\"");
  found = find_container_time(reader, *snapshot, ranges, request(), before + 2);
  EXPECT_FALSE(found->found);
  EXPECT_EQ(find_container_heads(*snapshot, ranges)->position.etag(), "\"c:=2;20=2\"");
}

TEST_F(ContainerTest, LagIsTheSumOfAllRanges) {
  for (int i = 0; i < 10; ++i) put(std::to_string(i), i % 2 == 0 ? low_key : high_key);
  const auto snapshot = home.store().snapshot();
  ASSERT_TRUE(snapshot);
  const auto lag = container_lag(reader, *snapshot, ranges,
                                 *ContainerPosition::parse("\"c:=3;20=2\""), request());
  ASSERT_TRUE(lag);
  EXPECT_EQ(lag->sum.items, 3u + 4u);
  EXPECT_EQ(lag->sum.lsns, 3u + 4u);
  EXPECT_EQ(lag->heads, (std::vector<Lsn>{Lsn{6}, Lsn{6}}));
}

}  // namespace
}  // namespace orrery::feed
