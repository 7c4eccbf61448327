#include "storage/backup.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/rate_limiter.h>
#include <rocksdb/utilities/backup_engine.h>

#include "base/file_descriptor.h"
#include "storage/durable_file.h"
#include "storage/format_file.h"
#include "storage/handle.h"
#include "storage/life.h"
#include "storage/store.h"

namespace orrery::storage {
namespace {

// ── RocksDB's engine, and who may use it at once ─────────────────────────────────────────────────

/// The note of the server in a back-up, in lines: version, format and life.
struct BackupNote {
  std::string version;
  std::string format;
  std::string life;

  std::string text() const;
  /// Unavailable for a note of a later version.
  static Result<BackupNote> parse(std::string_view text);
};

/// For reading. Others may read as well, and add back-ups, which are not seen.
struct BackupReader {
  FileDescriptor lock;
  std::unique_ptr<rocksdb::BackupEngineReadOnly> engine;

  static Result<BackupReader> open(const std::filesystem::path& directory);
  /// NotFound when there is no such back-up, with those that there are.
  Result<rocksdb::BackupInfo> find(std::uint32_t number) const;
};

/// For adding back-ups; for taking them away, too, when `excludes_readers`.
struct BackupWriter {
  FileDescriptor lock;
  FileDescriptor readers_lock;
  std::unique_ptr<rocksdb::BackupEngine> engine;

  static Result<BackupWriter> open(const BackupOptions& options, bool excludes_readers);
};

constexpr std::string_view kNoteFirstLine = "orrery back-up 1";
constexpr const char* kWriterFile = "writer";
/// How much is copied between two looks at whether to stop.
constexpr std::uint64_t kCopyStepBytes = 1 << 20;
/// So long a first back-up waits for compactions, which may never end while much is written.
constexpr std::chrono::seconds kSettleTimeMax{60};
constexpr std::chrono::milliseconds kSettleLookInterval{20};

Error cannot_use(const std::filesystem::path& directory) {
  return Error(ErrorCode::Unavailable, fmt::format("cannot use the back-up directory {}: {}",
                                                   directory.string(), std::strerror(errno)));
}

/// Of the directory itself: readers share it, and who takes back-ups away has it alone.
Result<FileDescriptor> lock_directory(const std::filesystem::path& directory, int kind) {
  FileDescriptor lock(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock.is_open()) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return Error(ErrorCode::NotFound,
                   fmt::format("there is no directory {}", directory.string()));
    }
    return cannot_use(directory);
  }
  if (::flock(lock.number(), kind | LOCK_NB) == 0) return lock;
  // A file system that knows no locks is somebody's who uses it alone.
  if (errno != EWOULDBLOCK) return lock;
  return Error(ErrorCode::Conflict,
               kind == LOCK_SH
                   ? fmt::format("back-ups are being taken away from {} just now: try again",
                                 directory.string())
                   : fmt::format("somebody reads a back-up in {} just now: try again later",
                                 directory.string()));
}

rocksdb::BackupEngineOptions engine_options(const std::filesystem::path& directory) {
  rocksdb::BackupEngineOptions options(directory.string());
  options.callback_trigger_interval_size = kCopyStepBytes;
  return options;
}

std::string BackupNote::text() const {
  return fmt::format("{}\nversion {}\nformat {}\nlife {}\n", kNoteFirstLine, version, format, life);
}

Result<BackupNote> BackupNote::parse(std::string_view text) {
  BackupNote note;
  bool is_first = true;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (std::exchange(is_first, false)) {
      if (line == kNoteFirstLine) continue;
      return Error(ErrorCode::Unavailable,
                   fmt::format("the back-up says '{}', but this version reads only '{}'. Use the "
                               "version of Orrery that took it",
                               line, kNoteFirstLine));
    }
    const auto space = line.find(' ');
    if (space == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, space);
    const std::string_view said = line.substr(space + 1);
    if (name == "version") note.version = said;
    if (name == "format") note.format = said;
    if (name == "life") note.life = said;
  }
  return note;
}

