#include "maintenance/housekeeper.h"

#include <chrono>
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

using namespace std::chrono_literals;
using catalog::Catalog;
using catalog::ContainerPtr;
using partition::FaultyCommitLog;
using partition::WriteOf;
using storage::RetentionSettings;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

using Kind = partition::Write::Kind;

partition::Rules rules_of(const ContainerDefinition& definition) {
  partition::Rules rules;
  rules.default_ttl = definition.default_ttl();
  return rules;
}

class HousekeeperTest : public testing::Test {
 protected:
  HousekeeperTest() { open(); }
  ~HousekeeperTest() override {
    for (const auto& each : everything()) {
      for (const auto& range : each->ranges.all()) {
        EXPECT_EQ(partition::audit(home.store(), range.partition->number()).stale_expiry_entries,
                  0u);
      }
    }
    close();
  }

  void open() {
    auto opened = Catalog::open(home.environment(), rules_of);
    ASSERT_TRUE(opened) << opened.error().message();
    catalog = std::move(*opened);
    home.committer().start();
    housekeeper.emplace(home.environment(), *catalog, limits);
  }
  void close() {
    home.log().release();
    housekeeper.reset();
    home.committer().stop();
    catalog.reset();
    home.close();
  }
  /// As a restart does.
  void reopen() {
    close();
    home.open();
    open();
  }
  std::vector<ContainerPtr> everything() {
    std::vector<ContainerPtr> all;
    for (const auto& database : catalog->databases("", SIZE_MAX)) {
      for (auto& each : catalog->containers(database->rid, "", SIZE_MAX)) all.push_back(each);
    }
    return all;
  }

  /// Rounds, until nothing is left to do.
  void tidy() {
    for (int rounds = 0; housekeeper->run_once(); ++rounds) ASSERT_LT(rounds, 1000);
  }

  /// Rounds until the disk has refused one of their commits, and has been overcome. How many that
  /// takes depends on how much a round has time for.
  void run_into_the_fault() {
    ASSERT_TRUE(partition::eventually([this] {
      housekeeper->run_once();
      return home.log().recoveries_tried() > 0;
    }));
    ASSERT_TRUE(home.recovered());
  }

  void make(const std::string& id, const std::string& members) {
    if (!catalog->database("d")) ASSERT_TRUE(catalog->create_database("d", {}));
    const auto made = catalog->create_container(catalog->database("d")->rid,
                                                catalog::test_definition(id, members), {});
    ASSERT_TRUE(made) << made.error().message();
  }
  Result<ContainerPtr> replace(const std::string& id, const std::string& members) {
    return catalog->replace_container(
        catalog->container("d", id)->rid, {}, [&](const ContainerDefinition& current) {
          return current.replace(Json::parse(R"({"id":")" + id + "\"" + members + "}"), {});
        });
  }
  partition::Partition& partition_of(const std::string& id) {
    return *catalog->container("d", id)->ranges.all().at(0).partition;
  }
  void write(const std::string& id, std::vector<WriteOf> writes) {
    const auto rules = catalog->container("d", id)->rules;
    const auto committed =
        partition_of(id).submit_and_wait(partition::transaction_of(std::move(writes), rules));
    ASSERT_TRUE(committed) << committed.error().message();
  }
  void write_many(const std::string& id, int count, std::int32_t ttl = storage::kTtlAbsent) {
    for (int at = 0; at < count;) {
      std::vector<WriteOf> writes;
      for (int i = 0; i < 1000 && at < count; ++i, ++at) {
        writes.push_back({.id = std::to_string(at), .ttl = ttl});
      }
      write(id, std::move(writes));
    }
  }
  partition::Audited audited(const std::string& id) {
    return partition::audit(home.store(), partition_of(id).number());
  }
  storage::Head head(const std::string& id) { return audited(id).head; }

  HousekeeperLimits limits{};
  partition::TestEnvironment home;
  std::unique_ptr<Catalog> catalog;
  std::optional<Housekeeper> housekeeper;
};

