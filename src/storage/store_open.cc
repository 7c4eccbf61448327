// The part of Store that opens RocksDB, and finds out whether all that was acknowledged is there.
//
// RocksDB is first told to accept a write-ahead log only if all of it is sound. That costs nothing
// more, and it is so after every orderly stop and nearly every crash. Otherwise the log is looked
// at: a torn tail is cut off, and anything else is a loss, which somebody has to accept.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_checksum.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>
#include <rocksdb/wal_filter.h>
#include <rocksdb/write_batch.h>

#include "base/diagnostics.h"
#include "storage/format_file.h"
#include "storage/handle.h"
#include "storage/open_files.h"
#include "storage/recovery/rocks_log.h"
#include "storage/recovery/wal_scan.h"
#include "storage/recovery/watermark_keeper.h"
#include "storage/store.h"

namespace orrery::storage {

/// Watches RocksDB replay its write-ahead log. RocksDB numbers all operations without gaps, but
/// replays across a gap without a word. Used by one opening; must live as long as the RocksDB that
/// it was given to.
class WalGuard final : public rocksdb::WalFilter {
 public:
  enum class OnGap {
    Fail,  ///< the opening fails, with nothing changed on the disk
    Stop,  ///< replay ends, and what follows is dropped
  };
  explicit WalGuard(OnGap on_gap) : on_gap_(on_gap) {}

  /// Whether replay has begun: MANIFEST and tables were in order.
  bool has_begun() const { return !first_wals_.empty(); }
  /// No log before this one is replayed.
  std::uint64_t first_wal() const;
  std::uint32_t family(const std::string& name) const;
  /// Whether there was anything to replay.
  bool has_replayed() const { return first_seen_.has_value(); }
  /// How much of the log was replayed, in bytes of its file; 0: nothing.
  std::uint64_t replayed(std::uint64_t wal) const;
  /// The log that replay was stopped in, because of a gap before it.
  std::optional<std::uint64_t> stopped_in() const { return stopped_in_; }
  /// Whether the family has nothing more to take from that log, or from those before it.
  bool is_beyond(std::uint32_t family, std::uint64_t wal) const;

  const char* Name() const override { return "orrery.WalGuard"; }
  void ColumnFamilyLogNumberMap(const std::map<std::uint32_t, std::uint64_t>& first_wals,
                                const std::map<std::string, std::uint32_t>& families) override;
  WalProcessingOption LogRecordFound(unsigned long long wal, const std::string& file,
                                     const rocksdb::WriteBatch& batch, rocksdb::WriteBatch*,
                                     bool*) override;

 private:
  const OnGap on_gap_;
  std::map<std::uint32_t, std::uint64_t> first_wals_;  // Of each family.
  std::map<std::string, std::uint32_t> families_;
  std::optional<std::uint64_t> first_seen_;
  std::map<std::uint64_t, std::uint64_t> replayed_;  // Bytes of each log.
  std::optional<std::uint64_t> expected_;            // The number of the next operation.
  std::optional<std::uint64_t> stopped_in_;
};

std::uint64_t WalGuard::first_wal() const {
  // Older ones than the first that had a record were skipped, or empty.
  if (first_seen_) return *first_seen_;
  return first_wals_.empty() ? 0 : std::ranges::min(first_wals_ | std::views::values);
}

std::uint32_t WalGuard::family(const std::string& name) const {
  const auto found = families_.find(name);
  return found == families_.end() ? 0 : found->second;
}

bool WalGuard::is_beyond(std::uint32_t family, std::uint64_t wal) const {
  const auto found = first_wals_.find(family);
  return found != first_wals_.end() && found->second > wal;
}

std::uint64_t WalGuard::replayed(std::uint64_t wal) const {
  const auto found = replayed_.find(wal);
  return found == replayed_.end() ? 0 : found->second;
}

void WalGuard::ColumnFamilyLogNumberMap(const std::map<std::uint32_t, std::uint64_t>& first_wals,
                                        const std::map<std::string, std::uint32_t>& families) {
  first_wals_ = first_wals;
  families_ = families;
}

rocksdb::WalFilter::WalProcessingOption WalGuard::LogRecordFound(unsigned long long wal,
                                                                 const std::string&,
                                                                 const rocksdb::WriteBatch& batch,
                                                                 rocksdb::WriteBatch*, bool*) {
  if (!first_seen_) first_seen_ = wal;
  std::uint64_t& replayed = replayed_[wal];
  replayed = end_of_record(replayed, batch.GetDataSize());
  std::uint64_t number;
  std::memcpy(&number, batch.Data().data(), sizeof number);  // Every batch begins with it.
  if (expected_ && number > *expected_) {
    stopped_in_ = wal;
    return on_gap_ == OnGap::Fail ? WalProcessingOption::kCorruptedRecord
                                  : WalProcessingOption::kStopReplay;
  }
  expected_ = number + batch.Count();
  return WalProcessingOption::kContinueProcessing;
}

namespace {

/// Memtables of a family before its writes are stalled. While one is being flushed a second fills;
/// the others absorb bursts. Memory is only used while flushes are behind.
constexpr int kMemtablesMax = 4;

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
  TableChanges(std::shared_ptr<LatestSnapshot> latest, WatermarkKeeper& watermark)
      : latest_(std::move(latest)), watermark_(watermark) {}
  void OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo&) override { changed(); }
  void OnCompactionCompleted(rocksdb::DB*, const rocksdb::CompactionJobInfo&) override {
    changed();
  }

