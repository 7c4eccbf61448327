// Pages of the latest versions.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>

#include <gmock/gmock.h>

#include "base/test_work_clock.h"
#include "feed/test_feed.h"

namespace orrery::feed {
namespace {

using ::testing::HasSubstr;
using ::testing::Test;
using Ids = std::vector<std::string>;

class LatestTest : public FeedTest {};

TEST_F(LatestTest, AnEmptyRangeIsCaughtUpAtOne) {
  const Page page = read();
  EXPECT_EQ(page.count, 0u);
  EXPECT_TRUE(page.caught_up);
  EXPECT_EQ(page.position, Lsn{1});
  EXPECT_EQ(create("a"), Lsn{2});
}

TEST_F(LatestTest, DocumentsComeInTheOrderOfTheirLastChange) {
  create("a");
  create("b");
  create("c");
  EXPECT_EQ(ids(read()), (Ids{"a", "b", "c"}));
  const Lsn after = upsert("a");
  EXPECT_EQ(ids(read()), (Ids{"b", "c", "a"}));
  const Page page = read(Lsn{3});
  EXPECT_EQ(ids(page), (Ids{"c", "a"}));
  EXPECT_EQ(page.position, after);
  EXPECT_EQ(page.head, after);
  EXPECT_TRUE(page.caught_up);
}

TEST_F(LatestTest, ADocumentIsWhatAPointReadReturnsAndItsLsn) {
  create("a");
  const Json item = items(read())[0];
  EXPECT_EQ(item["_lsn"], 2);
  EXPECT_TRUE(item.contains("_rid") && item.contains("_self") && item.contains("_etag") &&
              item.contains("_ts"));
  EXPECT_EQ(item.size(), 7u);
}

TEST_F(LatestTest, DeletesAreNotShownButPassed) {
  create("a");
  const Lsn head = remove("a");
  const Page page = read();
  EXPECT_EQ(page.count, 0u);
  EXPECT_TRUE(page.caught_up);
  EXPECT_EQ(page.position, head);
}

TEST_F(LatestTest, APositionBeyondTheHeadIsRefusedAndNotAnsweredFromMemory) {
  create("a");
  EXPECT_FALSE(reader.caught_up(*part, request(Lsn{3})));
  EXPECT_THAT(error_of(request(Lsn{3})), HasSubstr("beyond the end of this change feed"));
  EXPECT_FALSE(reader.lag(*part, request(Lsn{1000})).has_value());
  EXPECT_EQ(reader.stats().positions_ahead, 2u);
}

TEST_F(LatestTest, AReaderAtTheHeadIsAnsweredFromMemory) {
  const Lsn head = create("a");
  EXPECT_FALSE(reader.caught_up(*part, request(Lsn{1})));
  const auto page = reader.caught_up(*part, request(head));
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->caught_up);
  EXPECT_EQ(page->position, head);
}

// ── budgets ──────────────────────────────────────────────────────────────────────────────────────

std::vector<WriteOf> transaction(const std::string& prefix, int count) {
  std::vector<WriteOf> writes;
  for (int i = 0; i < count; ++i) {
    writes.push_back({.kind = Write::Kind::Create, .id = prefix + std::to_string(i)});
  }
  return writes;
}

TEST_F(LatestTest, ATransactionIsAddedWhenItFitsOrThePageIsEmpty) {
  write(transaction("a", 7));
  write(transaction("b", 7));
  write(transaction("c", 3));
  PageRequest asked = request();
  asked.count_max = 10;
  Page page = read(asked);
  EXPECT_EQ(page.count, 7u);
  EXPECT_FALSE(page.caught_up);
  asked.after = page.position;
  page = read(asked);
  EXPECT_EQ(page.count, 10u);
  EXPECT_TRUE(page.caught_up);
  asked.count_max = 2;
  asked.after = Lsn{};
  page = read(asked);
  EXPECT_EQ(page.count, 7u);
  EXPECT_EQ(page.position, Lsn{2});
}

TEST_F(LatestTest, TheByteLimitEndsAPageButNeverCutsATransaction) {
  for (int i = 0; i < 10; ++i) {
    write({{.kind = Write::Kind::Create, .id = std::to_string(i), .padding = 1000}});
  }
  PageRequest asked = request();
  asked.count_max = std::nullopt;
  asked.bytes_max = 3000;
  Page page = read(asked);
  EXPECT_EQ(page.count, 2u);
  EXPECT_LE(page.text.size(), 3000u);
  asked.bytes_max = 10;
  page = read(asked);
  EXPECT_EQ(page.count, 1u);
  EXPECT_EQ(page.position, Lsn{2});
  EXPECT_FALSE(page.caught_up);
}

TEST_F(LatestTest, NothingElseEndsAPageEarly) {
  for (int i = 0; i < 150; ++i) create(std::to_string(i));
  PageRequest asked = request();
  EXPECT_EQ(read(asked).count, 100u);
  asked.count_max = 150;
  EXPECT_EQ(read(asked).count, 150u);
  asked.count_max = std::nullopt;
  const Page page = read(asked);
  EXPECT_EQ(page.count, 150u);
  EXPECT_TRUE(page.caught_up);
}

TEST_F(LatestTest, APageThatRunsOutOfTimeSaysHowFarItCame) {
  for (int i = 0; i < 600; ++i) create(std::to_string(i), "other");
  create("mine", "mine");
  PageRequest asked = request();
  // EPKs of the first hash version are of different lengths: such a scope is read from the log.
  asked.container.partition_key = nullptr;
  asked.scope.epks = scope_of_key("mine").epks;
  int empty = 0;
  Page page;
  for (;;) {
    WorkBudget work({.deadline = WorkLimits::TimePoint::min()});
    asked.work = &work;
    page = read(asked);
    if (page.count > 0 || page.caught_up) break;
    EXPECT_GT(page.position, asked.after);
    EXPECT_LT(page.position, part->head());
    asked.after = page.position;
    ++empty;
  }
  EXPECT_GT(empty, 0);
  EXPECT_EQ(ids(page), (Ids{"mine"}));
}

TEST_F(LatestTest, APageWithSomethingInItEndsAtItsDeadline) {
  for (int i = 0; i < 600; ++i) create(std::to_string(i));
  PageRequest asked = request();
  asked.count_max = std::nullopt;
  WorkBudget work({.deadline = WorkLimits::TimePoint::min()});
  asked.work = &work;
  const Page page = read(asked);
  EXPECT_GT(page.count, 0u);
  EXPECT_LT(page.count, 600u);
  EXPECT_FALSE(page.caught_up);
  EXPECT_EQ(page.position.value, page.count + 1);
}

TEST_F(LatestTest, GroupsAreMarkedWhenAskedFor) {
  write(transaction("a", 2));
  create("b");
  PageRequest asked = request();
  asked.mark_groups = true;
  const Page page = read(asked);
  ASSERT_EQ(page.groups.size(), 2u);
  const auto group = [&](std::size_t i) {
    return Json::parse(
        "[" + page.text.substr(page.groups[i].begin, page.groups[i].end - page.groups[i].begin) +
        "]");
  };
  EXPECT_EQ(group(0).size(), 2u);
  EXPECT_EQ(group(1)[0]["id"], "b");
  EXPECT_EQ(page.groups[1].lsn, Lsn{3});
  EXPECT_EQ(page.groups[0].count, 2u);
}

TEST_F(LatestTest, ItemsFollowWhatTheTextBeginsWith) {
  create("a");
  const auto page = reader.read(*part, request(), "{\"Documents\":[");
  ASSERT_TRUE(page);
  EXPECT_EQ(Json::parse(page->text + "]}")["Documents"].size(), 1u);
}

// ── transactions ─────────────────────────────────────────────────────────────────────────────────

TEST_F(LatestTest, WhatATransactionWroteTwiceAppearsOnce) {
  write({{.kind = Write::Kind::Create, .id = "a"},
         {.kind = Write::Kind::Create, .id = "gone"},
         {.kind = Write::Kind::Upsert, .id = "a", .padding = 5},
         {.kind = Write::Kind::Delete, .id = "gone"}});
  const Json found = items(read());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]["p"], "xxxxx");
}

