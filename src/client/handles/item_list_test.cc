#include "client/handles/item_list.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/exchange/test_pipeline.h"

namespace orrery::client {
namespace {

using test::answer_of;
using test::header_of;
using test::refusal;
using test::routing_of;
using test::TestPipeline;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr const char* kListLink = "dbs/sky/colls/stars";

/// A server with documents 1, 2, 3… at places of the hash space. Its tokens say the last number
/// that was read, of the range that is asked for, as those of the real one do.
class ModelServer {
 public:
  explicit ModelServer(TestPipeline& pipeline) : pipeline_(pipeline) {
    pipeline.respond = [this](const Call& call) { return respond(call); };
    set_boundaries({});
  }

  void add(std::string epk) { places_.push_back(std::move(epk)); }

  /// The client still believes in what it knew, until it hears that this is gone.
  void set_boundaries(std::vector<std::string> boundaries) {
    boundaries_ = std::move(boundaries);
    const auto map =
        routing_of(boundaries_, {{{"pk"}}, KeyKind::Hash, 2}, first_id_, container_rid_);
    first_id_ += static_cast<int>(boundaries_.size()) + 1;
    ranges_.assign(map->ranges().begin(), map->ranges().end());
    if (is_new_) {
      pipeline_.map = map;
      is_new_ = false;
    } else {
      pipeline_.next_map = map;
    }
  }
  void recreate() { container_rid_ = "KxEAAJE-AgB="; }
  const std::vector<std::string>& boundaries() const { return boundaries_; }

 private:
  Answer respond(const Call& call) {
    const std::string target = *header_of(call, "x-ms-documentdb-partitionkeyrangeid");
    const auto comma = target.find(',');
    if (target.substr(0, comma) != container_rid_) throw refusal(410, 1000);
    const auto range = std::ranges::find(ranges_, target.substr(comma + 1), &PartitionKeyRange::id);
    if (range == ranges_.end()) throw refusal(410, 1002);
    FeedRange keys = range->range;
    if (header_of(call, "x-ms-read-key-type")) {
      keys.min = std::max(keys.min, header_of(call, "x-ms-start-epk").value_or(""));
      keys.max = std::min(keys.max, *header_of(call, "x-ms-end-epk"));
    }
    const std::size_t after = std::stoul(header_of(call, "x-ms-continuation").value_or("0"));
    const int count_max = std::stoi(*header_of(call, "x-ms-max-item-count"));
    std::string body = R"({"_rid":"","Documents":[)";
    int count = 0;
    HeaderList headers;
    for (std::size_t number = after + 1; number <= places_.size(); ++number) {
      const std::string& place = places_[number - 1];
      if (place < keys.min || place >= keys.max) continue;
      if (count > 0) body.push_back(',');
      body += std::to_string(number);
      if (++count == count_max) {
        headers.emplace_back("x-ms-continuation", std::to_string(number));
        break;
      }
    }
    return answer_of(200, body + R"(],"_count":0})", headers);
  }

  TestPipeline& pipeline_;
  bool is_new_ = true;
  int first_id_ = 0;
  std::string container_rid_ = "KxEAAJE-AgA=";
  std::vector<std::string> boundaries_;
  std::vector<PartitionKeyRange> ranges_;
  std::vector<std::string> places_;
};

class ItemListTest : public ::testing::Test {
 protected:
  ItemPages list(const ItemListOptions& options = {}) const {
    return item_pages(pipeline, kListLink, std::nullopt, options);
  }
  static std::vector<std::string> texts(const ItemPage& page) { return {page.begin(), page.end()}; }

