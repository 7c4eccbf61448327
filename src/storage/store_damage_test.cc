// Damaged stores: what a crash leaves is recovered, and nothing that was acknowledged is lost
// without somebody who accepts it.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/records.h"
#include "storage/recovery/rocks_log.h"
#include "storage/recovery/wal_scan.h"
#include "storage/recovery/watermark.h"
#include "storage/store.h"
#include "storage/test_store.h"

namespace orrery::storage {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

namespace fs = std::filesystem;

class StoreDamageTest : public testing::Test {
 protected:
  static Result<std::unique_ptr<Store>> open(const fs::path& path, Loss* loss = nullptr,
                                             bool accepts_loss = false,
                                             Durability durability = Durability::Strict) {
    return Store::open({.directory = path,
                        .durability = durability,
                        .cache_bytes = 4 << 20,
                        .accepts_loss = accepts_loss},
                       loss);
  }

  /// Commit number `i`: a version and the head of partition 5.
  static Result<> write(Store& store, int i, std::size_t size = 40) {
    Batch batch;
    batch.put(Family::Log, fmt::format("{:04}", i), std::string(size, 'x'));
    Head head;
    head.lsn = Lsn{static_cast<std::uint64_t>(i)};
    batch.put(Family::Heads, partition_prefix(PartitionNumber{5}), head.make());
    return commit(store, batch);
  }
  static int count(const Store& store) {
    const auto snapshot = store.snapshot();
    return static_cast<int>(contents(*snapshot, Family::Log).size());
  }

  /// A store with that many commits in its write-ahead log, as a crash would leave it, and without
  /// a watermark for them.
  void make(int commits) {
    const auto store = open(directory.path());
    ASSERT_TRUE(store);
    (*store)->write_watermark();
    mark_before = *read_bytes(path("watermark"));
    for (int i = 1; i <= commits; ++i) ASSERT_TRUE(write(**store, i));
  }
  void forget_watermark() const {
    std::ofstream(path("watermark"), std::ios::binary) << mark_before;
  }
  fs::path path(std::string_view name) const { return directory.path() / name; }
  fs::path wal() const {
    const auto files = find_wals(path("store"), 0);
    return files.back().path;
  }
  std::vector<std::size_t> record_ends() const {
    std::vector<std::size_t> ends;
    const auto bytes = *read_bytes(wal());
    visit_rocks_log(bytes,
                    {[&](std::string_view, std::size_t, std::size_t end) { ends.push_back(end); }});
    return ends;
  }
  /// A copy, since opening changes it.
  fs::path copy() {
    const fs::path to = copies.path() / std::to_string(++copy_count);
    copy_directory(directory.path(), to);
    return to;
  }
  static void flip(const fs::path& file, std::size_t offset) {
    auto bytes = *read_bytes(file);
    bytes[offset] = static_cast<char>(bytes[offset] ^ 0x04);
    std::ofstream(file, std::ios::binary) << bytes;
  }
  static std::string listing(const fs::path& directory) {
    std::vector<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
      if (!entry.is_regular_file() || entry.path().filename() == "LOCK") continue;
      files.push_back(fmt::format("{} {}\n", entry.path().string(), entry.file_size()));
    }
    std::ranges::sort(files);
    std::string all;
    for (const auto& file : files) all += file;
    return all;
  }

  TemporaryDirectory directory;
  TemporaryDirectory copies;
  int copy_count = 0;
  std::string mark_before;
};

TEST_F(StoreDamageTest, ATornTailIsRecoveredWithoutAWordAtEveryByte) {
  make(5);
  forget_watermark();
  const auto ends = record_ends();
  ASSERT_EQ(ends.size(), 5u);
  for (std::size_t size = ends[3]; size < ends[4]; ++size) {
    const auto torn = copy();
    fs::resize_file(torn / "store" / wal().filename(), size);
    Loss loss;
    const auto store = open(torn, &loss);
    ASSERT_TRUE(store) << size << " " << store.error().message();
    EXPECT_TRUE(loss.is_empty());
    EXPECT_EQ(count(**store), 4);
    ASSERT_TRUE(write(**store, 6));
  }
}