TEST_F(LatestTest, AnUpdatedDocumentLeavesItsTransaction) {
  write(transaction("a", 3));
  upsert("a1");
  const Page page = read();
  EXPECT_EQ(ids(page), (Ids{"a0", "a2", "a1"}));
}

// ── scopes ───────────────────────────────────────────────────────────────────────────────────────

TEST_F(LatestTest, TheFeedOfAKeyHasOnlyItsDocumentsAndReachesTheHead) {
  create("1", "a");
  create("2", "b");
  upsert("1", "a");
  create("3", "a");
  const Lsn head = create("4", "b");
  PageRequest asked = request();
  asked.scope = scope_of_key("a");
  Page page = read(asked);
  EXPECT_EQ(ids(page), (Ids{"1", "3"}));
  asked.after = page.position;
  page = read(asked);
  EXPECT_EQ(page.count, 0u);
  EXPECT_TRUE(page.caught_up);
  EXPECT_EQ(page.position, head);
}

TEST_F(LatestTest, FiltersThatTileTheSpaceShareTheFeedOut) {
  for (int i = 0; i < 200; ++i) create(std::to_string(i), "key" + std::to_string(i % 40));
  std::set<std::string> seen;
  std::size_t count = 0;
  const std::vector<std::string> bounds = {"", "05", "1F", "2A3B4C", "3F", "FF"};
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    PageRequest asked = request();
    asked.count_max = std::nullopt;
    asked.scope.epks = EpkRange{*Epk::from_hex(bounds[i]), *Epk::from_hex(bounds[i + 1])};
    const Page page = read(asked);
    count += page.count;
    for (const auto& id : ids(page)) seen.insert(id);
  }
  EXPECT_EQ(count, 200u);
  EXPECT_EQ(seen.size(), 200u);
}