Result<BackupReader> BackupReader::open(const std::filesystem::path& directory) {
  BackupReader reader;
  ORRERY_TRY(reader.lock, lock_directory(directory, LOCK_SH));
  rocksdb::BackupEngineReadOnly* engine = nullptr;
  const auto status = rocksdb::BackupEngineReadOnly::Open(engine_options(directory),
                                                          rocksdb::Env::Default(), &engine);
  if (!status.ok()) {
    return Error(ErrorCode::NotFound, fmt::format("there is no back-up in {} ({})",
                                                  directory.string(), status.ToString()));
  }
  reader.engine.reset(engine);
  return reader;
}

Result<rocksdb::BackupInfo> BackupReader::find(std::uint32_t number) const {
  rocksdb::BackupInfo info;
  const auto status = engine->GetBackupInfo(number, &info);
  if (status.ok()) return info;
  if (status.IsCorruption()) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("back-up {} is not whole: {}", number, status.ToString()));
  }
  std::vector<rocksdb::BackupInfo> known;
  engine->GetBackupInfo(&known);
  std::string numbers;
  for (const auto& each : known) {
    numbers += fmt::format("{}{}", numbers.empty() ? "" : ", ", each.backup_id);
  }
  return Error(ErrorCode::NotFound,
               numbers.empty() ? fmt::format("there is no back-up {}, nor any other", number)
                               : fmt::format("there is no back-up {}, but {}", number, numbers));
}

Result<BackupWriter> BackupWriter::open(const BackupOptions& options, bool excludes_readers) {
  const auto& directory = options.directory;
  BackupWriter writer;
  if (excludes_readers) {
    ORRERY_TRY(writer.readers_lock, lock_directory(directory, LOCK_EX));
  } else {
    std::error_code failure;
    std::filesystem::create_directories(directory.parent_path(), failure);
    if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return cannot_use(directory);
  }
  const auto path = directory / kWriterFile;
  writer.lock = FileDescriptor(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (!writer.lock.is_open()) return cannot_use(directory);
  if (::flock(writer.lock.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return Error(
        ErrorCode::Conflict,
        fmt::format("another process is writing to the back-ups in {}", directory.string()));
  }
  auto settings = engine_options(directory);
  if (options.bytes_per_second_max > 0) {
    settings.backup_rate_limiter.reset(
        rocksdb::NewGenericRateLimiter(static_cast<std::int64_t>(options.bytes_per_second_max)));
  }
  rocksdb::BackupEngine* engine = nullptr;
  const auto status = rocksdb::BackupEngine::Open(settings, rocksdb::Env::Default(), &engine);
  if (!status.ok()) {
    return disk_error(fmt::format("cannot use the back-up directory {}", directory.string()),
                      status);
  }
  writer.engine.reset(engine);
  return writer;
}

// ── taking and listing ───────────────────────────────────────────────────────────────────────────

std::vector<Backup> describe(const rocksdb::BackupEngineReadOnlyBase& engine) {
  std::vector<rocksdb::BackupInfo> infos;
  engine.GetBackupInfo(&infos, /*include_file_details=*/true);
  std::vector<Backup> backups;
  std::set<std::string> seen;
  for (const auto& info : infos) {
    Backup backup{.number = info.backup_id, .taken = info.timestamp, .bytes = info.size};
    for (const auto& file : info.file_details) {
      if (seen.insert(file.relative_filename).second) backup.new_bytes += file.size;
    }
    if (const auto note = BackupNote::parse(info.app_metadata)) {
      backup.version = note->version;
      backup.life = note->life;
    }
    backups.push_back(std::move(backup));
  }
  std::vector<rocksdb::BackupID> damaged;
  engine.GetCorruptedBackups(&damaged);
  for (const auto number : damaged) backups.push_back({.number = number, .is_whole = false});
  std::ranges::sort(backups, {}, &Backup::number);
  return backups;
}

/// Writes memtables to tables and waits, not for ever, until compactions have caught up: whatever
/// they are about to rewrite would be copied now, and its successor with the next back-up.
void settle(rocksdb::DB& db, const std::vector<rocksdb::ColumnFamilyHandle*>& families,
            const BackupStop& stop) {
  if (!db.Flush(rocksdb::FlushOptions(), families).ok()) return;
  const auto is_busy = [&](rocksdb::ColumnFamilyHandle* family) {
    std::uint64_t running = 0;
    std::uint64_t pending = 0;
    db.GetIntProperty(family, rocksdb::DB::Properties::kNumRunningCompactions, &running);
    db.GetIntProperty(family, rocksdb::DB::Properties::kCompactionPending, &pending);
    return running + pending > 0;
  };
  const auto deadline = std::chrono::steady_clock::now() + kSettleTimeMax;
  while (std::ranges::any_of(families, is_busy) && !stop.is_requested() &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kSettleLookInterval);
  }
}

/// Tells the store of the back-up that reads from it, for as long as it lives.
class Enrolled {
 public:
  Enrolled(std::mutex& mutex, BackupStop*& place, BackupStop& stop) : mutex_(mutex), place_(place) {
    std::lock_guard lock(mutex_);
    place_ = &stop;
  }
  ~Enrolled() {
    std::lock_guard lock(mutex_);
    place_ = nullptr;
  }
  Enrolled(const Enrolled&) = delete;
  Enrolled& operator=(const Enrolled&) = delete;

 private:
  std::mutex& mutex_;
  BackupStop*& place_;
};

// ── restoring ────────────────────────────────────────────────────────────────────────────────────

/// All that was written to the directory's file system, names too.
Result<> sync_all(const std::filesystem::path& directory) {
  const FileDescriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.is_open() && ::syncfs(opened.number()) == 0) return {};
  return Error(ErrorCode::Unavailable, fmt::format("{} could not be synchronised: {}",
                                                   directory.string(), std::strerror(errno)));
}

