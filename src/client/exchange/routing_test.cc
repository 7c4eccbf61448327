#include "client/exchange/routing.h"

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/exchange/routing_cache.h"
#include "client/exchange/test_pipeline.h"
#include "client/transport/test_http_server.h"
#include "protocol/keys/epk.h"

namespace orrery::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kRoutedLink = "dbs/sky/colls/stars";

std::vector<std::string> ids(std::span<const PartitionKeyRange> ranges) {
  std::vector<std::string> result;
  for (const auto& each : ranges) result.push_back(each.id);
  return result;
}

RoutingMap map_of(std::vector<PartitionKeyRange> ranges, PartitionKeyDefinition definition = {}) {
  return RoutingMap("rid", std::move(definition), std::move(ranges), "\"1\"");
}

TEST(RoutingMap, LeavesParentsOutAndPutsRangesInOrder) {
  const RoutingMap map = map_of({{"0", {"", "FF"}, {}},
                                 {"4", {"1F", "2F"}, {"0", "2"}},
                                 {"1", {"", "1F"}, {"0"}},
                                 {"2", {"1F", "FF"}, {"0"}},
                                 {"3", {"2F", "FF"}, {"0", "2"}},
                                 {"1", {"", "1F"}, {"0"}}});
  EXPECT_THAT(ids(map.ranges()), ElementsAre("1", "4", "3"));
  EXPECT_TRUE(map.is_complete());
}

TEST(RoutingMap, KnowsGaps) {
  EXPECT_FALSE(map_of({}).is_complete());
  EXPECT_FALSE(map_of({{"1", {"", "1F"}, {}}}).is_complete());
  EXPECT_FALSE(map_of({{"1", {"1F", "FF"}, {}}}).is_complete());
  EXPECT_FALSE(map_of({{"1", {"", "1F"}, {}}, {"2", {"2F", "FF"}, {}}}).is_complete());
  EXPECT_FALSE(map_of({{"1", {"", "2F"}, {}}, {"2", {"1F", "FF"}, {}}}).is_complete());
}

TEST(RoutingMap, FindsWhatOverlaps) {
  const RoutingMap map =
      map_of({{"1", {"", "1F"}, {}}, {"2", {"1F", "2F"}, {}}, {"3", {"2F", "FF"}, {}}});
  EXPECT_THAT(ids(map.overlapping({"", "FF"})), ElementsAre("1", "2", "3"));
  EXPECT_THAT(ids(map.overlapping({"1F", "2F"})), ElementsAre("2"));
  EXPECT_THAT(ids(map.overlapping({"1E", "2F01"})), ElementsAre("1", "2", "3"));
  EXPECT_THAT(ids(map.overlapping({"30", "31"})), ElementsAre("3"));
}

TEST(RoutingMap, FindsTheSliceOfAKey) {
  for (const int version : {1, 2}) {
    const PartitionKeyDefinition definition{.paths = {{"pk"}}, .version = version};
    const RoutingMap map = map_of({{"0", {"", "FF"}, {}}}, definition);
    const FeedRange slice = map.slice_of("tycho");
    const auto epk = effective_partition_key(
        definition, orrery::PartitionKey(std::vector<KeyComponent>{std::string("tycho")}));
    EXPECT_EQ(slice.min, epk.hex());
    EXPECT_EQ(slice.max, epk.hex() + "00");
    EXPECT_THROW(map.slice_of(PartitionKey("a").append("b")), CosmosException);
    EXPECT_THROW(map.slice_of(PartitionKey()), CosmosException);
    EXPECT_THROW(map.slice_of(PartitionKey::from_json("nonsense")), CosmosException);
  }
}