TEST_F(HousekeeperTest, ANewContainerKeepsFromItsFirstChangeOn) {
  make("c", R"(,"defaultTtl":60,"changeFeedPolicy":{"retentionDuration":10})");
  const auto before = head("c");
  EXPECT_EQ(before.retention.expiry, RetentionSettings::Expiry::Complete)
      << "nothing has to be built";
  ASSERT_TRUE(before.history);
  EXPECT_EQ(before.history->at(0), (storage::HistoryPart{"", Lsn{1}, Lsn{1}}));
  write("c", {{.id = "a"}});
  EXPECT_EQ(audited("c").expiry_entries, 1u);
  EXPECT_THAT(audited("c").history, SizeIs(1));
}

TEST_F(HousekeeperTest, AClockThatWasAheadIsToldOnce) {
  limits.clock_check_rounds = 1;
  reopen();
  make("c", "");
  home.advance(72h);
  write("c", {{.id = "a"}});
  tidy();
  EXPECT_EQ(housekeeper->stats().clock_warnings, 0u);
  home.advance(-72h);
  const auto now = home.environment().clock.unix_seconds();
  EXPECT_EQ(catalog->definitions().latest_time().ts - now, 72 * 3600);
  EXPECT_EQ(catalog->definitions().latest_time().container->definition.id(), "c");
  tidy();
  write("c", {{.id = "b"}});
  tidy();
  EXPECT_EQ(housekeeper->stats().clock_warnings, 1u);
  // Caught up, and ahead again.
  home.advance(73h);
  tidy();
  home.advance(-73h);
  tidy();
  EXPECT_EQ(housekeeper->stats().clock_warnings, 2u);
}

TEST_F(HousekeeperTest, WhatHasExpiredIsPurgedInSteps) {
  make("c", R"(,"defaultTtl":60)");
  make("untouched", "");
  write_many("c", 1000);
  write("c", {{.id = "longer", .ttl = 100}, {.id = "never", .ttl = -1}});
  write("untouched", {{.id = "a"}});
  tidy();
  EXPECT_EQ(head("c").documents, 1002u);
  home.advance(60s);
  const Lsn before = partition_of("c").head();
  tidy();
  EXPECT_EQ(head("c").documents, 2u);
  EXPECT_EQ(partition_of("c").head().value - before.value, 5u) << "200 under one LSN";
  home.advance(40s);
  tidy();
  EXPECT_EQ(head("c").documents, 1u);
  EXPECT_EQ(housekeeper->stats().purged_documents, 1001u);
  EXPECT_EQ(head("untouched").documents, 1u);
}

TEST_F(HousekeeperTest, ADocumentThatIsDueSoonerThanOthersIsNotOverlooked) {
  make("c", R"(,"defaultTtl":-1)");
  write("c", {{.id = "later", .ttl = 1000}});
  tidy();
  write("c", {{.id = "sooner", .ttl = 5}});
  home.advance(5s);
  tidy();
  EXPECT_EQ(head("c").documents, 1u);
}

TEST_F(HousekeeperTest, AnIdleContainerIsNotLookedAtAgain) {
  make("c", R"(,"defaultTtl":60,"changeFeedPolicy":{"retentionDuration":10})");
  write("c", {{.id = "a"}});
  tidy();
  const auto commits = home.committer().stats().commits.load();
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(housekeeper->run_once());
  EXPECT_EQ(home.committer().stats().commits.load(), commits);
}

TEST_F(HousekeeperTest, SwitchingTtlOnAppliesToWhatIsThere) {
  make("c", "");
  write_many("c", 3000);
  EXPECT_EQ(audited("c").expiry_entries, 0u);
  ASSERT_TRUE(replace("c", R"(,"defaultTtl":60)"));
  EXPECT_EQ(head("c").retention.expiry, RetentionSettings::Expiry::Building)
      << "before the answer: what is written from now on has its entries";
  tidy();
  EXPECT_EQ(head("c").retention.expiry, RetentionSettings::Expiry::Complete);
  EXPECT_EQ(audited("c").expiry_entries, 3000u);
  home.advance(60s);
  tidy();
  EXPECT_EQ(head("c").documents, 0u);
  EXPECT_EQ(audited("c").expiry_entries, 0u);
}