TEST_F(StoreDamageTest, ATailOfGarbageIsATornTailToo) {
  make(5);
  forget_watermark();
  const auto ends = record_ends();
  for (std::size_t at = ends[3]; at < ends[4]; ++at) {
    const auto torn = copy();
    flip(torn / "store" / wal().filename(), at);
    const auto store = open(torn);
    ASSERT_TRUE(store) << at << " " << store.error().message();
    EXPECT_EQ(count(**store), 4);
  }
}

TEST_F(StoreDamageTest, AFlippedBitBeforeOtherWritesIsRefusedAtEveryByteAndChangesNothing) {
  make(5);
  forget_watermark();
  const auto ends = record_ends();
  for (std::size_t at = ends[1]; at < ends[2]; ++at) {
    const auto damaged = copy();
    flip(damaged / "store" / wal().filename(), at);
    const std::string before = listing(damaged);
    Loss loss;
    const auto refused = open(damaged, &loss);
    ASSERT_FALSE(refused) << at;
    EXPECT_EQ(refused.error().code(), ErrorCode::Unavailable);
    EXPECT_THAT(refused.error().message(),
                AllOf(HasSubstr(wal().filename().string()),
                      HasSubstr(fmt::format("damaged at byte {}", ends[1])),
                      HasSubstr("2 commits behind the damage"), HasSubstr("--accept-loss"),
                      HasSubstr("Restore the newest back-up")));
    EXPECT_TRUE(loss.is_acceptable);
    EXPECT_EQ(loss.operations, 6u);
    EXPECT_THAT(loss.heads, ElementsAre(Pair(PartitionNumber{5}, Lsn{5})));
    EXPECT_EQ(listing(damaged), before);
    EXPECT_FALSE(open(damaged)) << "and so the next time";
  }
}

TEST_F(StoreDamageTest, AZeroedBlockIsRefused) {
  {
    const auto store = open(directory.path());
    for (int i = 1; i <= 60; ++i) ASSERT_TRUE(write(**store, i, 4000));
  }
  fs::remove(path("watermark"));
  const auto bytes = *read_bytes(wal());
  for (const std::size_t at : {std::size_t{0}, std::size_t{1} << 15, std::size_t{1} << 16}) {
    const auto zeroed = copy();
    auto damaged = bytes;
    damaged.replace(at, 4096, 4096, '\0');
    std::ofstream(zeroed / "store" / wal().filename(), std::ios::binary) << damaged;
    Loss loss;
    ASSERT_FALSE(open(zeroed, &loss)) << at;
    EXPECT_GT(loss.commits, 30u);
    EXPECT_THAT(loss.heads, ElementsAre(Pair(PartitionNumber{5}, Lsn{60})));
  }
}

TEST_F(StoreDamageTest, WhatWouldBeLeftCanBeLookedAt) {
  make(5);
  flip(wal(), record_ends()[2] + 20);
  const auto remains = Store::open_remains({.directory = directory.path()});
  ASSERT_TRUE(remains) << remains.error().message();
  EXPECT_EQ(count(**remains), 3);
  EXPECT_FALSE(open(directory.path()));
}

TEST_F(StoreDamageTest, AnAcceptedLossKeepsWhatIsBeforeTheDamage) {
  make(5);
  flip(wal(), record_ends()[2] + 20);
  {
    Loss loss;
    const auto store = open(directory.path(), &loss, true);
    ASSERT_TRUE(store) << store.error().message();
    EXPECT_FALSE(loss.is_empty());
    EXPECT_EQ(loss.commits, 1u);
    EXPECT_EQ(count(**store), 3);
    ASSERT_TRUE((*store)->settle_loss());
    ASSERT_TRUE(write(**store, 100));
  }
  Loss loss;
  const auto store = open(directory.path(), &loss);
  ASSERT_TRUE(store) << store.error().message();
  EXPECT_TRUE(loss.is_empty());
  EXPECT_EQ(count(**store), 4);
}