  std::shared_ptr<TestPipeline> pipeline = std::make_shared<TestPipeline>();
  ModelServer server{*pipeline};
};

TEST_F(ItemListTest, GoesFromRangeToRange) {
  server.set_boundaries({});
  pipeline->map = pipeline->next_map;
  server.add("05");
  server.add("25");
  server.add("15");
  server.set_boundaries({"10", "20"});
  auto pages = list();
  EXPECT_THAT(texts(pages.next()), ElementsAre("1"));
  EXPECT_THAT(texts(pages.next()), ElementsAre("3"));
  EXPECT_THAT(texts(pages.next()), ElementsAre("2"));
  EXPECT_FALSE(pages.has_more());
  EXPECT_FALSE(header_of(pipeline->last_call(), "x-ms-start-epk"))
      << "a whole range needs no bounds";
}

TEST_F(ItemListTest, ContinuationIsOneStringForAnybody) {
  for (const char* place : {"05", "06", "15", "16"}) server.add(place);
  server.set_boundaries({"10"});
  ItemListOptions options;
  options.page_size = 1;
  auto pages = list(options);
  options.continuation = pages.next().continuation;
  EXPECT_THAT(texts(list(options).next()), ElementsAre("2"));
  EXPECT_THAT(texts(pages.next()), ElementsAre("2"));
  const auto position = ItemListPosition::parse(options.continuation);
  EXPECT_EQ(position.to_string(), options.continuation);
  EXPECT_THAT(position.pieces, ElementsAre(ItemListPosition::RangePosition{{"", "10"}, "1"},
                                           ItemListPosition::RangePosition{{"10", "FF"}, ""}));
}

TEST_F(ItemListTest, PartsOfASplitRangeGoOnWhereTheWholeWas) {
  for (const char* place : {"05", "15", "06", "16"}) server.add(place);
  ItemListOptions options;
  options.page_size = 2;
  auto pages = list(options);
  EXPECT_THAT(texts(pages.next()), ElementsAre("1", "2"));
  server.set_boundaries({"10"});
  EXPECT_THAT(texts(pages.next()), ElementsAre("3"));
  EXPECT_THAT(texts(pages.next()), ElementsAre("4"));
  EXPECT_FALSE(pages.has_more());
}

TEST_F(ItemListTest, FeedRangeIsReadWithinItsBounds) {
  for (const char* place : {"05", "15", "25", "35"}) server.add(place);
  server.set_boundaries({"20"});
  ItemListOptions options;
  options.feed_range = FeedRange{"10", "30"};
  auto pages = list(options);
  EXPECT_THAT(texts(pages.next()), ElementsAre("2"));
  EXPECT_EQ(header_of(pipeline->last_call(), "x-ms-read-key-type"), "EffectivePartitionKeyRange");
  EXPECT_EQ(header_of(pipeline->last_call(), "x-ms-start-epk"), "10");
  EXPECT_EQ(header_of(pipeline->last_call(), "x-ms-end-epk"), "20");
  EXPECT_THAT(texts(pages.next()), ElementsAre("3"));
  EXPECT_FALSE(pages.has_more());
}

TEST_F(ItemListTest, AnyHistoryOfSplitsAndMergesShowsEachDocumentOnce) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 chance(seed);
    const auto draw = [&](unsigned bound) { return chance() % bound; };
    const auto hex = [&] {
      std::string place = "00";
      place[0] = "0123"[draw(4)];
      place[1] = "0123456789ABCDEF"[draw(16)];
      return place;
    };
    pipeline = std::make_shared<TestPipeline>();
    ModelServer random(*pipeline);
    const unsigned count = draw(60);
    for (unsigned i = 0; i < count; ++i) random.add(hex());
    ItemListOptions options;
    options.page_size = 1 + draw(7);
    std::multiset<std::string> seen;
    do {
      if (draw(3) == 0) {
        std::set<std::string> boundaries(random.boundaries().begin(), random.boundaries().end());
        if (draw(2) == 0 || boundaries.empty()) {
          boundaries.insert(hex());
        } else {
          boundaries.erase(std::next(boundaries.begin(), draw(boundaries.size())));
        }
        random.set_boundaries({boundaries.begin(), boundaries.end()});
      }
      // Each page by somebody who has nothing but the continuation.
      const ItemPage page = list(options).next();
      seen.insert(page.begin(), page.end());
      options.continuation = page.continuation;
    } while (!options.continuation.empty());
    ASSERT_EQ(seen.size(), count);
    ASSERT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), count);
  }
}