TEST(RoutingMap, PrefixOfAHierarchicalKeyIsARange) {
  const PartitionKeyDefinition definition{
      .paths = {{"tenant"}, {"user"}}, .kind = KeyKind::MultiHash, .version = 2};
  const RoutingMap map = map_of({{"0", {"", "FF"}, {}}}, definition);
  const FeedRange prefix = map.slice_of("tenant-1");
  const FeedRange whole = map.slice_of(PartitionKey("tenant-1").append("user-1"));
  EXPECT_EQ(prefix.max, prefix.min + "FF");
  EXPECT_TRUE(whole.min.starts_with(prefix.min));
  EXPECT_TRUE(prefix.overlaps(whole));
}

/// A container whose ranges the test decides about.
class RoutingCacheTest : public ::testing::Test {
 protected:
  RoutingCacheTest() {
    pipeline.respond = [this](const Call& call) { return answer(call); };
  }

  Answer answer(const Call& call) {
    if (call.type == "colls") {
      ++container_reads;
      return test::answer_of(
          200, R"({"id":"stars","_rid":")" + rid +
                   R"(","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}})");
    }
    EXPECT_EQ(call.type, "pkranges");
    EXPECT_TRUE(call.list);
    EXPECT_EQ(test::header_of(call, "a-im"), "Incremental feed");
    const auto known = test::header_of(call, "if-none-match");
    etags_sent.push_back(known.value_or(""));
    if (pages.empty()) {
      Answer none = test::answer_of(304, "");
      none.etag = known.value_or("");
      return none;
    }
    auto [body, etag] = pages.front();
    pages.erase(pages.begin());
    Answer page = test::answer_of(200, R"({"PartitionKeyRanges":[)" + body + "]}");
    page.etag = etag;
    return page;
  }
  static std::string range(std::string id, std::string min, std::string max,
                           std::string parents = "") {
    return R"({"id":")" + id + R"(","minInclusive":")" + min + R"(","maxExclusive":")" + max +
           R"(","parents":[)" + parents + "]}";
  }

  test::TestPipeline pipeline;
  RoutingCache cache{pipeline};
  std::string rid = "rid-1";
  std::vector<std::pair<std::string, std::string>> pages;  // Newer ranges, and their etag.
  std::vector<std::string> etags_sent;
  std::atomic<int> container_reads{0};
};

TEST_F(RoutingCacheTest, ReadsOnceAndRemembers) {
  pages = {{range("0", "", "FF"), "\"1\""}};
  EXPECT_EQ(cache.peek(kRoutedLink), nullptr);
  const auto map = cache.get(kRoutedLink, {});
  EXPECT_EQ(map->container_rid(), "rid-1");
  EXPECT_EQ(map->definition().version, 2);
  EXPECT_THAT(map->definition().paths, ElementsAre(ElementsAre("pk")));
  EXPECT_THAT(ids(map->ranges()), ElementsAre("0"));
  EXPECT_EQ(cache.get(kRoutedLink, {}), map);
  EXPECT_EQ(cache.peek(kRoutedLink), map);
  EXPECT_EQ(container_reads, 1);
  EXPECT_THAT(etags_sent, ElementsAre("", "\"1\"")) << "until nothing is newer";
}

TEST_F(RoutingCacheTest, SplitIsReadFromWhereTheListEnded) {
  pages = {{range("0", "", "FF"), "\"1\""}};
  const auto before = cache.get(kRoutedLink, {});
  etags_sent.clear();
  pages = {{range("1", "", "1F", "\"0\"") + "," + range("2", "1F", "FF", "\"0\""), "\"2\""}};
  cache.forget(kRoutedLink, before);
  EXPECT_EQ(cache.peek(kRoutedLink), nullptr);
  const auto after = cache.get(kRoutedLink, {});
  EXPECT_THAT(ids(after->ranges()), ElementsAre("1", "2"));
  EXPECT_THAT(etags_sent, ElementsAre("\"1\"", "\"2\""));
  cache.forget(kRoutedLink, before);
  EXPECT_EQ(cache.peek(kRoutedLink), after) << "somebody has fetched what is newer already";
}

