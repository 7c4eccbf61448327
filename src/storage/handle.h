// An open RocksDB, and what its readers share. For store.cc, store_open.cc and
// snapshot.cc only.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/store.h"
#include "storage/value_cache.h"

namespace rocksdb {
class ColumnFamilyHandle;
class DB;
class Snapshot;
class Status;
}  // namespace rocksdb

namespace orrery::storage {

class WalGuard;

/// So much of the cache is for single versions, the rest for blocks.
inline constexpr std::size_t kVersionsPart = 2;

/// A status of RocksDB, for a person.
Error disk_error(std::string_view doing, const rocksdb::Status& status);

/// The store as one write has left it. Thread-safe. Must not outlive the RocksDB.
class SharedSnapshot {
 public:
  explicit SharedSnapshot(rocksdb::DB& db);
  ~SharedSnapshot();
  SharedSnapshot(const SharedSnapshot&) = delete;
  SharedSnapshot& operator=(const SharedSnapshot&) = delete;

  const rocksdb::Snapshot* snapshot() const { return snapshot_; }
  /// Whether nothing was written since.
  bool is_now() const;

  /// A cursor that was given back: making one takes longer than most of what it is for. Null when
  /// there is none. All of them are over the same family.
  std::unique_ptr<Snapshot::Cursor::State> take_cursor();
  void give_back(std::unique_ptr<Snapshot::Cursor::State> cursor);

 private:
  rocksdb::DB& db_;
  const rocksdb::Snapshot* const snapshot_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Snapshot::Cursor::State>> idle_;
};

/// The snapshot that brief readers share for as long as nothing is written. Thread-safe.
class LatestSnapshot {
 public:
  std::shared_ptr<SharedSnapshot> of(rocksdb::DB& db) {
    std::shared_ptr<SharedSnapshot> old;  // Goes after the lock.
    std::lock_guard lock(mutex_);
    if (!shared_ || !shared_->is_now())
      old = std::exchange(shared_, std::make_shared<SharedSnapshot>(db));
    return shared_;
  }
  /// It is out of date, or keeps tables that have been replaced. Readers that have it go on with
  /// it.
  void forget() {
    std::shared_ptr<SharedSnapshot> old;
    std::lock_guard lock(mutex_);
    old.swap(shared_);
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<SharedSnapshot> shared_;
};

struct Store::Handle {
  Handle(std::size_t version_bytes, std::shared_ptr<LatestSnapshot> latest_snapshot);
  ~Handle();

  rocksdb::ColumnFamilyHandle* family(Family which) const {
    return families[static_cast<std::size_t>(which)];
  }

  /// Shared with the attempt to open it. RocksDB has a pointer to it for as long as it lives.
  std::shared_ptr<WalGuard> guard;
  std::unique_ptr<rocksdb::DB> db;
  /// Of `log`, whose values never change. Not kept across reopening: what was promised and not
  /// stored may come again with another value.
  ValueCache versions;
  const std::shared_ptr<LatestSnapshot> latest;
  std::array<rocksdb::ColumnFamilyHandle*, kFamilyCount> families{};
  rocksdb::ColumnFamilyHandle* default_family = nullptr;
  /// True once it is closed, and not only about to be. Shared with recovery, which waits for that.
  std::shared_ptr<std::atomic<bool>> closed = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace orrery::storage
