// All versions and deletes, and tombstones beside the latest versions.
#include <chrono>

#include "feed/test_feed.h"

namespace orrery::feed {
namespace {

using storage::RetentionSettings;

constexpr const char* kOutsideRetention =
    "You must read the change feed from within the retention period.";

class FullFidelityTest : public FeedTest {
 protected:
  PageRequest all_versions(Lsn after) const {
    PageRequest asked = request(after);
    asked.mode = Mode::AllVersions;
    return asked;
  }
  PageRequest with_tombstones(Lsn after) const {
    PageRequest asked = request(after);
    asked.tombstones = true;
    return asked;
  }
  void keep_all(RetentionSettings::PreviousImage images = RetentionSettings::PreviousImage::None) {
    keep({.history = RetentionSettings::History::All, .previous_image = images});
  }
};

TEST_F(FullFidelityTest, MustBeEnabled) {
  create("a");
  EXPECT_NE(error_of(all_versions(Lsn{2}))
                .find("Change Feed 'All Versions and Deletes' mode must be enabled"),
            std::string::npos);
}

TEST_F(FullFidelityTest, BeginsWhereItWasSwitchedOn) {
  create("before");
  keep_all();
  const Lsn begin = part->head();
  EXPECT_TRUE(error_of(all_versions(Lsn{})).starts_with(kOutsideRetention));
  EXPECT_TRUE(error_of(all_versions(Lsn{begin.value - 1})).starts_with(kOutsideRetention));
  EXPECT_TRUE(read(all_versions(begin)).caught_up);
  create("after");
  EXPECT_EQ(ids(read(all_versions(begin))), (std::vector<std::string>{"after"}));
}

TEST_F(FullFidelityTest, ShowsEveryVersionAndDeletes) {
  keep_all();
  const Lsn begin = part->head();
  const Lsn created = create("a", "x");
  const Lsn replaced = upsert("a", "x");
  const Lsn removed = remove("a", "x");
  const Page page = read(all_versions(begin));
  EXPECT_EQ(page.position, removed);
  const Json found = items(page);
  ASSERT_EQ(found.size(), 3u);
  const UnixSeconds now = home.clock().unix_seconds();
  EXPECT_EQ(found[0]["current"]["id"], "a");
  EXPECT_EQ(found[0]["metadata"], (Json{{"operationType", "create"},
                                        {"lsn", created.value},
                                        {"crts", now},
                                        {"previousImageLSN", 0}}));
  EXPECT_EQ(found[1]["metadata"], (Json{{"operationType", "replace"},
                                        {"lsn", replaced.value},
                                        {"crts", now},
                                        {"previousImageLSN", created.value}}));
  EXPECT_EQ(found[2]["current"], Json::object());
  EXPECT_EQ(found[2]["metadata"], (Json{{"operationType", "delete"},
                                        {"lsn", removed.value},
                                        {"crts", now},
                                        {"previousImageLSN", replaced.value},
                                        {"id", "a"},
                                        {"partitionKey", {{"pk", "x"}}}}));
  for (const Json& item : found) EXPECT_FALSE(item.contains("previous"));
}

TEST_F(FullFidelityTest, ShowsATransactionWholeAlsoWhatItUndid) {
  keep_all();
  const Lsn begin = part->head();
  write({{.kind = Write::Kind::Create, .id = "a"},
         {.kind = Write::Kind::Create, .id = "b"},
         {.kind = Write::Kind::Delete, .id = "a"}});
  PageRequest asked = all_versions(begin);
  asked.count_max = 1;
  const Json found = items(read(asked));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0]["metadata"]["operationType"], "create");
  EXPECT_EQ(found[1]["current"]["id"], "b");
  EXPECT_EQ(found[2]["metadata"]["operationType"], "delete");
}

TEST_F(FullFidelityTest, ShowsPreviousImagesAsFarAsTheyAreKept) {
  keep_all(RetentionSettings::PreviousImage::Delete);
  Lsn begin = part->head();
  create("a");
  upsert("a");
  remove("a");
  Json found = items(read(all_versions(begin)));
  EXPECT_FALSE(found[1].contains("previous"));
  EXPECT_EQ(found[2]["previous"]["id"], "a");
  keep_all(RetentionSettings::PreviousImage::All);
  begin = part->head();
  create("b");
  upsert("b");
  found = items(read(all_versions(begin)));
  EXPECT_FALSE(found[0].contains("previous"));
  EXPECT_EQ(found[1]["previous"]["id"], "b");
}

TEST_F(FullFidelityTest, AnExpiredDocumentThatMakesWayIsToldOfFirst) {
  default_ttl = 10;
  keep_all();
  const Lsn begin = part->head();
  create("a");
  home.advance(std::chrono::seconds(10));
  const Lsn again = create("a");
  const Json found = items(read(all_versions(begin)));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[1]["metadata"]["operationType"], "delete");
  EXPECT_EQ(found[1]["metadata"]["timeToLiveExpired"], true);
  EXPECT_EQ(found[1]["metadata"]["lsn"], again.value);
  EXPECT_EQ(found[2]["metadata"]["operationType"], "create");
  EXPECT_EQ(found[2]["metadata"]["lsn"], again.value);
}

