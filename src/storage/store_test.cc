#include "storage/store.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/options.h>

#include "base/test_wait.h"
#include "storage/test_store.h"

namespace orrery::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class StoreTest : public testing::Test {
 protected:
  Result<> put(std::string_view key, std::string_view value, Family family = Family::Log) {
    Batch batch;
    batch.put(family, key, value);
    return commit(*store, batch);
  }
  /// The value, or the outcome in brackets.
  std::string get(std::string_view key, Family family = Family::Log, Tier tier = Tier::Disk) const {
    std::string value;
    switch (store->get(family, key, value, tier)) {
      case Lookup::Found:
        return value;
      case Lookup::Missing:
        return "<missing>";
      case Lookup::Unknown:
        return "<unknown>";
      case Lookup::Failed:
        return "<failed>";
    }
    return "<?>";
  }
  void reopen() {
    store.reset();
    store = open_store(directory.path());
  }
  void write_format(std::string_view line) {
    std::ofstream(directory.path() / "format", std::ios::trunc) << line;
  }

  TemporaryDirectory directory;
  std::unique_ptr<Store> store = open_store(directory.path());
};

// ── commits and reads ────────────────────────────────────────────────────────────────────────────

TEST_F(StoreTest, WhatWasCommittedIsRead) {
  ASSERT_TRUE(put("k", "v"));
  EXPECT_EQ(get("k"), "v");
  EXPECT_EQ(get("other"), "<missing>");
}

TEST_F(StoreTest, FamiliesDoNotSeeEachOther) {
  ASSERT_TRUE(put("k", "log", Family::Log));
  ASSERT_TRUE(put("k", "ids", Family::Ids));
  EXPECT_EQ(get("k", Family::Log), "log");
  EXPECT_EQ(get("k", Family::Ids), "ids");
  EXPECT_EQ(get("k", Family::Rids), "<missing>");
}

TEST_F(StoreTest, WhatIsInMemoryIsReadWithoutTheDisk) {
  ASSERT_TRUE(put("k", "v"));
  EXPECT_EQ(get("k", Family::Log, Tier::Memory), "v");
  EXPECT_EQ(get("other", Family::Log, Tier::Memory), "<missing>");
}

TEST_F(StoreTest, WhatIsNotInMemoryIsUnknownThere) {
  // Above what is worth a flush, so that the next opening has it in tables only.
  ASSERT_TRUE(put("k", std::string(3 << 20, 'x')));
  store->flush();
  reopen();
  EXPECT_EQ(get("k", Family::Log, Tier::Memory), "<unknown>");
  EXPECT_EQ(get("k").size(), 3u << 20);
}

TEST_F(StoreTest, WhatIsSpreadOverTablesIsBroughtTogether) {
  const auto tables = [&] {
    std::size_t count = 0;
    for (const auto& file : std::filesystem::directory_iterator(directory.path() / "store")) {
      if (file.path().extension() == ".sst") ++count;
    }
    return count;
  };
  std::atomic<bool> is_cancelled = false;
  ASSERT_TRUE(put("b1", "1", Family::Terms));
  ASSERT_TRUE(put("b3", "1", Family::Terms));
  EXPECT_EQ(tables(), 0u);
  // Between the others: tables side by side would stay as they are.
  for (const std::string_view value : {"2", "3"}) {
    store->compact(Family::Terms, "b", "c", is_cancelled);
    EXPECT_GE(tables(), 1u);
    ASSERT_TRUE(put("b2", value, Family::Terms));
  }
  store->compact(Family::Terms, "b", "c", is_cancelled);
  EXPECT_EQ(get("b1", Family::Terms), "1");
  EXPECT_EQ(get("b2", Family::Terms), "3");
  // Old tables are deleted when nobody reads them any more; closing waits for that.
  reopen();
  EXPECT_EQ(tables(), 1u);
  EXPECT_EQ(get("b1", Family::Terms), "1");
  EXPECT_EQ(get("b2", Family::Terms), "3");
}

TEST_F(StoreTest, BringingTogetherIsGivenUpWhenNobodyWantsIt) {
  std::atomic<bool> is_cancelled = true;
  ASSERT_TRUE(put("b1", "1", Family::Terms));
  store->compact(Family::Terms, "b", "c", is_cancelled);
  EXPECT_EQ(get("b1", Family::Terms), "1");
}