/// Makes room for a store: nothing of one may be there, but for what a restore that did not come to
/// its end has left.
Result<> clear(const std::filesystem::path& data_directory) {
  const auto store = data_directory / "store";
  std::error_code failure;
  if (!is_restore_unfinished(data_directory) &&
      (std::filesystem::exists(store, failure) ||
       std::filesystem::exists(data_directory / kFormatFile, failure))) {
    return Error(ErrorCode::BadRequest,
                 fmt::format("{} holds data already, which a restore would replace. Restore into a "
                             "new directory",
                             data_directory.string()));
  }
  ORRERY_TRY(write_durably(data_directory / kUnfinishedRestoreFile,
                           "A back-up is being restored into this directory. If nobody is at it, "
                           "run 'orrery backup restore' again.\n"));
  std::filesystem::remove_all(store, failure);
  if (!failure) std::filesystem::remove(data_directory / kFormatFile, failure);
  if (!failure) return {};
  return Error(ErrorCode::Unavailable,
               fmt::format("cannot clear {}: {}", store.string(), failure.message()));
}

}  // namespace

Result<Backup> take_backup(Store& store, const BackupOptions& options, BackupStop& stop) {
  ORRERY_TRY(auto writer, BackupWriter::open(options, /*excludes_readers=*/false));
  ORRERY_TRY(const auto life, find_life(store));
  const BackupNote note{.version = options.version,
                        .format = read_format(store.options_.directory),
                        .life = life ? life->text() : ""};
  rocksdb::CreateBackupOptions how;
  // With next to nothing in the log there is nothing to replay.
  how.flush_before_backup = true;
  how.decrease_background_thread_cpu_priority = true;
  how.background_thread_cpu_priority = rocksdb::CpuPriority::kLow;
  how.progress_callback = [&stop, &engine = *writer.engine] {
    if (stop.is_requested()) engine.StopBackup();
  };
  rocksdb::BackupID number = 0;
  rocksdb::Status status;
  {
    const Enrolled enrolled(store.backup_mutex_, store.backup_, stop);
    const auto handle = store.wait_for_handle();
    if (!handle) return Error(ErrorCode::Unavailable, "the store is being reopened: try again");
    rocksdb::BackupInfo newest;
    if (writer.engine->GetLatestBackupInfo(&newest).IsNotFound()) {
      settle(*handle->db, {handle->families.begin(), handle->families.end()}, stop);
    }
    status =
        writer.engine->CreateNewBackupWithMetadata(how, handle->db.get(), note.text(), &number);
  }
  if (status.IsIncomplete() && stop.is_requested()) {
    return Error(ErrorCode::Unavailable, "the back-up was stopped");
  }
  if (!status.ok()) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("the back-up into {} failed: {}", options.directory.string(),
                             status.ToString()));
  }
  const auto backups = describe(*writer.engine);
  const auto made = std::ranges::find(backups, number, &Backup::number);
  if (made == backups.end()) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("back-up {} is not in {}", number, options.directory.string()));
  }
  return *made;
}