TEST_F(StoreDamageTest, ALossThatWasAcceptedButNotSettledIsNotForgotten) {
  make(5);
  flip(wal(), record_ends()[2] + 20);
  {
    ASSERT_TRUE(open(directory.path(), nullptr, true));
  }
  const auto refused = open(directory.path());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("Start with --accept-loss again"));
  Loss loss;
  const auto store = open(directory.path(), &loss, true);
  ASSERT_TRUE(store);
  EXPECT_FALSE(loss.is_empty());
}

TEST_F(StoreDamageTest, WritesThatWereSyncedAndAreMissingAtTheEndAreMissed) {
  {
    const auto store = open(directory.path());
    for (int i = 1; i <= 5; ++i) ASSERT_TRUE(write(**store, i));
    (*store)->write_watermark();
  }
  const auto ends = record_ends();
  // At the end of a record, where nothing can be seen, and within one, which looks like a torn
  // tail.
  for (const std::size_t size : {ends[3], ends[4] - 3, ends[0] + 1, std::size_t{0}}) {
    const auto cut = copy();
    fs::resize_file(cut / "store" / wal().filename(), size);
    for (int i = 0; i < 2; ++i) {
      Loss loss;
      const auto refused = open(cut, &loss);
      ASSERT_FALSE(refused) << size;
      EXPECT_THAT(refused.error().message(), HasSubstr("--accept-loss"));
      EXPECT_GE(loss.operations, 2u);
    }
    Loss loss;
    const auto store = open(cut, &loss, true);
    ASSERT_TRUE(store) << store.error().message();
    EXPECT_FALSE(loss.is_empty());
  }
  const auto without = copy();
  fs::remove(without / "store" / wal().filename());
  EXPECT_FALSE(open(without));
  const auto flipped = copy();
  flip(flipped / "store" / wal().filename(), ends[4] - 3);
  EXPECT_FALSE(open(flipped));
  EXPECT_TRUE(open(directory.path()));
}

TEST_F(StoreDamageTest, AStoreOfAnEarlierVersionHasNoWatermarkAndIsOpened) {
  make(5);
  fs::remove(path("watermark"));
  const auto store = open(directory.path());
  ASSERT_TRUE(store);
  EXPECT_EQ(count(**store), 5);
}

TEST_F(StoreDamageTest, WithRelaxedDurabilityOnlyARebootExplainsAHole) {
  for (const bool rebooted : {false, true}) {
    const TemporaryDirectory place;
    {
      const auto store = open(place.path(), nullptr, false, Durability::Relaxed);
      (*store)->write_watermark();
      for (int i = 1; i <= 5; ++i) ASSERT_TRUE(write(**store, i));
    }
    const auto files = find_wals(place.path() / "store", 0);
    flip(files.back().path, 200);
    if (rebooted) {
      Watermark watermark(place.path() / "watermark");
      auto mark = *watermark.mark();
      mark.boot[3] ^= 1;
      ASSERT_TRUE(watermark.write(mark));
    }
    const auto store = open(place.path());
    EXPECT_EQ(store.has_value(), rebooted);
    if (store) EXPECT_LT(count(**store), 5);
  }
}

TEST_F(StoreDamageTest, AnOrderlyStopSyncsAlsoWithRelaxedDurability) {
  {
    const auto store = open(directory.path(), nullptr, false, Durability::Relaxed);
    for (int i = 1; i <= 5; ++i) ASSERT_TRUE(write(**store, i));
    (*store)->flush();
  }
  fs::resize_file(wal(), record_ends()[3]);
  EXPECT_FALSE(open(directory.path(), nullptr, false, Durability::Relaxed));
}