/// Occupies the threads that flush until it is released.
class BusyFlushThreads {
 public:
  BusyFlushThreads() {
    auto* env = rocksdb::Env::Default();
    const int threads = env->GetBackgroundThreads(rocksdb::Env::HIGH);
    missing_ = threads;
    for (int i = 0; i < threads; ++i) env->Schedule(&wait, this, rocksdb::Env::HIGH);
  }
  ~BusyFlushThreads() { release(); }

  void release() {
    std::unique_lock lock(mutex_);
    released_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return missing_ == 0; });
  }

 private:
  static void wait(void* self) {
    auto& busy = *static_cast<BusyFlushThreads*>(self);
    std::unique_lock lock(busy.mutex_);
    busy.changed_.wait(lock, [&] { return busy.released_; });
    --busy.missing_;
    busy.changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool released_ = false;
  int missing_ = 0;
};

TEST_F(StoreTest, WritesGoOnWhileFlushesAreBehindAndTheStoreSaysSo) {
  EXPECT_FALSE(store->is_behind());
  BusyFlushThreads busy;
  // Two memtables of the log are full. With a third the writer would stand still if there were no
  // more than RocksDB's own two.
  const std::string value(1 << 20, 'x');
  for (int i = 0; i < 70; ++i) ASSERT_TRUE(put(std::to_string(i), value));
  EXPECT_TRUE(store->is_behind());
  EXPECT_EQ(store->stats().write_stalls, 0u);
  busy.release();
  EXPECT_TRUE(test::eventually([&] { return !store->is_behind(); }));
}

TEST_F(StoreTest, AReadReusesItsBufferWhateverItHeld) {
  ASSERT_TRUE(put("k", "short"));
  std::string value(1000, 'x');
  ASSERT_EQ(store->get(Family::Log, "k", value, Tier::Disk), Lookup::Found);
  EXPECT_EQ(value, "short");
}

TEST_F(StoreTest, AReadFromMemoryNeverAnswersWithWhatItsBufferHeld) {
  // Each opening makes a table per family of what was in the WAL. Of so many only some are opened
  // together with the store.
  const std::vector<std::string> keys = {"a", "b", "c", "d", "e", "f", "g", "h"};
  for (const std::string& key : keys) {
    for (std::size_t family = 0; family < kFamilyCount; ++family) {
      ASSERT_TRUE(put(key, "right", static_cast<Family>(family)));
    }
    reopen();
  }
  for (const std::string& key : keys) {
    for (std::size_t family = 0; family < kFamilyCount; ++family) {
      std::string value = "what was read before";
      const auto lookup = store->get(static_cast<Family>(family), key, value, Tier::Memory);
      if (lookup == Lookup::Found) EXPECT_EQ(value, "right");
      EXPECT_NE(lookup, Lookup::Missing);
    }
  }
}

TEST_F(StoreTest, SeveralBatchesAreOneCommitInTheirOrder) {
  Batch first, second;
  first.put(Family::Log, "a", "1");
  first.put(Family::Log, "b", "1");
  second.put(Family::Log, "a", "2");
  second.erase(Family::Log, "b");
  const Batch* const batches[] = {&first, &second};
  ASSERT_TRUE(store->commit(batches));
  EXPECT_EQ(get("a"), "2");
  EXPECT_EQ(get("b"), "<missing>");
}

TEST_F(StoreTest, AnEmptyCommitSucceeds) {
  const Batch batch;
  EXPECT_TRUE(commit(*store, batch));
  EXPECT_TRUE(store->commit({}));
}

TEST_F(StoreTest, EachKindOfErasureTakesAwayWhatItNames) {
  Batch batch;
  for (const auto* key : {"a", "b", "c", "d", "e"}) batch.put(Family::Log, key, "v");
  ASSERT_TRUE(commit(*store, batch));
  Batch erasures;
  erasures.erase(Family::Log, "a");
  erasures.erase_single(Family::Log, "b");
  erasures.erase_range(Family::Log, "c", "e");
  erasures.erase(Family::Log, "never there");
  ASSERT_TRUE(commit(*store, erasures));
  const auto snapshot = store->snapshot();
  ASSERT_TRUE(snapshot);
  EXPECT_THAT(contents(*snapshot, Family::Log), ElementsAre(Pair("e", "v")));
}

