// Store: the one RocksDB of a node. Durable commits, point reads, and snapshots to iterate over.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "storage/batch.h"
#include "storage/loss.h"

namespace orrery::storage {

enum class Durability {
  Strict,   ///< on stable storage before commit() returns
  Relaxed,  ///< in the operating system's hands; order is kept, the last moments may be lost
};

struct StoreOptions {
  std::filesystem::path directory;
  Durability durability = Durability::Strict;
  std::size_t cache_bytes = 64 << 20;
  /// Opens a store that has lost acknowledged writes, without them. The caller then begins a new
  /// life of the store and calls settle_loss(): LSNs of lost writes must not come again.
  bool accepts_loss = false;
};

/// Where a read may look.
enum class Tier {
  Memory,  ///< memtables and block cache: does not block; may answer Unknown
  Disk,    ///< may block
};

enum class Lookup {
  Found,
  Missing,
  Unknown,  ///< only with Tier::Memory: ask again with Tier::Disk, off the event loop
  Failed,   ///< I/O error, or the store is being reopened for too long
};

/// Plain figures, published by server/metrics.cc.
struct StoreStats {
  std::uint64_t memtable_bytes = 0;
  std::uint64_t cache_bytes = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t pending_compaction_bytes = 0;
  std::uint64_t write_stalls = 0;  ///< how often RocksDB has begun to slow writes down
};

struct Backup;
struct BackupOptions;
class BackupStop;
class Snapshot;
class WatermarkKeeper;
struct SyncedMark;

/// Of a store that nobody has open: names of tables whose blocks are not as they were written, and
/// why. Tables that are no longer part of the store count as well. Blocks, for long.
std::vector<std::pair<std::string, std::string>> damaged_tables(
    const std::filesystem::path& directory);

class Store {
 public:
  /// Opens or creates the store. Blocks. Recovers by itself from a crash. Unavailable when another
  /// process has it, the disk refuses, the format is one that this version cannot read, or
  /// something that was acknowledged is missing; the message says which. `loss` is told what is
  /// missing, also when that is accepted.
  static Result<std::unique_ptr<Store>> open(StoreOptions options, Loss* loss = nullptr);
  /// For reading only, with nothing changed on the disk: what there would be if a loss were
  /// accepted. Blocks.
  static Result<std::unique_ptr<Store>> open_remains(StoreOptions options);
  /// The same to see whether the store is sound: tells `loss` what is missing, if anything. Errors
  /// as open().
  static Result<std::unique_ptr<Store>> open_to_check(StoreOptions options, Loss& loss);
  ~Store();

  /// Applies all batches as one atomic write, durable as configured. Blocks. Only one thread at a
  /// time. Unavailable when the disk refuses: then nothing is promised about the batches (they are
  /// wholly there or wholly not, which a reopen settles), and every further commit is refused until
  /// recover() has succeeded.
  Result<> commit(std::span<const Batch* const> batches) {
    return commit(batches, options_.durability);
  }
  /// The same with another durability than configured.
  Result<> commit(std::span<const Batch* const> batches, Durability durability);

  /// After a failed commit: tries whether the disk takes writes again, and if so closes and opens
  /// the store anew, so that what counts is what is on the disk, not what we remember. Reads go on
  /// before and after, and wait while it is reopened. Blocks.
  Result<> recover();

  /// Reads one value into `out`, whose memory is reused. Thread-safe.
  Lookup get(Family family, std::string_view key, std::string& out, Tier tier) const;

  /// A consistent view over all families. With Tier::Disk it blocks, and so does all that is read
  /// from it. Unavailable as Lookup::Failed.
  Result<Snapshot> snapshot(Tier tier = Tier::Disk) const;

  /// Frees the space of a range that is no longer reachable, as far as whole files lie in it.
  void drop_files(Family family, std::string_view from, std::string_view to);

  /// Compacts a key range. Blocks, as long as it takes; given up once `is_cancelled`.
  void compact(Family family, std::string_view from, std::string_view to,
               std::atomic<bool>& is_cancelled);

  /// Writes what is only in memory to tables, if it is much, so that the next start has little to
  /// replay; and syncs everything. For an orderly stop. Blocks.
  void flush();
  /// Notes beside the store what is certainly on the disk, which happens about every second by
  /// itself. Blocks.
  void write_watermark();
  /// A new life has begun after an accepted loss. Blocks.
  Result<> settle_loss();

  /// Whether flushes or compactions are so far behind that RocksDB is about to slow writes down.
  /// Background work that writes much (copies, index builds) waits until they have caught up, since
  /// a write stall holds back everybody's writes, not only its own. Cheap enough to ask every few
  /// milliseconds.
  bool is_behind() const;

  StoreStats stats() const;

