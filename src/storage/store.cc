#include "storage/store.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
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
#include <rocksdb/options.h>
#include <rocksdb/transaction_log.h>
#include <rocksdb/write_batch.h>

#include "base/assert.h"
#include "base/diagnostics.h"
#include "storage/backup.h"
#include "storage/format_file.h"
#include "storage/handle.h"
#include "storage/recovery/watermark_keeper.h"

namespace orrery::storage {
namespace {

/// How long a read waits for a store that is being reopened after a disk error.
constexpr std::chrono::seconds kReopenWaitMax{10};
/// The disk must take so much, durably, before we believe that it takes writes again.
constexpr std::size_t kProbeBytes = 4 << 20;
/// Memtables below this are quicker to replay than worth a flush at every stop.
constexpr std::uint64_t kFlushWorthwhileBytes = 2 << 20;
/// So many tables at level 0 tell that compactions are behind; RocksDB slows writes down at 20.
constexpr std::uint64_t kLevel0TablesMany = 12;

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
  std::string_view advice;
  if (status.IsNoSpace()) {
    advice = ". Free some space on the disk of the data directory; writes resume by themselves";
  } else if (status.IsCorruption()) {
    advice = ". A file of the store is damaged. Restore the newest back-up";
  }
  return Error(ErrorCode::Unavailable, fmt::format("{}: {}{}", doing, status.ToString(), advice));
}

Store::Handle::Handle(std::size_t version_bytes, std::shared_ptr<LatestSnapshot> latest_snapshot)
    : versions(version_bytes), latest(std::move(latest_snapshot)) {}

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

Store::Store(StoreOptions options)
    : options_(std::move(options)),
      watermark_(std::make_unique<WatermarkKeeper>(options_.directory,
                                                   options_.durability == Durability::Strict)) {}

Store::~Store() = default;

Result<std::unique_ptr<Store>> Store::open(StoreOptions options, Loss* loss) {
  std::error_code failure;
  std::filesystem::create_directories(options.directory, failure);
  if (failure) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("cannot make the data directory {}: {}", options.directory.string(),
                             failure.message()));
  }
  ORRERY_TRY(check_format(options.directory));
  auto store = make(std::move(options));
  Loss ignored;
  Loss& found = loss != nullptr ? *loss : ignored;
  auto& watermark = *store->watermark_;
  if (watermark.is_damaged()) {
    diagnostics::warning(
        "{} cannot be read and is made anew; writes that are missing at the end of the store would "
        "not be noticed this time",
        (store->options_.directory / kWatermarkFile).string());
  }
  ORRERY_TRY(store->handle_,
             store->open_handle(Access::ReadWrite, store->options_.accepts_loss, found));
  // Opening has put all that was replayed into tables.
  watermark.note_synced(store->handle_->db->GetLatestSequenceNumber());
  watermark.start();
  return store;
}

std::unique_ptr<Store> Store::make(StoreOptions options) {
  std::unique_ptr<Store> store(new Store(std::move(options)));
  store->cache_ = rocksdb::NewLRUCache(store->options_.cache_bytes -
                                       store->options_.cache_bytes / kVersionsPart);
  return store;
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
  const std::uint64_t before = handle->db->GetLatestSequenceNumber();
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
  if (status.ok()) {
    const std::uint64_t after = handle->db->GetLatestSequenceNumber();
    // Operations are numbered in commit order, which the watermark counts on.
    ORRERY_ASSERT(after >= before + writes.Count());
    if (options.sync) watermark_->note_synced(after);
    return {};
  }
  failed_ = true;
  return disk_error("the write could not be stored", status);
}

Result<> Store::recover() {
  if (!failed_) return {};
  ORRERY_TRY(probe_disk(options_.directory));
  {
    // It reads from what is to be closed.
    std::lock_guard lock(backup_mutex_);
    if (backup_ != nullptr) backup_->request();
  }
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

  Loss loss;
  auto opened = open_handle(Access::ReadWrite, false, loss);
  const bool writable = opened.has_value();
  if (!writable && loss.is_empty()) opened = open_handle(Access::ReadOnly, false, loss);
  if (!opened) {
    // A disk that refuses writes may come back. One that has lost some needs somebody.
    if (!loss.is_empty() && !std::exchange(has_told_loss_, true)) {
      diagnostics::error("{}", opened.error().message());
    }
    return Error(opened.error());
  }
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

void Store::compact(Family family, std::string_view from, std::string_view to,
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
    diagnostics::debug("a key range was not compacted: {}", status.ToString());
  }
}

void Store::flush() {
  const auto handle = this->handle();
  if (!handle || failed_) return;
  if (stats().memtable_bytes >= kFlushWorthwhileBytes) {
    std::vector<rocksdb::ColumnFamilyHandle*> families(handle->families.begin(),
                                                       handle->families.end());
    const auto status = handle->db->Flush(rocksdb::FlushOptions(), families);
    if (!status.ok()) diagnostics::warning("the last flush failed: {}", status.ToString());
  }
  const std::uint64_t written = handle->db->GetLatestSequenceNumber();
  if (const auto status = handle->db->SyncWAL(); !status.ok()) {
    diagnostics::warning("the last sync failed: {}", status.ToString());
    return;
  }
  watermark_->note_synced(written);
  write_watermark();
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

Result<> Store::require_gaps() { return write_format(options_.directory, kFormatLineWithGaps); }

void Store::write_watermark() {
  if (const auto written = watermark_->write(); !written) {
    diagnostics::warning("{}", written.error().message());
  }
}

Result<> Store::settle_loss() { return watermark_->settle_loss(); }

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