TEST_F(StoreTest, WhatIsPutAndErasedInOneBatchIsNotThere) {
  Batch batch;
  batch.put(Family::Log, "k", "v");
  batch.erase_single(Family::Log, "k");
  ASSERT_TRUE(commit(*store, batch));
  EXPECT_EQ(get("k"), "<missing>");
}

TEST_F(StoreTest, ErasuresHoldAfterReopening) {
  ASSERT_TRUE(put("a", "v"));
  ASSERT_TRUE(put("b", "v"));
  reopen();
  Batch erasures;
  erasures.erase_single(Family::Log, "a");
  ASSERT_TRUE(commit(*store, erasures));
  reopen();
  EXPECT_EQ(get("a"), "<missing>");
  EXPECT_EQ(get("b"), "v");
}

TEST_F(StoreTest, DroppingTheFilesOfARangeLeavesItsNeighboursAlone) {
  Batch batch;
  for (const auto* key : {"a1", "b1", "b2", "c1"}) batch.put(Family::Log, key, "v");
  ASSERT_TRUE(commit(*store, batch));
  Batch erasures;
  erasures.erase_range(Family::Log, "b", "c");
  ASSERT_TRUE(commit(*store, erasures));
  store->drop_files(Family::Log, "b", "c");
  const auto snapshot = store->snapshot();
  ASSERT_TRUE(snapshot);
  EXPECT_THAT(contents(*snapshot, Family::Log), ElementsAre(Pair("a1", "v"), Pair("c1", "v")));
}

// ── snapshots and cursors ────────────────────────────────────────────────────────────────────────

TEST_F(StoreTest, ASnapshotDoesNotSeeWhatComesAfterIt) {
  ASSERT_TRUE(put("a", "old"));
  ASSERT_TRUE(put("b", "old"));
  auto snapshot = store->snapshot();
  ASSERT_TRUE(snapshot);
  ASSERT_TRUE(put("a", "new"));
  ASSERT_TRUE(put("c", "new"));
  Batch erasures;
  erasures.erase(Family::Log, "b");
  ASSERT_TRUE(commit(*store, erasures));

  EXPECT_THAT(contents(*snapshot, Family::Log), ElementsAre(Pair("a", "old"), Pair("b", "old")));
  std::string value;
  EXPECT_EQ(snapshot->get(Family::Log, "a", value), Lookup::Found);
  EXPECT_EQ(value, "old");
  EXPECT_EQ(snapshot->get(Family::Log, "c", value), Lookup::Missing);

  snapshot = store->snapshot();
  EXPECT_THAT(contents(*snapshot, Family::Log), ElementsAre(Pair("a", "new"), Pair("c", "new")));
}

TEST_F(StoreTest, VersionsAreReadTogetherAndKeptInMemory) {
  ASSERT_TRUE(put("a", std::string(3 << 20, 'a')));
  ASSERT_TRUE(put("b", "two"));
  store->flush();
  reopen();
  const std::vector<std::string> keys = {"b", "a"};
  {
    const auto memory = store->snapshot(Tier::Memory);
    Snapshot::Values values;
    EXPECT_FALSE(memory->get_versions(keys, values));
    EXPECT_TRUE(memory->has_missed());
  }
  const auto disk = store->snapshot();
  Snapshot::Values values;
  ASSERT_EQ(disk->get_versions(keys, values), true);
  EXPECT_EQ(values[0], "two");
  EXPECT_EQ(values[1].size(), 3U << 20);
  EXPECT_FALSE(disk->has_missed());
  EXPECT_EQ(disk->get_versions(std::vector<std::string>{"b", "c"}, values), false);

  const auto memory = store->snapshot(Tier::Memory);
  ASSERT_EQ(memory->get_versions(std::vector<std::string>{"b"}, values), true);
  EXPECT_EQ(values[0], "two");
  EXPECT_FALSE(memory->has_missed());
}

TEST_F(StoreTest, ASnapshotOfWhatIsInMemoryTellsWhatIsNot) {
  ASSERT_TRUE(put("k", std::string(3 << 20, 'x')));
  store->flush();
  reopen();
  ASSERT_TRUE(put("m", "in memory"));
  std::string value;
  {
    const auto memory = store->snapshot(Tier::Memory);
    EXPECT_EQ(memory->get(Family::Log, "m", value), Lookup::Found);
    EXPECT_FALSE(memory->has_missed());
    EXPECT_EQ(memory->get(Family::Log, "k", value), Lookup::Unknown);
    EXPECT_TRUE(memory->has_missed());
  }
  const auto memory = store->snapshot(Tier::Memory);
  EXPECT_FALSE(memory->cursor(Family::Log, "a", "z").valid());
  EXPECT_TRUE(memory->has_missed()) << "it is not the end";
}

