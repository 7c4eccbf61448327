#include "partition/read/document_cursor.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "partition/test_environment.h"
#include "partition/writer/stage.h"
#include "storage/test_store.h"

namespace orrery::partition {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Kind = Write::Kind;
using storage::Tier;

constexpr PartitionNumber kCursorPartition{7};

class DocumentCursorTest : public testing::Test {
 protected:
  Written write(WriteOf one) {
    storage::Batch batch;
    auto committed =
        stage.stage(transaction_of({std::move(one)}), clock.unix_seconds(), batch, Tier::Disk);
    EXPECT_TRUE(committed);
    batch.put(storage::Family::Heads, storage::partition_prefix(kCursorPartition),
              stage.head().make());
    EXPECT_TRUE(storage::commit(*store, batch));
    stage.forget_committed(stage.head().lsn);
    return committed->writes[0];
  }
  static index::Candidate candidate_of(const Written& written) {
    return {written.header.number, written.position};
  }
  void want_key(std::string_view partition_key) {
    const auto key = key_of(partition_key, "");
    filter.partition_key = key.partition_key;
    filter.epks = EpkRange{Epk{key.epk}, Epk{key.epk + '\x01'}};
  }
  static std::vector<std::string> ids_of(DocumentCursor cursor) {
    std::vector<std::string> ids;
    while (cursor.next()) {
      const auto text = cursor.text().substr(std::string_view(R"({"id":")").size());
      ids.emplace_back(text.substr(0, text.find('"')));
    }
    EXPECT_TRUE(cursor.status());
    return ids;
  }
  storage::Snapshot snapshot() { return std::move(*store->snapshot()); }

  storage::TemporaryDirectory directory;
  std::unique_ptr<storage::Store> store = storage::open_store(directory.path());
  ManualClock clock{1'743'508'800};
  Stage stage{*store, kCursorPartition, RangeId{0}, Rid::container({0, 0, 0, 1}, {0x80, 0, 0, 1}),
              storage::Head{}};
  ScanFilter filter;
};

TEST_F(DocumentCursorTest, NumbersAndTheLogHaveTheirOwnOrders) {
  for (const auto* id : {"c", "a", "b"}) write({.id = id});
  write({.kind = Kind::Replace, .id = "c"});
  write({.kind = Kind::Delete, .id = "a"});
  const auto view = snapshot();
  EXPECT_THAT(ids_of(DocumentCursor::by_number(view, kCursorPartition, {}, filter)),
              ElementsAre("c", "b"));
  EXPECT_THAT(ids_of(DocumentCursor::in_log(view, kCursorPartition, filter)),
              ElementsAre("b", "c"));
  EXPECT_THAT(ids_of(DocumentCursor::in_log(view, PartitionNumber{8}, filter)), IsEmpty());
}

TEST_F(DocumentCursorTest, NumbersGoOnAfterOne) {
  write({.id = "a"});
  const auto b = write({.id = "b"});
  write({.id = "c"});
  const auto view = snapshot();
  EXPECT_THAT(ids_of(DocumentCursor::by_number(view, kCursorPartition, b.header.number, filter)),
              ElementsAre("c"));
}

TEST_F(DocumentCursorTest, NumbersGoOnWhereverTheLogHasThem) {
  const auto a = write({.id = "a"});
  for (const auto* id : {"b", "c", "d"}) write({.id = id});
  write({.kind = Kind::Delete, .id = "b"});
  const auto after_a = [&] {
    const auto view = snapshot();
    return ids_of(DocumentCursor::by_number(view, kCursorPartition, a.header.number, filter));
  };
  EXPECT_FALSE(stage.head().is_reordered);
  EXPECT_THAT(after_a(), ElementsAre("c", "d"));
  write({.kind = Kind::Replace, .id = "c"});
  EXPECT_TRUE(stage.head().is_reordered);
  EXPECT_THAT(after_a(), ElementsAre("c", "d"));
}

TEST_F(DocumentCursorTest, CandidatesComeInTheirOrder) {
  const auto a = write({.id = "a"});
  const auto b = write({.id = "b"});
  const auto c = write({.id = "c"});
  const auto view = snapshot();
  const std::vector candidates = {candidate_of(c), candidate_of(a), candidate_of(b)};
  EXPECT_THAT(ids_of(DocumentCursor::over(view, kCursorPartition, candidates, filter)),
              ElementsAre("c", "a", "b"));
  EXPECT_THAT(ids_of(DocumentCursor::over(view, kCursorPartition, {}, filter)), IsEmpty());
}

TEST_F(DocumentCursorTest, ManyCandidatesComeInTheirOrderWhetherCloseOrFarApart) {
  std::vector<index::Candidate> all;
  for (int i = 0; i < 1200; ++i) all.push_back(candidate_of(write({.id = std::to_string(i)})));
  const auto view = snapshot();
  for (const std::size_t distance : {1U, 3U, 20U}) {
    std::vector<index::Candidate> candidates;
    std::vector<std::string> expected;
    for (std::size_t i = 0; i < all.size(); i += distance) {
      candidates.push_back(all[i]);
      expected.push_back(std::to_string(i));
    }
    EXPECT_EQ(ids_of(DocumentCursor::over(view, kCursorPartition, candidates, filter)), expected);
  }
}

TEST_F(DocumentCursorTest, ACandidateThatIsNotThereIsAnError) {
  const auto a = write({.id = "a"});
  write({.kind = Kind::Replace, .id = "a"});
  const auto view = snapshot();
  auto cursor = DocumentCursor::over(view, kCursorPartition, {candidate_of(a)}, filter);
  EXPECT_FALSE(cursor.next());
  EXPECT_FALSE(cursor.status());
  EXPECT_FALSE(cursor.next()) << "and stays one";
}

TEST_F(DocumentCursorTest, TheFilterCountsHoweverDocumentsAreFound) {
  std::vector<index::Candidate> all;
  all.push_back(candidate_of(write({.id = "mine", .partition_key = "k"})));
  all.push_back(candidate_of(write({.id = "foreign", .partition_key = "other"})));
  all.push_back(candidate_of(write({.id = "expired", .partition_key = "k", .ttl = 1})));
  want_key("k");
  filter.default_ttl = -1;
  filter.now = clock.unix_seconds() + 10;
  const auto view = snapshot();
  EXPECT_THAT(ids_of(DocumentCursor::by_number(view, kCursorPartition, {}, filter)),
              ElementsAre("mine"));
  EXPECT_THAT(ids_of(DocumentCursor::in_log(view, kCursorPartition, filter)), ElementsAre("mine"));
  EXPECT_THAT(ids_of(DocumentCursor::over(view, kCursorPartition, all, filter)),
              ElementsAre("mine"));
}

TEST_F(DocumentCursorTest, StepsAlsoShowWhatDoesNotPass) {
  write({.id = "mine", .partition_key = "k"});
  write({.id = "foreign", .partition_key = "other"});
  want_key("k");
  const auto view = snapshot();
  auto cursor = DocumentCursor::in_log(view, kCursorPartition, filter);
  ASSERT_TRUE(cursor.step());
  EXPECT_TRUE(cursor.passes());
  ASSERT_TRUE(cursor.step());
  EXPECT_FALSE(cursor.passes());
  EXPECT_FALSE(cursor.step());
  EXPECT_EQ(cursor.looked_at(), 2U);
}

TEST_F(DocumentCursorTest, AFewDocumentsOfOneKeyAreFoundWithoutLookingAtAllOthers) {
  for (int i = 0; i < 50; ++i) write({.id = "x" + std::to_string(i), .partition_key = "other"});
  write({.id = "b", .partition_key = "k"});
  for (int i = 50; i < 90; ++i) write({.id = "x" + std::to_string(i), .partition_key = "other"});
  write({.id = "a", .partition_key = "k"});
  want_key("k");
  const auto view = snapshot();
  auto cursor = DocumentCursor::by_number(view, kCursorPartition, {}, filter);
  std::size_t count = 0;
  DocumentNumber last;
  while (cursor.next()) {
    EXPECT_GT(cursor.number(), last);
    last = cursor.number();
    ++count;
  }
  EXPECT_EQ(count, 2U);
  EXPECT_EQ(cursor.looked_at(), 3U) << "one of another key, and its own";
}

TEST_F(DocumentCursorTest, AKeyAmongOthersIsWholeWhereverOneBegins) {
  std::vector<DocumentNumber> numbers;
  for (int i = 0; i < 30; ++i) {
    const auto written = write({.id = std::to_string(i), .partition_key = i % 3 > 0 ? "k" : "o"});
    numbers.push_back(written.header.number);
  }
  want_key("k");
  const auto view = snapshot();
  for (std::size_t after = 0; after < numbers.size(); ++after) {
    std::vector<std::string> expected;
    for (std::size_t i = after + 1; i < numbers.size(); ++i) {
      if (i % 3 > 0) expected.push_back(std::to_string(i));
    }
    EXPECT_EQ(ids_of(DocumentCursor::by_number(view, kCursorPartition, numbers[after], filter)),
              expected);
  }
}

TEST_F(DocumentCursorTest, DocumentsOfOneKeyByTheirEntries) {
  const auto b = write({.id = "b", .partition_key = "k"});
  const auto a = write({.id = "a", .partition_key = "k"});
  write({.id = "a", .partition_key = "k2"});
  want_key("k");
  const auto view = snapshot();
  const auto all = find_in_key(view, kCursorPartition, filter, 2);
  ASSERT_TRUE(all && *all);
  EXPECT_THAT(**all, ElementsAre(candidate_of(b), candidate_of(a)));
  const auto too_many = find_in_key(view, kCursorPartition, filter, 1);
  ASSERT_TRUE(too_many);
  EXPECT_FALSE(*too_many);
  const auto found = find_by_id(view, kCursorPartition, filter, "a");
  ASSERT_TRUE(found && *found);
  EXPECT_EQ(**found, candidate_of(a));
  const auto missing = find_by_id(view, kCursorPartition, filter, "c");
  ASSERT_TRUE(missing);
  EXPECT_FALSE(*missing);
}

TEST_F(DocumentCursorTest, DocumentsOfOneKeyAreCountedByTheirEntries) {
  for (const char* id : {"a", "b", "c"}) write({.id = id, .partition_key = "k"});
  write({.id = "expired", .partition_key = "k", .ttl = 1});
  write({.id = "a", .partition_key = "k2"});
  want_key("k");
  filter.default_ttl = -1;
  filter.now = clock.unix_seconds() + 10;
  const auto view = snapshot();
  EXPECT_EQ(count_in_key(view, kCursorPartition, filter, 4).value(), 3u);
  EXPECT_EQ(count_in_key(view, kCursorPartition, filter, 3).value(), std::nullopt);
  want_key("none");
  EXPECT_EQ(count_in_key(view, kCursorPartition, filter, 4).value(), 0u);
}

}  // namespace
}  // namespace orrery::partition