TEST_F(LatestTest, AFilterOneKeyWideIsTheFeedOfThatKey) {
  for (int i = 0; i < 400; ++i) create(std::to_string(i), "key" + std::to_string(i % 20));
  const Scope key = scope_of_key("key7");
  PageRequest asked = request();
  asked.scope = key;
  const Page by_key = read(asked);
  EXPECT_EQ(by_key.count, 20u);
  asked.scope.partition_key.reset();
  EXPECT_EQ(read(asked).text, by_key.text);
  // As clients write the end: one more than the hash.
  std::string after = key.epks->min.bytes;
  after.back() = static_cast<char>(after.back() + 1);
  asked.scope.epks->max = Epk{after};
  EXPECT_EQ(read(asked).text, by_key.text);
  // Bounds longer than any hash.
  asked.scope.epks->max = Epk{key.epks->min.bytes + std::string(1, '\0')};
  EXPECT_EQ(read(asked).text, by_key.text);
}

// ── time ─────────────────────────────────────────────────────────────────────────────────────────

TEST_F(LatestTest, WhatHasExpiredIsNotThereThoughItHasNotBeenPurged) {
  default_ttl = 10;
  create("short");
  write({{.kind = Write::Kind::Create, .id = "long", .ttl = 100}});
  home.advance(std::chrono::seconds(10));
  EXPECT_EQ(ids(read()), (Ids{"long"}));
}

TEST_F(LatestTest, OlderChangesAreLeftOutWhenATimeIsGiven) {
  create("a");
  const UnixSeconds first = home.clock().unix_seconds();
  home.advance(std::chrono::seconds(5));
  create("b");
  PageRequest asked = request();
  asked.newer_than = first;
  EXPECT_EQ(ids(read(asked)), (Ids{"b"}));
  asked.newer_than = first + 5;
  const Page page = read(asked);
  EXPECT_TRUE(page.caught_up);
  EXPECT_EQ(page.position, part->head());
}