 private:
  void changed() {
    latest_->forget();
    watermark_.note_tables();
  }

  const std::shared_ptr<LatestSnapshot> latest_;
  WatermarkKeeper& watermark_;
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

rocksdb::DBOptions db_options() {
  rocksdb::DBOptions options;
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
  // The checksums of blocks are not all compared by VerifySstFileChecksum: those of the parts of a
  // filter are left out.
  options.file_checksum_gen_factory = rocksdb::GetFileChecksumGenCrc32cFactory();
  options.max_manifest_file_size = 16 << 20;
  // So that a log that was closed and is missing or cut off is noticed.
  options.track_and_verify_wals_in_manifest = true;
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

std::string describe(const WalScan& scan, const std::filesystem::path& directory) {
  return fmt::format("{} is damaged at byte {}: {}",
                     (directory / fmt::format("{:06}.log", scan.wal)).string(), scan.offset,
                     scan.why);
}

/// For an operator who has to decide at 3 a.m.
Error refusal(const Loss& loss) {
  std::string text = loss.damage + ". ";
  if (loss.commits > 0) {
    text += fmt::format(
        "Acknowledged writes would be lost: {} commits behind the damage, and what "
        "stands in it. ",
        loss.commits);
  } else if (loss.operations > 0) {
    text += fmt::format("Acknowledged writes are missing: {} operations. ", loss.operations);
  } else {
    text += "Acknowledged writes may be lost. ";
  }
  text += "So the server does not start. Restore the newest back-up";
  text +=
      loss.is_acceptable
          ? ", or start once with --accept-loss to go on without these writes"
          : "; other parts of the store are newer than the damage, so --accept-loss cannot help";
  return Error(ErrorCode::Unavailable, std::move(text));
}

/// Whether RocksDB, though it was content, has not read every log to its end.
bool has_unread(const WalGuard& guard, const std::filesystem::path& directory) {
  if (!guard.has_begun()) return false;
  // Of logs before the first that had a record nothing is known: RocksDB may have skipped them.
  return std::ranges::any_of(find_wals(directory, guard.first_wal()), [&](const WalFile& file) {
    std::error_code ignored;
    return std::filesystem::file_size(file.path, ignored) != guard.replayed(file.number);
  });
}

Error opening_error(const std::filesystem::path& directory, const rocksdb::Status& status) {
  const auto doing = fmt::format("cannot open the store in {}", directory.string());
  if (!status.IsCorruption() && !status.IsPathNotFound()) return disk_error(doing, status);
  return Error(ErrorCode::Unavailable,
               fmt::format("{}, because a file of it is damaged or missing: {}. Nothing was "
                           "changed. Restore the newest back-up",
                           doing, status.ToString()));
}

}  // namespace

struct Store::Attempt {
  rocksdb::Status status;
  std::shared_ptr<Handle> handle;
  std::shared_ptr<WalGuard> guard;
};

std::filesystem::path Store::rocks_directory() const { return options_.directory / "store"; }

Store::Attempt Store::attempt(Access access, Replay replay) const {
  const auto cache = std::static_pointer_cast<rocksdb::Cache>(cache_);
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  families.emplace_back(rocksdb::kDefaultColumnFamilyName, family_options(Family::Catalog, cache));
  for (std::size_t i = 0; i < kFamilyCount; ++i) {
    families.emplace_back(kFamilyNames[i], family_options(static_cast<Family>(i), cache));
  }
  const std::string path = rocks_directory().string();
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  std::error_code ignored;
  const auto latest = std::make_shared<LatestSnapshot>();
  Attempt made;
  made.guard = std::make_shared<WalGuard>(replay == Replay::Whole ? WalGuard::OnGap::Fail
                                                                  : WalGuard::OnGap::Stop);
  auto options = db_options();
  options.listeners = {std::make_shared<TableChanges>(latest, *watermark_),
                       std::make_shared<WriteStalls>(write_stalls_)};
  options.wal_filter = made.guard.get();
  options.wal_recovery_mode = replay == Replay::Whole
                                  ? rocksdb::WALRecoveryMode::kAbsoluteConsistency
                                  : rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  if (access == Access::ReadOnly) {
    made.status = rocksdb::DB::OpenForReadOnly(options, path, families, &handles, &db);
  } else if (std::filesystem::exists(rocks_directory() / "CURRENT", ignored)) {
    // Families that are missing were left out by a crash while the store was made, or are newer
    // than it: they are empty.
    made.status = rocksdb::DB::Open(options, path, families, &handles, &db);
  } else {
    // All families in one go: made one by one, each costs several fsyncs, and a first start its
    // speed.
    made.status = rocksdb::DB::Open(options, path, {families.front()}, &handles, &db);
    if (made.status.ok()) {
      std::vector<rocksdb::ColumnFamilyHandle*> created;
      made.status = db->CreateColumnFamilies({families.begin() + 1, families.end()}, &created);
      handles.insert(handles.end(), created.begin(), created.end());
    }
  }
  if (!made.status.ok()) return made;
  made.handle = std::make_shared<Handle>(options_.cache_bytes / kVersionsPart, latest);
  made.handle->db.reset(db);
  made.handle->guard = made.guard;
  made.handle->default_family = handles[0];
  for (std::size_t i = 0; i < kFamilyCount; ++i) made.handle->families[i] = handles[i + 1];
  return made;
}

Result<std::shared_ptr<Store::Handle>> Store::open_handle(Access access, bool accepts_loss,
                                                          Loss& loss) {
  const auto mark = watermark_->mark();
  if (mark) {
    ORRERY_TRY(check_present(*mark));
    if (mark->is_loss_pending && !accepts_loss) {
      return Error(ErrorCode::Unavailable,
                   fmt::format("the store in {} has lost acknowledged writes, and a start with "
                               "--accept-loss did not come to its end. Start with --accept-loss "
                               "again, or restore the newest back-up",
                               options_.directory.string()));
    }
  }
  // A log that RocksDB might take for shorter than it is, is tried out with nothing changed.
  const bool is_odd = std::ranges::any_of(find_wals(rocks_directory(), 0), [](const WalFile& file) {
    return has_odd_header(file.path);
  });
  auto opened = attempt(is_odd ? Access::ReadOnly : access, Replay::Whole);
  const bool is_unread = is_odd && opened.handle && has_unread(*opened.guard, rocks_directory());
  if (is_odd && opened.handle && !is_unread && access == Access::ReadWrite) {
    opened.handle.reset();
    opened = attempt(access, Replay::Whole);
  }
  if (!opened.handle || is_unread) {
    if (!is_unread && (!opened.status.IsCorruption() || !opened.guard->has_begun())) {
      return opening_error(rocks_directory(), opened.status);
    }
    opened.handle.reset();
    ORRERY_TRY(examine(opened, loss));
    if (!loss.is_empty() && (!accepts_loss || !loss.is_acceptable)) return refusal(loss);
    if (!loss.is_empty()) ORRERY_TRY(watermark_->begin_loss());
    opened = attempt(access, Replay::UpToDamage);
    if (!opened.handle) return opening_error(rocks_directory(), opened.status);
  }
  if (loss.is_empty()) {
    loss = missing_at_the_end(*opened.handle);
    if (!loss.is_empty() && !accepts_loss) return refusal(loss);
    if (!loss.is_empty()) ORRERY_TRY(watermark_->begin_loss());
  }
  if (loss.is_empty() && mark && mark->is_loss_pending) {
    loss.damage = "an earlier start with --accept-loss did not come to its end";
    loss.is_acceptable = true;
  }
  return opened.handle;
}

Result<> Store::check_present(const SyncedMark& mark) const {
  std::error_code ignored;
  if (!std::filesystem::exists(rocks_directory() / "CURRENT", ignored)) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("{} is missing, although the store was in use. Nothing was changed. "
                             "Restore the newest back-up",
                             (rocks_directory() / "CURRENT").string()));
  }
  if (const auto current = check_manifest(rocks_directory(), mark); !current) {
    return Error(ErrorCode::Unavailable,
                 current.error().message() +
                     ". Opening the store would lose acknowledged writes, so the server does not "
                     "start, and nothing was changed. Restore the newest back-up");
  }
  return {};
}

