// The change feed iterator against the real server: every start, every part of a container, both
// modes, and nothing lost, repeated or out of order while ranges are split and merged.
#include "orrery/change_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "base/test_seed.h"
#include "orrery/client.h"
#include "orrery/json.h"
#include "test_account.h"

namespace orrery::client {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

using Ids = std::vector<std::string>;

std::vector<json> drain(ChangeFeedIterator& feed) {
  std::vector<json> items;
  for (auto page = feed.next(); !page.not_modified; page = feed.next()) {
    EXPECT_EQ(page.status, 200);
    EXPECT_GT(page.request_charge, 0);
    for (auto& item : to_json(page)) items.push_back(std::move(item));
  }
  return items;
}

Ids ids_of(const std::vector<json>& items) {
  Ids ids;
  for (const auto& item : items) ids.push_back(item.at("id"));
  return ids;
}

ChangeFeedOptions from(ChangeFeedStart start) {
  ChangeFeedOptions options;
  options.start = std::move(start);
  return options;
}

std::string key_of(int number) { return "key " + std::to_string(number); }

class ChangeFeedTest : public test::AccountTest {
 protected:
  /// Documents "prefix0" and so on, spread over seven keys.
  static Ids fill(const Container& container, int count, const std::string& prefix = {}) {
    Ids ids;
    for (int i = 0; i < count; ++i) {
      ids.push_back(prefix + std::to_string(i));
      container.upsert_item(json{{"id", ids.back()}, {"pk", key_of(i % 7)}, {"n", i}}.dump(),
                            key_of(i % 7));
    }
    return ids;
  }

  /// Keeps all versions for an hour.
  Container make_container_with_history(const std::string& id, int ranges,
                                        std::optional<int> default_ttl = {}) const {
    ContainerProperties properties;
    properties.id = id;
    properties.partition_key_paths = {"/pk"};
    properties.default_ttl = default_ttl;
    properties.change_feed_policy = R"({"retentionDuration":60})";
    CreateOptions options;
    options.throughput = Throughput::fixed(test::throughput_for_ranges(ranges));
    database().create_container(properties, options);
    return database().container(id);
  }