TEST_F(ItemListTest, ContainerThatWasMadeAnewIsNotTakenForTheOldOne) {
  for (const char* place : {"05", "15", "25"}) server.add(place);
  ItemListOptions options;
  options.page_size = 1;
  auto pages = list(options);
  pages.next();
  server.recreate();
  server.set_boundaries({"10"});
  EXPECT_THAT(texts(list(options).next()), ElementsAre("1"));
  try {
    pages.next();
    ADD_FAILURE() << "it went on";
  } catch (const CosmosException& failure) {
    EXPECT_EQ(failure.failure(), Failure::Argument);
  }
}

TEST_F(ItemListTest, RangeThatIsGoneForGoodIsToldInTheEnd) {
  pipeline->respond = [](const Call&) -> Answer { throw refusal(410, 1002); };
  try {
    list().next();
    ADD_FAILURE() << "it was answered";
  } catch (const CosmosException& failure) {
    EXPECT_TRUE(failure.is_gone());
  }
}

TEST_F(ItemListTest, OtherRefusalsAreNotTriedAgain) {
  pipeline->respond = [](const Call&) -> Answer { throw refusal(404); };
  EXPECT_THROW(list().next(), CosmosException);
  EXPECT_THAT(pipeline->calls, SizeIs(1));
}

TEST_F(ItemListTest, WholeKeyIsReadByItsHeaderAndAPrefixByItsSlice) {
  pipeline->respond = [](const Call&) {
    return answer_of(200, R"({"Documents":[]})", {{"x-ms-continuation", "theirs"}});
  };
  ItemListOptions options;
  options.partition_key = "cygnus";
  EXPECT_EQ(list(options).next().continuation, "theirs");
  EXPECT_EQ(header_of(pipeline->last_call(), "x-ms-documentdb-partitionkey"), R"(["cygnus"])");
  EXPECT_FALSE(header_of(pipeline->last_call(), "x-ms-documentdb-partitionkeyrangeid"));

  pipeline->map = routing_of({"2D"}, {{{"a"}, {"b"}}, KeyKind::MultiHash, 2});
  options.partition_key = "USA";
  list(options).next();
  EXPECT_FALSE(header_of(pipeline->last_call(), "x-ms-documentdb-partitionkey"));
  EXPECT_EQ(header_of(pipeline->last_call(), "x-ms-start-epk"), "2D145581F5E75BAC6C539649981C9670");
  EXPECT_EQ(header_of(pipeline->last_call(), "x-ms-end-epk"), "2D145581F5E75BAC6C539649981C9670FF");
  EXPECT_EQ(header_of(pipeline->last_call(), "x-ms-documentdb-partitionkeyrangeid"),
            "KxEAAJE-AgA=,1");
}

TEST_F(ItemListTest, QueryIsAnsweredForAllRangesAtOnce) {
  server.set_boundaries({"10"});
  pipeline->respond = [](const Call& each) {
    const bool is_first = !header_of(each, "x-ms-continuation");
    return answer_of(200, is_first ? R"({"Documents":[1]})" : R"({"Documents":[2]})",
                     is_first ? HeaderList{{"x-ms-continuation", "theirs"}} : HeaderList{});
  };
  const Query query("SELECT * FROM c WHERE c.a = @a", {{"@a", R"({"x":[1, 2]})"}});
  auto pages = item_pages(pipeline, kListLink, query, {});
  const ItemPage first = pages.next();
  EXPECT_THAT(texts(first), ElementsAre("1"));
  EXPECT_EQ(first.continuation, "theirs");
  EXPECT_THAT(texts(pages.next()), ElementsAre("2"));
  EXPECT_FALSE(pages.has_more());
  EXPECT_FALSE(header_of(pipeline->last_call(), "x-ms-documentdb-partitionkeyrangeid"));
  EXPECT_EQ(pipeline->routing_count, 0) << "nobody needs to know the ranges";
  const Call& call = pipeline->last_call();
  EXPECT_EQ(call.method, "POST");
  EXPECT_FALSE(call.writes);
  EXPECT_TRUE(call.repeatable);
  EXPECT_EQ(header_of(call, "content-type"), "application/query+json");
  EXPECT_EQ(header_of(call, "x-ms-documentdb-isquery"), "True");
  EXPECT_EQ(header_of(call, "x-ms-documentdb-query-enablecrosspartition"), "True");
  EXPECT_EQ(header_of(call, "x-orrery-cross-partition-queries"), "serve");
  EXPECT_EQ(call.body, R"({"query":"SELECT * FROM c WHERE c.a = @a",)"
                       R"("parameters":[{"name":"@a","value":{"x":[1, 2]}}]})");
}