TEST_F(StoreTest, SnapshotsOfWhatIsInMemoryAreOfTheirMoment) {
  ASSERT_TRUE(put("a", "1", Family::Terms));
  const auto before = store->snapshot(Tier::Memory);
  const auto same = store->snapshot(Tier::Memory);
  EXPECT_THAT(contents(*before, Family::Terms), ElementsAre(Pair("a", "1")));
  ASSERT_TRUE(put("a", "2", Family::Terms));
  ASSERT_TRUE(put("b", "2", Family::Terms));
  const auto after = store->snapshot(Tier::Memory);
  EXPECT_THAT(contents(*after, Family::Terms), ElementsAre(Pair("a", "2"), Pair("b", "2")));
  EXPECT_THAT(contents(*before, Family::Terms), ElementsAre(Pair("a", "1")));
  EXPECT_THAT(contents(*same, Family::Terms), ElementsAre(Pair("a", "1")));
}

// Cursors over index entries are used again and again, each time with other bounds.
TEST_F(StoreTest, CursorsKeepToTheirBoundsWhateverTheyWereBefore) {
  const auto name = [](int number) { return fmt::format("{:05}", number); };
  constexpr int kEntries = 5000;
  Batch batch;
  for (int i = 0; i < kEntries; ++i) {
    batch.put(Family::Terms, name(i), std::string(50, static_cast<char>('a' + i % 26)));
    if (i % 3 == 0) batch.erase(Family::Terms, name(i));
  }
  ASSERT_TRUE(commit(*store, batch));
  reopen();
  // Of all that is in tables now, some is written anew, and all comes into the cache.
  Batch later;
  for (int i = 0; i < kEntries; i += 100) later.put(Family::Terms, name(i), "new");
  ASSERT_TRUE(commit(*store, later));
  const auto all = contents(*store->snapshot(), Family::Terms);

  std::mt19937 random(7);
  int misses = 0;
  for (int round = 0; round < 3000; ++round) {
    const int low = std::uniform_int_distribution(0, kEntries)(random);
    const int high = low + std::uniform_int_distribution(0, round % 10 == 0 ? 500 : 12)(random);
    KeysAndValues expected;
    for (const auto& entry : all) {
      if (entry.first >= name(low) && entry.first < name(high)) expected.push_back(entry);
    }
    const auto snapshot = store->snapshot(Tier::Memory);
    KeysAndValues found;
    auto cursor = snapshot->cursor(Family::Terms, name(low), name(high));
    if (round % 2 == 0) {
      for (; cursor.valid(); cursor.next()) found.emplace_back(cursor.key(), cursor.value());
    } else {
      cursor.seek_for_prev(name(high));
      for (; cursor.valid(); cursor.prev()) found.emplace_back(cursor.key(), cursor.value());
      std::ranges::reverse(found);
    }
    if (snapshot->has_missed()) {
      // Tables were replaced in the background: what is in them comes into the cache again.
      contents(*store->snapshot(), Family::Terms);
      ASSERT_LT(++misses, 10);
      continue;
    }
    ASSERT_TRUE(cursor.status());
    ASSERT_EQ(found, expected) << name(low) << " – " << name(high) << ", round " << round;
  }
}

TEST_F(StoreTest, CursorsAndSnapshotsAreSharedByThreadsWhileOthersWrite) {
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint64_t i = 0; !stop; ++i) {
      Batch batch;
      for (const char* key : {"a", "b", "c"}) batch.put(Family::Terms, key, std::to_string(i));
      if (!commit(*store, batch)) break;
    }
  });
  const auto read = [&] {
    for (int i = 0; i < 2000; ++i) {
      const auto snapshot = store->snapshot(Tier::Memory);
      const auto found = contents(*snapshot, Family::Terms, "a", "c");
      const auto others = contents(*snapshot, Family::Terms, "b", "d");
      ASSERT_EQ(found.size(), others.size());
      if (found.empty()) continue;
      for (const auto& entry : {found[1], others[0], others[1]}) {
        ASSERT_EQ(entry.second, found[0].second);
      }
    }
  };
  std::thread reader(read);
  read();
  reader.join();
  stop = true;
  writer.join();
}