  /// Waits for a second that is later than that of `item`; the server's clock says when.
  void let_second_pass(const Container& scratch, const json& item) const {
    ASSERT_TRUE(test::wait_until([&] {
      const auto now = to_json(scratch.upsert_item(R"({"id":"clock","pk":"clock"})", "clock"));
      return now.at("_ts").get<std::int64_t>() > item.at("_ts").get<std::int64_t>();
    }));
  }
};

/// On one range, and on five.
class ChangeFeedScopesTest : public ChangeFeedTest, public ::testing::WithParamInterface<int> {};

INSTANTIATE_TEST_SUITE_P(Ranges, ChangeFeedScopesTest, ::testing::Values(1, 5));

TEST_P(ChangeFeedScopesTest, AnEmptyContainerHasNothingFromAnyStart) {
  const auto container = make_container("c", GetParam());
  for (const auto& start : {ChangeFeedStart::beginning(), ChangeFeedStart::now(),
                            ChangeFeedStart::after(std::chrono::system_clock::now() - 24h)}) {
    auto feed = container.change_feed(from(start));
    const auto page = feed.next();
    EXPECT_TRUE(page.not_modified);
    EXPECT_TRUE(page.empty());
    EXPECT_EQ(page.status, 304);
    container.upsert_item(R"({"id":"x","pk":"x"})", "x");
    EXPECT_EQ(ids_of(drain(feed)), Ids{"x"});
    container.delete_item("x", "x");
    EXPECT_THAT(drain(feed), IsEmpty());
  }
}

TEST_P(ChangeFeedScopesTest, FromTheBeginningWithAnyPageSize) {
  const auto container = make_container("c", GetParam());
  const auto ids = fill(container, 40);
  for (const std::optional<std::uint32_t> page_size :
       {std::optional<std::uint32_t>(), {1}, {3}, {1000}}) {
    ChangeFeedOptions options;
    options.page_size = page_size;
    auto feed = container.change_feed(options);
    const auto items = drain(feed);
    EXPECT_THAT(ids_of(items), UnorderedElementsAreArray(ids));
    for (const auto& item : items) EXPECT_TRUE(item.at("_lsn").is_number_integer());
  }
}

TEST_P(ChangeFeedScopesTest, FromNowOn) {
  const auto container = make_container("c", GetParam());
  fill(container, 10, "old ");
  auto feed = container.change_feed(from(ChangeFeedStart::now()));
  auto fixed = container.change_feed(from(ChangeFeedStart::now()));
  const std::string token = fixed.continuation();
  EXPECT_TRUE(feed.next().not_modified);
  const auto ids = fill(container, 10, "new ");
  EXPECT_THAT(ids_of(drain(feed)), UnorderedElementsAreArray(ids));
  EXPECT_THAT(ids_of(drain(fixed)), UnorderedElementsAreArray(ids));
  auto resumed = container.change_feed(from(ChangeFeedStart::continuation(token)));
  EXPECT_THAT(ids_of(drain(resumed)), UnorderedElementsAreArray(ids));
  for (int n = 0; n < 3; ++n) {
    container.upsert_item(json{{"id", "new 0"}, {"pk", key_of(0)}, {"n", n}}.dump(), key_of(0));
  }
  const auto items = drain(feed);
  ASSERT_EQ(items.size(), 1u) << "of three updates the last";
  EXPECT_EQ(items[0].at("n"), 2);
}

TEST_P(ChangeFeedScopesTest, FromATimeOn) {
  const auto container = make_container("c", GetParam());
  fill(container, 10, "old ");
  const auto last = to_json(container.upsert_item(R"({"id":"last","pk":"x"})", "x"));
  const std::chrono::system_clock::time_point time(
      std::chrono::seconds(last.at("_ts").get<std::int64_t>()));
  let_second_pass(make_container("scratch"), last);
  const auto ids = fill(container, 10, "new ");
  ChangeFeedOptions options = from(ChangeFeedStart::after(time));
  options.page_size = 2;
  auto feed = container.change_feed(options);
  EXPECT_THAT(ids_of(drain(feed)), UnorderedElementsAreArray(ids));
  auto all = container.change_feed(from(ChangeFeedStart::after(time - 1h)));
  EXPECT_EQ(drain(all).size(), 21u);
  auto future = container.change_feed(from(ChangeFeedStart::after(time + 1h)));
  EXPECT_THAT(drain(future), IsEmpty());
}

TEST_P(ChangeFeedScopesTest, FromAContinuationByAnotherClient) {
  const auto container = make_container("c", GetParam());
  fill(container, 20);
  ChangeFeedOptions options;
  options.page_size = 2;
  auto feed = container.change_feed(options);
  const CosmosClient other(server().endpoint(), server().key());
  const auto same = other.database(database().id()).container("c");
  std::set<std::string> seen;
  std::size_t count = 0;
  std::string token = feed.continuation();
  for (bool more = true; more;) {
    options.start = ChangeFeedStart::continuation(token);
    auto next = same.change_feed(options);
    const auto page = next.next();
    more = !page.not_modified;
    token = page.continuation;
    EXPECT_EQ(token, next.continuation());
    count += page.size();
    for (const auto& item : to_json(page)) seen.insert(item.at("id").get<std::string>());
  }
  EXPECT_EQ(seen.size(), 20u);
  EXPECT_EQ(count, 20u);
}

TEST_P(ChangeFeedScopesTest, OfOnePartitionKeyInTheOrderOfModification) {
  const auto container = make_container("c", GetParam());
  fill(container, 21);
  container.upsert_item(json{{"id", "3"}, {"pk", key_of(3)}}.dump(), key_of(3));
  ChangeFeedOptions options;
  options.partition_key = PartitionKey(key_of(3));
  options.page_size = 1;
  auto feed = container.change_feed(options);
  EXPECT_THAT(ids_of(drain(feed)), ElementsAre("10", "17", "3"));
  container.upsert_item(json{{"id", "x"}, {"pk", key_of(4)}}.dump(), key_of(4));
  EXPECT_THAT(drain(feed), IsEmpty());
  container.upsert_item(json{{"id", "y"}, {"pk", key_of(3)}}.dump(), key_of(3));
  auto resumed = container.change_feed(from(ChangeFeedStart::continuation(feed.continuation())));
  EXPECT_THAT(ids_of(drain(resumed)), ElementsAre("y"));
  options.start = ChangeFeedStart::now();
  EXPECT_TRUE(container.change_feed(options).next().not_modified);
}

TEST_P(ChangeFeedScopesTest, OfFeedRangesWhichAreDisjointAndTogetherAll) {
  const auto container = make_container("c", GetParam());
  Ids ids;
  for (int i = 0; i < 60; ++i) {
    ids.push_back(std::to_string(i));
    container.upsert_item(json{{"id", ids.back()}, {"pk", key_of(i)}}.dump(), key_of(i));
  }
  const auto ranges = container.feed_ranges();
  ASSERT_EQ(ranges.size(), static_cast<std::size_t>(GetParam()));
  std::vector<FeedRange> parts = ranges;
  // Bounds that are none of a range, too.
  parts.insert(parts.end(), {{"", "0C"}, {"0C", "1234"}, {"1234", "FF"}});
  Ids found;
  for (const FeedRange& part : parts) {
    ChangeFeedOptions options;
    options.feed_range = FeedRange::from_json(part.to_json());
    options.page_size = 5;
    auto feed = container.change_feed(options);
    for (const auto& id : ids_of(drain(feed))) found.push_back(id);
  }
  Ids twice = ids;
  twice.insert(twice.end(), ids.begin(), ids.end());
  EXPECT_THAT(found, UnorderedElementsAreArray(twice));
}

TEST_P(ChangeFeedScopesTest, AllVersionsAndDeletes) {
  const auto container = make_container_with_history("c", GetParam());
  ChangeFeedOptions options = from(ChangeFeedStart::now());
  options.mode = ChangeFeedMode::AllVersionsAndDeletes;
  auto feed = container.change_feed(options);
  const std::string token = feed.continuation();
  for (const char* key : {"a", "b", "c"}) {
    container.create_item(json{{"id", "1"}, {"pk", key}, {"n", 1}}.dump(), key);
    container.upsert_item(json{{"id", "1"}, {"pk", key}, {"n", 2}}.dump(), key);
    container.delete_item("1", key);
  }
  std::map<std::string, Ids> operations;
  for (const auto& item : drain(feed)) {
    const auto& key = item["current"].contains("pk") ? item["current"]["pk"]
                                                     : item["metadata"]["partitionKey"]["pk"];
    operations[key].push_back(item["metadata"]["operationType"]);
  }
  const Ids expected{"create", "replace", "delete"};
  EXPECT_EQ(operations,
            (std::map<std::string, Ids>{{"a", expected}, {"b", expected}, {"c", expected}}));
  // The mode comes with the continuation.
  auto again = container.change_feed(from(ChangeFeedStart::continuation(token)));
  EXPECT_EQ(drain(again).size(), 9u);
  options.partition_key = PartitionKey("b");
  options.start = ChangeFeedStart::beginning();
  try {
    container.change_feed(options).next();
    FAIL() << "all versions have no beginning";
  } catch (const CosmosException& refusal) {
    EXPECT_EQ(refusal.status(), 400);
    EXPECT_THAT(refusal.what(), HasSubstr("retention period"));
  }
}

TEST_P(ChangeFeedScopesTest, ExpiryIsADeleteInAllVersionsAndSilenceInTheLatest) {
  const auto container = make_container_with_history("c", GetParam(), -1);
  ChangeFeedOptions options = from(ChangeFeedStart::now());
  auto latest = container.change_feed(options);
  options.mode = ChangeFeedMode::AllVersionsAndDeletes;
  auto all = container.change_feed(options);
  all.continuation();
  latest.continuation();
  container.create_item(R"({"id":"short","pk":"a","ttl":1})", "a");
  std::vector<json> found;
  ASSERT_TRUE(test::wait_until([&] {
    for (auto& item : drain(all)) found.push_back(std::move(item));
    return found.size() >= 2;
  }));
  EXPECT_EQ(found[0]["metadata"]["operationType"], "create");
  EXPECT_EQ(found[1]["metadata"]["operationType"], "delete");
  EXPECT_EQ(found[1]["metadata"]["timeToLiveExpired"], true);
  EXPECT_EQ(found[1]["metadata"]["id"], "short");
  EXPECT_THAT(drain(latest), IsEmpty());
}

TEST_P(ChangeFeedScopesTest, LagIsExact) {
  const auto container = make_container("c", GetParam());
  auto feed = container.change_feed();
  const std::string begin = feed.continuation();
  EXPECT_EQ(container.change_feed_lag(begin)->documents, 0u);
  fill(container, 30);
  const auto lag = container.change_feed_lag(begin);
  ASSERT_TRUE(lag);
  EXPECT_EQ(lag->documents, 30u);
  EXPECT_GT(lag->bytes, 30u);
  EXPECT_LT(lag->age, 60s);
  std::size_t left = 30;
  while (left > 0) {
    left -= feed.next().size();
    EXPECT_EQ(container.change_feed_lag(feed.continuation())->documents, left);
  }
}

TEST_F(ChangeFeedTest, APrefixOfAHierarchicalKey) {
  const auto container = make_container("c", 1, {"/tenant", "/user"});
  Ids wanted;
  for (int i = 0; i < 30; ++i) {
    const std::string user = "user " + std::to_string(i);
    for (const char* tenant : {"t1", "t2"}) {
      const std::string id = std::string(tenant) + std::to_string(i);
      container.upsert_item(json{{"id", id}, {"tenant", tenant}, {"user", user}}.dump(),
                            PartitionKey(tenant).append(user));
      if (tenant == std::string("t1")) wanted.push_back(id);
    }
  }
  ChangeFeedOptions options;
  options.partition_key = PartitionKey("t1");
  options.page_size = 4;
  auto feed = container.change_feed(options);
  std::vector<json> found;
  for (auto& item : to_json(feed.next())) found.push_back(std::move(item));
  // Cut the tenant itself in two.
  const auto slice = container.feed_range_of(PartitionKey("t1"));
  server().command({"split", database().id() + "/c", "--range", "0", "--at", slice.min + "20"});
  for (auto& item : drain(feed)) found.push_back(std::move(item));
  EXPECT_THAT(ids_of(found), UnorderedElementsAreArray(wanted));
  options.partition_key->append("user 7");
  auto whole = container.change_feed(options);
  EXPECT_THAT(ids_of(drain(whole)), ElementsAre("t17"));
}

TEST_F(ChangeFeedTest, FiltersAndProjections) {
  const auto container = make_container("c", 5);
  fill(container, 20);
  ChangeFeedOptions options;
  options.filter = "c.n >= 15 AND c.id LIKE '1%'";
  options.select = "c.id, c.n * 2 AS twice";
  auto feed = container.change_feed(options);
  const auto items = drain(feed);
  EXPECT_THAT(ids_of(items), UnorderedElementsAre("15", "16", "17", "18", "19"));
  for (const auto& item : items) {
    EXPECT_FALSE(item.contains("pk"));
    EXPECT_EQ(item["twice"], 2 * std::stoi(item["id"].get<std::string>()));
  }
  options.filter = "this is no condition";
  EXPECT_THROW(container.change_feed(options).next(), CosmosException);
}

TEST_F(ChangeFeedTest, ATransactionIsInOnePage) {
  const auto container = make_container("c", 1);
  std::vector<ItemOperation> operations;
  for (int i = 0; i < 5; ++i) {
    operations.push_back(
        ItemOperation::create(json{{"id", std::to_string(i)}, {"pk", "a"}}.dump()));
  }
  ASSERT_TRUE(container.execute_batch(operations, "a").ok());
  ChangeFeedOptions options;
  options.page_size = 2;
  EXPECT_EQ(container.change_feed(options).next().size(), 5u);
}

TEST_F(ChangeFeedTest, AContinuationOfAContainerThatWasMadeAgainIsRefused) {
  auto container = make_container("c");
  fill(container, 3);
  auto feed = container.change_feed();
  drain(feed);
  const std::string token = feed.continuation();
  container.remove();
  EXPECT_THROW(feed.next(), CosmosException);
  container = make_container("c");
  fill(container, 3);
  try {
    container.change_feed(from(ChangeFeedStart::continuation(token))).next();
    FAIL() << "it was taken";
  } catch (const CosmosException& refusal) {
    EXPECT_EQ(refusal.failure(), Failure::Argument);
    EXPECT_THAT(refusal.what(), HasSubstr("of another container"));
  }
  EXPECT_THROW(feed.next(), CosmosException) << "nor does an open one go on in it";
}

TEST_F(ChangeFeedTest, ALongPollReturnsOnAWrite) {
  const auto container = make_container("c", 5);
  ChangeFeedOptions options = from(ChangeFeedStart::now());
  options.wait = 30s;
  auto feed = container.change_feed(options);
  feed.continuation();
  std::chrono::steady_clock::duration slowest{};
  for (int i = 0; i < 50; ++i) {
    auto reading = std::async(std::launch::async, [&] {
      auto page = feed.next();
      return std::pair(std::move(page), std::chrono::steady_clock::now());
    });
    const std::string id = std::to_string(i);
    container.upsert_item(json{{"id", id}, {"pk", key_of(i)}}.dump(), key_of(i));
    const auto acknowledged = std::chrono::steady_clock::now();
    const auto [page, returned] = reading.get();
    ASSERT_EQ(ids_of(to_json(page)), Ids{id});
    slowest = std::max(slowest, returned - acknowledged);
  }
  EXPECT_LT(slowest, 5s);
  RecordProperty("slowest_us", static_cast<int>(slowest / 1us));
}

TEST_F(ChangeFeedTest, ALongPollThatFindsNothingSaysSoAfterItsTime) {
  const auto container = make_container("c", 5);
  ChangeFeedOptions options;
  options.wait = 1s;
  auto feed = container.change_feed(options);
  const auto begun = std::chrono::steady_clock::now();
  const auto page = feed.next();
  EXPECT_TRUE(page.not_modified);
  EXPECT_TRUE(page.waited);
  EXPECT_GT(std::chrono::steady_clock::now() - begun, 400ms);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 20s);
}

