// Back-ups of a store, many in one directory. Each is the store at one moment, over all families
// and so over all partitions. RocksDB's BackupEngine writes and reads them:
//
//   meta/7             the files of back-up 7 with their checksums; written last: without it there
//                      is no back-up 7
//   private/7/…        its manifest and the end of its write-ahead log
//   shared_checksum/…  tables. One that an earlier back-up has copied is not copied again
//   writer             locked by whoever adds a back-up, or takes one away
//
// Keys and certificates are not in it. Neither is the mark of a life: what is restored begins a new
// one, whose positions are above all that were ever given out (life.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace orrery::storage {

class Store;

struct Backup {
  std::uint32_t number = 0;
  UnixSeconds taken = 0;
  std::uint64_t bytes = 0;      ///< of all its files
  std::uint64_t new_bytes = 0;  ///< of those that no back-up before it has
  std::string version{};        ///< of the server that took it
  std::string life{};           ///< that the store was in
  bool is_whole = true;         ///< false: files are missing or cut off
};

struct BackupOptions {
  std::filesystem::path directory;
  std::string version{};  ///< of this server, for Backup::version
  /// So much is written in a second; 0: as fast as it goes.
  std::uint64_t bytes_per_second_max = 0;
};

/// Stops a back-up that is being taken. Thread-safe.
class BackupStop {
 public:
  void request() { is_requested_ = true; }
  bool is_requested() const { return is_requested_; }

 private:
  std::atomic<bool> is_requested_{false};
};

/// Adds a back-up of the open store. Writers and readers go on meanwhile. Makes the directory if
/// need be, for its owner only. When it is stopped, or fails, there is no new back-up; what was
/// written of it goes with the next one. Blocks, as long as it takes. Conflict when another process
/// writes to the directory; Unavailable when a disk refuses, or it was stopped.
Result<Backup> take_backup(Store& store, const BackupOptions& options, BackupStop& stop);

/// All of them, oldest first. Looks at the names and sizes of their files only. Blocks. NotFound
/// when there is no such directory; Unavailable when it cannot be read, or one is taken away just
/// now.
Result<std::vector<Backup>> list_backups(const std::filesystem::path& directory);

/// Reads every file of the back-up and compares its checksum. Blocks. NotFound when there is no
/// such back-up; Unavailable with the name of a file that is not as it was written.
Result<> verify_backup(const std::filesystem::path& directory, std::uint32_t number);

/// Puts the back-up into a data directory that holds nothing of a store yet, checking every
/// checksum on the way. On stable storage when it returns. A directory in which this has begun and
/// not ended holds the file `unfinished-restore`, and can be restored into again. Nobody else may
/// be using it. Blocks. NotFound as verify_backup; BadRequest when the directory holds a store;
/// Unavailable when a file of the back-up is damaged, a disk refuses, or the back-up is of a format
/// that this version cannot read.
Result<Backup> restore_backup(const std::filesystem::path& directory, std::uint32_t number,
                              const std::filesystem::path& data_directory);

inline constexpr const char* kUnfinishedRestoreFile = "unfinished-restore";
/// Whether a restore into the data directory has begun and not ended.
bool is_restore_unfinished(const std::filesystem::path& data_directory);

/// Takes away all but the newest `keep`, which are whole; and what was left of back-ups that did
/// not come to their end. Returns how many went. Blocks. Conflict when somebody writes to the
/// directory or reads from it.
Result<std::size_t> prune_backups(const std::filesystem::path& directory, std::size_t keep);

}  // namespace orrery::storage
