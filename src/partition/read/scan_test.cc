#include "partition/read/scan.h"

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "partition/read/point_read.h"
#include "partition/test_environment.h"
#include "partition/writer/stage.h"
#include "storage/keys.h"
#include "storage/test_store.h"

namespace orrery::partition {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

using Kind = Write::Kind;
using storage::Lookup;
using storage::Tier;

constexpr PartitionNumber kScanPartition{7};

/// The ids of the documents in a page.
std::vector<std::string> ids_in(std::string_view page) {
  std::vector<std::string> ids;
  constexpr std::string_view kStart = R"({"id":")";
  for (auto at = page.find(kStart); at != std::string_view::npos; at = page.find(kStart, at)) {
    at += kStart.size();
    ids.emplace_back(page.substr(at, page.find('"', at) - at));
  }
  return ids;
}

class ScanTest : public testing::Test {
 protected:
  Written write(WriteOf one) {
    storage::Batch batch;
    auto committed =
        stage.stage(transaction_of({std::move(one)}), clock.unix_seconds(), batch, Tier::Disk);
    EXPECT_TRUE(committed);
    EXPECT_TRUE(storage::commit(*store, batch));
    stage.forget_committed(stage.head().lsn);
    return committed->writes[0];
  }
  struct Page {
    std::vector<std::string> ids;
    bool exhausted;
    DocumentNumber last;
  };
  Page scan(DocumentNumber after = {}) {
    std::string text;
    std::size_t count = 0;
    const auto snapshot = store->snapshot();
    filter.now = clock.unix_seconds();
    const auto outcome =
        scan_by_number(*snapshot, kScanPartition, after, filter, budget, text, count);
    EXPECT_TRUE(outcome);
    auto ids = ids_in(text);
    EXPECT_EQ(ids.size(), count);
    return {std::move(ids), outcome->exhausted, outcome->last};
  }
  /// All pages, as a client that follows continuations reads them.
  std::vector<std::string> scan_pages() {
    std::vector<std::string> ids;
    Page page;
    int pages = 0;
    do {
      page = scan(page.last);
      ids.insert(ids.end(), page.ids.begin(), page.ids.end());
    } while (!page.exhausted && ++pages < 10'000);
    return ids;
  }

  storage::TemporaryDirectory directory;
  std::unique_ptr<storage::Store> store = storage::open_store(directory.path());
  ManualClock clock{1'743'508'800};
  Stage stage{*store, kScanPartition, RangeId{0}, Rid::container({0, 0, 0, 1}, {0x80, 0, 0, 1}),
              storage::Head{}};
  ScanFilter filter;
  WorkBudget work;
  ScanBudget budget{.count_max = 1000, .bytes_max = 4 << 20, .work = work};
};

// ── single documents ─────────────────────────────────────────────────────────────────────────────

TEST_F(ScanTest, ADocumentIsFoundByItsKeyAndByItsNumber) {
  const auto written = write({.id = "a"});
  Found found;
  ASSERT_EQ(find_entry(*store, kScanPartition, key_of("p", "a"), Tier::Disk, found), Lookup::Found);
  EXPECT_EQ(found.entry.position, written.position);
  EXPECT_EQ(found.record, "") << "not asked for yet";
  ASSERT_EQ(fetch_version(*store, kScanPartition, Tier::Disk, found), Lookup::Found);
  EXPECT_EQ(found.version().text, written.text);

  Found by_number;
  ASSERT_EQ(find_by_number(*store, kScanPartition, written.header.number, Tier::Disk, by_number),
            Lookup::Found);
  EXPECT_EQ(by_number.version().text, written.text);
  EXPECT_EQ(by_number.entry.text_size, written.text_size);
  EXPECT_EQ(by_number.entry.etag(), written.etag());
}

TEST_F(ScanTest, WhatIsNotThereIsMissing) {
  Found found;
  EXPECT_EQ(find_entry(*store, kScanPartition, key_of("p", "a"), Tier::Disk, found),
            Lookup::Missing);
  EXPECT_EQ(find_by_number(*store, kScanPartition, DocumentNumber{1}, Tier::Disk, found),
            Lookup::Missing);
  const auto written = write({.id = "a"});
  EXPECT_EQ(find_entry(*store, PartitionNumber{8}, key_of("p", "a"), Tier::Disk, found),
            Lookup::Missing)
      << "another partition's";
  write({.kind = Kind::Delete, .id = "a"});
  EXPECT_EQ(find_by_number(*store, kScanPartition, written.header.number, Tier::Disk, found),
            Lookup::Missing);
}

TEST_F(ScanTest, AVersionThatWasSupersededSinceIsMissing) {
  write({.id = "a"});
  Found found;
  ASSERT_EQ(find_entry(*store, kScanPartition, key_of("p", "a"), Tier::Disk, found), Lookup::Found);
  write({.kind = Kind::Replace, .id = "a"});
  EXPECT_EQ(fetch_version(*store, kScanPartition, Tier::Disk, found), Lookup::Missing);
}

// ── scans ────────────────────────────────────────────────────────────────────────────────────────

TEST_F(ScanTest, AScanWalksInTheOrderOfCreationWhateverWasReplaced) {
  for (const auto* id : {"c", "a", "b", "d"}) write({.id = id});
  write({.kind = Kind::Replace, .id = "c"});
  write({.kind = Kind::Replace, .id = "a", .new_id = "z"});
  write({.kind = Kind::Delete, .id = "b"});
  const auto page = scan();
  EXPECT_THAT(page.ids, ElementsAre("c", "z", "d"));
  EXPECT_TRUE(page.exhausted);
}

TEST_F(ScanTest, AnEmptyPartitionIsExhaustedAtOnce) {
  const auto page = scan();
  EXPECT_THAT(page.ids, IsEmpty());
  EXPECT_TRUE(page.exhausted);
}

TEST_F(ScanTest, PagesOfAnySizeTogetherHoldEverythingOnce) {
  std::vector<std::string> all;
  for (int i = 0; i < 20; ++i) {
    all.push_back(std::to_string(i));
    write({.id = all.back()});
    if (i % 3 == 0) write({.kind = Kind::Replace, .id = all.back(), .padding = 20});
  }
  for (const std::uint32_t size : {1u, 2u, 7u, 19u, 20u, 21u}) {
    budget.count_max = size;
    EXPECT_EQ(scan_pages(), all) << size;
  }
}

TEST_F(ScanTest, APageEndsAtItsBytesButHoldsOneDocumentAtLeast) {
  write({.id = "a", .padding = 1000});
  write({.id = "b", .padding = 1000});
  write({.id = "c", .padding = 1000});
  budget.bytes_max = 10;
  auto page = scan();
  EXPECT_THAT(page.ids, ElementsAre("a"));
  EXPECT_FALSE(page.exhausted);
  budget.bytes_max = 2600;
  page = scan();
  EXPECT_THAT(page.ids, ElementsAre("a", "b"));
  page = scan(page.last);
  EXPECT_THAT(page.ids, ElementsAre("c"));
  EXPECT_TRUE(page.exhausted);
}

TEST_F(ScanTest, APageWhoseTimeIsOverSaysWhereToGoOn) {
  std::vector<std::string> all;
  for (int i = 0; i < 200; ++i) {
    all.push_back(std::to_string(i));
    write({.id = all.back()});
  }
  work.set_deadline(WorkLimits::TimePoint::min());
  const auto page = scan();
  EXPECT_FALSE(page.exhausted);
  EXPECT_LT(page.ids.size(), all.size());
  EXPECT_GT(page.ids.size(), 0u);
  EXPECT_EQ(scan_pages(), all);
}

TEST_F(ScanTest, ExpiredDocumentsAreNotThere) {
  write({.id = "a", .ttl = 10});
  write({.id = "b"});
  write({.id = "c", .ttl = -1});
  filter.default_ttl = 20;
  EXPECT_THAT(scan().ids, ElementsAre("a", "b", "c"));
  clock.advance(10s);
  EXPECT_THAT(scan().ids, ElementsAre("b", "c"));
  clock.advance(10s);
  EXPECT_THAT(scan().ids, ElementsAre("c"));
  filter.default_ttl = {};
  EXPECT_THAT(scan().ids, ElementsAre("a", "b", "c")) << "TTL is off";
}

TEST_F(ScanTest, AFilterByEpkAdmitsWhatLiesInItsRange) {
  for (const auto* key : {"k", "m", "p"}) write({.id = key, .partition_key = key});
  filter.epks = EpkRange{Epk{key_of("m", "").epk}, Epk{key_of("p", "").epk}};
  EXPECT_THAT(scan().ids, ElementsAre("m"));
  filter.epks = EpkRange{Epk::min(), Epk{key_of("p", "").epk}};
  EXPECT_THAT(scan().ids, ElementsAre("k", "m"));
}

TEST_F(ScanTest, TheDocumentsOfOneKeyAreFoundAmongManyOthers) {
  // So many others that the key's own entries are asked; also when the page has begun before that.
  const auto own = key_of("own", "");
  filter.partition_key = own.partition_key;
  filter.epks = EpkRange{Epk{own.epk}, Epk{own.epk + '\xFF'}};
  std::vector<std::string> expected;
  const auto write_own = [&](std::string id) {
    expected.push_back(id);
    write({.id = std::move(id), .partition_key = "own"});
  };
  for (int i = 0; i < 5; ++i) write_own("z" + std::to_string(i));
  for (int at = 0; at < 1100; ++at) write({.id = std::to_string(at), .partition_key = "other"});
  for (int i = 0; i < 5; ++i) write_own("a" + std::to_string(i));
  write({.kind = Kind::Replace, .id = "z3", .partition_key = "own"});
  EXPECT_EQ(scan().ids, expected);
  for (const std::uint32_t size : {1u, 3u, 5u, 6u}) {
    budget.count_max = size;
    EXPECT_EQ(scan_pages(), expected) << size;
  }
}

}  // namespace
}  // namespace orrery::partition
