#include "storage/store.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/transaction_log.h>
#include <rocksdb/write_batch.h>

#include "base/assert.h"
#include "base/diagnostics.h"
#include "storage/durable_file.h"
#include "storage/handle.h"
#include "storage/open_files.h"

namespace orrery::storage {
namespace {

/// Written beside the store when it is made. A store of another number is refused, never misread.
constexpr std::string_view kFormatFile = "format";
constexpr std::string_view kFormatLine = "orrery store format 1";
/// From the second life on: heads may have gaps.
constexpr std::string_view kFormatLineWithGaps = "orrery store format 2";

/// How long a read waits for a store that is being reopened after a disk error.
constexpr std::chrono::seconds kReopenWaitMax{10};
/// What a disk must take, durably, before we believe that it takes writes again.
constexpr std::size_t kProbeBytes = 4 << 20;
/// What is less than this in memory is quicker to replay than worth a flush at every stop.
constexpr std::uint64_t kFlushWorthwhileBytes = 2 << 20;

/// Memtables of a family before its writes are stalled. While one is being flushed a second fills;
/// the others absorb bursts. Memory is only used while flushes are behind.
constexpr int kMemtablesMax = 4;
/// So many tables at level 0 tell that compactions are behind; RocksDB slows writes down at 20.
constexpr std::uint64_t kLevel0TablesMany = 12;

/// So much of the cache is for single versions, the rest for blocks.
constexpr std::size_t kVersionsPart = 2;

constexpr std::array<const char*, kFamilyCount> kFamilyNames = {
    "catalog", "heads", "log", "ids", "rids", "unique", "history", "expiry", "terms"};

/// RocksDB's own diagnostics go with ours. Left to itself it writes a file in the data directory,
/// and Debian's build aborts the process when that file cannot be written, as on a full disk.
class RocksDiagnostics final : public rocksdb::Logger {
 public:
  RocksDiagnostics() : rocksdb::Logger(rocksdb::InfoLogLevel::WARN_LEVEL) {}
  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    char line[1024];
    std::vsnprintf(line, sizeof line, format, arguments);
    diagnostics::debug("rocksdb: {}", line);
  }
};

/// Tables that have been replaced take up space until nobody reads them any more.
class TableChanges final : public rocksdb::EventListener {
 public:
  explicit TableChanges(std::shared_ptr<LatestMoment> latest) : latest_(std::move(latest)) {}
  void OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo&) override { latest_->forget(); }
  void OnCompactionCompleted(rocksdb::DB*, const rocksdb::CompactionJobInfo&) override {
    latest_->forget();
  }

 private:
  const std::shared_ptr<LatestMoment> latest_;
};

/// Counts the moments at which RocksDB begins to slow writes down or to stop them.
class WriteStalls final : public rocksdb::EventListener {
 public:
  explicit WriteStalls(std::shared_ptr<std::atomic<std::uint64_t>> count)
      : count_(std::move(count)) {}
  void OnStallConditionsChanged(const rocksdb::WriteStallInfo& info) override {
    if (info.condition.cur == rocksdb::WriteStallCondition::kNormal) return;
    count_->fetch_add(1, std::memory_order_relaxed);
    const bool stopped = info.condition.cur == rocksdb::WriteStallCondition::kStopped;
    diagnostics::debug("rocksdb: writes to '{}' are {} until flushes and compactions catch up",
                       info.cf_name, stopped ? "stopped" : "slowed down");
  }

 private:
  const std::shared_ptr<std::atomic<std::uint64_t>> count_;
};