TEST_F(LatestTest, ATimeIsAPositionJustBelowTheFirstChangeAfterIt) {
  const UnixSeconds begin = home.clock().unix_seconds();
  for (int i = 0; i < 50; ++i) {
    create(std::to_string(i), "k" + std::to_string(i % 5));
    if (i % 3 == 2) home.advance(std::chrono::seconds(2));
  }
  for (int i = 10; i < 40; ++i) remove(std::to_string(i), "k" + std::to_string(i % 5));
  const Page all = read();
  for (UnixSeconds time = begin - 3; time < begin + 60; ++time) {
    std::optional<std::uint64_t> first;
    for (const Json& item : items(all)) {
      if (item["_ts"].get<UnixSeconds>() > time) {
        first = item["_lsn"].get<std::uint64_t>();
        break;
      }
    }
    const auto found = reader.find_time(*part, request(), time);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->found, first.has_value()) << time - begin;
    EXPECT_EQ(found->position.value, first ? *first - 1 : part->head().value) << time - begin;
  }
}

TEST_F(LatestTest, ATimeIsLookedForInTheScope) {
  const UnixSeconds begin = home.clock().unix_seconds();
  create("1", "a");
  home.advance(std::chrono::seconds(5));
  create("2", "b");
  PageRequest asked = request();
  asked.scope = scope_of_key("a");
  auto found = reader.find_time(*part, asked, begin);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->found);
  EXPECT_EQ(found->position, part->head());
  found = reader.find_time(*part, asked, begin - 1);
  EXPECT_TRUE(found->found);
  EXPECT_EQ(found->position, Lsn{1});
}

TEST_F(LatestTest, TimesAreFoundInALogOfTwoThatWereMerged) {
  // Left and right parent have LSNs 2…4 both, at different times; the merged range went on at 5.
  storage::Batch batch;
  const PartitionNumber number{7};
  const auto put = [&](std::uint64_t lsn, std::uint32_t index, const std::string& id,
                       UnixSeconds ts) {
    const storage::VersionHeader header{.number = DocumentNumber{lsn * 2 + (index > 0 ? 1 : 0)},
                                        .ts = ts};
    batch.put(
        storage::Family::Log, storage::log_key(number, {Lsn{lsn}, index}),
        storage::VersionRecord::make(header, real_key(id, id),
                                     R"({"id":")" + id + R"(","_ts":)" + std::to_string(ts) + "}"));
  };
  put(2, 0, "left2", 100);
  put(3, 0, "left3", 101);
  put(4, 0, "left4", 102);
  put(2, 65'536, "right2", 500);
  put(3, 65'536, "right3", 501);
  put(5, 0, "after5", 600);
  storage::Head head;
  head.lsn = Lsn{5};
  head.ts = 600;
  head.documents = 6;
  head.text_bytes = 200;
  head.merged_at = Lsn{4};
  ASSERT_TRUE(home.committer().commit(std::move(batch), home.committer().generation()));
  const auto merged = make_partition(number, RangeId{7}, head);

  const Page page = read(request(), merged.get());
  EXPECT_EQ(ids(page), (Ids{"left2", "right2", "left3", "right3", "left4", "after5"}));
  EXPECT_EQ(page.merged_at, Lsn{4});
  PageRequest small = request();
  small.count_max = 1;
  EXPECT_EQ(ids(read(small, merged.get())), (Ids{"left2", "right2"}));

  const auto position = [&](UnixSeconds time) {
    const auto found = reader.find_time(*merged, request(), time);
    EXPECT_TRUE(found.has_value());
    return std::pair(found->found, found->position.value);
  };
  EXPECT_EQ(position(50), std::pair(true, std::uint64_t{1}));
  EXPECT_EQ(position(101), std::pair(true, std::uint64_t{1}));  // right2 is newer
  EXPECT_EQ(position(500), std::pair(true, std::uint64_t{2}));  // right3
  EXPECT_EQ(position(501), std::pair(true, std::uint64_t{4}));  // after5
  EXPECT_EQ(position(600), std::pair(false, std::uint64_t{5}));
  // With both conditions nothing older follows.
  PageRequest both = request(Lsn{1});
  both.newer_than = 101;
  EXPECT_EQ(ids(read(both, merged.get())), (Ids{"right2", "right3", "left4", "after5"}));
}

// ── wire format 2021-09-15 ───────────────────────────────────────────────────────────────────────

TEST_F(LatestTest, WrappedItemsHaveMetadata) {
  create("a");
  upsert("a");
  create("b");
  write({{.kind = Write::Kind::Create, .id = "c"}, {.kind = Write::Kind::Upsert, .id = "c"}});
  PageRequest asked = request();
  asked.wrapped = true;
  const Json found = items(read(asked));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0]["current"]["id"], "a");
  EXPECT_FALSE(found[0]["current"].contains("_lsn"));
  EXPECT_EQ(found[0]["metadata"]["lsn"], 3);
  EXPECT_EQ(found[0]["metadata"]["crts"], found[0]["current"]["_ts"]);
  EXPECT_EQ(found[0]["metadata"]["operationType"], "replace");
  EXPECT_EQ(found[1]["metadata"]["operationType"], "create");
  EXPECT_EQ(found[1]["metadata"]["previousImageLSN"], 0);
  // Created by the transaction, though it also replaced it.
  EXPECT_EQ(found[2]["metadata"]["operationType"], "create");
}

