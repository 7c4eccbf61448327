#include "storage/recovery/rocks_log.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/recovery/wal_scan.h"
#include "storage/test_store.h"

namespace orrery::storage {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;

struct Read {
  std::vector<std::string> records;
  std::vector<std::size_t> ends;
  std::vector<std::size_t> bad;
};

Read read(std::string_view file, std::size_t from = 0) {
  Read found;
  visit_rocks_log(file,
                  {[&](std::string_view record, std::size_t, std::size_t end) {
                     found.records.emplace_back(record);
                     found.ends.push_back(end);
                   },
                   [&](std::size_t offset, std::string_view) { found.bad.push_back(offset); }},
                  from);
  return found;
}

std::string file_of(const std::vector<std::string>& records) {
  std::string file;
  for (const std::string& record : records) append_rocks_log(file, record);
  return file;
}

TEST(RocksLogTest, RecordsComeBackWhateverTheirSize) {
  std::vector<std::string> records;
  // Around the places where a header just fits into a block, or just does not.
  for (const std::size_t size : {0, 1, 32'747, 32'754, 32'755, 32'760, 32'761, 32'762, 100'000}) {
    records.emplace_back(size, 'x');
    records.push_back(fmt::format("after {}", size));
  }
  const Read found = read(file_of(records));
  EXPECT_THAT(found.records, ElementsAreArray(records));
  std::size_t end = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    end = end_of_record(end, records[i].size());
    EXPECT_EQ(end, found.ends[i]);
  }
  EXPECT_THAT(found.bad, IsEmpty());
}

TEST(RocksLogTest, ReadsWhatRocksDbWrites) {
  TemporaryDirectory directory;
  {
    const auto store = open_store(directory.path());
    for (int i = 0; i < 50; ++i) {
      Batch batch;
      batch.put(Family::Log, fmt::format("{:03}", i), std::string(i * 500, 'x'));
      ASSERT_TRUE(commit(*store, batch));
    }
  }
  const auto files = find_wals(directory.path() / "store", 0);
  ASSERT_EQ(files.size(), 1u);
  const auto bytes = read_bytes(files[0].path);
  ASSERT_TRUE(bytes);
  const Read found = read(*bytes);
  EXPECT_EQ(found.records.size(), 50u);
  EXPECT_THAT(found.bad, IsEmpty());
  EXPECT_EQ(sound_size(*bytes), bytes->size());
}

TEST(RocksLogTest, GoesOnFromTheEndOfARecord) {
  const std::string file = file_of({"one", std::string(40'000, 'x'), "three"});
  const Read all = read(file);
  EXPECT_THAT(read(file, all.ends[0]).records, ElementsAre(all.records[1], "three"));
  EXPECT_THAT(read(file, all.ends[1]).records, ElementsAre("three"));
}

TEST(RocksLogTest, ACutIsSeenAtEveryByte) {
  const std::string file = file_of({"one", std::string(33'000, 'x'), "three"});
  const Read all = read(file);
  for (std::size_t size = 0; size < file.size(); ++size) {
    if (size > 20 && size < 32'700) continue;  // Much of the same.
    const Read found = read(std::string_view(file).substr(0, size));
    std::size_t whole = 0;
    while (whole < all.ends.size() && all.ends[whole] <= size) ++whole;
    EXPECT_EQ(found.records.size(), whole) << size;
    const bool at_end = size == 0 || (whole > 0 && all.ends[whole - 1] == size);
    EXPECT_EQ(found.bad.empty(), at_end) << size;
    EXPECT_EQ(sound_size(std::string_view(file).substr(0, size)),
              whole > 0 ? all.ends[whole - 1] : 0);
  }
}

TEST(RocksLogTest, EveryFlippedByteIsSeenAndTheRestIsFound) {
  std::vector<std::string> records;
  for (int i = 0; i < 5; ++i) records.push_back(fmt::format("record number {}", i));
  const std::string file = file_of(records);
  const Read all = read(file);
  for (std::size_t at = 0; at < file.size(); ++at) {
    std::string flipped = file;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    const Read found = read(flipped);
    std::size_t hit = 0;
    while (all.ends[hit] <= at) ++hit;
    auto expected = records;
    expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(hit));
    EXPECT_THAT(found.records, ElementsAreArray(expected)) << at;
    EXPECT_FALSE(found.bad.empty()) << at;
  }
}

TEST(RocksLogTest, AfterAZeroedBlockItGoesOnInTheNext) {
  std::vector<std::string> records;
  for (int i = 0; i < 400; ++i) records.push_back(fmt::format("{:04}", i) + std::string(500, 'x'));
  std::string file = file_of(records);
  file.replace(kRocksLogBlockSize, kRocksLogBlockSize, kRocksLogBlockSize, '\0');
  const Read found = read(file);
  EXPECT_EQ(found.records.front(), records.front());
  EXPECT_EQ(found.records.back(), records.back());
  EXPECT_GT(found.records.size(), 250u);
  EXPECT_FALSE(found.bad.empty());
}

TEST(RocksLogTest, PartsOfARecordAreNotARecord) {
  std::string file = file_of({"one", std::string(100'000, 'x')});
  // The first part is lost, the others are sound.
  file[20] = static_cast<char>(file[20] ^ 1);
  EXPECT_THAT(read(file).records, ElementsAre("one"));
}

}  // namespace
}  // namespace orrery::storage
