#include "maintenance/reclaimer.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog/catalog.h"
#include "catalog/test_catalog.h"
#include "partition/test_audit.h"
#include "partition/test_environment.h"
#include "storage/keys.h"

namespace orrery::maintenance {
namespace {

using catalog::Catalog;
using catalog::ContainerPtr;
using catalog::DatabasePtr;
using catalog::garbage_key;
using catalog::Throughput;
using partition::eventually;
using storage::Family;
using testing::SizeIs;

using Fault = partition::FaultyCommitLog::Fault;

class ReclaimerTest : public testing::Test {
 protected:
  ReclaimerTest() {
    open();
    database = catalog->create_database("d", {}).value();
  }
  ~ReclaimerTest() override { close(); }

  void open() {
    auto opened = Catalog::open(home.environment(),
                                [](const ContainerDefinition&) { return partition::Rules(); });
    ASSERT_TRUE(opened) << opened.error().message();
    catalog = std::move(*opened);
    home.committer().start();
    reclaimer.emplace(home.environment(), catalog->garbage());
    reclaimer->start();
  }
  void close() {
    home.log().release();
    if (reclaimer) reclaimer->stop();
    home.committer().stop();
    reclaimer.reset();
    catalog.reset();
    home.close();
  }
  /// As a restart does.
  void reopen() {
    close();
    home.open();
    open();
  }

  ContainerPtr make_container(const std::string& id,
                              const std::optional<Throughput>& throughput = {}) {
    auto made = catalog->create_container(database->rid, catalog::test_definition(id), throughput);
    EXPECT_TRUE(made) << made.error().message();
    return made ? *made : nullptr;
  }
  /// Creates documents in a range of the container, in transactions of up to 1000.
  void write(const ContainerPtr& container, std::size_t count, std::size_t range = 0) {
    for (std::size_t at = 0; at < count;) {
      std::vector<partition::WriteOf> writes;
      for (int i = 0; i < 1000 && at < count; ++i, ++at) {
        writes.push_back({.id = fmt::format("{}-{}", ++documents_made, at)});
      }
      const auto committed = loop.submit(container->ranges.all().at(range).partition,
                                         partition::transaction_of(std::move(writes)))
                                 .get();
      ASSERT_TRUE(committed) << committed.error().message();
    }
  }
  /// How many keys of a partition are left in all families.
  std::size_t keys_left(PartitionNumber number) {
    std::size_t count = 0;
    const auto snapshot = home.store().snapshot();
    for (const Family family :
         {Family::Heads, Family::Log, Family::Ids, Family::Rids, Family::Unique}) {
      count += contents(*snapshot, family, storage::partition_prefix(number),
                        storage::partition_end(number))
                   .size();
    }
    std::string value;
    if (snapshot->get(Family::Catalog, garbage_key(number), value) != storage::Lookup::Missing) {
      ++count;
    }
    return count;
  }

