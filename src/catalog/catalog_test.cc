#include "catalog/catalog.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog/test_catalog.h"
#include "partition/test_audit.h"
#include "partition/test_environment.h"
#include "storage/keys.h"

namespace orrery::catalog {
namespace {

using namespace std::chrono_literals;
using partition::eventually;
using storage::Family;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

using Fault = partition::FaultyCommitLog::Fault;

Throughput manual(std::int64_t units) {
  Throughput throughput;
  throughput.manual = units;
  return throughput;
}

/// A clock that can be made to stop a change in the middle: changes ask for the time after they
/// have looked at what exists and before they commit.
class InterruptingClock final : public Clock {
 public:
  std::chrono::system_clock::time_point now() const override {
    if (thread_ == std::this_thread::get_id()) {
      thread_ = std::thread::id();
      interruption_();
    }
    return std::chrono::system_clock::time_point(std::chrono::seconds(1'743'508'800));
  }
  /// The next time that this thread asks.
  void interrupt_once(std::function<void()> interruption) {
    interruption_ = std::move(interruption);
    thread_ = std::this_thread::get_id();
  }

 private:
  mutable std::atomic<std::thread::id> thread_{};
  std::function<void()> interruption_;
};

class CatalogTest : public testing::Test {
 protected:
  CatalogTest() { open(); }
  ~CatalogTest() override { close(); }

  void open() {
    const auto make_rules = [](const ContainerDefinition& of) {
      partition::Rules rules;
      rules.default_ttl = of.default_ttl();
      return rules;
    };
    auto opened = Catalog::open(home.environment(), make_rules, limits);
    ASSERT_TRUE(opened) << opened.error().message();
    catalog = std::move(*opened);
    home.committer().start();
  }
  void close() {
    home.log().release();
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

  DatabasePtr make_database(const std::string& id,
                            const std::optional<Throughput>& throughput = {}) {
    auto made = catalog->create_database(id, throughput);
    EXPECT_TRUE(made) << made.error().message();
    return made ? *made : nullptr;
  }
  ContainerPtr make_container(const DatabasePtr& database, const std::string& id,
                              const std::optional<Throughput>& throughput = {}) {
    auto made = catalog->create_container(database->rid, test_definition(id), throughput);
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
  ErrorCode write_refusal(const ContainerPtr& container) {
    const auto committed =
        loop.submit(container->ranges.all()[0].partition, partition::transaction_of({{.id = "x"}}))
            .get();
    return committed ? ErrorCode::Internal : committed.error().code();
  }
  Lsn head(const ContainerPtr& container) { return container->ranges.all()[0].partition->head(); }

  /// All that exists, as text.
  std::string describe() const {
    std::string text;
    for (const auto& database : catalog->databases("", SIZE_MAX)) {
      text += fmt::format("database {} '{}' {}\n", database->rid.text(), database->id,
                          database->etag().text());
      EXPECT_EQ(catalog->database(database->id), database);
      EXPECT_EQ(catalog->database(database->rid), database);
      for (const auto& container : catalog->containers(database->rid, "", SIZE_MAX)) {
        text += fmt::format("  container {} '{}' in '{}' {} {} map {}\n", container->rid.text(),
                            container->definition.id(), container->database_id,
                            container->etag().text(), container->definition.to_stored().dump(),
                            container->ranges.version());
        EXPECT_EQ(catalog->container(database->id, container->definition.id()), container);
        EXPECT_EQ(catalog->container(container->rid), container);
        for (const auto& range : container->ranges.all()) {
          text += fmt::format("    range {} partition {} [{}, {}) since {} at {}\n", range.id.value,
                              range.partition->number().value, range.epks.min.hex(),
                              range.epks.max.hex(), range.made_in, range.ts);
        }
      }
    }
    for (const auto& database : catalog->databases("", SIZE_MAX)) {
      for (const auto& key : catalog->encryption_keys().list(database->rid, "", SIZE_MAX)) {
        text += fmt::format("encryption key {} in '{}' {} {}\n", key->rid.text(), database->id,
                            key->etag().text(), key->members.dump());
        EXPECT_EQ(catalog->encryption_keys().find(database->id, key->id), key);
        EXPECT_EQ(catalog->encryption_keys().find(key->rid), key);
      }
    }
    for (const auto& offer : catalog->offers().list("", SIZE_MAX)) {
      text += fmt::format(
          "offer {} of {} manual {} autoscale {} highest {} {}\n", offer->rid.text(),
          offer->owner.text(), offer->throughput.manual.value_or(0),
          offer->throughput.autoscale_max.value_or(0), offer->highest_ever, offer->etag().text());
      EXPECT_EQ(catalog->offers().of(offer->owner), offer);
    }
    return text;
  }

  CatalogLimits limits;
  partition::TestEnvironment home;
  std::unique_ptr<Catalog> catalog;
  partition::TestLoop loop{1};
  std::size_t documents_made = 0;
};

// ── databases ────────────────────────────────────────────────────────────────────────────────────

TEST_F(CatalogTest, ADatabaseIsFoundByIdAndRid) {
  const auto made = make_database("d");
  EXPECT_EQ(made->id, "d");
  EXPECT_EQ(made->ts, home.clock().unix_seconds());
  EXPECT_EQ(catalog->database("d"), made);
  EXPECT_EQ(catalog->database(made->rid), made);
  EXPECT_EQ(catalog->database("other"), nullptr);
}

TEST_F(CatalogTest, AnIdIsTakenOnlyOnceUntilItIsDeleted) {
  const auto first = make_database("d");
  EXPECT_EQ(catalog->create_database("d", {}).error().code(), ErrorCode::Conflict);
  ASSERT_TRUE(catalog->delete_database(first->rid, ""));
  EXPECT_EQ(catalog->database("d"), nullptr);
  EXPECT_EQ(catalog->database(first->rid), nullptr);
  EXPECT_NE(make_database("d")->rid, first->rid);
}

TEST_F(CatalogTest, DatabasesAreListedInTheOrderOfTheirCreationPageByPage) {
  for (const auto* id : {"z", "a", "m"}) make_database(id);
  std::vector<std::string> ids;
  std::string after;
  for (;;) {
    const auto page = catalog->databases(after, 2);
    if (page.empty()) break;
    EXPECT_LE(page.size(), 2u);
    for (const auto& each : page) ids.push_back(each->id);
    after = page.back()->rid.bytes();
  }
  EXPECT_THAT(ids, ElementsAre("z", "a", "m"));
}

TEST_F(CatalogTest, AListGoesOnAfterADatabaseThatWasDeletedMeanwhile) {
  const auto first = make_database("a");
  make_database("b");
  const std::string after(first->rid.bytes());
  ASSERT_TRUE(catalog->delete_database(first->rid, ""));
  const auto page = catalog->databases(after, 10);
  ASSERT_THAT(page, SizeIs(1));
  EXPECT_EQ(page[0]->id, "b");
}

TEST_F(CatalogTest, DeletingADatabaseTakesEverythingInItAlong) {
  const auto database = make_database("d", manual(400));
  const auto container = make_container(database, "c", manual(500));
  const auto shared = make_container(database, "shared");
  const auto other = make_container(make_database("other"), "c");
  write(container, 3);
  ASSERT_TRUE(catalog->delete_database(database->rid, ""));
  EXPECT_EQ(catalog->container("d", "c"), nullptr);
  EXPECT_EQ(catalog->container(container->rid), nullptr);
  EXPECT_EQ(catalog->container("d", "shared"), nullptr);
  EXPECT_EQ(catalog->container("other", "c"), other);
  EXPECT_EQ(catalog->offers().of(database->rid), nullptr);
  EXPECT_EQ(catalog->offers().of(container->rid), nullptr);
  EXPECT_THAT(catalog->offers().list("", SIZE_MAX), SizeIs(1));
  EXPECT_EQ(catalog->definitions().container_count(), 1u);
  EXPECT_EQ(write_refusal(container), ErrorCode::OwnerNotFound);
  EXPECT_EQ(write_refusal(shared), ErrorCode::OwnerNotFound);
  EXPECT_EQ(catalog->delete_database(database->rid, "").error().code(), ErrorCode::NotFound);
}

TEST_F(CatalogTest, ADeleteWithAConditionNeedsThatVersion) {
  const auto database = make_database("d");
  const auto container = make_container(database, "c");
  EXPECT_EQ(catalog->delete_container(container->rid, "\"other\"").error().code(),
            ErrorCode::PreconditionFailed);
  EXPECT_EQ(catalog->delete_database(database->rid, "\"other\"").error().code(),
            ErrorCode::PreconditionFailed);
  write(container, 1);
  EXPECT_TRUE(catalog->delete_container(container->rid, container->etag().text()));
  EXPECT_TRUE(catalog->delete_database(database->rid, database->etag().text()));
}

// ── containers ───────────────────────────────────────────────────────────────────────────────────

TEST_F(CatalogTest, AContainerIsFoundByNameAndRidAndTakesWrites) {
  const auto database = make_database("d");
  const auto container = make_container(database, "c");
  EXPECT_EQ(catalog->container("d", "c"), container);
  EXPECT_EQ(catalog->container(container->rid), container);
  EXPECT_EQ(container->rid.database_rid(), database->rid);
  EXPECT_EQ(container->alt_content_path, "dbs/d/colls/c");
  EXPECT_EQ(container->rid_text, container->rid.text());
  EXPECT_EQ(head(container), Lsn{1});
  write(container, 2);
  EXPECT_EQ(head(container), Lsn{2});
  EXPECT_EQ(container->ranges.all()[0].partition->documents(), 2u);
}

TEST_F(CatalogTest, TheSameNameInTwoDatabasesIsTwoContainers) {
  const auto first = make_container(make_database("d1"), "c");
  const auto second = make_container(make_database("d2"), "c");
  EXPECT_NE(first->rid.container_part(), second->rid.container_part())
      << "unique in the account: some clients drop the database part";
  EXPECT_NE(first->ranges.all()[0].partition->number(),
            second->ranges.all()[0].partition->number());
  ASSERT_TRUE(catalog->delete_container(first->rid, ""));
  EXPECT_EQ(catalog->container("d2", "c"), second);
  write(second, 1);
}

TEST_F(CatalogTest, AContainersIdIsTakenOnlyOnceAndItsDatabaseMustExist) {
  const auto database = make_database("d");
  const auto container = make_container(database, "c");
  EXPECT_EQ(catalog->create_container(database->rid, test_definition("c"), {}).error().code(),
            ErrorCode::Conflict);
  ASSERT_TRUE(catalog->delete_database(database->rid, ""));
  EXPECT_EQ(catalog->create_container(database->rid, test_definition("c"), {}).error().code(),
            ErrorCode::OwnerNotFound);
  EXPECT_EQ(catalog->delete_container(container->rid, "").error().code(), ErrorCode::NotFound);
}

TEST_F(CatalogTest, ContainersOfOneDatabaseAreListedInTheOrderOfTheirCreation) {
  const auto d1 = make_database("d1");
  const auto d2 = make_database("d2");
  for (const auto* id : {"z", "a", "m"}) {
    make_container(d1, id);
    make_container(d2, std::string("other-") + id);
  }
  std::vector<std::string> ids;
  std::string after;
  for (;;) {
    const auto page = catalog->containers(d1->rid, after, 1);
    if (page.empty()) break;
    ids.push_back(page[0]->definition.id());
    after = page.back()->rid.bytes();
  }
  EXPECT_THAT(ids, ElementsAre("z", "a", "m"));
  EXPECT_THAT(catalog->containers(make_database("empty")->rid, "", 10), IsEmpty());
}

TEST_F(CatalogTest, AReplacedContainerIsTheSameWithAnotherDefinition) {
  const auto container = make_container(make_database("d"), "c");
  write(container, 1);
  const auto change = [](const ContainerDefinition& current) {
    return current.replace(Json::parse(R"({"id":"c","defaultTtl":60})"), "2020-07-15");
  };
  home.advance(5s);
  const auto replaced =
      catalog->replace_container(container->rid, container->etag().text(), change);
  ASSERT_TRUE(replaced);
  EXPECT_EQ((*replaced)->rid, container->rid);
  EXPECT_NE((*replaced)->etag(), container->etag());
  EXPECT_EQ((*replaced)->ts, container->ts + 5);
  EXPECT_EQ((*replaced)->definition.default_ttl(), 60);
  EXPECT_EQ((*replaced)->rules.default_ttl, 60);
  EXPECT_EQ((*replaced)->ranges.all()[0].partition, container->ranges.all()[0].partition);
  EXPECT_EQ(container->definition.default_ttl(), std::nullopt) << "who holds the old one keeps it";
  EXPECT_EQ(catalog->container("d", "c"), *replaced);

  EXPECT_EQ(
      catalog->replace_container(container->rid, container->etag().text(), change).error().code(),
      ErrorCode::PreconditionFailed);
  EXPECT_EQ(catalog
                ->replace_container(container->rid, "",
                                    [](const ContainerDefinition&) -> Result<ContainerDefinition> {
                                      return Error(ErrorCode::BadRequest, "no");
                                    })
                .error()
                .code(),
            ErrorCode::BadRequest);
  EXPECT_EQ(catalog->container("d", "c"), *replaced) << "a refused change changes nothing";
  ASSERT_TRUE(catalog->delete_container(container->rid, ""));
  EXPECT_EQ(catalog->replace_container(container->rid, "", change).error().code(),
            ErrorCode::NotFound);
}

TEST_F(CatalogTest, ThroughputDecidesHowManyRangesThereAreAndTheyTileTheSpace) {
  const auto database = make_database("d");
  for (const auto& [units, count] :
       {std::pair{400, 1u}, {10'000, 1u}, {24'000, 4u}, {100'000, 17u}}) {
    const auto container = make_container(database, std::to_string(units), manual(units));
    EXPECT_EQ(container->ranges.all().size(), count) << units;
    std::set<std::uint32_t> partitions;
    for (std::uint32_t i = 0; i < count; ++i) {
      const Range& range = container->ranges.all()[i];
      EXPECT_EQ(range.id, RangeId{i});
      partitions.insert(range.partition->number().value);
    }
    EXPECT_EQ(partitions.size(), count);
    write(container, 1, count - 1);
  }
}

TEST_F(CatalogTest, AContainerWithoutAKeyHasOneRangeWhateverItsThroughput) {
  auto without_key = ContainerDefinition::create(Json::parse(R"({"id":"c"})"), "2015-12-16");
  ASSERT_TRUE(without_key);
  const auto made =
      catalog->create_container(make_database("d")->rid, *without_key, manual(50'000));
  ASSERT_TRUE(made);
  EXPECT_THAT((*made)->ranges.all(), SizeIs(1));
}

// ── rids ─────────────────────────────────────────────────────────────────────────────────────────

TEST_F(CatalogTest, RidsAreUniqueRiseAndAreNeverUsedAgainAlsoOverARestart) {
  std::set<std::string> seen;
  std::string last_database, last_container;
  const auto home_database = make_database("home");
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 20; ++i) {
      const auto database = make_database("d");
      const auto container = make_container(home_database, "c");
      for (const auto& rid : {database->rid, container->rid}) {
        EXPECT_TRUE(seen.insert(rid.text()).second) << rid.text();
        EXPECT_EQ(rid.text().find_first_of("+-"), std::string::npos) << rid.text();
      }
      EXPECT_GT(std::string(database->rid.bytes()), last_database);
      EXPECT_GT(std::string(container->rid.bytes()), last_container);
      last_database = database->rid.bytes();
      last_container = container->rid.bytes();
      EXPECT_NE(container->rid.container_part()[0] & 0x80, 0);
      ASSERT_TRUE(catalog->delete_database(database->rid, ""));
      ASSERT_TRUE(catalog->delete_container(container->rid, ""));
    }
    reopen();
  }
}

TEST_F(CatalogTest, PartitionNumbersAreNeverUsedAgain) {
  const auto database = make_database("d");
  std::set<std::uint32_t> seen;
  for (int round = 0; round < 3; ++round) {
    const auto container = make_container(database, "c", manual(24'000));
    for (const auto& range : container->ranges.all()) {
      EXPECT_TRUE(seen.insert(range.partition->number().value).second);
    }
    ASSERT_TRUE(catalog->delete_container(container->rid, ""));
    reopen();
  }
}

TEST_F(CatalogTest, EveryChangeHasAnEtagOfItsOwn) {
  const auto database = make_database("d");
  const auto c1 = make_container(database, "c1");
  const auto c2 = make_container(database, "c2");
  EXPECT_NE(database->etag(), c1->etag());
  EXPECT_NE(c1->etag(), c2->etag());
  const std::string before(c2->etag().text());
  reopen();
  EXPECT_NE(make_container(catalog->database("d"), "c3")->etag().text(), before);
}

// ── client encryption keys ───────────────────────────────────────────────────────────────────────

Json key_members(const std::string& id, const std::string& wrapped = "AAEC") {
  return {{"id", id}, {"wrappedDataEncryptionKey", wrapped}};
}

TEST_F(CatalogTest, EncryptionKeysAreThereAfterARestartAndGoneWithTheirDatabase) {
  const auto kept = make_database("kept");
  const auto gone = make_database("gone");
  for (const auto& database : {kept, gone}) {
    for (const char* id : {"b", "a"}) {
      ASSERT_TRUE(catalog->encryption_keys().create(database->rid, key_members(id)));
    }
  }
  const auto first = catalog->encryption_keys().find("kept", "b");
  EXPECT_EQ(catalog->encryption_keys().create(kept->rid, key_members("b")).error().code(),
            ErrorCode::Conflict);
  ASSERT_TRUE(catalog->delete_database(gone->rid, ""));
  EXPECT_EQ(catalog->encryption_keys().find("gone", "a"), nullptr);
  EXPECT_EQ(catalog->encryption_keys().create(gone->rid, key_members("c")).error().code(),
            ErrorCode::OwnerNotFound);

  const std::string before = describe();
  reopen();
  EXPECT_EQ(describe(), before);
  EXPECT_THAT(catalog->encryption_keys().list(kept->rid, "", SIZE_MAX), SizeIs(2));
  EXPECT_THAT(catalog->encryption_keys().list(kept->rid, first->rid.bytes(), SIZE_MAX), SizeIs(1));
  const auto later = catalog->encryption_keys().create(kept->rid, key_members("c"));
  ASSERT_TRUE(later);
  EXPECT_LT(catalog->encryption_keys().find("kept", "a")->rid, (*later)->rid)
      << "in order of creation";
}

TEST_F(CatalogTest, AnEncryptionKeyIsReplacedUnderItsCondition) {
  const auto database = make_database("d");
  const auto key = catalog->encryption_keys().create(database->rid, key_members("k"));
  ASSERT_TRUE(key);
  const auto replaced = catalog->encryption_keys().replace((*key)->rid, (*key)->etag().text(),
                                                           key_members("k", "BBBB"));
  ASSERT_TRUE(replaced);
  EXPECT_EQ((*replaced)->rid, (*key)->rid);
  EXPECT_EQ(catalog->encryption_keys().find("d", "k"), *replaced);
  EXPECT_EQ(catalog->encryption_keys()
                .replace((*key)->rid, (*key)->etag().text(), key_members("k"))
                .error()
                .code(),
            ErrorCode::PreconditionFailed);
  ASSERT_TRUE(catalog->delete_database(database->rid, ""));
  EXPECT_EQ(catalog->encryption_keys().replace((*key)->rid, "", key_members("k")).error().code(),
            ErrorCode::NotFound);
}

TEST_F(CatalogTest, ADatabaseHasALimitedNumberOfEncryptionKeys) {
  const auto database = make_database("d");
  for (std::size_t i = 0; i < kEncryptionKeysMax; ++i) {
    ASSERT_TRUE(catalog->encryption_keys().create(database->rid, key_members(std::to_string(i))));
  }
  EXPECT_EQ(catalog->encryption_keys().create(database->rid, key_members("more")).error().code(),
            ErrorCode::Forbidden);
  ASSERT_TRUE(catalog->encryption_keys().create(make_database("other")->rid, key_members("more")));
}

// ── offers ───────────────────────────────────────────────────────────────────────────────────────

TEST_F(CatalogTest, AContainerHasAnOfferOfItsOwnUnlessItsDatabaseHasOne) {
  const auto plain = make_database("plain");
  const auto standard = make_container(plain, "standard");
  ASSERT_NE(catalog->offers().of(standard->rid), nullptr);
  EXPECT_EQ(catalog->offers().of(standard->rid)->throughput.manual, 400);
  EXPECT_EQ(catalog->offers().of(plain->rid), nullptr);

  const auto sharing = make_database("sharing", manual(1000));
  ASSERT_NE(catalog->offers().of(sharing->rid), nullptr);
  EXPECT_EQ(catalog->offers().of(sharing->rid)->throughput.manual, 1000);
  EXPECT_EQ(catalog->offers().of(make_container(sharing, "shared")->rid), nullptr);
  EXPECT_EQ(
      catalog->offers().of(make_container(sharing, "own", manual(700))->rid)->throughput.manual,
      700);
}

TEST_F(CatalogTest, ThroughputIsSharedByAnyNumberOfContainers) {
  const auto database = make_database("d", manual(1000));
  for (int i = 0; i < 30; ++i) make_container(database, "shared" + std::to_string(i));
}

TEST_F(CatalogTest, ThroughputIsSharedByALimitedNumberOfContainersWhereThatIsAskedFor) {
  close();
  limits.shared_throughput_containers_max = 5;
  home.open();
  open();
  const auto database = make_database("d", manual(1000));
  for (int i = 0; i < 5; ++i) make_container(database, "shared" + std::to_string(i));
  make_container(database, "own", manual(400));
  EXPECT_EQ(
      catalog->create_container(database->rid, test_definition("one more"), {}).error().code(),
      ErrorCode::SharedThroughputFull);
  ASSERT_TRUE(catalog->delete_container(catalog->container("d", "shared3")->rid, ""));
  make_container(database, "one more");
}

TEST_F(CatalogTest, AReplacedOfferRemembersTheHighestItEverWas) {
  const auto container = make_container(make_database("d"), "c", manual(5000));
  const auto offer = catalog->offers().of(container->rid);
  ASSERT_TRUE(catalog->offers().replace(offer->rid, offer->etag().text(), manual(9000)));
  const auto lowered = catalog->offers().replace(offer->rid, "", manual(600));
  ASSERT_TRUE(lowered);
  EXPECT_EQ((*lowered)->throughput.manual, 600);
  EXPECT_EQ((*lowered)->highest_ever, 9000);
  EXPECT_EQ(catalog->offers().find(offer->rid), *lowered);
  EXPECT_EQ(catalog->offers().of(container->rid), *lowered);
  EXPECT_EQ(catalog->offers().replace(offer->rid, offer->etag().text(), manual(400)).error().code(),
            ErrorCode::PreconditionFailed);
  ASSERT_TRUE(catalog->delete_container(container->rid, ""));
  EXPECT_EQ(catalog->offers().find(offer->rid), nullptr);
  EXPECT_EQ(catalog->offers().replace(offer->rid, "", manual(400)).error().code(),
            ErrorCode::NotFound);
}

// ── restarts ─────────────────────────────────────────────────────────────────────────────────────

TEST_F(CatalogTest, ARestartFindsEverythingAsItWas) {
  const auto d1 = make_database("d1");
  const auto d2 = make_database("d2 ü", manual(1000));
  make_container(d1, "c");
  make_container(d1, "wide", manual(30'000));
  make_container(d2, "c");
  Throughput autoscale;
  autoscale.autoscale_max = 4000;
  autoscale.increment_percent = 10;
  const auto container = make_container(d2, "auto", autoscale);
  ASSERT_TRUE(catalog->replace_container(
      catalog->container("d1", "c")->rid, "", [](const ContainerDefinition& current) {
        return current.replace(Json::parse(R"({"id":"c","defaultTtl":5,"mine":[1,"x"]})"),
                               "2020-07-15");
      }));
  ASSERT_TRUE(catalog->delete_container(catalog->container("d2 ü", "c")->rid, ""));
  const std::string before = describe();
  reopen();
  EXPECT_EQ(describe(), before);
  reopen();
  EXPECT_EQ(describe(), before) << "and once more";
  EXPECT_EQ(catalog->offers().of(container->rid)->throughput.increment_percent, 10);
}

TEST_F(CatalogTest, ARestartFindsHeadsAndCountsOfPartitions) {
  const auto container = make_container(make_database("d"), "c");
  write(container, 5);
  write(container, 3);
  const auto bytes = container->ranges.all()[0].partition->text_bytes();
  reopen();
  const auto again = catalog->container("d", "c");
  EXPECT_EQ(head(again), Lsn{3});
  EXPECT_EQ(again->ranges.all()[0].partition->documents(), 8u);
  EXPECT_EQ(again->ranges.all()[0].partition->text_bytes(), bytes);
  write(again, 1);
  EXPECT_EQ(head(again), Lsn{4});
  partition::audit(home.store(), again->ranges.all()[0].partition->number());
}

TEST_F(CatalogTest, AnEntryThatCannotBeReadIsRefusedWithAMessage) {
  const auto database = make_database("d");
  for (const std::string& broken : {std::string("\x02{}"), std::string("\x01{}"),
                                    std::string("\x01{\"id\":7}"), std::string("\x01{")}) {
    storage::Batch batch;
    batch.put(Family::Catalog, database_key(database->rid), broken);
    ASSERT_TRUE(home.committer().commit(std::move(batch), home.committer().generation()));
    const auto refused = Catalog::open(
        home.environment(), [](const ContainerDefinition&) { return partition::Rules(); });
    ASSERT_FALSE(refused) << broken;
    EXPECT_EQ(refused.error().code(), ErrorCode::Unavailable);
    EXPECT_THAT(refused.error().message(), testing::HasSubstr("backup"));
  }
}

// ── deletion and what is left of it ──────────────────────────────────────────────────────────────

TEST_F(CatalogTest, ADeletedContainerRefusesWritesOfThoseWhoStillHoldIt) {
  const auto container = make_container(make_database("d"), "c");
  write(container, 1);
  ASSERT_TRUE(catalog->delete_container(container->rid, ""));
  EXPECT_EQ(write_refusal(container), ErrorCode::OwnerNotFound);
}

TEST_F(CatalogTest, TheLogOfAContainerOfTheSameNameBeginsAboveTheLastOnes) {
  const auto database = make_database("d");
  const auto first = make_container(database, "c");
  for (int i = 0; i < 3; ++i) write(first, 1);
  EXPECT_EQ(head(first), Lsn{4});
  ASSERT_TRUE(catalog->delete_container(first->rid, ""));

  const auto second = make_container(database, "c");
  EXPECT_EQ(head(second), Lsn{5});
  EXPECT_EQ(head(make_container(database, "other")), Lsn{1}) << "another name";
  ASSERT_TRUE(catalog->delete_container(second->rid, "")) << "without a write";
  reopen();

  const auto third = make_container(catalog->database("d"), "c");
  EXPECT_EQ(head(third), Lsn{6});
  write(third, 1);
  ASSERT_TRUE(catalog->delete_database(database->rid, ""));
  const auto fourth = make_container(make_database("d"), "c");
  EXPECT_EQ(head(fourth), Lsn{8}) << "also when the database went";
  reopen();
  EXPECT_EQ(head(catalog->container("d", "c")), Lsn{8});
}

TEST_F(CatalogTest, TheHighestHeadOfAllRangesIsRemembered) {
  const auto database = make_database("d");
  const auto first = make_container(database, "c", manual(24'000));
  write(first, 1, 0);
  for (int i = 0; i < 4; ++i) write(first, 1, 2);
  ASSERT_TRUE(catalog->delete_container(first->rid, ""));
  const auto second = make_container(database, "c", manual(24'000));
  for (const auto& range : second->ranges.all()) EXPECT_EQ(range.partition->head(), Lsn{6});
}

TEST_F(CatalogTest, AContainerDeletedUnderWritesRemembersTheHighestLsnEverAcknowledged) {
  const auto database = make_database("d");
  for (int round = 0; round < 5; ++round) {
    const auto container = make_container(database, "c");
    std::atomic<std::uint64_t> acknowledged{0};
    std::vector<std::thread> writers;
    for (int thread = 0; thread < 2; ++thread) {
      writers.emplace_back([&, thread] {
        for (int i = 0;; ++i) {
          const auto committed =
              loop.submit(container->ranges.all()[0].partition,
                          partition::transaction_of({{.id = fmt::format("{}-{}", thread, i)}}))
                  .get();
          if (!committed) {
            EXPECT_EQ(committed.error().code(), ErrorCode::OwnerNotFound);
            return;
          }
          auto highest = acknowledged.load();
          while (highest < committed->lsn.value &&
                 !acknowledged.compare_exchange_weak(highest, committed->lsn.value)) {
          }
        }
      });
    }
    const Lsn start = head(container);
    EXPECT_TRUE(eventually([&] { return acknowledged > start.value + 20; }));
    ASSERT_TRUE(catalog->delete_container(container->rid, ""));
    for (auto& writer : writers) writer.join();
    const auto next_one = make_container(database, "c");
    EXPECT_GT(head(next_one).value, acknowledged.load());
    ASSERT_TRUE(catalog->delete_container(next_one->rid, ""));
  }
}

// ── disk errors ──────────────────────────────────────────────────────────────────────────────────

/// One change of the catalog, and what the disk does with it.
struct FaultCase {
  const char* name;
  Fault fault;
};

class CatalogFaultTest : public CatalogTest, public testing::WithParamInterface<FaultCase> {
 protected:
  void SetUp() override {
    const auto database = make_database("d", manual(1000));
    write(make_container(database, "c", manual(500)), 3);
    make_container(database, "shared");
    make_container(make_database("other"), "c");
  }

  Result<> change() {
    const std::string name = GetParam().name;
    const auto database = catalog->database("d");
    const auto container = catalog->container("d", "c");
    const auto outcome = [](const auto& result) -> Result<> {
      if (result) return {};
      return result.error();
    };
    if (name == "CreateDatabase") return outcome(catalog->create_database("new", manual(400)));
    if (name == "DeleteDatabase") return catalog->delete_database(database->rid, "");
    if (name == "CreateContainer") {
      return outcome(
          catalog->create_container(database->rid, test_definition("new"), manual(24'000)));
    }
    if (name == "DeleteContainer") return catalog->delete_container(container->rid, "");
    if (name == "ReplaceOffer") {
      return outcome(
          catalog->offers().replace(catalog->offers().of(container->rid)->rid, "", manual(900)));
    }
    return outcome(
        catalog->replace_container(container->rid, "", [](const ContainerDefinition& current) {
          return current.replace(Json::parse(R"({"id":"c","defaultTtl":7})"), "2020-07-15");
        }));
  }
};

TEST_P(CatalogFaultTest, MemoryAndDiskAgreeAfterRecovery) {
  const std::string before = describe();
  const auto container = catalog->container("d", "c");
  home.log().fail_next(GetParam().fault);
  const auto outcome = change();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), ErrorCode::OutcomeUnknown);
  ASSERT_TRUE(home.recovered());

  const std::string after = describe();
  if (GetParam().fault == Fault::BeforeWriting) {
    EXPECT_EQ(after, before);
  } else {
    EXPECT_NE(after, before) << "the disk has it, so it counts";
  }
  if (const auto still = catalog->container("d", "c")) {
    EXPECT_EQ(still->ranges.all()[0].partition, container->ranges.all()[0].partition)
        << "there must never be two writers of one partition";
    write(still, 1);
    EXPECT_EQ(head(still), Lsn{3});
  } else {
    EXPECT_EQ(write_refusal(container), ErrorCode::OwnerNotFound);
    EXPECT_EQ(catalog->garbage().take(), container->ranges.all()[0].partition->number());
  }
  if (const auto made = catalog->container("d", "new")) write(made, 1, 3);
  write(catalog->container("other", "c"), 1);

  reopen();
  EXPECT_EQ(describe(), after);
  // And changes go on, with numbers that nobody has.
  const auto another = make_container(make_database("another"), "c");
  write(another, 1);
  std::set<std::string> rids;
  for (const auto& each : catalog->databases("", SIZE_MAX)) {
    EXPECT_TRUE(rids.insert(each->rid.text()).second);
  }
}

TEST_P(CatalogFaultTest, TheChangeCanBeRepeatedOrTurnsOutToBeDone) {
  home.log().fail_next(GetParam().fault);
  ASSERT_FALSE(change());
  ASSERT_TRUE(home.recovered());
  const bool there = GetParam().fault == Fault::AfterWriting;
  const std::string name = GetParam().name;
  if (there && name.starts_with("Delete")) {
    EXPECT_EQ(name == "DeleteDatabase" ? catalog->database("d") == nullptr
                                       : catalog->container("d", "c") == nullptr,
              true);
  } else {
    const auto again = change();
    if (there && name.starts_with("Create")) {
      EXPECT_EQ(again.error().code(), ErrorCode::Conflict);
    } else {
      EXPECT_TRUE(again) << again.error().message();
    }
  }
  const std::string after = describe();
  reopen();
  EXPECT_EQ(describe(), after);
}

std::vector<FaultCase> fault_cases() {
  std::vector<FaultCase> cases;
  for (const auto* name : {"CreateDatabase", "DeleteDatabase", "CreateContainer", "DeleteContainer",
                           "ReplaceContainer", "ReplaceOffer"}) {
    for (const auto fault : {Fault::BeforeWriting, Fault::AfterWriting}) {
      cases.push_back({name, fault});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Changes, CatalogFaultTest, testing::ValuesIn(fault_cases()),
                         [](const auto& of) {
                           return std::string(of.param.name) +
                                  (of.param.fault == Fault::BeforeWriting ? "Lost" : "Stored");
                         });

/// Changes that are prepared while writes are suspended look at what is in memory, which a recovery
/// may show to be wrong. They must not be let in after it.
class CatalogInterruptionTest : public CatalogTest {
 protected:
  CatalogInterruptionTest() {
    close();
    home.use_clock(clock);
    home.open();
    open();
  }
  /// Lets the disk recover, and the catalog with it.
  void recover() {
    home.log().make_recoverable();
    EXPECT_TRUE(home.recovered());
  }

  InterruptingClock clock;
};

TEST_F(CatalogInterruptionTest, ADatabasePreparedBeforeRecoveryDoesNotGetTheRidOfAnother) {
  // Told that it failed, though the disk has it.
  home.log().fail_next(Fault::AfterWriting, /*recoverable=*/false);
  ASSERT_FALSE(catalog->create_database("a", {}));
  clock.interrupt_once([this] { recover(); });
  const auto second = catalog->create_database("b", {});

  const auto first = catalog->database("a");
  ASSERT_NE(first, nullptr);
  if (second) {
    EXPECT_NE((*second)->rid, first->rid);
  } else {
    EXPECT_EQ(second.error().code(), ErrorCode::Unavailable);
  }
  const std::string memory = describe();
  reopen();
  EXPECT_EQ(describe(), memory);
  EXPECT_NE(catalog->database("a"), nullptr) << "what the disk had is gone";
}

TEST_F(CatalogInterruptionTest, AContainerPreparedBeforeRecoveryIsNotMadeInADatabaseThatIsGone) {
  const auto database = make_database("d");
  home.log().fail_next(Fault::AfterWriting, /*recoverable=*/false);
  ASSERT_FALSE(catalog->delete_database(database->rid, ""));
  clock.interrupt_once([this] { recover(); });
  const auto made = catalog->create_container(database->rid, test_definition("c"), {});
  EXPECT_FALSE(made);
  EXPECT_EQ(catalog->database("d"), nullptr);
  EXPECT_EQ(catalog->container("d", "c"), nullptr);
  close();
  home.open();
  const auto opened = Catalog::open(home.environment(),
                                    [](const ContainerDefinition&) { return partition::Rules(); });
  EXPECT_TRUE(opened) << "the server does not start any more: " << opened.error().message();
}

TEST(CatalogRaceTest, ANewContainerHasOneWriterAlsoWhenTheDiskFailsRightAfterItsCreation) {
  // The creation commits, the next commit fails, and recovery loads the catalog, all before the
  // creating thread has woken up: it must not put a second partition beside the one that was
  // loaded.
  partition::TestEnvironment home({.recovery_interval = 0ms});
  auto opened = Catalog::open(home.environment(),
                              [](const ContainerDefinition&) { return partition::Rules(); });
  ASSERT_TRUE(opened);
  const auto catalog = std::move(*opened);
  home.committer().start();
  const auto database = catalog->create_database("d", {}).value();
  for (int round = 0; round < 40; ++round) {
    const std::string id = "c" + std::to_string(round);
    std::atomic<bool> stop{false};
    std::set<std::shared_ptr<partition::Partition>> writers;
    std::thread others([&] {
      while (!stop) (void)home.committer().probe();
    });
    std::thread client([&] {
      while (!stop) {
        const auto found = catalog->container("d", id);
        if (found) writers.insert(found->ranges.all()[0].partition);
      }
    });
    home.log().fail_next(Fault::BeforeWriting, /*recoverable=*/true, /*spared=*/1);
    const auto made = catalog->create_container(database->rid, test_definition(id), {});
    EXPECT_TRUE(home.recovered());
    stop = true;
    others.join();
    client.join();
    if (made) writers.insert((*made)->ranges.all()[0].partition);
    EXPECT_LE(writers.size(), 1u) << "two writers of one partition in round " << round;
    if (testing::Test::HasFailure()) break;
  }
  home.committer().stop();
}

class CatalogStormTest : public CatalogTest, public testing::WithParamInterface<std::uint32_t> {};

TEST_P(CatalogStormTest, ChangesOfManyThreadsUnderFaultsLeaveMemoryAndDiskAgreeing) {
  std::atomic<bool> stop{false};
  std::atomic<int> changes{0};
  std::vector<std::thread> threads;
  for (int at = 0; at < 3; ++at) {
    threads.emplace_back([&, at] {
      std::mt19937 random(GetParam() * 100 + static_cast<std::uint32_t>(at));
      const auto name = [&](const char* prefix, int count) {
        return prefix + std::to_string(random() % static_cast<std::uint32_t>(count));
      };
      while (!stop) {
        // Only then, so that refused changes don't fill the committer's queue.
        if (!home.recovered()) return;
        const auto database = catalog->database(name("d", 3));
        const auto container = database ? catalog->container(database->id, name("c", 3)) : nullptr;
        switch (random() % 6) {
          case 0:
            (void)catalog->create_database(name("d", 3), {});
            break;
          case 1:
          case 2:
            if (database) {
              (void)catalog->create_container(database->rid, test_definition(name("c", 3)), {});
            }
            break;
          case 3:
            if (container) (void)catalog->delete_container(container->rid, "");
            break;
          case 4:
            if (database && random() % 4 == 0) (void)catalog->delete_database(database->rid, "");
            break;
          default:
            if (container) {
              (void)loop
                  .submit(container->ranges.all()[0].partition,
                          partition::transaction_of(
                              {{.kind = partition::Write::Kind::Upsert, .id = name("x", 50)}}))
                  .get();
            }
        }
        ++changes;
      }
    });
  }
  std::mt19937 random(GetParam());
  for (int fault = 0; fault < 15; ++fault) {
    const int seen = changes;
    EXPECT_TRUE(eventually([&] { return changes > seen + static_cast<int>(random() % 30); }));
    home.log().fail_next(random() % 2 == 0 ? Fault::BeforeWriting : Fault::AfterWriting);
    EXPECT_TRUE(eventually([&] {
      return home.committer().stats().commit_failures == static_cast<std::uint64_t>(fault + 1);
    }));
    EXPECT_TRUE(home.recovered());
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  const std::string memory = describe();
  reopen();
  EXPECT_EQ(describe(), memory);
  for (const auto& database : catalog->databases("", SIZE_MAX)) {
    for (const auto& container : catalog->containers(database->rid, "", SIZE_MAX)) {
      const auto& live = *container->ranges.all()[0].partition;
      const auto audited = partition::audit(home.store(), live.number());
      EXPECT_EQ(audited.head.lsn, live.head());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CatalogStormTest, testing::Values(1u, 2u, 3u));

}  // namespace
}  // namespace orrery::catalog