TEST_F(ChangeFeedTest, ALongPollCanBeCancelled) {
  const auto container = make_container("c", 5);
  std::stop_source stop;
  ChangeFeedOptions options = from(ChangeFeedStart::now());
  options.wait = 60s;
  options.stop = stop.get_token();
  auto feed = container.change_feed(options);
  feed.continuation();
  std::promise<void> first;
  auto reading = std::async(std::launch::async, [&] {
    feed.next();
    first.set_value();
    feed.next();
  });
  container.upsert_item(R"({"id":"x","pk":"x"})", "x");
  first.get_future().wait();
  const auto begun = std::chrono::steady_clock::now();
  stop.request_stop();
  try {
    reading.get();
    FAIL() << "it was not cancelled";
  } catch (const CosmosException& failure) {
    EXPECT_EQ(failure.failure(), Failure::Cancelled);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 10s);
}

TEST_F(ChangeFeedTest, APositionOutlivesTheServer) {
  test::ServerProcess server({.arguments = {}, .keeps_data = true});
  const CosmosClient client(server.endpoint(), server.key());
  client.create_database("d");
  ContainerProperties properties;
  properties.id = "c";
  properties.partition_key_paths = {"/pk"};
  client.database("d").create_container(properties);
  const auto container = client.database("d").container("c");
  fill(container, 10);
  ChangeFeedOptions options;
  options.page_size = 4;
  auto feed = container.change_feed(options);
  auto found = ids_of(to_json(feed.next()));
  server.restart();
  auto resumed = container.change_feed(from(ChangeFeedStart::continuation(feed.continuation())));
  for (const auto& id : ids_of(drain(resumed))) found.push_back(id);
  EXPECT_EQ(found.size(), 10u);
  EXPECT_EQ(std::set<std::string>(found.begin(), found.end()).size(), 10u);
  EXPECT_EQ(drain(feed).size(), 6u) << "the old one goes on as well";
}