TEST_F(StoreTest, ASnapshotOfSeveralFamiliesIsOfOneMoment) {
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint64_t i = 0; !stop; ++i) {
      Batch batch;
      batch.put(Family::Log, "k", std::to_string(i));
      batch.put(Family::Ids, "k", std::to_string(i));
      if (!commit(*store, batch)) break;
    }
  });
  for (int i = 0; i < 200; ++i) {
    const auto snapshot = store->snapshot();
    std::string log = "none", ids = "none";
    snapshot->get(Family::Log, "k", log);
    snapshot->get(Family::Ids, "k", ids);
    EXPECT_EQ(log, ids);
  }
  stop = true;
  writer.join();
}

TEST_F(StoreTest, ACursorWalksFromItsLowerBoundToBeforeItsUpper) {
  Batch batch;
  for (const auto* key : {"a", "b", "c", "d"}) batch.put(Family::Log, key, key);
  ASSERT_TRUE(commit(*store, batch));
  const auto snapshot = store->snapshot();
  ASSERT_TRUE(snapshot);
  const auto keys = [&](std::string_view lower, std::string_view upper) {
    std::string found;
    for (const auto& [key, value] : contents(*snapshot, Family::Log, lower, upper)) found += key;
    return found;
  };
  EXPECT_EQ(keys("b", "d"), "bc");
  EXPECT_EQ(keys("", "zzz"), "abcd");
  EXPECT_EQ(keys("bb", "cc"), "c");
  EXPECT_EQ(keys("c", "c"), "");
  EXPECT_EQ(keys("x", "z"), "");
}

TEST_F(StoreTest, ACursorThatSeeksStaysBelowItsUpperBound) {
  Batch batch;
  for (const auto* key : {"a", "b", "c", "d"}) batch.put(Family::Log, key, key);
  ASSERT_TRUE(commit(*store, batch));
  const auto snapshot = store->snapshot();
  ASSERT_TRUE(snapshot);
  auto cursor = snapshot->cursor(Family::Log, "a", "d", Snapshot::Access::Scan);
  cursor.seek("c");
  ASSERT_TRUE(cursor.valid());
  EXPECT_EQ(cursor.key(), "c");
  cursor.seek("d");
  EXPECT_FALSE(cursor.valid());
  EXPECT_TRUE(cursor.status());
  cursor.seek("a");
  ASSERT_TRUE(cursor.valid());
  EXPECT_EQ(cursor.value(), "a");
}

TEST_F(StoreTest, ACursorKeepsItsBoundWhenItIsMoved) {
  Batch batch;
  for (const auto* key : {"a", "b", "c"}) batch.put(Family::Log, key, key);
  ASSERT_TRUE(commit(*store, batch));
  const auto snapshot = store->snapshot();
  ASSERT_TRUE(snapshot);
  std::vector<Snapshot::Cursor> cursors;
  // Short enough to lie inside the string object, which moves with it.
  cursors.push_back(snapshot->cursor(Family::Log, "a", "c"));
  cursors.push_back(snapshot->cursor(Family::Log, "b", "c"));
  for (auto& cursor : cursors) {
    while (cursor.valid()) cursor.next();
    EXPECT_TRUE(cursor.status());
  }
  cursors[0].seek("b");
  ASSERT_TRUE(cursors[0].valid());
  cursors[0].next();
  EXPECT_FALSE(cursors[0].valid());
}

TEST_F(StoreTest, ACursorGoesBackwardWithinItsBounds) {
  Batch batch;
  for (const auto* key : {"a", "b", "d", "e", "g"}) batch.put(Family::Terms, key, "v");
  ASSERT_TRUE(commit(*store, batch));
  const auto snapshot = store->snapshot();
  auto cursor = snapshot->cursor(Family::Terms, "b", "f");
  std::string seen;
  for (cursor.seek_for_prev("f"); cursor.valid(); cursor.prev()) seen += cursor.key();
  EXPECT_EQ(seen, "edb");
  EXPECT_TRUE(cursor.status());
  cursor.seek_for_prev("c");
  EXPECT_EQ(cursor.key(), "b");
  cursor.next();
  EXPECT_EQ(cursor.key(), "d");
  cursor.seek_for_prev("d");
  EXPECT_EQ(cursor.key(), "d");
  cursor.seek_for_prev("a");
  EXPECT_FALSE(cursor.valid());
}