TEST_F(RoutingCacheTest, AnotherContainerOfTheSameNameIsReadFromTheStart) {
  pages = {{range("0", "", "FF"), "\"1\""}};
  cache.forget(kRoutedLink, cache.get(kRoutedLink, {}));
  etags_sent.clear();
  rid = "rid-2";
  pages = {{range("7", "", "FF"), "\"1\""}};
  const auto map = cache.get(kRoutedLink, {});
  EXPECT_EQ(map->container_rid(), "rid-2");
  EXPECT_THAT(ids(map->ranges()), ElementsAre("7"));
  EXPECT_EQ(etags_sent.front(), "");
}

TEST_F(RoutingCacheTest, ListMayComeInPages) {
  pages = {{range("1", "", "1F"), "\"1\""}, {range("2", "1F", "FF"), "\"2\""}};
  EXPECT_THAT(ids(cache.get(kRoutedLink, {})->ranges()), ElementsAre("1", "2"));
}

TEST_F(RoutingCacheTest, ListWithAGapIsReadAgain) {
  pages = {{range("1", "", "1F"), ""}, {range("1", "", "1F") + "," + range("2", "1F", "FF"), ""}};
  EXPECT_THAT(ids(cache.get(kRoutedLink, {})->ranges()), ElementsAre("1", "2"));
}

TEST_F(RoutingCacheTest, ListThatNeverIsWholeIsAnError) {
  pages.assign(100, {range("1", "", "1F"), ""});
  EXPECT_THROW(cache.get(kRoutedLink, {}), CosmosException);
  EXPECT_EQ(etags_sent.size(), static_cast<std::size_t>(RoutingCache::kAttemptsMax));
  pages = {{range("0", "", "FF"), "\"1\""}};
  EXPECT_THAT(ids(cache.get(kRoutedLink, {})->ranges()), ElementsAre("0"))
      << "the next one tries anew";
}

TEST_F(RoutingCacheTest, ManyThreadsFetchOnce) {
  test::Gate gate;
  std::atomic<int> asked{0};
  pages = {{range("0", "", "FF"), "\"1\""}};
  pipeline.respond = [&](const Call& call) {
    if (call.type == "colls") {
      ++asked;
      EXPECT_TRUE(gate.pass());
    }
    return answer(call);
  };
  std::vector<std::thread> threads;
  std::atomic<int> got{0};
  for (int i = 0; i < 8; ++i) {
    RequestOptions options;
    // The longest time that can be said is as good as none.
    if (i % 2 == 0) options.timeout = std::chrono::milliseconds::max();
    threads.emplace_back(
        [&, options] { got += cache.get(kRoutedLink, options) != nullptr ? 1 : 0; });
  }
  EXPECT_TRUE(test::eventually([&] { return asked == 1; }));
  gate.open();
  for (auto& each : threads) each.join();
  EXPECT_EQ(got, 8);
  EXPECT_EQ(container_reads, 1);
}

TEST_F(RoutingCacheTest, WaiterCanLeaveAndOthersTakeOverFromOneWhoFailed) {
  test::Gate gate;
  std::atomic<int> asked{0};
  pages = {{range("0", "", "FF"), "\"1\""}};
  pipeline.respond = [&](const Call& call) {
    if (call.type == "colls" && ++asked == 1) {
      EXPECT_TRUE(gate.pass());
      throw test::refusal(503);
    }
    return answer(call);
  };
  std::thread leader([&] { EXPECT_THROW(cache.get(kRoutedLink, {}), CosmosException); });
  ASSERT_TRUE(test::eventually([&] { return asked == 1; }));
  std::stop_source stop;
  RequestOptions impatient;
  impatient.stop = stop.get_token();
  std::thread leaver([&] {
    try {
      cache.get(kRoutedLink, impatient);
      FAIL();
    } catch (const CosmosException& failure) {
      EXPECT_EQ(failure.failure(), Failure::Cancelled);
    }
  });
  stop.request_stop();
  leaver.join();
  std::thread heir([&] { EXPECT_NE(cache.get(kRoutedLink, {}), nullptr); });
  gate.open();
  leader.join();
  heir.join();
}

}  // namespace
}  // namespace orrery::client