/// Writers at full speed, ranges that are split and merged, and readers that hand over to each
/// other at any page: of all versions each is seen once and in the order of its key; of the latest
/// ones the last of each key, and none twice.
TEST_F(ChangeFeedTest, NothingIsLostRepeatedOrOutOfOrderWhileRangesChange) {
  const std::uint64_t seed = test::seed();
  SCOPED_TRACE("ORRERY_SEED=" + std::to_string(seed));
  std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
  const auto container = make_container_with_history("c", 1);
  constexpr int kWriters = 2;
  constexpr int kKeysEach = 20;

  struct Reader {
    ChangeFeedOptions options;
    std::map<std::string, std::vector<int>> found;
    std::thread thread;
  };
  std::vector<Reader> readers(4);
  for (std::size_t i = 0; i < readers.size(); ++i) {
    readers[i].options.mode =
        i % 2 == 0 ? ChangeFeedMode::AllVersionsAndDeletes : ChangeFeedMode::LatestVersion;
    if (i >= 2) readers[i].options.wait = 1s;
    readers[i].options.page_size = static_cast<std::uint32_t>(5 + random() % 20);
    readers[i].options.start = ChangeFeedStart::now();
    readers[i].options.start =
        ChangeFeedStart::continuation(container.change_feed(readers[i].options).continuation());
  }

  std::atomic<bool> stop_writing = false;
  std::atomic<bool> writing_ended = false;
  std::mutex mutex;
  std::map<std::string, int> written;  // The last number of each document.
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      for (int n = 0; !stop_writing; ++n) {
        for (int key = 0; key < kKeysEach && !stop_writing; ++key) {
          const std::string id = std::to_string(writer) + "/" + std::to_string(key);
          std::string id_in_document = id;
          std::replace(id_in_document.begin(), id_in_document.end(), '/', '.');
          container.upsert_item(json{{"id", id_in_document}, {"pk", id}, {"n", n}}.dump(), id);
          const std::scoped_lock lock(mutex);
          written[id] = n;
        }
      }
    });
  }
  for (Reader& reader : readers) {
    reader.thread = std::thread([&, reader_seed = random()] {
      std::mt19937 chance(reader_seed);
      std::optional<ChangeFeedIterator> feed(container.change_feed(reader.options));
      for (bool last_round = false;;) {
        const bool ended = writing_ended;
        const auto page = feed->next();
        for (const auto& item : to_json(page)) {
          const auto& document = item.contains("current") ? item["current"] : item;
          reader.found[document.at("pk")].push_back(document.at("n"));
        }
        if (page.not_modified && last_round) return;
        last_round = ended;
        if (chance() % 5 == 0) {
          reader.options.start = ChangeFeedStart::continuation(page.continuation);
          feed.emplace(container.change_feed(reader.options));
        }
      }
    });
  }

  // Three splits, two merges, and so on, until both have happened often.
  const std::string name = database().id() + "/c";
  int splits = 0, merges = 0;
  while (splits < 8 || merges < 6) {
    const auto ranges = CosmosClient(server().endpoint(), server().key())
                            .database(database().id())
                            .container("c")
                            .partition_key_ranges();
    const std::size_t at = random() % ranges.size();
    const bool merge = ranges.size() > 1 && (ranges.size() > 5 || random() % 2 == 0);
    try {
      if (merge) {
        const std::size_t left = std::min(at, ranges.size() - 2);
        server().merge(name, ranges[left].id, ranges[left + 1].id);
        ++merges;
      } else {
        server().split(name, ranges[at].id);
        ++splits;
      }
    } catch (const std::runtime_error& refusal) {
      // One that is too small to be cut, or just being cut by the server itself.
      RecordProperty("refusal", refusal.what());
    }
  }
  stop_writing = true;
  for (auto& writer : writers) writer.join();
  writing_ended = true;
  for (Reader& reader : readers) reader.thread.join();

  for (const Reader& reader : readers) {
    for (const auto& [id, last] : written) {
      const auto found = reader.found.find(id);
      ASSERT_NE(found, reader.found.end()) << id;
      const std::vector<int>& numbers = found->second;
      if (reader.options.mode == ChangeFeedMode::AllVersionsAndDeletes) {
        ASSERT_EQ(numbers.size(), static_cast<std::size_t>(last) + 1) << id;
        for (int n = 0; n <= last; ++n) ASSERT_EQ(numbers[static_cast<std::size_t>(n)], n) << id;
      } else {
        ASSERT_EQ(numbers.back(), last) << id;
        for (std::size_t i = 1; i < numbers.size(); ++i)
          ASSERT_LT(numbers[i - 1], numbers[i]) << id;
      }
    }
  }
  RecordProperty("writes", written.empty() ? 0 : written.begin()->second);
}

}  // namespace
}  // namespace orrery::client