TEST_F(FullFidelityTest, AKeyAndAnEpkFilterShowOnlyTheirs) {
  keep_all();
  const Lsn begin = part->head();
  create("1", "a");
  create("2", "b");
  remove("1", "a");
  const Lsn head = create("3", "b");
  PageRequest asked = all_versions(begin);
  asked.scope = scope_of_key("a");
  EXPECT_EQ(read(asked).count, 2u);
  asked.scope.partition_key.reset();
  const Page page = read(asked);
  EXPECT_EQ(page.count, 2u);
  asked.after = page.position;
  EXPECT_EQ(read(asked).position, head);
}

TEST_F(FullFidelityTest, WhatIsTrimmedIsRefusedPerPartOfAMergedRange) {
  keep_all();
  const auto key = real_key("a", "1");
  for (int i = 0; i < 8; ++i) upsert("1", "a");
  std::string value;
  ASSERT_EQ(home.store().get(storage::Family::Heads, storage::partition_prefix(part->number()),
                             value, storage::Tier::Disk),
            storage::Lookup::Found);
  auto head = *storage::Head::parse(value);
  // The key lies in the second part, whose history begins later.
  head.history = std::make_shared<const std::vector<storage::HistoryPart>>(
      std::vector<storage::HistoryPart>{{"", Lsn{2}, Lsn{2}}, {key.epk, Lsn{6}, Lsn{4}}});
  storage::Batch batch;
  batch.put(storage::Family::Heads, storage::partition_prefix(part->number()), head.make());
  ASSERT_TRUE(home.committer().commit(std::move(batch), home.committer().generation()));

  PageRequest low = all_versions(Lsn{2});
  low.scope.epks = EpkRange{Epk::min(), Epk{key.epk}};
  EXPECT_TRUE(read(low).caught_up);
  PageRequest high = all_versions(Lsn{5});
  high.scope.epks = EpkRange{Epk{key.epk}, Epk::max()};
  EXPECT_TRUE(error_of(high).starts_with(kOutsideRetention));
  high.after = Lsn{6};
  EXPECT_EQ(read(high).count, 3u);
  high.scope = scope_of_key("a");
  EXPECT_EQ(read(high).count, 3u);
  high.after = Lsn{5};
  EXPECT_TRUE(error_of(high).starts_with(kOutsideRetention));
  // The whole range is as far back as its worst part.
  EXPECT_TRUE(error_of(all_versions(Lsn{5})).starts_with(kOutsideRetention));
  // Tombstones are kept longer here.
  PageRequest deletes = with_tombstones(Lsn{5});
  EXPECT_EQ(read(deletes).count, 1u);
  deletes.after = Lsn{3};
  EXPECT_TRUE(error_of(deletes).starts_with(kOutsideRetention));
}

// ── tombstones ───────────────────────────────────────────────────────────────────────────────────

TEST_F(FullFidelityTest, TombstonesAreForContainersThatKeepThem) {
  create("a");
  EXPECT_NE(error_of(with_tombstones(Lsn{})).find("tombstoneDuration"), std::string::npos);
}

TEST_F(FullFidelityTest, TombstonesStandWhereTheDeleteWas) {
  keep({.history = RetentionSettings::History::Tombstones});
  create("a", "x");
  create("b", "x");
  const Lsn removed = remove("a", "x");
  create("c", "x");
  const Json found = items(read(with_tombstones(Lsn{})));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0]["id"], "b");
  EXPECT_EQ(found[2]["id"], "c");
  EXPECT_EQ(found[1]["id"], "a");
  EXPECT_EQ(found[1]["pk"], "x");
  EXPECT_EQ(found[1]["_deleted"], true);
  EXPECT_EQ(found[1]["_lsn"], removed.value);
  EXPECT_EQ(found[1]["_ts"], home.clock().unix_seconds());
  EXPECT_EQ(found[1]["_rid"], Rid::document(test_container_rid(), DocumentNumber{1}).text());
  EXPECT_EQ(found[1].size(), 6u);
  // Others see none.
  EXPECT_EQ(read().count, 2u);
  PageRequest wrapped = with_tombstones(Lsn{});
  wrapped.wrapped = true;
  EXPECT_EQ(items(read(wrapped))[1]["metadata"]["partitionKey"], (Json{{"pk", "x"}}));
}

TEST_F(FullFidelityTest, ATombstoneComesBeforeTheDocumentThatTakesItsPlace) {
  keep({.history = RetentionSettings::History::Tombstones});
  create("a");
  const Lsn lsn = write({{.kind = Write::Kind::Create, .id = "b"},
                         {.kind = Write::Kind::Delete, .id = "a"},
                         {.kind = Write::Kind::Create, .id = "a"}});
  PageRequest asked = with_tombstones(Lsn{2});
  asked.count_max = 1;
  const Page page = read(asked);
  EXPECT_EQ(page.position, lsn);
  const Json found = items(page);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0]["_deleted"], true);
  EXPECT_EQ(found[2]["id"], "a");
}

