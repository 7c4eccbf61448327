#include "storage/backup.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.h"
#include "storage/format_file.h"
#include "storage/life_mark.h"
#include "storage/test_store.h"

namespace orrery::storage {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr UnixSeconds kOpenedAt = 1'790'000'000;

class BackupTest : public testing::Test {
 protected:
  BackupTest() { open(); }

  void open() {
    auto living = open_living(options(data_), false, kOpenedAt);
    ASSERT_TRUE(living) << living.error().message();
    store_ = std::move(living->store);
    life_ = living->life;
  }
  static StoreOptions options(const fs::path& directory) {
    return {.directory = directory, .durability = Durability::Relaxed, .cache_bytes = 4 << 20};
  }

  void put(const std::string& key, const std::string& value) {
    Batch batch;
    batch.put(Family::Unique, key, value);
    ASSERT_TRUE(commit(*store_, batch));
  }

  Result<Backup> take() {
    BackupStop stop;
    return take_backup(*store_, {.directory = backups_, .version = "1.2.3"}, stop);
  }

  /// Contents of the restored directory, opened as a server opens it.
  KeysAndValues restored(const fs::path& directory) {
    auto living = open_living(options(directory), false, kOpenedAt + 1);
    EXPECT_TRUE(living) << living.error().message();
    if (!living) return {};
    has_begun_ = living->has_begun;
    return contents(*living->store->snapshot(), Family::Unique);
  }

  fs::path first_table() const {
    for (const auto& entry : fs::directory_iterator(backups_ / "shared_checksum")) {
      return entry.path();
    }
    return {};
  }