rocksdb::DBOptions db_options(const std::shared_ptr<LatestMoment>& latest,
                              const std::shared_ptr<std::atomic<std::uint64_t>>& write_stalls) {
  rocksdb::DBOptions options;
  options.listeners = {std::make_shared<TableChanges>(latest),
                       std::make_shared<WriteStalls>(write_stalls)};
  options.info_log = std::make_shared<RocksDiagnostics>();
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.max_background_jobs = 2;
  options.bytes_per_sync = 1 << 20;
  options.max_total_wal_size = 96 << 20;
  rlimit files{};
  const bool known = ::getrlimit(RLIMIT_NOFILE, &files) == 0;
  options.max_open_files = static_cast<int>(table_files_max(known ? files.rlim_cur : 1024));
  options.skip_stats_update_on_db_open = true;
  options.max_manifest_file_size = 16 << 20;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  // One committer writes; concurrent memtable inserts would only cost their coordination.
  options.allow_concurrent_memtable_write = false;
  options.enable_write_thread_adaptive_yield = false;
  return options;
}

/// Small memtables by default: they are allocated as they fill, so an empty server stays small.
rocksdb::ColumnFamilyOptions family_options(Family family,
                                            const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.format_version = 5;
  table.checksum = rocksdb::ChecksumType::kXXH3;
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;

  rocksdb::ColumnFamilyOptions options;
  options.level_compaction_dynamic_level_bytes = true;
  options.compression = rocksdb::kLZ4Compression;
  options.max_write_buffer_number = kMemtablesMax;
  if (family == Family::Log) {
    // Bodies, read in long scans, and one here and one there by queries. A scan pays for each
    // block, a single read for what else is in one. Every key is known to be there before it is
    // asked for.
    table.block_size = 32 << 10;
    options.write_buffer_size = 32 << 20;
    options.target_file_size_base = 64 << 20;
    options.max_bytes_for_level_base = 256 << 20;
  } else if (family == Family::History) {
    // Bodies too, read from a position on and erased from the front.
    table.block_size = 32 << 10;
    options.write_buffer_size = 16 << 20;
    options.target_file_size_base = 64 << 20;
  } else if (family == Family::Terms) {
    // Walked along from somewhere, in either direction; nobody asks for a single key.
    table.block_size = 8 << 10;
    options.write_buffer_size = 16 << 20;
  } else if (family == Family::Catalog || family == Family::Heads) {
    // A few small values, which are nearly always there.
    table.block_size = 4 << 10;
    options.write_buffer_size = 4 << 20;
  } else {
    // The order of numbers is walked along from end to end; the others are asked for single keys.
    table.block_size = family == Family::Rids ? 16 << 10 : 4 << 10;
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10, false));
    // In pieces: whole, the filter of a large file is larger than what one shard of the cache
    // holds, and would be read from the file for every key that is asked for.
    table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
    table.partition_filters = true;
    options.memtable_whole_key_filtering = true;
    options.memtable_prefix_bloom_size_ratio = 0.02;
    options.write_buffer_size =
        family == Family::Ids || family == Family::Rids ? 16 << 20 : 4 << 20;
  }
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

Result<> check_format(const std::filesystem::path& directory) {
  const auto path = directory / kFormatFile;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    if (std::filesystem::exists(directory / "store", ignored)) {
      return Error(ErrorCode::Unavailable,
                   fmt::format("{} has a store but no '{}' file: it was not made by Orrery, or a "
                               "copy of it is incomplete. Point --data-dir at an empty directory "
                               "or restore the file from a backup",
                               directory.string(), kFormatFile));
    }
    return write_durably(path, std::string(kFormatLine) + "\n");
  }
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  if (line != kFormatLine && line != kFormatLineWithGaps) {
    return Error(
        ErrorCode::Unavailable,
        fmt::format(
            "{} holds '{}', but this version reads only '{}' and '{}'. Start the version of "
            "Orrery that made it, or point --data-dir elsewhere",
            path.string(), line, kFormatLine, kFormatLineWithGaps));
  }
  return {};
}