// ── filters ──────────────────────────────────────────────────────────────────────────────────────

class OddIds final : public ItemFilter {
 public:
  explicit OddIds(std::optional<std::string> shown = {}) : shown_(std::move(shown)) {}
  Result<Decision> decide(std::string_view current, std::string_view, std::string& instead,
                          WorkBudget&) const override {
    const auto id = Json::parse(current)["id"].get<std::string>();
    if (std::stoi(id) % 2 == 0) return Decision::Skip;
    if (!shown_) return Decision::Keep;
    instead = *shown_;
    return Decision::Replace;
  }

 private:
  std::optional<std::string> shown_;
};

TEST_F(LatestTest, AFilterDecidesAndAdvances) {
  for (int i = 0; i < 10; ++i) create(std::to_string(i));
  const OddIds odd;
  PageRequest asked = request();
  asked.filter = &odd;
  asked.count_max = 3;
  Page page = read(asked);
  EXPECT_EQ(ids(page), (Ids{"1", "3", "5"}));
  asked.after = page.position;
  page = read(asked);
  EXPECT_EQ(ids(page), (Ids{"7", "9"}));
  upsert("4");
  asked.after = page.position;
  page = read(asked);
  EXPECT_TRUE(page.caught_up);
  EXPECT_EQ(page.count, 0u);
  EXPECT_EQ(page.position, part->head());
}

TEST_F(LatestTest, WhatAFilterShowsInsteadKeepsItsLsn) {
  create("1");
  PageRequest asked = request();
  for (const auto& [shown, expected] :
       std::map<std::string, std::string>{{R"({"x":1})", R"({"x":1,"_lsn":2})"},
                                          {"{}", R"({"_lsn":2})"},
                                          {"7", R"({"$1":7,"_lsn":2})"}}) {
    const OddIds odd(shown);
    asked.filter = &odd;
    EXPECT_EQ(read(asked).text, expected);
  }
}

class Undecided final : public ItemFilter {
 public:
  Result<Decision> decide(std::string_view, std::string_view, std::string&,
                          WorkBudget&) const override {
    return Error(ErrorCode::BadRequest, "undecided");
  }
};