  TemporaryDirectory temporary_;
  fs::path data_ = temporary_.path() / "data";
  fs::path backups_ = temporary_.path() / "far" / "backups";
  fs::path target_ = temporary_.path() / "target";
  std::unique_ptr<Store> store_;
  Life life_;
  bool has_begun_ = false;
};

TEST_F(BackupTest, WhatWasBackedUpIsRestoredInANewLife) {
  put("a", "1");
  const auto first = take();
  ASSERT_TRUE(first) << first.error().message();
  put("a", "2");
  put("b", "3");
  const auto second = take();
  ASSERT_TRUE(second) << second.error().message();
  EXPECT_EQ(second->number, first->number + 1);
  EXPECT_EQ(second->version, "1.2.3");
  EXPECT_EQ(second->life, life_.text());
  store_.reset();

  fs::create_directories(target_);
  ASSERT_TRUE(restore_backup(backups_, first->number, target_));
  EXPECT_THAT(restored(target_), ElementsAre(std::pair("a", "1")));
  EXPECT_TRUE(has_begun_);
  EXPECT_FALSE(restored(target_).empty());
  EXPECT_FALSE(has_begun_) << "once";

  const auto other = temporary_.path() / "other";
  fs::create_directories(other);
  ASSERT_TRUE(restore_backup(backups_, second->number, other));
  EXPECT_THAT(restored(other), ElementsAre(std::pair("a", "2"), std::pair("b", "3")));
  EXPECT_TRUE(has_begun_);
}

TEST_F(BackupTest, TablesOfAnEarlierOneAreNotCopiedAgain) {
  for (int i = 0; i < 200; ++i) put("key" + std::to_string(i), noise(10'000));
  const auto first = take();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->bytes, first->new_bytes);
  put("one", "more");
  const auto second = take();
  ASSERT_TRUE(second);
  EXPECT_GE(second->bytes, first->bytes);
  EXPECT_LT(second->new_bytes, first->new_bytes);
  const auto all = list_backups(backups_);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ(all->back().new_bytes, second->new_bytes);
}

TEST_F(BackupTest, TheDirectoryIsForItsOwnerOnly) {
  ASSERT_TRUE(take());
  struct stat status{};
  ASSERT_EQ(::stat(backups_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(BackupTest, ItIsOneMomentOfAllFamilies) {
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> written{0};
  std::thread writer([&] {
    for (std::uint64_t i = 1; !done; ++i) {
      Batch batch;
      batch.put(Family::Unique, "n", std::to_string(i));
      batch.put(Family::Expiry, "n", std::to_string(i));
      if (!commit(*store_, batch)) return;
      written = i;
    }
  });
  std::vector<std::uint64_t> least;
  for (int i = 0; i < 5; ++i) {
    while (written < static_cast<std::uint64_t>(i + 1) * 50) std::this_thread::yield();
    least.push_back(written);
    EXPECT_TRUE(take());
  }
  done = true;
  writer.join();
  store_.reset();
  for (std::uint32_t number = 1; number <= least.size(); ++number) {
    const auto directory = temporary_.path() / ("moment" + std::to_string(number));
    fs::create_directories(directory);
    ASSERT_TRUE(restore_backup(backups_, number, directory));
    auto living = open_living(options(directory), false, kOpenedAt);
    ASSERT_TRUE(living) << living.error().message();
    std::string one;
    std::string other;
    ASSERT_EQ(living->store->get(Family::Unique, "n", one, Tier::Disk), Lookup::Found);
    ASSERT_EQ(living->store->get(Family::Expiry, "n", other, Tier::Disk), Lookup::Found);
    EXPECT_EQ(one, other);
    EXPECT_GE(std::stoull(one), least[number - 1]);
  }
}

TEST_F(BackupTest, DamageIsFound) {
  put("a", noise(100'000));
  ASSERT_TRUE(take());
  EXPECT_TRUE(verify_backup(backups_, 1));
  {
    std::fstream table(first_table(), std::ios::in | std::ios::out | std::ios::binary);
    table.seekp(100);
    table.put('!');
  }
  const auto verified = verify_backup(backups_, 1);
  ASSERT_FALSE(verified);
  EXPECT_THAT(verified.error().message(), HasSubstr("back-up 1 is damaged"));

  fs::create_directories(target_);
  EXPECT_FALSE(restore_backup(backups_, 1, target_));
  EXPECT_TRUE(is_restore_unfinished(target_));
}

TEST_F(BackupTest, OneWithoutAllOfItsFilesIsListedAsSuch) {
  ASSERT_TRUE(take());
  fs::remove(first_table());
  const auto all = list_backups(backups_);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 1u);
  EXPECT_FALSE(all->front().is_whole);
  EXPECT_FALSE(verify_backup(backups_, 1));
  fs::create_directories(target_);
  EXPECT_FALSE(restore_backup(backups_, 1, target_));
  EXPECT_FALSE(is_restore_unfinished(target_)) << "nothing was touched";
}

TEST_F(BackupTest, DataIsNeverReplaced) {
  put("a", "1");
  ASSERT_TRUE(take());
  store_.reset();
  const auto refused = restore_backup(backups_, 1, data_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::BadRequest);
  EXPECT_THAT(refused.error().message(), HasSubstr("holds data already"));
  EXPECT_THAT(restored(data_), ElementsAre(std::pair("a", "1")));
  EXPECT_FALSE(has_begun_);
}

TEST_F(BackupTest, ARestoreThatDidNotEndCanBeDoneAgain) {
  put("a", "1");
  ASSERT_TRUE(take());
  fs::create_directories(target_ / "store");
  std::ofstream(target_ / kUnfinishedRestoreFile) << "…";
  std::ofstream(target_ / "store" / "CURRENT") << "half";
  ASSERT_TRUE(restore_backup(backups_, 1, target_));
  EXPECT_FALSE(is_restore_unfinished(target_));
  EXPECT_THAT(restored(target_), ElementsAre(std::pair("a", "1")));
}

TEST_F(BackupTest, WhatIsNotThereIsSaid) {
  EXPECT_EQ(list_backups(backups_).error().code(), ErrorCode::NotFound);
  ASSERT_TRUE(take());
  const auto refused = verify_backup(backups_, 7);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::NotFound);
  EXPECT_THAT(refused.error().message(), HasSubstr("no back-up 7, but 1"));
}

TEST_F(BackupTest, OldOnesArePruned) {
  for (int i = 0; i < 4; ++i) {
    put("k" + std::to_string(i), "v");
    ASSERT_TRUE(take());
  }
  const auto gone = prune_backups(backups_, 2);
  ASSERT_TRUE(gone) << gone.error().message();
  EXPECT_EQ(*gone, 2u);
  const auto left = list_backups(backups_);
  ASSERT_TRUE(left);
  ASSERT_EQ(left->size(), 2u);
  EXPECT_EQ(left->front().number, 3u);
  EXPECT_TRUE(verify_backup(backups_, 3));
  EXPECT_TRUE(verify_backup(backups_, 4));
  fs::create_directories(target_);
  EXPECT_TRUE(restore_backup(backups_, 4, target_));
}

TEST_F(BackupTest, TwoWhoWriteExcludeEachOtherAndReadersThoseWhoPrune) {
  ASSERT_TRUE(take());
  {
    const FileDescriptor writer(::open((backups_ / "writer").c_str(), O_RDWR));
    ASSERT_EQ(::flock(writer.number(), LOCK_EX), 0);
    EXPECT_EQ(take().error().code(), ErrorCode::Conflict);
    EXPECT_EQ(prune_backups(backups_, 1).error().code(), ErrorCode::Conflict);
    EXPECT_TRUE(list_backups(backups_));
  }
  const FileDescriptor reader(::open(backups_.c_str(), O_RDONLY | O_DIRECTORY));
  ASSERT_EQ(::flock(reader.number(), LOCK_SH), 0);
  EXPECT_EQ(prune_backups(backups_, 1).error().code(), ErrorCode::Conflict);
  EXPECT_TRUE(take());
  EXPECT_TRUE(verify_backup(backups_, 2));
}

TEST_F(BackupTest, OneThatIsStoppedIsNotThere) {
  for (int i = 0; i < 400; ++i) put("key" + std::to_string(i), noise(10'000));
  BackupStop stop;
  stop.request();
  const auto stopped = take_backup(*store_, {.directory = backups_}, stop);
  ASSERT_FALSE(stopped);
  EXPECT_THAT(stopped.error().message(), HasSubstr("stopped"));
  EXPECT_TRUE(list_backups(backups_).value().empty());
  EXPECT_TRUE(take());
  EXPECT_TRUE(verify_backup(backups_, list_backups(backups_).value().front().number));
}

TEST_F(BackupTest, OneOfALaterFormatIsRefusedBeforeAnythingIsTouched) {
  ASSERT_TRUE(write_format(data_, "orrery store format 99"));
  ASSERT_TRUE(take());
  fs::create_directories(target_);
  const auto refused = restore_backup(backups_, 1, target_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("orrery store format 99"));
  EXPECT_TRUE(fs::is_empty(target_));
}

TEST_F(BackupTest, AFullDiskFailsItAndLeavesTheOthers) {
  put("a", "1");
  ASSERT_TRUE(take());
  for (int i = 0; i < 400; ++i) put("key" + std::to_string(i), noise(10'000));
  store_->flush();
  {
    const FullDisk full(100'000);
    EXPECT_FALSE(take());
  }
  EXPECT_EQ(list_backups(backups_).value().size(), 1u);
  EXPECT_TRUE(verify_backup(backups_, 1));
}

}  // namespace
}  // namespace orrery::storage