TEST_F(HousekeeperTest, SwitchingTtlOffKeepsWhatIsStillThere) {
  make("c", R"(,"defaultTtl":60)");
  write("c", {{.id = "a"}});
  tidy();
  ASSERT_TRUE(replace("c", ""));
  EXPECT_EQ(audited("c").expiry_entries, 0u);
  home.advance(1000s);
  tidy();
  EXPECT_EQ(head("c").documents, 1u);
  ASSERT_TRUE(replace("c", R"(,"defaultTtl":2000)"));
  tidy();
  EXPECT_EQ(head("c").documents, 1u);
  home.advance(1000s);
  tidy();
  EXPECT_EQ(head("c").documents, 0u);
}

TEST_F(HousekeeperTest, ANewDefaultCountsAtOnce) {
  make("c", R"(,"defaultTtl":1000)");
  write("c", {{.id = "a"}});
  tidy();
  home.advance(100s);
  tidy();
  EXPECT_EQ(head("c").documents, 1u);
  ASSERT_TRUE(replace("c", R"(,"defaultTtl":50)"));
  tidy();
  EXPECT_EQ(head("c").documents, 0u);
}

TEST_F(HousekeeperTest, APurgeIsRecordedAsSuchWhereHistoryIsKept) {
  make("c",
       R"(,"defaultTtl":60,"changeFeedPolicy":{"retentionDuration":10,"previousImage":"delete"})");
  write("c", {{.id = "a"}});
  home.advance(60s);
  tidy();
  const auto found = audited("c");
  ASSERT_THAT(found.history, SizeIs(2));
  EXPECT_EQ(found.history[1].second.operation, storage::HistoryRecord::Operation::TtlDelete);
  EXPECT_NE(found.history[1].second.previous_text, "");
  EXPECT_EQ(found.history[1].second.ts, home.clock().unix_seconds());
}

TEST_F(HousekeeperTest, HistoryGoesWhenItsTimeIsOver) {
  make("c", R"(,"changeFeedPolicy":{"retentionDuration":10,"tombstoneDuration":20})");
  write("c", {{.id = "a"}});
  write("c", {{.kind = Kind::Delete, .id = "a"}});
  home.advance(5min);
  write("c", {{.id = "b"}});
  tidy();
  EXPECT_THAT(audited("c").history, SizeIs(3));
  home.advance(5min + 1s);
  tidy();
  EXPECT_THAT(audited("c").history, SizeIs(2)) << "the delete and b";
  EXPECT_EQ(head("c").history->at(0), (storage::HistoryPart{"", Lsn{3}, Lsn{1}}));
  home.advance(10min);
  tidy();
  EXPECT_THAT(audited("c").history, IsEmpty());
  EXPECT_EQ(housekeeper->stats().trimmed_history_records, 3u);
  EXPECT_EQ(partition_of("c").history_bytes(), 0u);
}

TEST_F(HousekeeperTest, SwitchingHistoryOffLetsItGo) {
  make("c", R"(,"changeFeedPolicy":{"retentionDuration":10})");
  write("c", {{.id = "a"}});
  ASSERT_TRUE(replace("c", ""));
  EXPECT_THAT(audited("c").history, IsEmpty());
  tidy();
  write("c", {{.id = "b"}});
  EXPECT_THAT(audited("c").history, IsEmpty());
}

