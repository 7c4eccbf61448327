#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog/catalog.h"
#include "catalog/test_catalog.h"
#include "maintenance/auto_split.h"
#include "maintenance/range_change.h"
#include "maintenance/reclaimer.h"
#include "partition/test_audit.h"
#include "partition/test_environment.h"
#include "storage/keys.h"

namespace orrery::maintenance {
namespace {

using namespace std::chrono_literals;
using catalog::Catalog;
using catalog::ContainerPtr;
using catalog::DatabasePtr;
using catalog::garbage_key;
using catalog::Range;
using catalog::Throughput;
using partition::audit;
using partition::eventually;
using partition::Write;
using storage::Family;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

using Fault = partition::FaultyCommitLog::Fault;

/// With indexes, which audit() checks wherever documents go.
ContainerDefinition range_definition(const std::string& id, const std::string& key) {
  const std::string policy =
      R"({"includedPaths":[{"path":"/*"},{"path":"/id/?"}],
          "compositeIndexes":[[{"path":"/p"},{"path":"/_ts","order":"descending"}]]})";
  return ContainerDefinition::create(Json::parse(R"({"id":")" + id + R"(","indexingPolicy":)" +
                                                 policy + R"(,"partitionKey":)" + key + "}"),
                                     "2020-07-15")
      .value();
}
const std::string kHash = R"({"paths":["/pk"],"kind":"Hash","version":2})";
const std::string kMultiHash = R"({"paths":["/a","/b"],"kind":"MultiHash","version":2})";

class SplitTest : public testing::Test {
 protected:
  SplitTest() {
    open();
    database = catalog->create_database("d", {}).value();
  }
  ~SplitTest() override { close(); }

  void open() {
    auto opened = Catalog::open(home.environment(), [](const ContainerDefinition& of) {
      partition::Rules rules;
      rules.default_ttl = of.default_ttl();
      return rules;
    });
    ASSERT_TRUE(opened) << opened.error().message();
    catalog = std::move(*opened);
    home.committer().start();
    reclaimer.emplace(home.environment(), catalog->garbage());
    reclaimer->start();
    changes.emplace(home.environment(), *catalog);
  }
  void close() {
    home.log().release();
    if (reclaimer) reclaimer->stop();
    if (changes) changes->stop();
    home.committer().stop();
    changes.reset();
    reclaimer.reset();
    catalog.reset();
    home.close();
  }
  /// As a restart does, also after a crash: nothing but the store is left.
  void reopen() {
    close();
    home.open();
    open();
  }

  ContainerPtr make_container(const std::string& id = "c", const std::string& key = kHash,
                              std::int64_t units = 400) {
    auto made =
        catalog->create_container(database->rid, range_definition(id, key), catalog::manual(units));
    EXPECT_TRUE(made) << made.error().message();
    return made ? *made : nullptr;
  }
  ContainerPtr current() { return catalog->container("d", "c"); }

  /// A key as documents of the container have it.
  static Epk epk_of(const ContainerPtr& container, const std::vector<std::string>& values) {
    std::vector<KeyComponent> components(values.begin(), values.end());
    return effective_partition_key(container->definition.partition_key(), PartitionKey(components));
  }
  static partition::Transaction transaction(const ContainerPtr& container, Write::Kind kind,
                                            const std::vector<std::string>& key,
                                            const std::string& id, std::size_t padding = 0) {
    partition::WriteOf write{.kind = kind, .id = id, .padding = padding};
    auto made = partition::transaction_of({write}, container->rules);
    Write& only = writes_of(made).writes[0];
    only.key.epk = epk_of(container, key).bytes;
    only.key.partition_key.clear();
    for (const auto& value : key) only.key.partition_key += value + '\x01';
    return made;
  }
  /// Writes as a request does: to the range that owns the key now.
  Result<partition::Committed> write(Write::Kind kind, const std::vector<std::string>& key,
                                     const std::string& id, std::size_t padding = 0,
                                     const std::string& container_id = "c") {
    for (;;) {
      const auto container = catalog->container("d", container_id);
      const Range& owner = container->ranges.owner_of(epk_of(container, key));
      auto committed =
          loop.submit(owner.partition, transaction(container, kind, key, id, padding)).get();
      if (committed || committed.error().code() != ErrorCode::RangeGone) return committed;
    }
  }
  void fill(std::size_t count, std::size_t padding = 0) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto key = fmt::format("key-{}", documents_made++);
      ASSERT_TRUE(write(Write::Kind::Create, {key}, "doc", padding));
    }
  }

  static std::string tiles(const ContainerPtr& container) {
    std::string text;
    for (const Range& range : container->ranges.all()) {
      text += fmt::format("{}[", range.id.value);
      for (const RangeId parent : range.parents) text += fmt::format("{},", parent.value);
      text += "] ";
    }
    return text;
  }
  /// Everything that the container's ranges hold, audited.
  std::map<std::string, std::string> documents() {
    std::map<std::string, std::string> found;
    const auto container = current();
    for (const Range& range : container->ranges.all()) {
      const auto audited = audit(home.store(), range.partition->number());
      EXPECT_EQ(audited.head.lsn, range.partition->head());
      EXPECT_EQ(audited.index_entries, 2 * audited.entries.size()) << "both indexes go along";
      for (const auto& [name, text] : audited.texts) {
        EXPECT_TRUE(found.emplace(name, text).second) << "a document in two ranges";
        EXPECT_LE(range.epks.min.bytes, name);
        EXPECT_LT(name, range.epks.max.bytes);
      }
    }
    return found;
  }
  std::size_t keys_left(PartitionNumber number) {
    std::size_t count = 0;
    const auto snapshot = home.store().snapshot();
    for (const Family family : {Family::Heads, Family::Log, Family::Ids, Family::Rids,
                                Family::Unique, Family::History, Family::Expiry, Family::Terms}) {
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
  /// Whether nothing is left but what belongs to a range.
  bool is_tidy() {
    std::set<std::uint32_t> live;
    for (const Range& range : current()->ranges.all()) {
      live.insert(range.partition->number().value);
    }
    return eventually([&] {
      std::size_t left = 0;
      for (std::uint32_t number = 1; number < 40; ++number) {
        if (!live.contains(number)) left += keys_left(PartitionNumber{number});
      }
      return left == 0;
    });
  }

  partition::TestEnvironment home;
  std::unique_ptr<Catalog> catalog;
  std::optional<Reclaimer> reclaimer;
  std::optional<RangeChanges> changes;
  partition::TestLoop loop{1};
  DatabasePtr database;
  std::size_t documents_made = 0;
};

// ── what becomes of the ranges ───────────────────────────────────────────────────────────────────

TEST_F(SplitTest, ASplitDividesARangeInTheMiddleAndKeepsEveryDocument) {
  const auto before = make_container();
  fill(50);
  const auto documents_before = documents();
  const Lsn head = before->ranges.all()[0].partition->head();
  home.advance(5s);
  const auto split = changes->split(before->rid, RangeId{0});
  ASSERT_TRUE(split) << split.error().message();
  EXPECT_EQ(current(), *split);
  EXPECT_EQ(tiles(*split), "1[0,] 2[0,] ");
  EXPECT_EQ((*split)->ranges.version(), 2u);
  EXPECT_EQ((*split)->ranges.all()[0].epks.max.hex(), "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
  EXPECT_EQ((*split)->etag(), before->etag()) << "the container itself has not changed";
  for (const Range& range : (*split)->ranges.all()) {
    EXPECT_EQ(range.made_in, 2u);
    EXPECT_EQ(range.ts, before->ts + 5);
    EXPECT_EQ(range.partition->head(), head) << "also where it holds nothing";
    EXPECT_GT(range.partition->documents(), 5u);
  }
  EXPECT_EQ(documents(), documents_before);
  fill(20);
  EXPECT_THAT(documents(), SizeIs(70));
  EXPECT_TRUE(before->ranges.all()[0].partition->retired());
  reopen();
  EXPECT_EQ(tiles(current()), "1[0,] 2[0,] ");
  EXPECT_THAT(documents(), SizeIs(70));
  EXPECT_TRUE(is_tidy()) << "the old partition is reclaimed";
}

TEST_F(SplitTest, GrandchildrenAndMergedRangesNameAllTheirAncestorsOldestFirst) {
  const auto container = make_container();
  fill(40);
  const auto all = documents();
  ASSERT_TRUE(changes->split(container->rid, RangeId{0}));
  ASSERT_TRUE(changes->split(container->rid, RangeId{2}));
  EXPECT_EQ(tiles(current()), "1[0,] 3[0,2,] 4[0,2,] ");
  ASSERT_TRUE(changes->merge(container->rid, RangeId{3}, RangeId{1}));
  EXPECT_EQ(tiles(current()), "5[0,1,2,3,] 4[0,2,] ");
  reopen();
  ASSERT_TRUE(changes->merge(container->rid, RangeId{5}, RangeId{4}));
  EXPECT_EQ(tiles(current()), "6[0,1,2,3,4,5,] ");
  EXPECT_EQ(current()->ranges.version(), 5u);
  EXPECT_EQ(documents(), all);
  fill(10);
  EXPECT_THAT(documents(), SizeIs(50));
  EXPECT_TRUE(is_tidy());
}

TEST_F(SplitTest, AMergedRangesHeadIsTheHigherAndNewWritesComeAboveBoth) {
  const auto container = make_container("c", kHash, 12'000);
  ASSERT_THAT(container->ranges.all(), SizeIs(2));
  fill(40);
  const Lsn left = container->ranges.all()[0].partition->head();
  const Lsn right = container->ranges.all()[1].partition->head();
  const auto merged = changes->merge(container->rid, RangeId{0}, RangeId{1});
  ASSERT_TRUE(merged);
  const auto& partition = (*merged)->ranges.all()[0].partition;
  EXPECT_EQ(partition->head(), std::max(left, right));
  const auto written = write(Write::Kind::Create, {"new"}, "doc");
  ASSERT_TRUE(written);
  EXPECT_EQ(written->lsn, next(std::max(left, right)));
  EXPECT_THAT(documents(), SizeIs(41));
}

TEST_F(SplitTest, DocumentNumbersOfNewRangesNeverMeetThoseOfOldOnes) {
  const auto container = make_container();
  fill(30);
  ASSERT_TRUE(changes->split(container->rid, RangeId{0}));
  fill(30);
  ASSERT_TRUE(changes->merge(container->rid, RangeId{1}, RangeId{2}));
  fill(30);
  EXPECT_THAT(documents(), SizeIs(90)) << "the audit finds two of one number";
}

/// Indexes within an LSN end at 2^32, and cuts at ever other places use them up.
TEST_F(SplitTest, RangesThatWereMergedTooOftenStayApartUntilTheirDocumentsAreWrittenAgain) {
  const auto container = make_container();
  fill(40);
  const auto all = documents();
  std::minstd_rand random(41);
  constexpr int kRoundsMax = 1000;
  const auto merge = [&] {
    const auto& ranges = current()->ranges.all();
    return changes->merge(container->rid, ranges[0].id, ranges[1].id);
  };
  const auto merge_until_refused = [&]() -> std::optional<Error> {
    for (int round = 0; round < kRoundsMax; ++round) {
      const Epk cut{std::string(1, static_cast<char>(1 + random() % 0x3E))};
      const auto split = changes->split(container->rid, current()->ranges.all()[0].id, cut);
      if (!split) return split.error();
      if (const auto merged = merge(); !merged) return merged.error();
    }
    return std::nullopt;
  };
  const auto refusal = merge_until_refused();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code(), ErrorCode::Forbidden);
  EXPECT_THAT(refusal->message(), testing::HasSubstr("merged too often"));
  EXPECT_THAT(current()->ranges.all(), SizeIs(2)) << "the ranges are as they were";
  EXPECT_EQ(documents(), all);

  for (std::size_t i = 0; i < documents_made; ++i) {
    ASSERT_TRUE(write(Write::Kind::Replace, {fmt::format("key-{}", i)}, "doc"));
  }
  const auto merged = merge();
  EXPECT_TRUE(merged) << merged.error().message();
  EXPECT_THAT(documents(), SizeIs(40));
}

TEST_F(SplitTest, WhatCannotBeCutOrJoinedIsRefused) {
  const auto container = make_container("c", kHash, 24'000);
  ASSERT_THAT(container->ranges.all(), SizeIs(4));
  const auto code = [](const auto& outcome) { return outcome.error().code(); };
  const auto& rid = container->rid;
  EXPECT_EQ(code(changes->split(rid, RangeId{9})), ErrorCode::RangeGone);
  EXPECT_EQ(code(changes->merge(rid, RangeId{0}, RangeId{9})), ErrorCode::RangeGone);
  EXPECT_EQ(code(changes->merge(rid, RangeId{9}, RangeId{0})), ErrorCode::RangeGone);
  EXPECT_EQ(code(changes->merge(rid, RangeId{0}, RangeId{2})), ErrorCode::BadRequest);
  EXPECT_EQ(code(changes->merge(rid, RangeId{0}, RangeId{0})), ErrorCode::BadRequest);
  for (const auto* at : {"", "0FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "FF", "20"}) {
    EXPECT_EQ(code(changes->split(rid, RangeId{0}, Epk::from_hex(at).value())),
              ErrorCode::BadRequest)
        << at;
  }
  EXPECT_TRUE(changes->split(rid, RangeId{0}, Epk::from_hex("07").value()));
  EXPECT_EQ(code(changes->split(rid, RangeId{0})), ErrorCode::RangeGone);
  const auto no_key = catalog->create_container(
      database->rid,
      ContainerDefinition::create(Json::parse(R"({"id":"k"})"), "2015-12-16").value(), {});
  ASSERT_TRUE(no_key);
  EXPECT_EQ(code(changes->split((*no_key)->rid, RangeId{0})), ErrorCode::BadRequest);
  ASSERT_TRUE(catalog->delete_container(rid, ""));
  EXPECT_EQ(code(changes->split(rid, RangeId{1})), ErrorCode::NotFound);
}

TEST_F(SplitTest, OneRangeIsChangedByOneAtATime) {
  const auto container = make_container("c", kHash, 24'000);
  const auto& rid = container->rid;
  {
    const auto first = changes->begin_split(rid, RangeId{1}, {});
    ASSERT_TRUE(first);
    EXPECT_EQ(changes->begin_split(rid, RangeId{1}, {}).error().code(), ErrorCode::Conflict);
    EXPECT_EQ(changes->begin_merge(rid, RangeId{0}, RangeId{1}).error().code(),
              ErrorCode::Conflict);
    // Others of the same container don't mind, and the one that ends last takes the newest map.
    const auto second = changes->begin_merge(rid, RangeId{2}, RangeId{3});
    ASSERT_TRUE(second);
    ASSERT_TRUE((*second)->run());
    ASSERT_TRUE((*first)->run());
  }
  EXPECT_EQ(tiles(current()), "0[] 5[1,] 6[1,] 4[2,3,] ");
  EXPECT_TRUE(changes->begin_merge(rid, RangeId{0}, RangeId{5}));
}

TEST_F(SplitTest, TwoSplitsOfOneContainerGoOnAtOnce) {
  const auto container = make_container("c", kHash, 12'000);
  fill(200, 2000);
  const auto all = documents();
  auto one =
      std::async(std::launch::async, [&] { return changes->split(container->rid, RangeId{0}); });
  auto other =
      std::async(std::launch::async, [&] { return changes->split(container->rid, RangeId{1}); });
  EXPECT_TRUE(one.get());
  EXPECT_TRUE(other.get());
  EXPECT_THAT(current()->ranges.all(), SizeIs(4));
  EXPECT_EQ(current()->ranges.version(), 3u);
  EXPECT_EQ(documents(), all);
}

TEST_F(SplitTest, ACrowdedHierarchicalKeyIsCutThroughItsSecondLevel) {
  const auto container = make_container("c", kMultiHash);
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(write(Write::Kind::Create, {"crowd", fmt::format("{}", i)}, "doc"));
  }
  ASSERT_TRUE(write(Write::Kind::Create, {"other", "x"}, "doc"));
  const auto split = changes->split(container->rid, RangeId{0});
  ASSERT_TRUE(split) << split.error().message();
  const Epk prefix = epk_of(container, {"crowd"});
  EXPECT_EQ((*split)->ranges.all()[0].epks.max.hex(),
            prefix.hex() + "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
  for (const Range& range : (*split)->ranges.all()) EXPECT_GT(range.partition->documents(), 5u);
  EXPECT_THAT(documents(), SizeIs(41));
}

// ── what happens meanwhile ───────────────────────────────────────────────────────────────────────

TEST_F(SplitTest, WritersNoticeNothingAndLoseNothing) {
  const auto container = make_container();
  fill(300, 3000);
  std::atomic<bool> stopping{false};
  struct Written {
    std::map<std::string, Lsn> last;  // By key: in each the LSNs must rise.
    std::size_t count = 0;
  };
  std::vector<std::future<Written>> writers;
  for (int writer = 0; writer < 3; ++writer) {
    writers.push_back(std::async(std::launch::async, [&, writer] {
      Written written;
      std::mt19937 random(static_cast<unsigned>(writer));
      while (!stopping) {
        const auto key = fmt::format("writer-{}-{}", writer, random() % 50);
        const auto committed =
            write(Write::Kind::Upsert, {key}, fmt::format("{}", random() % 5), random() % 500);
        EXPECT_TRUE(committed) << committed.error().message();
        if (!committed) break;
        EXPECT_GT(committed->lsn, written.last[key]);
        written.last[key] = committed->lsn;
        ++written.count;
      }
      return written;
    }));
  }
  std::uint32_t next_id = 0;
  for (int round = 0; round < 3; ++round) {
    const auto split = changes->split(container->rid, RangeId{next_id});
    ASSERT_TRUE(split) << split.error().message();
    const auto merged = changes->merge(container->rid, RangeId{next_id + 1}, RangeId{next_id + 2});
    ASSERT_TRUE(merged) << merged.error().message();
    next_id += 3;
  }
  stopping = true;
  std::size_t keys = 0;
  for (auto& each : writers) {
    const auto written = each.get();
    EXPECT_GT(written.count, 0u);
    keys += written.last.size();
  }
  const auto found = documents();
  EXPECT_GE(found.size(), 300 + keys);
  reopen();
  EXPECT_EQ(documents(), found);
}

TEST_F(SplitTest, AContainerThatIsReplacedMeanwhileKeepsItsNewDefinition) {
  const auto container = make_container();
  const auto change = changes->begin_split(container->rid, RangeId{0}, {});
  ASSERT_TRUE(change);
  ASSERT_TRUE(catalog->replace_container(container->rid, "", [](const ContainerDefinition& now) {
    return now.replace(Json::parse(R"({"id":"c","defaultTtl":60})"), "2020-07-15");
  }));
  ASSERT_TRUE((*change)->run());
  EXPECT_EQ(current()->definition.default_ttl(), 60);
  EXPECT_EQ(current()->rules.default_ttl, 60);
  EXPECT_THAT(current()->ranges.all(), SizeIs(2));
}

TEST_F(SplitTest, AContainerThatIsDeletedMeanwhileIsGoneAndLeavesNothing) {
  // Before the copying, at its begin, in its middle, and about its end.
  for (const std::uint64_t commits : {0u, 1u, 3u, 6u}) {
    const auto container = make_container();
    fill(200, 3000);
    const auto& done = home.committer().stats().commits;
    const std::uint64_t enough = done.load() + commits;
    auto split =
        std::async(std::launch::async, [&] { return changes->split(container->rid, RangeId{0}); });
    ASSERT_TRUE(eventually(
        [&] { return done.load() >= enough || split.wait_for(0s) == std::future_status::ready; }));
    ASSERT_TRUE(catalog->delete_container(container->rid, ""));
    const auto outcome = split.get();
    EXPECT_EQ(current(), nullptr);
    if (!outcome) {
      EXPECT_TRUE(outcome.error().code() == ErrorCode::NotFound ||
                  outcome.error().code() == ErrorCode::OwnerNotFound)
          << outcome.error().message();
    }
  }
  make_container();
  EXPECT_TRUE(is_tidy());
}

TEST_F(SplitTest, AfterADiskErrorAtAnyStepEitherMapHoldsAndNothingIsLost) {
  make_container();
  fill(100, 6000);
  auto expected = documents();
  // How many commits a split takes depends on the machine: a slow one copies in more steps.
  constexpr int kSparedMax = 500;
  int abandoned = 0;
  for (const auto fault : {Fault::BeforeWriting, Fault::AfterWriting}) {
    int completed = 0;
    for (int spared = 0; spared < 9 || (completed == 0 && spared < kSparedMax); ++spared) {
      SCOPED_TRACE(fmt::format("fault {} after {} commits", static_cast<int>(fault), spared));
      auto before = current();
      const RangeId range = before->ranges.all().back().id;
      home.log().fail_next(fault, true, spared);
      const auto outcome = changes->split(before->rid, range);
      if (!outcome) {
        ++abandoned;
        EXPECT_THAT(outcome.error().code(),
                    testing::AnyOf(ErrorCode::Unavailable, ErrorCode::OutcomeUnknown));
      }
      ASSERT_TRUE(home.recovered());
      // If the split was done before the failure came, it comes now.
      for (int i = 0; outcome && i <= spared && home.committer().probe(); ++i) {
      }
      ASSERT_TRUE(home.recovered());
      const bool changed = current()->ranges.version() != before->ranges.version();
      if (outcome) EXPECT_TRUE(changed);
      if (changed) ++completed;
      before.reset();
      EXPECT_EQ(documents(), expected);
      for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(write(Write::Kind::Upsert, {fmt::format("key-{}", i)}, "doc"));
      }
      expected = documents();
      EXPECT_THAT(expected, SizeIs(100));
      EXPECT_TRUE(is_tidy());
      if (current()->ranges.all().size() > 3) {
        const auto now = current();
        const auto& all = now->ranges.all();
        ASSERT_TRUE(changes->merge(now->rid, all[all.size() - 2].id, all.back().id));
        EXPECT_EQ(documents(), expected);
      }
    }
    EXPECT_GT(completed, 0);
  }
  EXPECT_GT(abandoned, 0);
}

TEST_F(SplitTest, ACrashWhileCopyingLeavesTheOldMapAndNoRubbish) {
  make_container();
  fill(300, 6000);
  const auto expected = documents();
  // A server that stops gives a split up; for the store it is the same as a crash.
  auto split =
      std::async(std::launch::async, [&] { return changes->split(current()->rid, RangeId{0}); });
  ASSERT_TRUE(eventually([&] { return keys_left(PartitionNumber{2}) > 10; }));
  reclaimer->stop();
  changes->stop();
  EXPECT_EQ(split.get().error().code(), ErrorCode::Unavailable);
  EXPECT_GT(keys_left(PartitionNumber{2}), 1u) << "a stopped reclaimer does not tidy up";
  reopen();
  EXPECT_EQ(tiles(current()), "0[] ");
  EXPECT_EQ(documents(), expected);
  EXPECT_TRUE(is_tidy());
  ASSERT_TRUE(changes->split(current()->rid, RangeId{0}));
  EXPECT_EQ(documents(), expected);
}

TEST_F(SplitTest, AnOldPartitionStaysWhileSomebodyReadsIt) {
  auto held = make_container();
  fill(10);
  ASSERT_TRUE(changes->split(held->rid, RangeId{0}));
  const PartitionNumber old = held->ranges.all()[0].partition->number();
  ASSERT_TRUE(home.committer().probe());
  EXPECT_GT(keys_left(old), 10u);
  held.reset();
  EXPECT_TRUE(is_tidy());
}

// ── without being asked ──────────────────────────────────────────────────────────────────────────

TEST_F(SplitTest, ARaisedThroughputSplitsTheWidestRangesUntilTheyServeIt) {
  const auto container = make_container();
  AutoSplit automatic(*catalog, *changes, {});
  EXPECT_FALSE(automatic.step());
  const auto offer = catalog->offers().of(container->rid);
  ASSERT_TRUE(catalog->offers().replace(offer->rid, "", catalog::manual(35'000)));
  EXPECT_TRUE(needs_more_ranges(*catalog, *catalog->offers().find(offer->rid)));
  int splits = 0;
  while (automatic.step()) ++splits;
  EXPECT_EQ(splits, 3);
  EXPECT_EQ(tiles(current()), "3[0,1,] 4[0,1,] 5[0,2,] 6[0,2,] ");
  EXPECT_FALSE(needs_more_ranges(*catalog, *catalog->offers().find(offer->rid)));
  ASSERT_TRUE(catalog->offers().replace(offer->rid, "", catalog::manual(400)));
  EXPECT_FALSE(automatic.step()) << "a lowered one merges nothing";
}

TEST_F(SplitTest, ARangeThatHasGrownTooLargeIsSplit) {
  make_container();
  fill(30, 1000);
  AutoSplit automatic(*catalog, *changes, {.range_bytes_max = 20'000});
  while (automatic.step()) {
  }
  for (const Range& range : current()->ranges.all()) {
    EXPECT_LE(range.partition->text_bytes(), 20'000u);
  }
  EXPECT_GE(current()->ranges.all().size(), 2u);
  EXPECT_THAT(documents(), SizeIs(30));
}

TEST_F(SplitTest, ARangeOfOneKeyIsNotSplitOverAndOver) {
  make_container();
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(write(Write::Kind::Create, {"one"}, fmt::format("{}", i), 1000));
  }
  AutoSplit automatic(*catalog, *changes, {.range_bytes_max = 20'000});
  int splits = 0;
  while (automatic.step()) ++splits;
  EXPECT_EQ(splits, 1);
  for (int i = 30; i < 70; ++i) {
    ASSERT_TRUE(write(Write::Kind::Create, {"one"}, fmt::format("{}", i), 1000));
  }
  EXPECT_TRUE(automatic.step()) << "it has doubled since";
  EXPECT_FALSE(automatic.step());
}

TEST_F(SplitTest, AutomaticSplitsRunByThemselves) {
  const auto container = make_container();
  AutoSplit automatic(*catalog, *changes, {.interval = 1ms});
  automatic.start();
  ASSERT_TRUE(catalog->offers().replace(catalog->offers().of(container->rid)->rid, "",
                                        catalog::manual(20'000)));
  EXPECT_TRUE(eventually([&] { return current()->ranges.all().size() == 2; }));
  automatic.stop();
}

}  // namespace
}  // namespace orrery::maintenance