// ── restarts and formats ─────────────────────────────────────────────────────────────────────────

TEST_F(StoreTest, ReopeningKeepsWhatWasCommitted) {
  ASSERT_TRUE(put("small", "v"));
  reopen();
  EXPECT_EQ(get("small"), "v");
  ASSERT_TRUE(put("large", std::string(3 << 20, 'x')));
  store->flush();
  reopen();
  EXPECT_EQ(get("small"), "v");
  EXPECT_EQ(get("large").size(), 3u << 20);
}

/// Makes of the store one of a version that had no secondary indexes yet.
void drop_terms(const std::filesystem::path& directory) {
  const std::string path = (directory / "store").string();
  std::vector<std::string> names;
  ASSERT_TRUE(rocksdb::DB::ListColumnFamilies({}, path, &names).ok());
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const auto& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open({}, path, families, &handles, &opened).ok());
  const std::unique_ptr<rocksdb::DB> db(opened);
  for (auto* handle : handles) {
    if (handle->GetName() == "terms") ASSERT_TRUE(db->DropColumnFamily(handle).ok());
    ASSERT_TRUE(db->DestroyColumnFamilyHandle(handle).ok());
  }
}

TEST_F(StoreTest, AStoreWithoutTheNewestFamilyGetsIt) {
  ASSERT_TRUE(put("k", "v"));
  store.reset();
  drop_terms(directory.path());
  store = open_store(directory.path());
  EXPECT_EQ(get("k"), "v");
  EXPECT_EQ(get("t", Family::Terms), "<missing>");
  ASSERT_TRUE(put("t", "v", Family::Terms));
  reopen();
  EXPECT_EQ(get("t", Family::Terms), "v");
}

TEST_F(StoreTest, AStoreThatIsOpenCannotBeOpenedTwice) {
  const auto second = try_open_store(directory.path());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::Unavailable);
}

TEST_F(StoreTest, AStoreOfAnotherFormatIsRefusedAndLeftAlone) {
  ASSERT_TRUE(put("k", "v"));
  store.reset();
  write_format("orrery store format 99\n");
  const auto refused = try_open_store(directory.path());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(refused.error().message(), HasSubstr("orrery store format 99"));

  write_format("orrery store format 1\n");
  store = open_store(directory.path());
  EXPECT_EQ(get("k"), "v");
}

TEST_F(StoreTest, AStoreWithoutItsFormatFileIsRefused) {
  store.reset();
  std::filesystem::remove(directory.path() / "format");
  const auto refused = try_open_store(directory.path());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(refused.error().message(), HasSubstr("no 'format' file"));
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "format"))
      << "a refusal must not make the next start believe the store";
}

TEST(StoreOpenTest, ADirectoryThatCannotBeMadeIsNamed) {
  const TemporaryDirectory directory;
  std::ofstream(directory.path() / "file") << "not a directory";
  const auto refused = try_open_store(directory.path() / "file" / "data");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(refused.error().message(), HasSubstr((directory.path() / "file").string()));
}

TEST(StoreOpenTest, AFirstStartOnAFullDiskCanBeRepeatedOnceThereIsSpace) {
  const TemporaryDirectory directory;
  {
    const FullDisk full;
    const auto refused = try_open_store(directory.path());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::Unavailable);
  }
  const auto store = try_open_store(directory.path());
  EXPECT_TRUE(store) << store.error().message();
}

TEST(StoreOpenTest, AFirstStartThatWasKilledBeforeItHadAStoreCanBeRepeated) {
  // The remains of a kill in the middle of writing the format file.
  const TemporaryDirectory directory;
  std::ofstream(directory.path() / "format.new", std::ios::trunc) << "orrery sto";
  const auto store = try_open_store(directory.path());
  EXPECT_TRUE(store) << store.error().message();
}

// ── disk errors ──────────────────────────────────────────────────────────────────────────────────

/// Files that are smaller than this can still be written, RocksDB's own diagnostics among them.
constexpr std::size_t kFileBytesMax = 1 << 20;

/// More than fits into one file of that size.
Batch too_large(const std::string& name) {
  Batch batch;
  for (int i = 0; i < 4; ++i) {
    batch.put(Family::Log, name + std::to_string(i), std::string(kFileBytesMax, 'x'));
  }
  batch.put(Family::Heads, name, "head");
  return batch;
}

