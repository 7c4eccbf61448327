#include "index/reader.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_seed.h"
#include "storage/batch.h"
#include "storage/test_store.h"

namespace orrery::index {
namespace {

using storage::Family;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr PartitionNumber kPartition{7};
constexpr std::uint32_t kIndex = 3;

class IndexReaderTest : public testing::Test {
 protected:
  struct Entry {
    std::string key;
    std::uint64_t number;
    auto operator<=>(const Entry&) const = default;
  };

  static Candidate candidate_of(std::uint64_t number) {
    return {DocumentNumber{number}, {Lsn{100 + number}, 2}};
  }
  void put(std::string_view key, std::uint64_t number, std::uint32_t index = kIndex,
           PartitionNumber partition = kPartition) {
    std::string entry;
    storage::append_term_key(entry, partition, index, key, DocumentNumber{number});
    batch_.put(Family::Terms, entry, storage::make_position_value(candidate_of(number).position));
  }
  storage::Snapshot snapshot() {
    EXPECT_TRUE(storage::commit(*store_, batch_));
    batch_.clear();
    return std::move(*store_->snapshot());
  }
  /// Entries of other indexes and partitions, around those that are looked for.
  void put_neighbours() {
    put("a", 1, kIndex - 1);
    put("zz", 1, kIndex - 1);
    put("a", 1, kIndex + 1);
    put("a", 1, kIndex, PartitionNumber{6});
    put("a", 1, kIndex, PartitionNumber{8});
  }

  std::vector<Entry> walk(bool is_backward, std::string low = "", std::string high = "") {
    const auto view = snapshot();
    IndexCursor walking(view, kPartition, kIndex, std::move(low), std::move(high), is_backward);
    std::vector<Entry> found;
    while (walking.next()) {
      found.push_back({std::string(walking.key()), walking.candidate().number.value});
      EXPECT_EQ(walking.candidate(), candidate_of(found.back().number));
    }
    EXPECT_TRUE(walking.status());
    EXPECT_FALSE(walking.next());
    return found;
  }

  /// The numbers that are found; nothing when there were too many.
  std::optional<std::vector<std::uint64_t>> find(std::vector<json::KeyInterval> intervals,
                                                 std::size_t count_max = 1000) {
    const auto view = snapshot();
    const auto found = find_candidates(view, kPartition, kIndex, intervals, count_max);
    EXPECT_TRUE(found);
    if (!*found) return {};
    std::vector<std::uint64_t> numbers;
    for (const Candidate& each : **found) {
      numbers.push_back(each.number.value);
      EXPECT_EQ(each, candidate_of(each.number.value));
    }
    return numbers;
  }

  storage::TemporaryDirectory directory_;
  std::unique_ptr<storage::Store> store_ = storage::open_store(directory_.path());
  storage::Batch batch_;
};

TEST_F(IndexReaderTest, FindsDocumentsByIntervalsEachOnceInTheOrderOfTheirNumbers) {
  put_neighbours();
  put("b", 9);
  put("b", 4);
  put("c", 4);
  put("c", 1);
  put("d", 2);
  put("e", 3);
  EXPECT_THAT(*find({{"b", "d"}}), ElementsAre(1, 4, 9));
  EXPECT_THAT(*find({{"b", "c"}, {"e", "f"}}), ElementsAre(3, 4, 9));
  EXPECT_THAT(*find({{"", ""}}), ElementsAre(1, 2, 3, 4, 9));
  EXPECT_THAT(*find({{"x", "y"}}), IsEmpty());
  EXPECT_THAT(*find({}), IsEmpty());
}

TEST_F(IndexReaderTest, GivesUpWhenThereAreMoreEntriesThanAskedFor) {
  put("a", 1);
  put("b", 2);
  put("c", 3);
  EXPECT_THAT(*find({{"", ""}}, 3), ElementsAre(1, 2, 3));
  EXPECT_FALSE(find({{"", ""}}, 2));
  EXPECT_FALSE(find({{"a", "b"}, {"b", "c"}}, 1));
}

TEST_F(IndexReaderTest, WalksInTheOrderOfKeysAndNumbers) {
  put_neighbours();
  put("b", 2);
  put("a", 5);
  put("b", 1);
  EXPECT_THAT(walk(false), ElementsAre(Entry{"a", 5}, Entry{"b", 1}, Entry{"b", 2}));
}

TEST_F(IndexReaderTest, WalksBackwardByKeysAndForwardByNumbers) {
  put_neighbours();
  put("a", 5);
  put("a", 6);
  put("b", 1);
  put("c", 3);
  put("c", 2);
  put("c", 9);
  EXPECT_THAT(walk(true), ElementsAre(Entry{"c", 2}, Entry{"c", 3}, Entry{"c", 9}, Entry{"b", 1},
                                      Entry{"a", 5}, Entry{"a", 6}));
}

TEST_F(IndexReaderTest, WalksWithinBounds) {
  put_neighbours();
  for (const char* key : {"a", "b", "c", "d"}) {
    put(key, 1);
    put(key, 2);
  }
  EXPECT_THAT(walk(false, "b", "c"), ElementsAre(Entry{"b", 1}, Entry{"b", 2}));
  EXPECT_THAT(walk(true, "b", "c"), ElementsAre(Entry{"b", 1}, Entry{"b", 2}));
  EXPECT_THAT(walk(true, "b", "d"),
              ElementsAre(Entry{"c", 1}, Entry{"c", 2}, Entry{"b", 1}, Entry{"b", 2}));
  EXPECT_THAT(walk(true, "x"), IsEmpty());
  EXPECT_THAT(walk(true, "", "a"), IsEmpty());
}

TEST_F(IndexReaderTest, WalksNowhereInAnEmptyIndex) {
  put_neighbours();
  EXPECT_THAT(walk(false), IsEmpty());
  EXPECT_THAT(walk(true), IsEmpty());
}

TEST_F(IndexReaderTest, WalksLikeASortedListWhateverIsInIt) {
  const auto seed = static_cast<std::uint32_t>(test::seed());
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  put_neighbours();
  std::vector<Entry> entries;
  for (int i = 0; i < 500; ++i) {
    // Of one length, since no key is the beginning of another.
    std::string key(1, static_cast<char>('a' + random() % 20));
    key.push_back(static_cast<char>(random() % 4 == 0 ? 0xFF : 0));
    const Entry entry{key, random() % 300};
    put(entry.key, entry.number);
    entries.push_back(entry);
  }
  std::ranges::sort(entries);
  const auto repeated = std::ranges::unique(entries);
  entries.erase(repeated.begin(), repeated.end());
  EXPECT_EQ(walk(false), entries);
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return a.key != b.key ? a.key > b.key : a.number < b.number;
  });
  EXPECT_EQ(walk(true), entries);
}

TEST_F(IndexReaderTest, ShowsWhatItsSnapshotShows) {
  put("a", 1);
  const auto view = snapshot();
  put("b", 2);
  batch_.erase_range(Family::Terms, storage::terms_prefix(kPartition, kIndex),
                     storage::terms_end(kPartition, kIndex));
  const auto later = snapshot();
  IndexCursor before(view, kPartition, kIndex, "", "", true);
  EXPECT_TRUE(before.next());
  EXPECT_EQ(before.key(), "a");
  IndexCursor after(later, kPartition, kIndex, "", "", true);
  EXPECT_FALSE(after.next());
}

}  // namespace
}  // namespace orrery::index
