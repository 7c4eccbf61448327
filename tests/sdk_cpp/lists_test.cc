// Lists, queries and bulk over several ranges, also while these are split and merged.
#include <atomic>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "orrery/json.h"
#include "test_account.h"

namespace orrery::test {
namespace {

using client::BulkOptions;
using client::Container;
using client::CosmosException;
using client::Failure;
using client::ItemListOptions;
using client::ItemOperation;
using client::ItemPage;
using client::ItemPages;
using client::PartitionKey;
using client::Query;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int kDocuments = 3'000;

std::vector<ItemOperation> upserts(int count) {
  std::vector<ItemOperation> operations;
  for (int i = 0; i < count; ++i) {
    const std::string id = std::to_string(i);
    const std::string key = "key " + std::to_string(i % 500);
    operations.push_back(ItemOperation::upsert(R"({"id":")" + id + R"(","pk":")" + key + "\"}")
                             .with_partition_key(PartitionKey(key)));
  }
  return operations;
}

/// The ids of all that `pages` show, and how often.
std::map<std::string, int> ids_of(ItemPages pages, std::size_t page_max = SIZE_MAX) {
  std::map<std::string, int> ids;
  pages.for_each([&](const ItemPage& page) {
    EXPECT_LE(page.size(), page_max);
    EXPECT_GT(page.request_charge, 0);
    for (const auto& item : client::to_json(page)) ++ids[item["id"].get<std::string>()];
  });
  return ids;
}

void expect_each_once(const std::map<std::string, int>& ids, int count = kDocuments) {
  EXPECT_EQ(ids.size(), static_cast<std::size_t>(count));
  for (const auto& [id, times] : ids) ASSERT_EQ(times, 1) << id;
}

class ListsTest : public AccountTest {
 protected:
  Container make_full_container(int ranges = 5) const {
    Container container = make_container("stars", ranges);
    const auto response = container.execute_bulk(upserts(kDocuments));
    EXPECT_EQ(response.failed(), 0u);
    return container;
  }
};

TEST_F(ListsTest, BulkWritesIntoAllRanges) {
  const auto stars = make_container("stars", 5);
  auto operations = upserts(kDocuments);
  const auto response = stars.execute_bulk(operations);
  ASSERT_THAT(response.results, SizeIs(kDocuments));
  EXPECT_EQ(response.failed(), 0u);
  EXPECT_GT(response.request_charge, kDocuments);
  for (int i = 0; i < kDocuments; ++i) {
    ASSERT_EQ(response.results[i].status, 201);
    ASSERT_EQ(nlohmann::json::parse(response.results[i].json)["id"], std::to_string(i));
  }
  for (const auto& range : stars.feed_ranges()) {
    ItemListOptions options;
    options.feed_range = range;
    EXPECT_THAT(ids_of(stars.list_items(options)), Not(IsEmpty()));
  }

  std::vector<ItemOperation> mixed;
  const auto add = [&](ItemOperation operation) {
    mixed.push_back(operation.with_partition_key(PartitionKey("key 0")));
  };
  add(ItemOperation::read("0"));
  add(ItemOperation::read("not there"));
  add(ItemOperation::create(R"({"id":"500","pk":"key 0"})"));
  add(ItemOperation::replace("1000", R"({"id":"1000","pk":"key 0","n":1})"));
  add(ItemOperation::patch("1500", {{client::PatchOperation::set("/n", "2")}, ""}));
  add(ItemOperation::remove("2000"));
  add(ItemOperation::remove("2500").with_if_match("\"stale\""));
  const auto outcome = stars.execute_bulk(mixed);
  std::vector<int> statuses;
  for (const auto& result : outcome.results) statuses.push_back(result.status);
  EXPECT_THAT(statuses, ::testing::ElementsAre(200, 404, 409, 200, 200, 204, 412));
  EXPECT_EQ(outcome.failed(), 3u);
  EXPECT_THAT(outcome.results[2].message, Not(IsEmpty()));
}

TEST_F(ListsTest, LargeDocumentsInBulkGoInSeveralRequests) {
  const auto stars = make_container("stars");
  std::vector<ItemOperation> operations;
  for (int i = 0; i < 20; ++i) {
    operations.push_back(ItemOperation::create(R"({"id":")" + std::to_string(i) +
                                               R"(","pk":"k","x":")" + std::string(500'000, 'x') +
                                               "\"}")
                             .with_partition_key("k"));
  }
  EXPECT_EQ(stars.execute_bulk(operations).failed(), 0u);
  std::vector<ItemOperation> reads;
  for (int i = 0; i < 20; ++i) {
    reads.push_back(ItemOperation::read(std::to_string(i)).with_partition_key("k"));
  }
  // More than one answer has room for: those left over are asked for again.
  const auto response = stars.execute_bulk(reads);
  EXPECT_EQ(response.failed(), 0u);
  for (const auto& result : response.results) EXPECT_GT(result.json.size(), 500'000u);
}

TEST_F(ListsTest, PagesOfSevenAndWithoutABound) {
  const auto stars = make_full_container();
  ItemListOptions options;
  expect_each_once(ids_of(stars.list_items(options)));
  options.page_size = 7;
  expect_each_once(ids_of(stars.list_items(options), 7));
  expect_each_once(ids_of(stars.query_items("SELECT * FROM c", options), 7));
  options.page_size = UINT32_MAX;
  expect_each_once(ids_of(stars.query_items("select * from root r", options)));
}

TEST_F(ListsTest, ByKeyAndByFeedRange) {
  const auto stars = make_full_container();
  ItemListOptions options;
  options.partition_key = "key 17";
  options.page_size = 2;
  expect_each_once(ids_of(stars.list_items(options), 2), kDocuments / 500);
  expect_each_once(ids_of(stars.query_items("SELECT * FROM c", options), 2), kDocuments / 500);
  const PartitionKey key("key 17");

  options.partition_key.reset();
  options.feed_range = stars.feed_range_of(key);
  expect_each_once(ids_of(stars.list_items(options), 2), kDocuments / 500);

  // Thirds of the space, which are no ranges of the server.
  std::map<std::string, int> all;
  options.page_size = 100;
  for (const auto& [min, max] : {std::pair{"", "15"}, {"15", "2A"}, {"2A", "FF"}}) {
    options.feed_range = client::FeedRange{min, max};
    const auto ids = ids_of(stars.list_items(options), 100);
    EXPECT_THAT(ids, Not(IsEmpty()));
    for (const auto& [id, times] : ids) all[id] += times;
  }
  expect_each_once(all);
}

TEST_F(ListsTest, AnotherProcessGoesOn) {
  const auto stars = make_full_container();
  std::map<std::string, int> ids;
  ItemListOptions options;
  options.page_size = 400;
  do {
    const client::CosmosClient another(server().endpoint(), server().key());
    const auto page =
        another.database(database().id()).container("stars").list_items(options).next();
    for (const auto& item : client::to_json(page)) ++ids[item["id"].get<std::string>()];
    options.continuation = page.continuation;
  } while (!options.continuation.empty());
  expect_each_once(ids);
}

TEST_F(ListsTest, SplitsAndMergesBetweenPagesChangeNothing) {
  const auto stars = make_full_container(2);
  const auto name = database().id() + "/stars";
  std::map<std::string, int> listed;
  std::map<std::string, int> queried;
  ItemListOptions options;
  options.page_size = 7;
  auto list = stars.list_items(options);
  auto query = stars.query_items("SELECT * FROM c", options);
  for (int page = 0; list.has_more() || query.has_more(); ++page) {
    if (page % 40 == 20) {
      const auto ranges = stars.partition_key_ranges();
      if (page % 120 == 100) {
        server().merge(name, ranges[0].id, ranges[1].id);
      } else {
        server().split(name, ranges[static_cast<std::size_t>(page / 40) % ranges.size()].id);
      }
    }
    const auto take = [](ItemPages& pages, std::map<std::string, int>& ids) {
      if (!pages.has_more()) return;
      for (const auto& item : client::to_json(pages.next())) ++ids[item["id"].get<std::string>()];
    };
    take(list, listed);
    take(query, queried);
  }
  EXPECT_GT(stars.partition_key_ranges().size(), 4u);
  expect_each_once(listed);
  expect_each_once(queried);
}

TEST_F(ListsTest, ListsAndBulkWhileASplitHappens) {
  const auto stars = make_full_container(1);
  std::atomic<bool> is_done = false;
  std::atomic<int> bulks = 0;
  std::atomic<int> lists = 0;
  std::jthread writer([&] {
    while (!is_done) {
      const auto response = stars.execute_bulk(upserts(kDocuments));
      for (const auto& result : response.results) {
        ASSERT_TRUE(result.ok()) << result.status << " " << result.message;
      }
      ++bulks;
    }
  });
  std::jthread reader([&] {
    while (!is_done) {
      ItemListOptions options;
      options.page_size = 100;
      // Upserts move no document in this order, so that each is there once.
      expect_each_once(ids_of(stars.list_items(options), 100));
      ++lists;
    }
  });
  for (int i = 0; i < 6; ++i) {
    const auto ranges = stars.partition_key_ranges();
    split(stars, ranges[static_cast<std::size_t>(i) % ranges.size()].id);
  }
  EXPECT_TRUE(wait_until([&] { return bulks > 1 && lists > 1; }));
  is_done = true;
  writer.join();
  reader.join();
  EXPECT_EQ(stars.partition_key_ranges().size(), 7u);
  expect_each_once(ids_of(stars.list_items()));
}

TEST_F(ListsTest, RangesHaveParentsAfterASplit) {
  const auto stars = make_container("stars");
  const auto before = stars.partition_key_ranges();
  ASSERT_THAT(before, SizeIs(1));
  EXPECT_EQ(before[0].range, (client::FeedRange{"", "FF"}));
  split(stars, before[0].id);
  const auto after = stars.partition_key_ranges();
  ASSERT_THAT(after, SizeIs(2));
  EXPECT_THAT(after[0].parents, ::testing::ElementsAre(before[0].id));
  EXPECT_EQ(after[0].range.max, after[1].range.min);
  EXPECT_THAT(stars.feed_ranges(), ::testing::ElementsAre(after[0].range, after[1].range));
}

TEST_F(ListsTest, ContainerThatIsMadeAnewUnderTheSameName) {
  const auto stars = make_full_container(1);
  ItemListOptions options;
  options.page_size = 10;
  auto old_list = stars.list_items(options);
  old_list.next();
  stars.remove();
  EXPECT_THROW(stars.list_items().next(), CosmosException);
  const auto again = make_full_container(5);
  expect_each_once(ids_of(stars.list_items()));
  EXPECT_EQ(stars.read_item("1", "key 1").status, 200);
  try {
    old_list.next();
    ADD_FAILURE() << "a list of another container went on";
  } catch (const CosmosException& failure) {
    EXPECT_EQ(failure.failure(), Failure::Argument);
  }
}

TEST_F(ListsTest, QueriesThatTheServerRefuses) {
  const auto stars = make_container("stars");
  const auto status_of = [&](const Query& query) {
    try {
      stars.query_items(query).next();
    } catch (const CosmosException& failure) {
      EXPECT_THAT(std::string(failure.what()), Not(IsEmpty()));
      return failure.status();
    }
    return 200;
  };
  EXPECT_EQ(status_of(Query("SELECT * FROM c WHERE c.a = @a", {{"@a", "1"}})), 200);
  EXPECT_EQ(status_of(" "), 400);
  EXPECT_EQ(status_of("SELECT * FORM c"), 400);
  EXPECT_EQ(status_of(Query("SELECT * FROM c WHERE c.a = @a", {{"@a", "{"}})), 400);
  EXPECT_EQ(status_of("SELECT * FROM c"), 200);
}

TEST_F(ListsTest, ListsOfWhatIsNotThere) {
  const auto refused = [&](const ItemListOptions& options) {
    try {
      database().container("no").list_items(options).next();
    } catch (const CosmosException& failure) {
      return failure.is_not_found();
    }
    return false;
  };
  EXPECT_TRUE(refused({}));
  ItemListOptions options;
  options.partition_key = "a";
  EXPECT_TRUE(refused(options));
  EXPECT_THROW(database().container("no").execute_bulk(upserts(1)), CosmosException);

  const auto empty = make_container("empty", 3);
  EXPECT_THAT(ids_of(empty.list_items()), IsEmpty());
}

}  // namespace
}  // namespace orrery::test