/// Whether the disk takes writes: a file of some size, written and synced. Blocks.
Result<> probe_disk(const std::filesystem::path& directory) {
  const auto path = (directory / "probe").string();
  const int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) {
    return Error(ErrorCode::Unavailable, fmt::format("{}: {}", path, std::strerror(errno)));
  }
  const std::string block(64 << 10, 'o');
  int failure = 0;
  for (std::size_t written = 0; written < kProbeBytes && failure == 0;) {
    const ssize_t size = ::write(file, block.data(), block.size());
    if (size < 0) {
      failure = errno;
    } else {
      written += static_cast<std::size_t>(size);
    }
  }
  if (failure == 0 && ::fdatasync(file) != 0) failure = errno;
  ::close(file);
  ::unlink(path.c_str());
  if (failure != 0) {
    return Error(ErrorCode::Unavailable, fmt::format("{}: {}", path, std::strerror(failure)));
  }
  return {};
}

}  // namespace

Error disk_error(std::string_view doing, const rocksdb::Status& status) {
  const bool full = status.IsNoSpace();
  return Error(ErrorCode::Unavailable,
               fmt::format("{}: {}{}", doing, status.ToString(),
                           full ? ". Free some space on the disk of the data directory; writes "
                                  "resume by themselves"
                                : ""));
}

Store::Handle::Handle(std::size_t version_bytes, std::shared_ptr<LatestMoment> latest_moment)
    : versions(version_bytes), latest(std::move(latest_moment)) {}

Store::Handle::~Handle() {
  latest->forget();
  for (auto* handle : families) {
    if (handle != nullptr) db->DestroyColumnFamilyHandle(handle);
  }
  if (default_family != nullptr) db->DestroyColumnFamilyHandle(default_family);
  if (db) db->Close().PermitUncheckedError();
  db.reset();
  closed->store(true, std::memory_order_release);
}

Store::Store(StoreOptions options) : options_(std::move(options)) {}

Store::~Store() = default;

Result<std::unique_ptr<Store>> Store::open(StoreOptions options) {
  std::error_code failure;
  std::filesystem::create_directories(options.directory, failure);
  if (failure) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("cannot make the data directory {}: {}", options.directory.string(),
                             failure.message()));
  }
  ORRERY_TRY(check_format(options.directory));
  std::unique_ptr<Store> store(new Store(std::move(options)));
  store->cache_ = rocksdb::NewLRUCache(store->options_.cache_bytes -
                                       store->options_.cache_bytes / kVersionsPart);
  ORRERY_TRY(store->handle_, store->open_handle(false));
  return store;
}

Result<std::shared_ptr<Store::Handle>> Store::open_handle(bool read_only) const {
  const auto cache = std::static_pointer_cast<rocksdb::Cache>(cache_);
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  families.emplace_back(rocksdb::kDefaultColumnFamilyName, family_options(Family::Catalog, cache));
  for (std::size_t i = 0; i < kFamilyCount; ++i) {
    families.emplace_back(kFamilyNames[i], family_options(static_cast<Family>(i), cache));
  }
  const std::string path = (options_.directory / "store").string();
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  std::error_code ignored;
  rocksdb::Status status;
  const auto latest = std::make_shared<LatestMoment>();
  const auto options = db_options(latest, write_stalls_);
  if (read_only) {
    status = rocksdb::DB::OpenForReadOnly(options, path, families, &handles, &db);
  } else if (std::filesystem::exists(options_.directory / "store" / "CURRENT", ignored)) {
    // Families that are missing were left out by a crash while the store was made, or are newer
    // than it: they are empty.
    status = rocksdb::DB::Open(options, path, families, &handles, &db);
  } else {
    // All families in one go: made one by one, each costs several fsyncs, and a first start its
    // speed.
    status = rocksdb::DB::Open(options, path, {families.front()}, &handles, &db);
    if (status.ok()) {
      std::vector<rocksdb::ColumnFamilyHandle*> made;
      status = db->CreateColumnFamilies({families.begin() + 1, families.end()}, &made);
      handles.insert(handles.end(), made.begin(), made.end());
    }
  }
  if (!status.ok()) return disk_error(fmt::format("cannot open the store in {}", path), status);
  auto handle = std::make_shared<Handle>(options_.cache_bytes / kVersionsPart, latest);
  handle->db.reset(db);
  handle->default_family = handles[0];
  for (std::size_t i = 0; i < kFamilyCount; ++i) handle->families[i] = handles[i + 1];
  return handle;
}