TEST_F(ItemListTest, QueryOfAPrefixIsLeftToTheServer) {
  pipeline->map = routing_of({"2D"}, {{{"a"}, {"b"}}, KeyKind::MultiHash, 2});
  pipeline->respond = [](const Call&) { return answer_of(200, R"({"Documents":[]})"); };
  QueryOptions options;
  options.partition_key = "USA";
  item_pages(pipeline, kListLink, Query("SELECT VALUE COUNT(1) FROM c"), options).next();
  EXPECT_EQ(header_of(pipeline->last_call(), "x-ms-documentdb-partitionkey"), R"(["USA"])");
  EXPECT_FALSE(header_of(pipeline->last_call(), "x-ms-documentdb-partitionkeyrangeid"));
}

TEST_F(ItemListTest, QueryOfAFeedRangeGoesToEachRange) {
  for (const char* place : {"05", "15", "25"}) server.add(place);
  server.set_boundaries({"10"});
  pipeline->map = pipeline->next_map;
  QueryOptions options;
  options.feed_range = FeedRange{"", "20"};
  auto pages = item_pages(pipeline, kListLink, Query("SELECT * FROM c"), options);
  EXPECT_THAT(texts(pages.next()), ElementsAre("1"));
  EXPECT_THAT(texts(pages.next()), ElementsAre("2"));
  EXPECT_FALSE(pages.has_more());
  EXPECT_EQ(header_of(pipeline->last_call(), "x-ms-documentdb-query-enablecrosspartition"), "True");
}

TEST_F(ItemListTest, QueryAsksForWhatTheCallerWantsToKnow) {
  pipeline->respond = [](const Call&) { return answer_of(200, R"({"Documents":[]})"); };
  const std::vector<std::string> names = {"x-ms-documentdb-populatequerymetrics",
                                          "x-ms-cosmos-populateindexmetrics-v2",
                                          "x-orrery-explain"};
  QueryOptions options;
  item_pages(pipeline, kListLink, Query("SELECT * FROM c"), options).next();
  for (const auto& name : names) EXPECT_FALSE(header_of(pipeline->last_call(), name)) << name;
  options.populate_query_metrics = options.populate_index_metrics = options.explain = true;
  item_pages(pipeline, kListLink, Query("SELECT * FROM c"), options).next();
  for (const auto& name : names) EXPECT_EQ(header_of(pipeline->last_call(), name), "True") << name;
}

TEST_F(ItemListTest, WhatCantBeMeantIsRefused) {
  ItemListOptions both;
  both.partition_key = "cygnus";
  both.feed_range = FeedRange{};
  EXPECT_THROW(list(both), CosmosException);
  ItemListOptions empty;
  empty.feed_range = FeedRange{"20", "10"};
  EXPECT_THROW(list(empty), CosmosException);
  for (const char* text : {"nonsense", "{}", "[]", R"({"Rid":"a","Continuation":[]})",
                           R"({"Rid":"a","Continuation":[{"range":{"min":"2","max":"1"}}]})"}) {
    ItemListOptions options;
    options.continuation = text;
    EXPECT_THROW(list(options).next(), CosmosException) << text;
  }
  EXPECT_THAT(pipeline->calls, SizeIs(0));
}

}  // namespace
}  // namespace orrery::client