TEST_F(StoreTest, AfterAFailedCommitNothingIsCommittedUntilRecovery) {
  ASSERT_TRUE(put("before", "v"));
  {
    const FullDisk full(kFileBytesMax);
    const auto failed = commit(*store, too_large("lost"));
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code(), ErrorCode::Unavailable);
    EXPECT_EQ(get("before"), "v") << "reads go on";
    EXPECT_FALSE(store->recover()) << "the disk is still full";
    EXPECT_EQ(get("before"), "v");
  }
  // The disk takes writes again, but what the store remembers has not been settled.
  const auto refused = put("early", "v");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Unavailable);

  ASSERT_TRUE(store->recover());
  EXPECT_EQ(get("before"), "v");
  EXPECT_EQ(get("early"), "<missing>");
  ASSERT_TRUE(put("after", "v"));
  const auto lost = get("lost", Family::Heads);
  reopen();
  EXPECT_EQ(get("before"), "v");
  EXPECT_EQ(get("after"), "v");
  EXPECT_EQ(get("lost", Family::Heads), lost) << "what recovery settled must stay so";
}

TEST_F(StoreTest, AFailedCommitIsThereWhollyOrNotAtAll) {
  for (int round = 0; round < 3; ++round) {
    const std::string name = "round" + std::to_string(round) + "-";
    {
      const FullDisk full(kFileBytesMax);
      ASSERT_FALSE(commit(*store, too_large(name)));
    }
    ASSERT_TRUE(store->recover());
    const std::string head = get(name, Family::Heads);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(get(name + std::to_string(i)) == "<missing>", head == "<missing>") << name << i;
    }
    ASSERT_TRUE(put(name + "after", "v"));
  }
}

TEST_F(StoreTest, RecoveringWithoutAFailureChangesNothing) {
  ASSERT_TRUE(put("k", "v"));
  EXPECT_TRUE(store->recover());
  EXPECT_EQ(get("k"), "v");
}

TEST_F(StoreTest, ReadersGoOnWhileTheStoreIsReopened) {
  ASSERT_TRUE(put("k", "v"));
  std::atomic<bool> stop{false};
  std::atomic<int> reads{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        EXPECT_EQ(get("k"), "v");
        const auto snapshot = store->snapshot();
        ASSERT_TRUE(snapshot);
        EXPECT_THAT(contents(*snapshot, Family::Log, "k", "l"), ElementsAre(Pair("k", "v")));
        ++reads;
      }
    });
  }
  for (int round = 0; round < 3; ++round) {
    {
      const FullDisk full(kFileBytesMax);
      EXPECT_FALSE(commit(*store, too_large("lost")));
    }
    // The last reader of the old store closes it: recovery must wait until that is done, not only
    // until it has begun.
    const auto recovered = store->recover();
    EXPECT_TRUE(recovered) << recovered.error().message();
    for (int i = 0; i < 100 && !store->recover(); ++i) continue;
  }
  stop = true;
  for (auto& reader : readers) reader.join();
  EXPECT_GT(reads, 0);
}

TEST(StoreDeathTest, AnEntirelyFullDiskIsSurvivedAndWritesResumeOnceThereIsSpace) {
  // In a process of its own: what is at stake is whether it lives.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto story = [] {
    const TemporaryDirectory directory;
    auto store = open_store(directory.path());
    const auto put = [&](std::string_view key) {
      Batch batch;
      batch.put(Family::Log, key, "v");
      return commit(*store, batch).has_value();
    };
    bool as_told = put("before");
    {
      const FullDisk full;
      as_told = as_told && !put("lost") && !store->recover();
    }
    as_told = as_told && store->recover() && put("after");
    store.reset();
    store = open_store(directory.path());
    std::string value;
    as_told = as_told && store->get(Family::Log, "before", value, Tier::Disk) == Lookup::Found &&
              store->get(Family::Log, "after", value, Tier::Disk) == Lookup::Found;
    store.reset();
    return as_told;
  };
  EXPECT_EXIT(std::exit(story() ? 0 : 3), testing::ExitedWithCode(0), "");
}

TEST_F(StoreTest, FiguresAreThere) {
  ASSERT_TRUE(put("k", std::string(100'000, 'x')));
  EXPECT_GE(store->stats().memtable_bytes, 100'000u);
}

}  // namespace
}  // namespace orrery::storage
