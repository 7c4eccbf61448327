#include "maintenance/index_builder.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog/catalog.h"
#include "catalog/test_catalog.h"
#include "maintenance/range_change.h"
#include "partition/test_audit.h"
#include "partition/test_environment.h"

namespace orrery::maintenance {
namespace {

using namespace std::chrono_literals;
using catalog::Catalog;
using catalog::ContainerPtr;
using catalog::Range;
using catalog::Throughput;
using partition::eventually;
using partition::Write;
using partition::WriteOf;
using testing::Each;
using testing::ElementsAre;
using testing::SizeIs;

using Fault = partition::FaultyCommitLog::Fault;
using Outcome = IndexBuilder::Outcome;

class IndexBuilderTest : public testing::Test {
 protected:
  IndexBuilderTest() { open(); }
  ~IndexBuilderTest() override {
    for (const Range& range : container()->ranges.all()) {
      partition::audit(home.store(), range.partition->number());
    }
    close();
  }

  void open() {
    auto opened = Catalog::open(home.environment(),
                                [](const ContainerDefinition&) { return partition::Rules{}; });
    ASSERT_TRUE(opened) << opened.error().message();
    catalog = std::move(*opened);
    home.committer().start();
    changes.emplace(home.environment(), *catalog);
    builder.emplace(home.environment(), *catalog,
                    IndexBuilderLimits{.rest_max = 0ms, .retry_interval = 1ms});
    catalog->on_change([this](const Rid& changed) { builder->reconcile(changed); });
  }
  void close() {
    home.log().release();
    builder->stop();
    home.committer().stop();
    builder.reset();
    changes.reset();
    catalog.reset();
    home.close();
  }
  void reopen() {
    close();
    home.open();
    open();
  }

  void make_container(const std::string& policy = "{}", std::int64_t units = 400) {
    Throughput throughput;
    throughput.manual = units;
    const auto database = catalog->create_database("d", {});
    ASSERT_TRUE(database);
    ASSERT_TRUE(catalog->create_container(
        (*database)->rid,
        catalog::test_definition("c", R"(,"indexingPolicy":)" + std::string(policy)), throughput));
  }
  void replace_policy(const std::string& policy) {
    ASSERT_TRUE(catalog->replace_container(
        container()->rid, {}, [&](const ContainerDefinition&) -> Result<ContainerDefinition> {
          return catalog::test_definition("c", R"(,"indexingPolicy":)" + std::string(policy));
        }));
  }
  ContainerPtr container() { return catalog->container("d", "c"); }

  Result<partition::Committed> write(const std::string& key, WriteOf one) {
    for (;;) {
      const auto current = container();
      const Epk epk = effective_partition_key(current->definition.partition_key(),
                                              PartitionKey({KeyComponent(key)}));
      auto transaction = partition::transaction_of({one});
      partition::Write& only = writes_of(transaction).writes[0];
      only.key.epk = epk.bytes;
      only.key.partition_key = key + '\x01';
      auto done = current->ranges.owner_of(epk).partition->submit_and_wait(std::move(transaction));
      if (done || done.error().code() != ErrorCode::RangeGone) return done;
    }
  }
  void fill(int count, std::size_t padding = 0) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(write(fmt::format("key-{}", documents_made++),
                        {.id = "x", .padding = padding, .members = R"("a":1,"b":[1,2])"}));
    }
  }

  /// Of each range: "/a /b(building)"
  std::vector<std::string> indexes() {
    std::vector<std::string> found;
    for (const Range& range : container()->ranges.all()) {
      std::string& text = found.emplace_back();
      const auto records = range.partition->indexes();
      if (!records) continue;
      for (const auto& index : *records) {
        text += (text.empty() ? "" : " ") + index.spec + (index.is_complete() ? "" : "(building)");
      }
    }
    return found;
  }
  void work() {
    while (builder->run_once() != Outcome::Idle) {
    }
  }
  void request(std::vector<std::string> specs) { builder->request(container()->rid, specs); }
  int progress() { return builder->progress(container()->rid); }
  std::size_t entries() {
    std::size_t count = 0;
    for (const Range& range : container()->ranges.all()) {
      count += partition::audit(home.store(), range.partition->number()).index_entries;
    }
    return count;
  }

  partition::TestEnvironment home;
  std::unique_ptr<Catalog> catalog;
  std::optional<RangeChanges> changes;
  std::optional<IndexBuilder> builder;
  int documents_made = 0;
};

