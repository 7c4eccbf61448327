#include "storage/life_mark.h"

#include <fstream>
#include <iterator>

#include <gmock/gmock.h>

#include "storage/keys.h"
#include "storage/records.h"
#include "storage/test_store.h"

namespace orrery::storage {
namespace {

namespace fs = std::filesystem;

constexpr UnixSeconds kNow = 1'790'000'000;

/// As rsync does it: what has the same size and time is left alone, other files are replaced, and
/// what is not in the copy is removed.
void sync_back(const fs::path& copy, const fs::path& to) {
  for (const auto& each : fs::recursive_directory_iterator(to)) {
    const auto twin = copy / fs::relative(each.path(), to);
    if (each.is_regular_file() && !fs::exists(twin)) fs::remove(each.path());
  }
  for (const auto& each : fs::recursive_directory_iterator(copy)) {
    const auto twin = to / fs::relative(each.path(), copy);
    if (!each.is_regular_file()) continue;
    const bool same = fs::exists(twin) && fs::file_size(twin) == each.file_size() &&
                      fs::last_write_time(twin) == each.last_write_time();
    if (same) continue;
    const auto draft = twin.string() + ".part";
    fs::copy_file(each.path(), draft, fs::copy_options::overwrite_existing);
    fs::last_write_time(draft, each.last_write_time());
    fs::rename(draft, twin);
  }
}

class LifeMarkTest : public ::testing::Test {
 protected:
  /// Opens the store as a server does, and returns whether a new life began.
  bool open(bool new_life = false) {
    store_.reset();
    auto living =
        open_living({.directory = path_, .durability = Durability::Relaxed, .cache_bytes = 4 << 20},
                    new_life, ++now_);
    EXPECT_TRUE(living) << living.error().message();
    if (!living) return false;
    store_ = std::move(living->store);
    life_ = living->life;
    return living->has_begun;
  }
  /// In order, which writes the watermark.
  void stop() {
    store_->flush();
    store_.reset();
  }
  void write(std::uint64_t lsn) {
    Head head;
    head.lsn = Lsn{lsn};
    Batch batch;
    batch.put(Family::Heads, partition_prefix({1}), head.make());
    ASSERT_TRUE(commit(*store_, batch));
  }
  void copy_all(const fs::path& from, const fs::path& to) {
    fs::remove_all(to);
    copy_directory(from, to);
  }

  TemporaryDirectory home_;
  const fs::path path_ = home_.path() / "data";
  const fs::path copy_ = home_.path() / "copy";
  UnixSeconds now_ = kNow;
  Life life_;
  std::unique_ptr<Store> store_;
};

TEST_F(LifeMarkTest, ADirectoryThatStaysWhereItIsKeepsItsLife) {
  EXPECT_FALSE(open());
  const Life first = life_;
  write(5);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(open());
  EXPECT_EQ(life_, first);
}

TEST_F(LifeMarkTest, ADirectoryThatWasRenamedKeepsItsLife) {
  open();
  const Life first = life_;
  store_.reset();
  fs::rename(path_, copy_);
  fs::rename(copy_, path_);
  EXPECT_FALSE(open());
  EXPECT_EQ(life_, first);
}

TEST_F(LifeMarkTest, ACopyBeginsANewLifeOnce) {
  open();
  const Life first = life_;
  write(5);
  store_.reset();
  copy_all(path_, copy_);
  fs::remove_all(path_);
  fs::rename(copy_, path_);
  EXPECT_TRUE(open());
  EXPECT_EQ(life_.number, 2u);
  EXPECT_NE(life_.id, first.id);
  EXPECT_FALSE(open());
  EXPECT_EQ(life_.number, 2u);
}

TEST_F(LifeMarkTest, ACopyThatIsWrittenIntoTheFilesThatAreThereIsTold) {
  open();
  write(5);
  store_.reset();
  copy_all(path_, copy_);
  open();
  write(9);
  store_.reset();
  // As cp does it: the files stay, with other contents.
  for (const auto& each : fs::recursive_directory_iterator(copy_)) {
    if (!each.is_regular_file()) continue;
    std::ifstream in(each.path(), std::ios::binary);
    std::ofstream(path_ / fs::relative(each.path(), copy_), std::ios::binary | std::ios::trunc)
        << std::string(std::istreambuf_iterator<char>(in), {});
  }
  EXPECT_EQ(origin_of(path_), Origin::Copied);
}

TEST_F(LifeMarkTest, ACopyThatIsSyncedBackIsTold) {
  open();
  write(5);
  store_.reset();
  copy_all(path_, copy_);
  open();
  write(9);
  store_.reset();
  sync_back(copy_, path_);
  EXPECT_TRUE(open());
}

TEST_F(LifeMarkTest, ACopyThatWasMadeWhileTheServerRanAndIsSyncedBackWithoutAStartIsTold) {
  open();
  write(5);
  copy_all(path_, copy_);
  write(9);
  store_.reset();
  sync_back(copy_, path_);
  EXPECT_TRUE(open());
}

TEST_F(LifeMarkTest, WhenTheStoreAloneIsPutBackItIsTold) {
  open();
  stop();
  copy_all(path_, copy_);
  open();
  stop();
  fs::remove_all(path_ / "store");
  fs::copy(copy_ / "store", path_ / "store", fs::copy_options::recursive);
  // With the watermark of later it would be refused: see StoreDamageTest.
  fs::copy(copy_ / "watermark", path_ / "watermark", fs::copy_options::overwrite_existing);
  EXPECT_TRUE(open());
  store_.reset();
  fs::remove(path_ / "life");
  EXPECT_TRUE(open());
}

TEST_F(LifeMarkTest, AStoreThatWasNeverMarkedIsMarkedWithoutANewLife) {
  fs::create_directories(path_);
  store_ = open_store(path_);
  write(5);
  store_.reset();
  EXPECT_EQ(origin_of(path_), Origin::Unmarked);
  EXPECT_FALSE(open());
  EXPECT_EQ(life_.number, 1u);
  EXPECT_EQ(origin_of(path_), Origin::Same);
}

TEST_F(LifeMarkTest, ANewLifeCanBeAskedFor) {
  open();
  EXPECT_TRUE(open(/*new_life=*/true));
  EXPECT_EQ(life_.number, 2u);
  EXPECT_FALSE(open());
}

TEST_F(LifeMarkTest, WhatACopyWasToldByIsNotForgottenWhenTheServerStopsBeforeTheNewLife) {
  open();
  store_.reset();
  EXPECT_TRUE(mark_as_copied(path_));
  EXPECT_EQ(origin_of(path_), Origin::Copied);
  EXPECT_TRUE(open());
  // Between the write to the store and the mark.
  ASSERT_TRUE(begin_life(*store_, ++now_));
  EXPECT_TRUE(open());
  EXPECT_FALSE(open());
}

TEST_F(LifeMarkTest, AMarkThatCannotBeReadCountsAsACopy) {
  open();
  store_.reset();
  for (const char* text : {"", "something", "orrery life 1\nlife", "orrery life 1\nlife 1-0\n"}) {
    std::ofstream(path_ / "life", std::ios::trunc) << text;
    EXPECT_EQ(origin_of(path_), Origin::Copied) << text;
  }
}

}  // namespace
}  // namespace orrery::storage