class SmallHistoryTest : public HousekeeperTest {
 protected:
  SmallHistoryTest() {
    housekeeper.emplace(home.environment(), *catalog,
                        HousekeeperLimits{.history_bytes_max = 20'000});
  }
};

TEST_F(SmallHistoryTest, TooMuchHistoryGoesBeforeItsTime) {
  make("c", R"(,"changeFeedPolicy":{"retentionDuration":1000,"tombstoneDuration":-1})");
  write_many("c", 100);
  tidy();
  EXPECT_LE(partition_of("c").history_bytes(), 20'000u);
  EXPECT_GT(partition_of("c").history_bytes(), 10'000u);
  write_many("c", 0);
  std::vector<WriteOf> again;
  for (int i = 0; i < 100; ++i) again.push_back({.kind = Kind::Upsert, .id = std::to_string(i)});
  write("c", again);
  tidy();
  EXPECT_LE(partition_of("c").history_bytes(), 20'000u);
  EXPECT_EQ(head("c").history->at(0).all_begin, Lsn{3});
}

// ── crashes and disk errors ──────────────────────────────────────────────────────────────────────

TEST_F(HousekeeperTest, AfterARestartItGoesOn) {
  make("c", "");
  write_many("c", 3000);
  ASSERT_TRUE(replace("c", R"(,"defaultTtl":60,"changeFeedPolicy":{"retentionDuration":10})"));
  reopen();  // Before anything was built.
  tidy();
  EXPECT_EQ(head("c").retention.expiry, RetentionSettings::Expiry::Complete);
  home.advance(60s);
  reopen();
  tidy();
  EXPECT_EQ(head("c").documents, 0u);
  EXPECT_THAT(audited("c").history, SizeIs(3000));
  home.advance(10min + 1s);
  reopen();
  tidy();
  EXPECT_THAT(audited("c").history, IsEmpty());
}

TEST_F(HousekeeperTest, WhatACrashLeftHalfDoneIsReconciled) {
  make("c", R"(,"changeFeedPolicy":{"retentionDuration":10})");
  write("c", {{.id = "a"}});
  // The definition was stored, and then the server died before its partitions heard of it.
  const auto number = partition_of("c").number();
  storage::Head forgotten = head("c");
  forgotten.retention = {};
  forgotten.history = nullptr;
  forgotten.history_bytes = 0;
  storage::Batch batch;
  batch.put(storage::Family::Heads, storage::partition_prefix(number), forgotten.make());
  batch.erase_range(storage::Family::History, storage::partition_prefix(number),
                    storage::partition_end(number));
  ASSERT_TRUE(home.committer().commit(std::move(batch), home.committer().generation()));
  reopen();
  EXPECT_EQ(head("c").retention, RetentionSettings{});
  tidy();
  EXPECT_EQ(head("c").retention.history, RetentionSettings::History::All);
  EXPECT_EQ(head("c").history->at(0).all_begin, Lsn{2});
  write("c", {{.id = "b"}});
  EXPECT_THAT(audited("c").history, SizeIs(1));
}

TEST_F(HousekeeperTest, AReplaceWhosePartitionsCouldNotBeToldIsReconciledAfterRecovery) {
  make("c", "");
  write("c", {{.id = "a"}});
  // The definition is the first commit from here on, what the partition keeps the second.
  home.log().fail_next(FaultyCommitLog::Fault::BeforeWriting, true, 1);
  EXPECT_FALSE(replace("c", R"(,"defaultTtl":60)"));
  ASSERT_TRUE(home.recovered());
  EXPECT_EQ(catalog->container("d", "c")->definition.default_ttl(), 60) << "it was stored";
  tidy();
  EXPECT_EQ(head("c").retention.expiry, RetentionSettings::Expiry::Complete);
  home.advance(60s);
  tidy();
  EXPECT_EQ(head("c").documents, 0u);
}

class HousekeeperFaultTest : public HousekeeperTest,
                             public testing::WithParamInterface<FaultyCommitLog::Fault> {};

TEST_P(HousekeeperFaultTest, APurgeThatTheDiskRefusedIsDoneOnce) {
  make("c", R"(,"defaultTtl":60,"changeFeedPolicy":{"retentionDuration":10})");
  write_many("c", 500);
  home.advance(60s);
  home.log().fail_next(GetParam());
  run_into_the_fault();
  tidy();
  EXPECT_EQ(head("c").documents, 0u);
  EXPECT_THAT(audited("c").history, SizeIs(1000)) << "each deleted once";
}

TEST_P(HousekeeperFaultTest, ABuildThatTheDiskRefusedIsDoneAnew) {
  make("c", "");
  write_many("c", 5000);
  ASSERT_TRUE(replace("c", R"(,"defaultTtl":60)"));
  home.log().fail_next(GetParam(), true, 1);
  run_into_the_fault();
  tidy();
  EXPECT_EQ(head("c").retention.expiry, RetentionSettings::Expiry::Complete);
  EXPECT_EQ(audited("c").expiry_entries, 5000u);
}

TEST_P(HousekeeperFaultTest, ATrimThatTheDiskRefusedLosesNoBegin) {
  make("c", R"(,"changeFeedPolicy":{"retentionDuration":10,"tombstoneDuration":20})");
  write_many("c", 2500);
  home.advance(10min + 1s);
  home.log().fail_next(GetParam(), true, 1);
  run_into_the_fault();
  tidy();
  EXPECT_THAT(audited("c").history, IsEmpty());
  EXPECT_EQ(head("c").history->at(0).all_begin, partition_of("c").head());
}

INSTANTIATE_TEST_SUITE_P(Faults, HousekeeperFaultTest,
                         testing::Values(FaultyCommitLog::Fault::BeforeWriting,
                                         FaultyCommitLog::Fault::AfterWriting));

TEST_F(HousekeeperTest, WhileTheDiskRefusesItWaits) {
  make("c", R"(,"defaultTtl":60)");
  write("c", {{.id = "a"}});
  home.advance(60s);
  home.log().fail_next(FaultyCommitLog::Fault::BeforeWriting, false);
  housekeeper->run_once();
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(housekeeper->run_once());
  EXPECT_EQ(head("c").documents, 1u);
  home.log().make_recoverable();
  ASSERT_TRUE(home.recovered());
  tidy();
  EXPECT_EQ(head("c").documents, 0u);
}

// ── ranges come and go ───────────────────────────────────────────────────────────────────────────

TEST_F(HousekeeperTest, ADeletedContainerIsForgotten) {
  make("c", R"(,"defaultTtl":60)");
  write("c", {{.id = "a"}});
  tidy();
  ASSERT_TRUE(catalog->delete_container(catalog->container("d", "c")->rid, {}));
  EXPECT_THAT(catalog->definitions().containers_with_upkeep(), IsEmpty());
  home.advance(60s);
  tidy();
}

TEST_F(HousekeeperTest, ItRunsByItself) {
  make("c", R"(,"defaultTtl":60)");
  write("c", {{.id = "a"}});
  home.advance(60s);
  housekeeper->start();
  EXPECT_TRUE(partition::eventually([&] { return partition_of("c").documents() == 0; }));
  housekeeper->stop();
}

TEST_F(HousekeeperTest, OneRoundIsBoundedAndTheNextGoesOnWithTheRest) {
  for (int i = 0; i < 5; ++i) make(fmt::format("c{}", i), R"(,"defaultTtl":60)");
  for (int i = 0; i < 5; ++i) write(fmt::format("c{}", i), {{.id = "a"}});
  home.advance(60s);
  housekeeper.emplace(home.environment(), *catalog, HousekeeperLimits{.round_max = 0ms});
  EXPECT_TRUE(housekeeper->run_once()) << "no time at all: everything is left";
  housekeeper.emplace(home.environment(), *catalog, HousekeeperLimits{});
  tidy();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(head(fmt::format("c{}", i)).documents, 0u);
}

}  // namespace
}  // namespace orrery::maintenance