TEST_F(FullFidelityTest, AReaderOfTombstonesFromTheBeginningIsNotRefusedOnItsWay) {
  for (int i = 0; i < 6; ++i) create(std::to_string(i));
  remove("5");
  keep({.history = RetentionSettings::History::Tombstones});
  const Lsn begin = part->head();
  PageRequest asked = with_tombstones(Lsn{});
  asked.count_max = 2;
  const Page first = read(asked);
  EXPECT_EQ(first.count, 2u);
  EXPECT_LT(first.position, begin);
  ASSERT_TRUE(first.began_at);
  // A reader with only that position may have missed a delete; but not one that began just now.
  asked.after = first.position;
  EXPECT_TRUE(error_of(asked).starts_with(kOutsideRetention));
  asked.began_at = first.began_at;
  const Lsn removed = remove("0");
  const Page second = read(asked);
  EXPECT_EQ(ids(second), (std::vector<std::string>{"2", "3"}));
  asked.after = second.position;
  asked.began_at = second.began_at;
  const Page third = read(asked);
  EXPECT_EQ(ids(third), (std::vector<std::string>{"4", "0"}));
  EXPECT_EQ(third.position, removed);
  EXPECT_FALSE(third.began_at);
}

TEST_F(FullFidelityTest, TheLastPageFromTheBeginningReachesWhereTombstonesAreKept) {
  create("a");
  create("b");
  remove("b");
  keep({.history = RetentionSettings::History::Tombstones});
  const Page page = read(with_tombstones(Lsn{}));
  EXPECT_EQ(page.count, 1u);
  EXPECT_EQ(page.position, part->head());
  EXPECT_FALSE(page.began_at);
}

TEST_F(FullFidelityTest, TheTimeOfADeleteIsAPositionForWhoReadsTombstones) {
  keep({.history = RetentionSettings::History::Tombstones});
  create("a");
  create("b");
  const UnixSeconds before = home.clock().unix_seconds();
  home.advance(std::chrono::seconds(5));
  const Lsn removed = remove("a");
  const auto without = reader.find_time(*part, request(), before);
  ASSERT_TRUE(without);
  EXPECT_FALSE(without->found);
  const auto with = reader.find_time(*part, with_tombstones(Lsn{}), before);
  ASSERT_TRUE(with);
  EXPECT_TRUE(with->found);
  EXPECT_EQ(with->position.value, removed.value - 1);
}

// ── lag ──────────────────────────────────────────────────────────────────────────────────────────

TEST_F(FullFidelityTest, LagIsWhatIsLeftToRead) {
  for (int i = 0; i < 20; ++i) create(std::to_string(i), i % 2 == 0 ? "even" : "odd");
  const UnixSeconds first = home.clock().unix_seconds();
  home.advance(std::chrono::seconds(3));
  for (int i = 0; i < 5; ++i) upsert(std::to_string(i), i % 2 == 0 ? "even" : "odd");
  remove("19", "odd");
  const auto lag = [&](const PageRequest& asked) {
    auto counted = reader.lag(*part, asked);
    EXPECT_TRUE(counted.has_value());
    return *counted;
  };
  for (std::uint64_t after = 0; after <= part->head().value; ++after) {
    for (const char* key : {"", "even", "odd"}) {
      PageRequest asked = request(Lsn{after});
      if (*key != 0) asked.scope = scope_of_key(key);
      const Lag counted = lag(asked);
      asked.count_max = std::nullopt;
      const Page page = read(asked);
      ASSERT_EQ(counted.items, page.count) << after << key;
      ASSERT_EQ(counted.head, part->head());
      std::uint64_t bytes = 0;
      for (const Json& item : items(page)) {
        bytes += item.dump().size() - std::string(",\"_lsn\":").size() -
                 std::to_string(item["_lsn"].get<std::uint64_t>()).size();
      }
      ASSERT_EQ(counted.bytes, bytes) << after << key;
      ASSERT_EQ(counted.oldest_ts.has_value(), page.count > 0);
    }
  }
  EXPECT_EQ(lag(request()).oldest_ts, first);
  EXPECT_EQ(lag(request(Lsn{21})).oldest_ts, first + 3);
}

TEST_F(FullFidelityTest, LagOfAllVersionsCountsChanges) {
  keep_all();
  const Lsn begin = part->head();
  create("a");
  upsert("a");
  remove("a");
  const auto counted = reader.lag(*part, all_versions(begin));
  ASSERT_TRUE(counted);
  EXPECT_EQ(counted->items, 3u);
}

TEST_F(FullFidelityTest, LagThatCannotBeCountedInTimeIsAnError) {
  for (int i = 0; i < 600; ++i) create(std::to_string(i));
  PageRequest asked = request();
  WorkBudget work({.deadline = WorkLimits::TimePoint::min()});
  asked.work = &work;
  EXPECT_FALSE(reader.lag(*part, asked));
}

}  // namespace
}  // namespace orrery::feed