Result<> Store::examine(const Attempt& failed, Loss& loss) const {
  const WalGuard& guard = *failed.guard;
  const auto files = find_wals(rocks_directory(), guard.first_wal());
  const std::uint32_t heads = guard.family(kFamilyNames[static_cast<std::size_t>(Family::Heads)]);
  ORRERY_TRY(auto scan, scan_wals(files, heads));
  // Logs that RocksDB knows to be in tables already, and that nobody had removed yet.
  const bool is_sound = scan.verdict == WalScan::Verdict::Sound;
  if (is_sound && failed.status.ok() && !guard.has_replayed()) return {};
  const auto mark = watermark_->mark();
  const std::uint64_t synced = synced_before();
  const bool is_torn = scan.verdict == WalScan::Verdict::TornTail;
  if (is_torn && scan.last_kept.value_or(0) >= synced) return {};

  const auto probe = attempt(Access::ReadOnly, Replay::UpToDamage);
  const std::uint64_t kept = probe.handle ? probe.handle->db->GetLatestSequenceNumber() : 0;
  const bool keeps_synced = probe.handle && kept >= synced;
  if (is_torn && keeps_synced) return {};
  // With relaxed durability a power failure takes away any part of what was not synced, not only
  // the end of it. A crash of this process alone does not.
  const bool may_have_holes = mark && !mark->is_strict && mark->boot != current_boot();
  if (may_have_holes && keeps_synced) {
    diagnostics::warning(
        "the machine went down with relaxed durability: {} commits that had been acknowledged in "
        "the last moments were not on the disk in order, and are gone",
        scan.records_dropped);
    return {};
  }
  loss.damage = is_sound ? fmt::format("the write-ahead log of the store in {} is damaged: {}",
                                       rocks_directory().string(), failed.status.ToString())
                         : describe(scan, rocks_directory());
  loss.commits = scan.records_dropped;
  const std::uint64_t last = std::max(scan.last_dropped.value_or(0), synced);
  loss.operations = probe.handle && last > kept ? last - kept : 0;
  loss.heads = std::move(scan.heads_dropped);
  loss.is_acceptable = probe.handle && !is_ahead(probe);
  return {};
}