/// Takes a second for each version, and wants none.
class Slow final : public ItemFilter {
 public:
  explicit Slow(ManualWorkClock& clock) : clock_(clock) {}
  Result<Decision> decide(std::string_view, std::string_view, std::string&,
                          WorkBudget& work) const override {
    ++asked;
    clock_.work(std::chrono::seconds(1));
    if (!work.look()) return interruption(work);
    return Decision::Skip;
  }
  mutable int asked = 0;

 private:
  ManualWorkClock& clock_;
};

TEST_F(LatestTest, APageWhoseFilterIsSlowEndsAtItsDeadlineWhateverItHasFound) {
  for (int i = 0; i < 10; ++i) create(std::to_string(i));
  ManualWorkClock clock;
  const Slow slow(clock);
  PageRequest asked = request();
  asked.filter = &slow;
  for (int page = 1; page <= 5; ++page) {
    WorkBudget work({.deadline = clock.now() + std::chrono::milliseconds(1500)}, nullptr, clock);
    asked.work = &work;
    const Page read_page = read(asked);
    EXPECT_EQ(read_page.count, 0u);
    EXPECT_EQ(slow.asked, 2 * page);
    asked.after = read_page.position;
  }
  EXPECT_EQ(asked.after, part->head());
}

TEST_F(LatestTest, APageIsGivenUpWhenItsClientHasGone) {
  for (int i = 0; i < 10; ++i) create(std::to_string(i));
  ManualWorkClock clock;
  const Slow slow(clock);
  const auto gone = std::make_shared<std::atomic<bool>>(true);
  WorkBudget work({}, gone, clock);
  PageRequest asked = request();
  asked.filter = &slow;
  asked.work = &work;
  const auto page = reader.read(*part, asked);
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code(), ErrorCode::ClientGone);
  EXPECT_EQ(slow.asked, 1);
}

TEST_F(LatestTest, AFilterThatCannotDecideFailsThePageAndTheLag) {
  create("1");
  const Undecided undecided;
  PageRequest asked = request();
  asked.filter = &undecided;
  const auto page = reader.read(*part, asked);
  ASSERT_FALSE(page.has_value());
  EXPECT_EQ(page.error().message(), "undecided");
  const auto lag = reader.lag(*part, asked);
  ASSERT_FALSE(lag.has_value());
  EXPECT_EQ(lag.error().message(), "undecided");
}

// ── against a model ──────────────────────────────────────────────────────────────────────────────

/// The expected state of a partition: documents by key and id, at their last position.
struct Model {
  struct Place {
    std::uint64_t lsn;
    std::size_t index;
    std::string key;
    std::string id;
    auto operator<=>(const Place&) const = default;
  };
  std::map<std::pair<std::string, std::string>, std::pair<std::uint64_t, std::size_t>> documents;

  std::vector<Place> live(const std::optional<std::string>& key, std::uint64_t after) const {
    std::vector<Place> places;
    for (const auto& [document, at] : documents) {
      if ((!key || document.first == *key) && at.first > after) {
        places.push_back({at.first, at.second, document.first, document.second});
      }
    }
    std::ranges::sort(places);
    return places;
  }
  /// The ids of the next page by the rule: whole transactions, not above the limit unless alone.
  Ids page(const std::optional<std::string>& key, std::uint64_t after, std::size_t limit) const {
    Ids found;
    const auto places = live(key, after);
    for (std::size_t i = 0; i < places.size();) {
      std::size_t end = i;
      while (end < places.size() && places[end].lsn == places[i].lsn) ++end;
      if (!found.empty() && found.size() + (end - i) > limit) break;
      for (; i < end; ++i) found.push_back(places[i].id);
      if (found.size() >= limit) break;
    }
    return found;
  }
};

class ModelTest : public FeedTest, public testing::WithParamInterface<unsigned> {
 protected:
  ModelTest() : FeedTest({.rest_factor = 0}) {}
};

