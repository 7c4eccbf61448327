// Diagnoses a write-ahead log that RocksDB does not accept as it is: the torn tail that every crash
// may leave, or damage in front of writes that were acknowledged.
//
// The two differ in what follows the first bad place. A write is acknowledged once it is synced,
// and the next one begins after that: so nothing whole can stand behind a write that a crash has
// torn. Every operation has a number, and they are dense: so it is seen, too, when something is
// missing without a bad place, such as the end of a file before another one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/ids.h"

namespace orrery::storage {

struct WalFile {
  std::uint64_t number = 0;
  std::filesystem::path path;
};

/// The log files in a RocksDB's directory with this number or a higher one, in their order.
std::vector<WalFile> find_wals(const std::filesystem::path& directory, std::uint64_t from);

struct WalScan {
  enum class Verdict {
    Sound,
    TornTail,  ///< nothing whole follows the first bad place
    Damaged,   ///< writes follow it that replaying up to it would drop
  };
  Verdict verdict = Verdict::Sound;

  // The first bad place, unless it is sound.
  std::uint64_t wal = 0;  ///< number of the file
  std::uint64_t offset = 0;
  std::string why;

  /// The number of the last operation that is kept when replay ends at the first bad place; absent
  /// when there is none before it.
  std::optional<std::uint64_t> last_kept;
  // Of what is dropped then, as far as it can still be read:
  std::optional<std::uint64_t> last_dropped;     ///< number of its last operation
  std::uint64_t records_dropped = 0;             ///< commits
  std::map<PartitionNumber, Lsn> heads_dropped;  ///< the highest head of each partition
};

/// Reads all of the files' bytes, each the content of the log with that number, in their order.
/// `heads_family` is RocksDB's number of the family `heads`.
class WalScanner {
 public:
  explicit WalScanner(std::uint32_t heads_family) : heads_family_(heads_family) {}

  void add(std::uint64_t wal, std::string_view bytes);
  WalScan finish();

 private:
  void take_record(std::uint64_t wal, std::string_view record, std::size_t offset);
  void stop(std::uint64_t wal, std::size_t offset, std::string why);
  void drop(std::string_view record, std::uint64_t last);

  const std::uint32_t heads_family_;
  WalScan scan_;
  std::optional<std::uint64_t> expected_;  // The number of the next operation.
  bool is_stopped_ = false;                // Replay would drop what comes now.
  bool may_resume_ = false;                // Only the first record of a file is before it.
};

/// The same over files. Blocks; reads each file once. Unavailable when one cannot be read.
Result<WalScan> scan_wals(const std::vector<WalFile>& files, std::uint32_t heads_family);

}  // namespace orrery::storage