Result<std::vector<Backup>> list_backups(const std::filesystem::path& directory) {
  ORRERY_TRY(const auto reader, BackupReader::open(directory));
  return describe(*reader.engine);
}

Result<> verify_backup(const std::filesystem::path& directory, std::uint32_t number) {
  ORRERY_TRY(const auto reader, BackupReader::open(directory));
  ORRERY_TRY(reader.find(number));
  const auto status = reader.engine->VerifyBackup(number, /*verify_with_checksum=*/true);
  if (status.ok()) return {};
  return Error(ErrorCode::Unavailable,
               fmt::format("back-up {} is damaged: {}", number, status.ToString()));
}

Result<std::size_t> prune_backups(const std::filesystem::path& directory, std::size_t keep) {
  ORRERY_TRY(auto writer, BackupWriter::open({.directory = directory}, /*excludes_readers=*/true));
  const auto count = [&] {
    std::vector<rocksdb::BackupInfo> infos;
    writer.engine->GetBackupInfo(&infos);
    return infos.size();
  };
  const std::size_t before = count();
  auto status = writer.engine->PurgeOldBackups(static_cast<std::uint32_t>(keep));
  if (status.ok()) status = writer.engine->GarbageCollect();
  if (!status.ok()) {
    return Error(ErrorCode::Unavailable, fmt::format("back-ups in {} could not be taken away: {}",
                                                     directory.string(), status.ToString()));
  }
  return before - count();
}

bool is_restore_unfinished(const std::filesystem::path& data_directory) {
  std::error_code ignored;
  return std::filesystem::exists(data_directory / kUnfinishedRestoreFile, ignored);
}

Result<Backup> restore_backup(const std::filesystem::path& directory, std::uint32_t number,
                              const std::filesystem::path& data_directory) {
  ORRERY_TRY(const auto reader, BackupReader::open(directory));
  ORRERY_TRY(const auto info, reader.find(number));
  ORRERY_TRY(const auto note, BackupNote::parse(info.app_metadata));
  if (!reads_format(note.format)) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("back-up {} is of the format '{}', which this version does not read. "
                             "Use Orrery {}, which took it",
                             number, note.format, note.version));
  }
  ORRERY_TRY(clear(data_directory));
  const std::string store = (data_directory / "store").string();
  const auto status = reader.engine->RestoreDBFromBackup(number, store, store);
  if (!status.ok()) {
    return Error(ErrorCode::Unavailable,
                 fmt::format("back-up {} could not be restored: {}", number, status.ToString()));
  }
  ORRERY_TRY(sync_all(data_directory));
  ORRERY_TRY(write_format(data_directory, note.format));
  std::error_code failure;
  std::filesystem::remove(data_directory / kUnfinishedRestoreFile, failure);
  if (failure) {
    return Error(
        ErrorCode::Unavailable,
        fmt::format("cannot remove {}: {}", (data_directory / kUnfinishedRestoreFile).string(),
                    failure.message()));
  }
  ORRERY_TRY(sync_all(data_directory));
  return Backup{.number = number,
                .taken = info.timestamp,
                .bytes = info.size,
                .version = note.version,
                .life = note.life};
}

}  // namespace orrery::storage
