// For tests: a partition to write to and a reader of its feed.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/thread_pool.hpp>

#include "feed/live_map.h"
#include "feed/page.h"
#include "feed/reader.h"
#include "partition/partition.h"
#include "partition/test_environment.h"
#include "partition/writer/transaction.h"
#include "protocol/keys/epk.h"
#include "protocol/keys/partition_key.h"
#include "protocol/wire/resource_body.h"
#include "storage/life.h"
#include "storage/records.h"
#include "storage/test_store.h"

namespace orrery::feed {

using partition::Write;
using partition::WriteOf;

inline const PartitionKeyDefinition& test_definition() {
  static const PartitionKeyDefinition kDefinition{
      .paths = {{"pk"}}, .kind = KeyKind::Hash, .version = 2, .system_key = false};
  return kDefinition;
}
inline const Rid& test_container_rid() {
  static const Rid kRid = Rid::container({0, 0, 0, 1}, {0x80, 0, 0, 1});
  return kRid;
}

/// The place of a key whose one component is that string.
inline storage::DocumentKey real_key(const std::string& partition_key, const std::string& id) {
  const PartitionKey key({KeyComponent(partition_key)});
  storage::DocumentKey made;
  made.epk = effective_partition_key(test_definition(), key).bytes;
  key.append_canonical(made.partition_key);
  made.id = id;
  return made;
}
inline Scope scope_of_key(const std::string& partition_key) {
  const PartitionKey key({KeyComponent(partition_key)});
  Scope scope;
  scope.epks = effective_key_range(test_definition(), key);
  scope.partition_key.emplace();
  key.append_canonical(*scope.partition_key);
  return scope;
}

class FeedTest : public testing::Test {
 protected:
  explicit FeedTest(LiveMapLimits limits = {}) : live_maps(home.store(), pool, limits) {
    home.committer().start();
    part = make_partition(PartitionNumber{1}, RangeId{0}, storage::Head{});
  }
  ~FeedTest() override {
    live_maps.stop();
    pool.join();
  }

  std::shared_ptr<partition::Partition> make_partition(PartitionNumber number, RangeId range,
                                                       const storage::Head& head) {
    storage::Batch batch;
    batch.put(storage::Family::Heads, storage::partition_prefix(number), head.make());
    EXPECT_TRUE(home.committer().commit(std::move(batch), home.committer().generation()));
    return std::make_shared<partition::Partition>(home.environment(), number, range,
                                                  test_container_rid(), head);
  }

  /// One transaction; its LSN.
  Lsn write(std::vector<WriteOf> writes, partition::Partition* to = nullptr) {
    partition::DocumentWrites work;
    for (const WriteOf& each : writes) {
      Write made = each.make();
      made.key = real_key(each.partition_key, each.id);
      work.writes.push_back(std::move(made));
    }
    partition::Transaction transaction{.work = std::move(work)};
    transaction.rules.default_ttl = default_ttl;
    auto target = to != nullptr ? to->shared_from_this() : part;
    auto outcome = loop.submit(std::move(target), std::move(transaction)).get();
    EXPECT_TRUE(outcome.has_value()) << outcome.error().message();
    return outcome ? outcome->lsn : Lsn{};
  }
  Lsn create(const std::string& id, const std::string& key = "p") {
    return write({{.kind = Write::Kind::Create, .id = id, .partition_key = key}});
  }
  Lsn upsert(const std::string& id, const std::string& key = "p") {
    return write({{.kind = Write::Kind::Upsert, .id = id, .partition_key = key}});
  }
  Lsn remove(const std::string& id, const std::string& key = "p") {
    return write({{.kind = Write::Kind::Delete, .id = id, .partition_key = key}});
  }
  void keep(storage::RetentionSettings retention) {
    EXPECT_TRUE(
        loop.submit(part, {.work = partition::RetentionChange{retention}}).get().has_value());
  }

  /// As if the store had been put back from a copy that was made now.
  void begin_life() {
    const auto life = storage::begin_life(home.store(), home.clock().unix_seconds());
    ASSERT_TRUE(life.has_value()) << life.error().message();
    std::string value;
    ASSERT_EQ(home.store().get(storage::Family::Heads, storage::partition_prefix(part->number()),
                               value, storage::Tier::Disk),
              storage::Lookup::Found);
    part =
        std::make_shared<partition::Partition>(home.environment(), part->number(), RangeId{0},
                                               test_container_rid(), *storage::Head::parse(value));
  }

  PageRequest request(Lsn after = {}) const {
    PageRequest made;
    made.after = after;
    made.container = {test_container_rid(), &test_definition(), default_ttl};
    made.now = home.clock().unix_seconds();
    return made;
  }
  Page read(const PageRequest& asked, const partition::Partition* from = nullptr) {
    auto page = reader.read(from != nullptr ? *from : *part, asked);
    EXPECT_TRUE(page.has_value()) << page.error().message();
    return page ? std::move(*page) : Page{};
  }
  Page read(Lsn after = {}) { return read(request(after)); }
  std::string error_of(const PageRequest& asked) {
    const auto page = reader.read(*part, asked);
    EXPECT_FALSE(page.has_value());
    return page ? "" : page.error().message();
  }

  static Json items(const Page& page) { return Json::parse("[" + page.text + "]"); }
  static std::vector<std::string> ids(const Page& page) {
    std::vector<std::string> found;
    for (const Json& item : items(page)) {
      found.push_back(item.contains("current") ? item["current"].value("id", "-")
                                               : item.value("id", "-"));
    }
    return found;
  }

  std::optional<std::int32_t> default_ttl;
  partition::TestEnvironment home;
  boost::asio::thread_pool pool{1};
  LiveMaps live_maps;
  Reader reader{home.store(), live_maps};
  std::shared_ptr<partition::Partition> part;
  partition::TestLoop loop;
};

}  // namespace orrery::feed