  partition::TestEnvironment home;
  std::unique_ptr<Catalog> catalog;
  std::optional<Reclaimer> reclaimer;
  partition::TestLoop loop{1};
  DatabasePtr database;
  std::size_t documents_made = 0;
};

TEST_F(ReclaimerTest, TheSpaceOfADeletedContainerIsReclaimed) {
  const auto neighbour_before = make_container("before");
  const auto container = make_container("c", catalog::manual(24'000));
  const auto neighbour_after = make_container("after");
  write(neighbour_before, 10);
  for (std::size_t range = 0; range < 4; ++range) write(container, 50, range);
  write(neighbour_after, 10);
  ASSERT_TRUE(catalog->delete_container(container->rid, ""));
  for (const auto& range : container->ranges.all()) {
    EXPECT_TRUE(eventually([&] { return keys_left(range.partition->number()) == 0; }));
  }
  for (const auto& neighbour : {neighbour_before, neighbour_after}) {
    const auto number = neighbour->ranges.all()[0].partition->number();
    EXPECT_THAT(partition::audit(home.store(), number).entries, SizeIs(10));
  }
}

TEST_F(ReclaimerTest, TheSpaceOfALargeContainerIsReclaimedToo) {
  const auto container = make_container("c");
  const auto neighbour = make_container("neighbour");
  write(container, 10'500);
  write(neighbour, 10);
  ASSERT_TRUE(catalog->delete_container(container->rid, ""));
  EXPECT_TRUE(
      eventually([&] { return keys_left(container->ranges.all()[0].partition->number()) == 0; }));
  EXPECT_THAT(
      partition::audit(home.store(), neighbour->ranges.all()[0].partition->number()).entries,
      SizeIs(10));
}

TEST_F(ReclaimerTest, ReclaimingThatWasCutShortGoesOnAfterARestart) {
  const auto container = make_container("c");
  const auto number = container->ranges.all()[0].partition->number();
  write(container, 20);
  // The deletion commits, and the disk fails when its space is to be reclaimed.
  home.log().fail_next(Fault::BeforeWriting, /*recoverable=*/false, /*spared=*/1);
  ASSERT_TRUE(catalog->delete_container(container->rid, ""));
  ASSERT_TRUE(eventually([&] { return !home.committer().accepts(); }));
  EXPECT_GT(keys_left(number), 0u);
  reopen();
  EXPECT_EQ(catalog->container("d", "c"), nullptr);
  EXPECT_TRUE(eventually([&] { return keys_left(number) == 0; }));
}

TEST_F(ReclaimerTest, ReclaimingThatFailedGoesOnOnceTheDiskRecovers) {
  const auto container = make_container("c");
  const auto number = container->ranges.all()[0].partition->number();
  write(container, 20);
  home.log().fail_next(Fault::BeforeWriting, /*recoverable=*/true, /*spared=*/1);
  ASSERT_TRUE(catalog->delete_container(container->rid, ""));
  EXPECT_TRUE(eventually([&] { return keys_left(number) == 0; }));
}

TEST_F(ReclaimerTest, AReplacePreparedBeforeRecoveryDoesNotBringBackADeletedContainer) {
  const auto container = make_container("c");
  const auto number = container->ranges.all()[0].partition->number();
  write(container, 3);
  home.log().fail_next(Fault::AfterWriting, /*recoverable=*/false);
  ASSERT_FALSE(catalog->delete_container(container->rid, ""));
  const auto replaced =
      catalog->replace_container(container->rid, "", [&](const ContainerDefinition& current) {
        home.log().make_recoverable();
        EXPECT_TRUE(home.recovered());
        EXPECT_TRUE(eventually([&] { return keys_left(number) == 0; }));
        return Result<ContainerDefinition>(current);
      });
  EXPECT_FALSE(replaced);
  EXPECT_EQ(catalog->container("d", "c"), nullptr);
  close();
  home.open();
  const auto opened = Catalog::open(home.environment(),
                                    [](const ContainerDefinition&) { return partition::Rules(); });
  EXPECT_TRUE(opened) << "the server does not start any more: " << opened.error().message();
}

TEST_F(ReclaimerTest, ADeletionThatTurnsOutToBeDurableIsReclaimedToo) {
  for (const bool of_database : {false, true}) {
    const auto container = make_container("c");
    const auto number = container->ranges.all()[0].partition->number();
    write(container, 20);
    // The caller is told that it failed, but the disk has it.
    home.log().fail_next(Fault::AfterWriting);
    ASSERT_FALSE(of_database ? catalog->delete_database(database->rid, "")
                             : catalog->delete_container(container->rid, ""));
    ASSERT_TRUE(home.recovered());
    EXPECT_EQ(catalog->container("d", "c"), nullptr);
    EXPECT_TRUE(eventually([&] { return keys_left(number) == 0; }));
  }
}

}  // namespace
}  // namespace orrery::maintenance