TEST_P(ModelTest, EveryPageIsWhatTheRulesSay) {
  std::mt19937 random(GetParam());
  Model model;
  const auto write_some = [&] {
    const std::string key = "k" + std::to_string(random() % 4);
    std::vector<WriteOf> writes;
    Model changed = model;
    const auto lsn = part->head().value + 1;
    const std::size_t count = random() % 3 == 0 ? 1 + random() % 6 : 1;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string id = std::to_string(random() % 12);
      const auto found = changed.documents.find({key, id});
      if (random() % 4 == 0 && found != changed.documents.end()) {
        writes.push_back({.kind = Write::Kind::Delete, .id = id, .partition_key = key});
        changed.documents.erase(found);
      } else {
        writes.push_back({.kind = Write::Kind::Upsert, .id = id, .partition_key = key});
        changed.documents[{key, id}] = {lsn, i};
      }
    }
    ASSERT_EQ(write(writes).value, lsn);
    model = std::move(changed);
  };
  std::vector<Lsn> heads{part->head()};
  for (int round = 0; round < 400; ++round) {
    if (round % 150 == 100) {
      begin_life();
      heads.push_back(part->head());
    }
    write_some();
    heads.push_back(part->head());
    if (round % 50 == 17) {
      ASSERT_TRUE(live_maps.build(part->number()));
    }
    // Any position up to the head is good, also between those that were given out.
    const Lsn near{heads[random() % heads.size()].value - 1 + random() % 3};
    PageRequest asked = request(std::min(near, part->head()));
    asked.count_max = 1 + random() % 8;
    std::optional<std::string> key;
    if (random() % 2 == 0) {
      key = "k" + std::to_string(random() % 4);
      asked.scope = scope_of_key(*key);
      if (random() % 2 == 0) asked.scope.partition_key.reset();
    }
    const Ids expected = model.page(key, asked.after.value, *asked.count_max);
    const Page page = read(asked);
    ASSERT_EQ(ids(page), expected) << "round " << round << ", after " << asked.after.value;
    const auto left = model.live(key, asked.after.value);
    ASSERT_EQ(page.caught_up, left.size() == expected.size());
    if (expected.empty()) {
      ASSERT_EQ(page.position, std::max(asked.after, part->head()));
    } else {
      ASSERT_EQ(page.position.value, left[expected.size() - 1].lsn);
    }
  }
  EXPECT_GT(live_maps.stats().built, 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ModelTest, testing::Range(1u, 9u));

// ── dead ranges and narrow scopes ────────────────────────────────────────────────────────────────

class SparseTest : public FeedTest {
 protected:
  SparseTest() : FeedTest({.rest_factor = 0}) {}
};

TEST_F(SparseTest, AMapChangesNothingAboutWhatIsShown) {
  std::mt19937 random(99);
  for (int i = 0; i < 100; ++i) create(std::to_string(i));
  for (int i = 0; i < 2000; ++i) upsert(std::to_string(random() % 5));
  for (int i = 0; i < 50; ++i) {
    upsert(std::to_string(random() % 100));
    for (int j = 0; j < 10; ++j) upsert("hot");
  }
  std::vector<std::string> before;
  const auto positions = {0u, 1u, 50u, 150u, 2000u, 2300u, 2600u};
  for (const auto after : positions) before.push_back(read(Lsn{after}).text);
  ASSERT_TRUE(live_maps.build(part->number()));
  std::size_t i = 0;
  for (const auto after : positions) EXPECT_EQ(read(Lsn{after}).text, before[i++]) << after;
  // And when it has become old.
  for (int j = 0; j < 100; ++j) upsert(std::to_string(random() % 100));
  Ids all = ids([&] {
    PageRequest asked = request();
    asked.count_max = std::nullopt;
    return read(asked);
  }());
  EXPECT_EQ(all.size(), 101u);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), 101u);
}