bool Store::is_ahead(const Attempt& stopped) const {
  // Of a bad place RocksDB itself makes sure of this.
  const auto wal = stopped.guard->stopped_in();
  if (!wal) return false;
  return std::ranges::any_of(stopped.handle->families, [&](rocksdb::ColumnFamilyHandle* family) {
    std::uint64_t bytes = 0;
    stopped.handle->db->GetIntProperty(family, rocksdb::DB::Properties::kLiveSstFilesSize, &bytes);
    return bytes > 0 && stopped.guard->is_beyond(family->GetID(), *wal - 1);
  });
}

std::uint64_t Store::synced_before() const {
  const auto mark = watermark_->mark();
  return std::max(mark ? mark->operation : 0, watermark_->synced());
}

Loss Store::missing_at_the_end(const Handle& opened) const {
  const std::uint64_t synced = synced_before();
  const std::uint64_t kept = opened.db->GetLatestSequenceNumber();
  Loss loss;
  if (kept >= synced) return loss;
  loss.damage = fmt::format(
      "the store in {} ends with operation {}, but operation {} was on the disk: the end of its "
      "write-ahead log is damaged or missing, or this is an older copy",
      rocks_directory().string(), kept, synced);
  loss.operations = synced - kept;
  loss.is_acceptable = true;
  return loss;
}

Result<std::unique_ptr<Store>> Store::open_remains(StoreOptions options) {
  auto store = make(std::move(options));
  auto opened = store->attempt(Access::ReadOnly, Replay::UpToDamage);
  if (!opened.handle) return opening_error(store->rocks_directory(), opened.status);
  store->handle_ = std::move(opened.handle);
  return store;
}

Result<std::unique_ptr<Store>> Store::open_to_check(StoreOptions options, Loss& loss) {
  ORRERY_TRY(check_readable(options.directory));
  auto store = make(std::move(options));
  if (const auto mark = store->watermark_->mark()) ORRERY_TRY(store->check_present(*mark));
  auto opened = store->attempt(Access::ReadOnly, Replay::Whole);
  if (!opened.handle || has_unread(*opened.guard, store->rocks_directory())) {
    if (!opened.handle && (!opened.status.IsCorruption() || !opened.guard->has_begun())) {
      return opening_error(store->rocks_directory(), opened.status);
    }
    opened.handle.reset();
    ORRERY_TRY(store->examine(opened, loss));
    opened = store->attempt(Access::ReadOnly, Replay::UpToDamage);
    if (!opened.handle) return opening_error(store->rocks_directory(), opened.status);
  }
  if (loss.is_empty()) loss = store->missing_at_the_end(*opened.handle);
  store->handle_ = std::move(opened.handle);
  return store;
}

}  // namespace orrery::storage