TEST_F(IndexBuilderTest, WhatIsWantedIsAddedToAllRangesAndBuilt) {
  make_container("{}", 12'000);
  ASSERT_THAT(container()->ranges.all(), SizeIs(2));
  fill(20);
  request({"/a", "/b/[]", "/a"});
  work();
  EXPECT_THAT(indexes(), ElementsAre("/a /b/[]", "/a /b/[]"));
  EXPECT_EQ(entries(), 60u);
  EXPECT_EQ(progress(), 100);
  EXPECT_EQ(builder->stats().added_indexes, 4u);
  EXPECT_EQ(builder->stats().indexed_documents, 20u);
}

TEST_F(IndexBuilderTest, WhatIsThereOrMayNotBeThereIsNoWork) {
  make_container(R"({"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/secret/*"}]})");
  request({"/a"});
  work();
  request({"/a"});
  request({"/secret", "/secret/[]", "/a ASC,/b ASC", "nonsense", "/" + std::string(2000, 'x')});
  EXPECT_EQ(builder->run_once(), Outcome::Idle);
  builder->request(Rid::container({9, 9, 9, 9}, {0x89, 9, 9, 9}), {"/a"});
  EXPECT_EQ(builder->run_once(), Outcome::Idle);
  EXPECT_THAT(indexes(), ElementsAre("/a"));
}

TEST_F(IndexBuilderTest, NoMoreThanARangeHasRoomFor) {
  make_container(R"({"includedPaths":[{"path":"/*"},{"path":"/named/?"}]})");
  std::vector<std::string> many;
  for (int i = 0; i < 100; ++i) many.push_back(fmt::format("/a{}", i));
  request(many);
  work();
  EXPECT_EQ(container()->ranges.all()[0].partition->indexes()->size(), storage::kIndexesMax);
  request({"/b"});
  EXPECT_EQ(builder->run_once(), Outcome::Idle) << "there is no room for it";
  EXPECT_EQ(progress(), 100);
}

TEST_F(IndexBuilderTest, WhatIsUnwantedMakesRoomUnlessThePolicyNamesIt) {
  make_container(R"({"includedPaths":[{"path":"/*"},{"path":"/named/?"}]})", 12'000);
  fill(10);
  std::vector<std::string> many;
  for (int i = 0; i < 100; ++i) many.push_back(fmt::format("/a{}", i));
  request(many);
  work();
  builder->request(container()->rid, {"/b/[]"}, {"/a0", "/named", "/b/[]"});
  work();
  for (const std::string& each : indexes()) {
    EXPECT_THAT(each, testing::Not(testing::HasSubstr("/a0 ")));
    EXPECT_THAT(each, testing::HasSubstr("/named"));
    EXPECT_THAT(each, testing::HasSubstr("/b/[]"));
  }
  EXPECT_EQ(container()->ranges.all()[0].partition->indexes()->size(), storage::kIndexesMax);
}

TEST_F(IndexBuilderTest, ANewContainerHasTheIndexesThatItsPolicyNames) {
  make_container(R"({"includedPaths":[{"path":"/*"},{"path":"/a/?"}],
                     "compositeIndexes":[[{"path":"/a"},{"path":"/b","order":"descending"}]]})");
  EXPECT_THAT(indexes(), ElementsAre("/a ASC,/b DESC /a"));
  fill(3);
  EXPECT_EQ(entries(), 6u);
  EXPECT_EQ(progress(), 100);
}

TEST_F(IndexBuilderTest, AChangeOfThePolicyAddsAndDrops) {
  make_container(R"({"includedPaths":[{"path":"/*"},{"path":"/a/?"}]})", 12'000);
  fill(10);
  request({"/b/[]"});
  work();
  EXPECT_THAT(indexes(), Each("/a /b/[]"));
  replace_policy(R"({"includedPaths":[{"path":"/c/?"},{"path":"/b/*"}],
                     "excludedPaths":[{"path":"/*"}]})");
  EXPECT_EQ(progress(), 0) << "nobody has seen to it yet";
  work();
  EXPECT_THAT(indexes(), Each("/b/[] /c"));
  EXPECT_EQ(progress(), 100);
  EXPECT_EQ(builder->stats().dropped_indexes, 2u);
  EXPECT_EQ(entries(), 30u);
  replace_policy(R"({"indexingMode":"none"})");
  work();
  EXPECT_THAT(indexes(), Each(""));
  EXPECT_EQ(entries(), 0u);
}

TEST_F(IndexBuilderTest, RangesThatCameOfASplitOrMergeAreBuiltOn) {
  make_container();
  fill(30, 100'000);
  request({"/a"});
  ASSERT_EQ(builder->run_once(), Outcome::Worked);
  ASSERT_THAT(indexes(), ElementsAre("/a(building)"));
  ASSERT_TRUE(changes->split(container()->rid, RangeId{0}));
  EXPECT_THAT(indexes(), ElementsAre("/a(building)", "/a(building)"));
  work();
  EXPECT_THAT(indexes(), ElementsAre("/a", "/a"));
  EXPECT_EQ(entries(), 30u);

  // Only one of two parents has it.
  partition::Transaction drop{.work = partition::IndexChange{{"/p"}, {"/a"}}};
  ASSERT_TRUE(container()->ranges.all()[0].partition->submit_and_wait(std::move(drop)));
  ASSERT_TRUE(changes->merge(container()->rid, RangeId{1}, RangeId{2}));
  EXPECT_THAT(indexes(), ElementsAre("/p(building) /a(building)"));
  work();
  EXPECT_THAT(indexes(), ElementsAre("/p /a"));
  EXPECT_EQ(entries(), 60u);
}

TEST_F(IndexBuilderTest, ARangeGetsWhatItsSiblingsHave) {
  make_container("{}", 12'000);
  fill(10);
  partition::Transaction add{.work = partition::IndexChange{{"/a"}, {}}};
  ASSERT_TRUE(container()->ranges.all()[1].partition->submit_and_wait(std::move(add)));
  builder->reconcile(container()->rid);
  work();
  EXPECT_THAT(indexes(), ElementsAre("/a", "/a"));
}

TEST_F(IndexBuilderTest, ABuildGoesOnAfterARestart) {
  make_container();
  fill(40, 100'000);
  request({"/a"});
  ASSERT_EQ(builder->run_once(), Outcome::Worked);
  ASSERT_THAT(indexes(), ElementsAre("/a(building)"));
  const int before = progress();
  EXPECT_GT(before, 0);
  EXPECT_LT(before, 100);
  reopen();
  builder->start();
  EXPECT_TRUE(eventually([&] { return progress() == 100; }));
  EXPECT_THAT(indexes(), ElementsAre("/a"));
  EXPECT_LT(builder->stats().indexed_documents, 40u) << "what was built is not built again";
}

TEST_F(IndexBuilderTest, AfterARestartWhatWasBuiltBeforeCounts) {
  make_container();
  fill(60, 100'000);
  request({"/a"});
  for (int i = 0; i < 3; ++i) ASSERT_EQ(builder->run_once(), Outcome::Worked);
  const int before = progress();
  reopen();
  builder->reconcile(container()->rid);
  ASSERT_EQ(builder->run_once(), Outcome::Worked);
  EXPECT_GT(progress(), before);
}

TEST_F(IndexBuilderTest, WhatACrashCutShortIsSeenAtTheStart) {
  make_container("{}", 12'000);
  fill(5);
  partition::Transaction add{.work = partition::IndexChange{{"/a"}, {}}};
  ASSERT_TRUE(container()->ranges.all()[0].partition->submit_and_wait(std::move(add)));
  // The catalog has it, and nobody has told the builder.
  catalog->on_change([](const Rid&) {});
  replace_policy(R"({"includedPaths":[{"path":"/*"},{"path":"/b/?"}]})");
  reopen();
  builder->start();
  EXPECT_TRUE(eventually([&] { return indexes() == std::vector<std::string>{"/a /b", "/b /a"}; }));
  EXPECT_TRUE(eventually([&] { return progress() == 100; }));
}

TEST_F(IndexBuilderTest, WritersGoOnMeanwhile) {
  make_container();
  fill(60, 50'000);
  builder->start();
  std::atomic<bool> stopping{false};
  std::thread writer([&] {
    for (int i = 0; !stopping; ++i) {
      const auto key = fmt::format("key-{}", i % 60);
      const auto kind = i % 7 == 0 ? Write::Kind::Delete : Write::Kind::Upsert;
      const auto written = write(key, {.kind = kind,
                                       .id = "x",
                                       .padding = 20'000,
                                       .members = fmt::format(R"("a":{},"b":[{}])", i % 5, i % 3)});
      EXPECT_TRUE(written || written.error().code() == ErrorCode::NotFound);
    }
  });
  for (int round = 0; round < 3; ++round) {
    request({"/a", "/b/[]", "/p"});
    EXPECT_TRUE(eventually([&] { return indexes() == std::vector<std::string>{"/a /b/[] /p"}; }));
    replace_policy(R"({"indexingMode":"none"})");
    EXPECT_TRUE(eventually([&] { return indexes() == std::vector<std::string>{""}; }));
    replace_policy("{}");
  }
  request({"/a", "/b/[]", "/p"});
  EXPECT_TRUE(eventually([&] { return indexes() == std::vector<std::string>{"/a /b/[] /p"}; }));
  stopping = true;
  writer.join();
}

TEST_F(IndexBuilderTest, ADiskThatRefusesHoldsItUpAndNoMore) {
  make_container();
  fill(40, 100'000);
  builder->start();
  home.log().fail_next(Fault::BeforeWriting, false);
  request({"/a"});
  EXPECT_TRUE(eventually([&] { return !home.committer().accepts(); }));
  home.log().make_recoverable();
  EXPECT_TRUE(eventually([&] { return indexes() == std::vector<std::string>{"/a"}; }));
  EXPECT_EQ(entries(), 40u);
}

TEST_F(IndexBuilderTest, ADeletedContainerIsForgotten) {
  make_container();
  fill(3);
  const Rid rid = container()->rid;
  request({"/a"});
  ASSERT_TRUE(catalog->delete_container(rid, {}));
  EXPECT_EQ(builder->run_once(), Outcome::Worked);
  EXPECT_EQ(builder->run_once(), Outcome::Idle);
  EXPECT_EQ(builder->progress(rid), 100);
  const auto database = catalog->database("d");
  ASSERT_TRUE(catalog->create_container(
      database->rid, catalog::test_definition("c", R"(,"indexingPolicy":)" + std::string("{}")),
      {}));
}

}  // namespace
}  // namespace orrery::maintenance