  /// Reads all tables from the disk, not from a cache of ours, and compares their checksums: of the
  /// whole file, or of its blocks where an earlier version has written it. `go_on` is asked between
  /// pieces of a megabyte, or between tables; false: enough. Calls `tell` with the name of each
  /// table that is damaged or missing, and why. Blocks, for long.
  void verify_tables(
      const std::function<bool()>& go_on,
      const std::function<void(const std::string& table, const std::string& why)>& tell) const;

  /// Files in the data directory that change as long as something is written, by their names in it.
  std::vector<std::string> growing_files() const;

  /// Notes in the data directory that versions which read only `heads` of format 3 must not open
  /// the store. Durable when it returns. Blocks.
  Result<> require_gaps();

 private:
  friend class Snapshot;
  friend Result<Backup> take_backup(Store& store, const BackupOptions& options, BackupStop& stop);
  struct Handle;  // An open RocksDB. Readers share it; the last one closes it.

  struct Attempt;  // To open it.
  enum class Access { ReadWrite, ReadOnly };
  /// Of the write-ahead log.
  enum class Replay {
    Whole,       ///< all of it, or the opening fails
    UpToDamage,  ///< up to the first place that is not as it was written
  };

  explicit Store(StoreOptions options);
  static std::unique_ptr<Store> make(StoreOptions options);
  std::shared_ptr<Handle> handle() const;
  std::shared_ptr<Handle> wait_for_handle() const;

  // In store_open.cc.
  std::filesystem::path rocks_directory() const;
  Result<std::shared_ptr<Handle>> open_handle(Access access, bool accepts_loss, Loss& loss);
  Attempt attempt(Access access, Replay replay) const;
  Result<> check_present(const SyncedMark& mark) const;
  Result<> examine(const Attempt& failed, Loss& loss) const;
  bool is_ahead(const Attempt& stopped) const;
  std::uint64_t synced_before() const;
  Loss missing_at_the_end(const Handle& opened) const;

  StoreOptions options_;
  const std::unique_ptr<WatermarkKeeper> watermark_;
  std::shared_ptr<void> cache_;  // rocksdb::Cache, kept across reopening.
  mutable std::shared_mutex gate_;
  std::shared_ptr<Handle> handle_;  // Guarded by gate_; null while the store is reopened.
  std::mutex backup_mutex_;
  BackupStop* backup_ = nullptr;  // That is being taken; guarded by backup_mutex_.
  bool failed_ = false;           // Only the committing thread touches these.
  bool has_told_loss_ = false;
  // Shared with RocksDB's listener, which may outlive a handle.
  std::shared_ptr<std::atomic<std::uint64_t>> write_stalls_ =
      std::make_shared<std::atomic<std::uint64_t>>(0);
};

/// A view of the store at one moment. Movable; may be used by one thread at a time. Long-lived ones
/// keep superseded data on the disk.
class Snapshot {
 public:
  Snapshot(Snapshot&&) noexcept;
  Snapshot& operator=(Snapshot&&) noexcept;
  ~Snapshot();

  /// With Tier::Memory: something that was asked for was not there. Whatever was read since then
  /// may be less than there is: ask again with Tier::Disk.
  bool has_missed() const;

  /// As Store::get.
  Lookup get(Family family, std::string_view key, std::string& out) const;

  /// Values that were read together. They must not outlive the snapshot.
  class Values {
   public:
    Values();
    Values(Values&&) noexcept;
    ~Values();
    /// Lives until the next read.
    std::string_view operator[](std::size_t place) const;

   private:
    friend class Snapshot;
    struct State;
    std::unique_ptr<State> state_;
  };
  /// The values of these keys of `log`, in their order: cheaper than one by one, and kept in
  /// memory. False when one of them is missing. Unavailable on an I/O error; NotInMemory where a
  /// snapshot of Tier::Memory would have to ask the disk.
  Result<bool> get_versions(std::span<const std::string> keys, Values& out) const;

  /// Iterates [lower, upper) in key order. The cursor must not outlive the snapshot.
  class Cursor {
   public:
    Cursor(Cursor&&) noexcept;
    ~Cursor();
    void seek(std::string_view key);
    /// To the last one that is not after `key`.
    void seek_for_prev(std::string_view key);
    /// Both only while valid().
    void next();
    void prev();
    bool valid() const;
    /// Both live until the cursor moves.
    std::string_view key() const;
    std::string_view value() const;
    /// An I/O error also ends the iteration: check when valid() turns false.
    Result<> status() const;

   private:
    friend class Snapshot;
    friend class SharedSnapshot;
    struct State;
    explicit Cursor(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
  };

  enum class Access { Point, Scan };  ///< Scan reads ahead and leaves the block cache alone.
  Cursor cursor(Family family, std::string_view lower, std::string_view upper,
                Access access = Access::Point) const;

 private:
  friend class Store;
  struct State;
  explicit Snapshot(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace orrery::storage