std::shared_ptr<Store::Handle> Store::handle() const {
  std::shared_lock lock(gate_);
  return handle_;
}

std::shared_ptr<Store::Handle> Store::wait_for_handle() const {
  // The store is reopened after a disk error, which happens about never and takes milliseconds:
  // looking again beats a condition variable that every read would have to share.
  const auto deadline = std::chrono::steady_clock::now() + kReopenWaitMax;
  for (;;) {
    if (auto now = handle()) return now;
    if (std::chrono::steady_clock::now() > deadline) return nullptr;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

Result<> Store::commit(std::span<const Batch* const> batches, Durability durability) {
  if (failed_) return Error(ErrorCode::Unavailable, "the disk has refused an earlier write");
  const auto handle = this->handle();
  ORRERY_ASSERT(handle != nullptr);
  std::size_t bytes = 0;
  for (const Batch* batch : batches) bytes += batch->byte_size();
  rocksdb::WriteBatch writes(bytes + 16);
  for (const Batch* batch : batches) {
    batch->for_each(
        [&](Batch::Kind kind, Family family, std::string_view key, std::string_view value) {
          auto* column = handle->family(family);
          rocksdb::Status status;
          switch (kind) {
            case Batch::Kind::Put:
              status = writes.Put(column, key, value);
              break;
            case Batch::Kind::Erase:
              status = writes.Delete(column, key);
              break;
            case Batch::Kind::EraseSingle:
              status = writes.SingleDelete(column, key);
              break;
            case Batch::Kind::EraseRange:
              status = writes.DeleteRange(column, key, value);
              break;
          }
          ORRERY_ASSERT(status.ok());
        });
  }
  rocksdb::WriteOptions options;
  options.sync = durability == Durability::Strict;
  const auto status = handle->db->Write(options, &writes);
  handle->latest->forget();
  if (status.ok()) return {};
  failed_ = true;
  return disk_error("the write could not be stored", status);
}

Result<> Store::recover() {
  if (!failed_) return {};
  ORRERY_TRY(probe_disk(options_.directory));
  std::shared_ptr<Handle> closing;
  {
    std::unique_lock lock(gate_);
    closing.swap(handle_);
  }
  // RocksDB locks its directory, so the old one must be closed before the new one is opened;
  // readers hold it for a page at the longest.
  if (closing) {
    const auto closed = closing->closed;
    closing.reset();
    while (!closed->load(std::memory_order_acquire)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  auto opened = open_handle(false);
  const bool writable = opened.has_value();
  if (!writable) opened = open_handle(true);
  if (!opened) return Error(opened.error());
  {
    std::unique_lock lock(gate_);
    handle_ = std::move(*opened);
  }
  if (!writable) {
    return Error(ErrorCode::Unavailable, "the store can only be opened for reading at the moment");
  }
  failed_ = false;
  return {};
}

Lookup Store::get(Family family, std::string_view key, std::string& out, Tier tier) const {
  const auto handle = tier == Tier::Memory ? this->handle() : wait_for_handle();
  if (!handle) return tier == Tier::Memory ? Lookup::Unknown : Lookup::Failed;
  rocksdb::ReadOptions options;
  options.read_tier = tier == Tier::Memory ? rocksdb::kBlockCacheTier : rocksdb::kReadAllTier;
  rocksdb::PinnableSlice value(&out);
  const auto status = handle->db->Get(options, handle->family(family), key, &value);
  if (status.ok()) {
    // Asked to look in memory only, RocksDB answers "found" with nothing in it when the table
    // itself is not open yet, and leaves in `out` whatever was there. No value of ours that is read
    // this way is empty.
    if (tier == Tier::Memory && value.empty()) return Lookup::Unknown;
    if (value.IsPinned()) out.assign(value.data(), value.size());
    return Lookup::Found;
  }
  if (status.IsNotFound()) return Lookup::Missing;
  if (status.IsIncomplete()) return Lookup::Unknown;
  diagnostics::error("a read from the store failed: {}", status.ToString());
  return Lookup::Failed;
}

void Store::drop_files(Family family, std::string_view from, std::string_view to) {
  const auto handle = wait_for_handle();
  if (!handle) return;
  const rocksdb::Slice begin = from;
  const rocksdb::Slice end = to;
  const auto status =
      rocksdb::DeleteFilesInRange(handle->db.get(), handle->family(family), &begin, &end, false);
  if (!status.ok()) diagnostics::warning("space was not reclaimed: {}", status.ToString());
}

void Store::gather(Family family, std::string_view from, std::string_view to,
                   std::atomic<bool>& is_cancelled) {
  const auto handle = wait_for_handle();
  if (!handle) return;
  const rocksdb::Slice begin = from;
  const rocksdb::Slice end = to;
  rocksdb::CompactRangeOptions options;
  options.exclusive_manual_compaction = false;
  options.canceled = &is_cancelled;
  const auto status = handle->db->CompactRange(options, handle->family(family), &begin, &end);
  if (!status.ok() && !is_cancelled) {
    diagnostics::debug("tables were not brought together: {}", status.ToString());
  }
}

void Store::flush() {
  const auto handle = this->handle();
  if (!handle || failed_ || stats().memtable_bytes < kFlushWorthwhileBytes) return;
  std::vector<rocksdb::ColumnFamilyHandle*> families(handle->families.begin(),
                                                     handle->families.end());
  const auto status = handle->db->Flush(rocksdb::FlushOptions(), families);
  if (!status.ok()) diagnostics::warning("the last flush failed: {}", status.ToString());
}

bool Store::is_behind() const {
  const auto handle = this->handle();
  if (!handle) return false;
  auto& db = *handle->db;
  for (auto* family : handle->families) {
    std::uint64_t value = 0;
    if (db.GetIntProperty(family, rocksdb::DB::Properties::kNumImmutableMemTable, &value) &&
        value > 0) {
      return true;
    }
    const std::string level_0 = rocksdb::DB::Properties::kNumFilesAtLevelPrefix + "0";
    std::string tables;
    if (db.GetProperty(family, level_0, &tables) &&
        std::strtoull(tables.c_str(), nullptr, 10) >= kLevel0TablesMany) {
      return true;
    }
  }
  return false;
}

std::vector<std::string> Store::growing_files() const {
  std::vector<std::string> names;
  const auto handle = this->handle();
  if (!handle) return names;
  std::string manifest;
  if (std::ifstream current(options_.directory / "store" / "CURRENT");
      std::getline(current, manifest)) {
    names.push_back("store/" + manifest);
  }
  std::unique_ptr<rocksdb::LogFile> wal;
  if (handle->db->GetCurrentWalFile(&wal).ok() && wal) names.push_back("store" + wal->PathName());
  return names;
}

Result<> Store::require_gaps() {
  return write_durably(options_.directory / kFormatFile, std::string(kFormatLineWithGaps) + "\n");
}

StoreStats Store::stats() const {
  StoreStats stats;
  stats.write_stalls = write_stalls_->load(std::memory_order_relaxed);
  const auto handle = this->handle();
  if (!handle) return stats;
  auto& db = *handle->db;
  db.GetAggregatedIntProperty(rocksdb::DB::Properties::kCurSizeAllMemTables, &stats.memtable_bytes);
  db.GetAggregatedIntProperty(rocksdb::DB::Properties::kLiveSstFilesSize, &stats.live_bytes);
  db.GetAggregatedIntProperty(rocksdb::DB::Properties::kEstimatePendingCompactionBytes,
                              &stats.pending_compaction_bytes);
  stats.cache_bytes =
      std::static_pointer_cast<rocksdb::Cache>(cache_)->GetUsage() + handle->versions.bytes();
  return stats;
}

}  // namespace orrery::storage