TEST_F(SparseTest, ANarrowScopeIsReadFromItsOwnEntriesOrFromTheLogWithTheSameResult) {
  for (int i = 0; i < 3000; ++i) create(std::to_string(i), i % 100 == 0 ? "rare" : "many");
  for (const char* key : {"rare", "many"}) {
    PageRequest asked = request();
    asked.scope = scope_of_key(key);
    std::vector<int> seen;
    for (;;) {
      const Page page = read(asked);
      for (const auto& id : ids(page)) seen.push_back(std::stoi(id));
      asked.after = page.position;
      if (page.caught_up) break;
    }
    EXPECT_EQ(seen.size(), key == std::string("rare") ? 30u : 2970u);
    EXPECT_TRUE(std::ranges::is_sorted(seen));
  }
}

TEST_F(SparseTest, AScopeWhoseDocumentsLieFarAheadIsFoundWithoutReadingTheLog) {
  // So many of the key that the log looks cheaper, but all of them at its end.
  for (int i = 0; i < 2000; ++i) create(std::to_string(i), "other");
  for (int i = 0; i < 400; ++i) create(std::to_string(i), "late");
  PageRequest asked = request();
  asked.scope = scope_of_key("late");
  asked.count_max = 10;
  EXPECT_EQ(ids(read(asked)), (Ids{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}));
}

// ── while others write ───────────────────────────────────────────────────────────────────────────

TEST_F(SparseTest, AReaderThatFollowsSeesEveryFinalVersionOnceAndInOrder) {
  constexpr int kDocuments = 40;
  constexpr int kWrites = 3000;
  std::atomic<bool> done{false};
  std::map<std::string, std::uint64_t> final_lsn;
  std::thread writer([&] {
    std::mt19937 random(7);
    for (int i = 0; i < kWrites; ++i) {
      std::vector<WriteOf> writes;
      for (std::size_t j = 0; j <= random() % 3; ++j) {
        writes.push_back(
            {.kind = Write::Kind::Upsert, .id = std::to_string(random() % kDocuments)});
      }
      const Lsn lsn = write(writes);
      for (const auto& each : writes) final_lsn[each.id] = lsn.value;
    }
    done = true;
  });
  std::map<std::string, std::uint64_t> seen;
  std::uint64_t last = 0;
  Lsn after;
  PageRequest asked = request();
  asked.count_max = 7;
  for (bool last_round = false;;) {
    if (done) last_round = true;
    asked.after = after;
    const Page page = read(asked);
    ASSERT_GE(page.position, after);
    ASSERT_LE(page.position, std::max(page.head, after));
    std::uint64_t in_page = last;
    for (const Json& item : items(page)) {
      const auto lsn = item["_lsn"].get<std::uint64_t>();
      ASSERT_GT(lsn, last);     // Above everything of earlier pages,
      ASSERT_GE(lsn, in_page);  // and rising.
      in_page = lsn;
      seen[item["id"].get<std::string>()] = lsn;
    }
    last = in_page;
    after = page.position;
    if (page.caught_up && last_round && after == part->head()) break;
  }
  writer.join();
  EXPECT_EQ(seen, final_lsn);
}

TEST_F(SparseTest, ResolvedTimesHoldWhileOthersWrite) {
  std::atomic<bool> done{false};
  std::thread ticker([&] {
    while (!done) {
      home.advance(std::chrono::seconds(1));
      std::this_thread::yield();
    }
  });
  std::thread writer([&] {
    for (int i = 0; i < 1500; ++i) upsert(std::to_string(i));
    done = true;
  });
  UnixSeconds promised = 0;
  Lsn after;
  PageRequest asked = request();
  asked.count_max = std::nullopt;
  while (!done) {
    const UnixSeconds resolved = part->resolved(home.clock().unix_seconds());
    ASSERT_GE(resolved, promised);
    asked.after = after;
    const Page page = read(asked);
    for (const Json& item : items(page)) ASSERT_GT(item["_ts"].get<UnixSeconds>(), promised);
    promised = resolved;
    after = page.position;
  }
  writer.join();
  ticker.join();
}

}  // namespace
}  // namespace orrery::feed