TEST_F(StoreDamageTest, ALogThatIsMissingBetweenOthersIsMissed) {
  {
    const auto store = open(directory.path());
    std::atomic<bool> never = false;
    // Each flush of one family begins another log; the others keep theirs alive.
    for (int i = 1; i <= 9; ++i) {
      ASSERT_TRUE(write(**store, i));
      if (i % 3 == 0) (*store)->compact(Family::Log, "", "9", never);
    }
    ASSERT_TRUE(write(**store, 10));
    (*store)->write_watermark();
  }
  const auto files = find_wals(path("store"), 0);
  ASSERT_GE(files.size(), 3u);
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (const bool removed : {true, false}) {
      const auto damaged = copy();
      const auto file = damaged / "store" / files[i].path.filename();
      if (removed) {
        fs::remove(file);
      } else {
        fs::resize_file(file, 0);
      }
      const auto opened = open(damaged);
      ASSERT_FALSE(opened) << file;
      EXPECT_THAT(opened.error().message(), HasSubstr("Restore the newest back-up"));
    }
  }
  const auto store = open(directory.path());
  ASSERT_TRUE(store) << store.error().message();
  EXPECT_EQ(count(**store), 10);
}

TEST_F(StoreDamageTest, AnObsoleteLogDoesNotBlockAStart) {
  make(5);
  const auto old = wal();
  const auto bytes = *read_bytes(old);
  {
    ASSERT_TRUE(open(directory.path()));
  }  // All that was in it is in tables now.
  ASSERT_FALSE(fs::exists(old));
  std::ofstream(old, std::ios::binary) << bytes.substr(0, 50) << "damage" << bytes.substr(56);
  const auto store = open(directory.path());
  ASSERT_TRUE(store) << store.error().message();
  EXPECT_EQ(count(**store), 5);
}

TEST_F(StoreDamageTest, AManifestThatLostItsEndIsRefused) {
  {
    const auto store = open(directory.path());
    std::atomic<bool> never = false;
    for (int i = 1; i <= 5; ++i) {
      ASSERT_TRUE(write(**store, i));
      (*store)->compact(Family::Log, "", "9", never);
      (*store)->compact(Family::Heads, "", "9", never);
    }
    (*store)->flush();
  }
  fs::path manifest;
  for (const auto& entry : fs::directory_iterator(path("store"))) {
    if (entry.path().filename().string().starts_with("MANIFEST")) manifest = entry.path();
  }
  const auto size = fs::file_size(manifest);
  for (std::size_t cut = 0; cut < size; cut += 7) {
    const auto damaged = copy();
    fs::resize_file(damaged / "store" / manifest.filename(), cut);
    const auto refused = open(damaged);
    ASSERT_FALSE(refused) << cut;
    EXPECT_THAT(refused.error().message(), HasSubstr("Restore the newest back-up"));
  }
  for (std::size_t at = 0; at < size; at += 7) {
    const auto damaged = copy();
    flip(damaged / "store" / manifest.filename(), at);
    ASSERT_FALSE(open(damaged)) << at;
  }
  EXPECT_TRUE(open(directory.path()));
}

TEST_F(StoreDamageTest, ACurrentThatIsMissingOrDamagedIsRefused) {
  make(5);
  const auto damaged = copy();
  fs::remove(damaged / "store" / "CURRENT");
  const auto refused = open(damaged);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("CURRENT is missing"));
  const auto size = fs::file_size(path("store/CURRENT"));
  for (std::size_t at = 0; at < size; ++at) {
    const auto flipped = copy();
    flip(flipped / "store" / "CURRENT", at);
    const auto opened = open(flipped);
    ASSERT_FALSE(opened) << at;
    EXPECT_THAT(opened.error().message(), HasSubstr("Restore the newest back-up")) << at;
  }
}

}  // namespace
}  // namespace orrery::storage
