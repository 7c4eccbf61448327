// BackupRunner: takes back-ups of the store while the server runs, one at a time, when somebody
// asks for one.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "maintenance/job.h"
#include "storage/backup.h"
#include "storage/store.h"

namespace orrery::maintenance {

using storage::Backup;

/// Thread-safe.
class BackupRunner {
 public:
  struct Stats {
    std::atomic<std::uint64_t> taken{0};
    std::atomic<std::uint64_t> failed{0};
    std::atomic<UnixSeconds> last_taken{0};  ///< 0: none since the start
    std::atomic<bool> is_running{false};
  };

  /// Without a directory it takes none.
  BackupRunner(storage::Store& store, const Clock& clock, storage::BackupOptions options)
      : store_(store), options_(std::move(options)), job_(clock) {}

  /// Begins a back-up and returns the number of the run. BadRequest without a directory, saying so;
  /// else as Job::start.
  Result<std::uint64_t> start();
  /// Gives up the one that is running, and waits for that.
  void stop() { job_.stop(); }

  Job<Backup>::Status status() const { return job_.status(); }
  const Stats& stats() const { return stats_; }
  /// Where they are; empty: nowhere.
  const std::filesystem::path& directory() const { return options_.directory; }
  /// None yet is no error. Blocks. Errors as storage::list_backups.
  Result<std::vector<Backup>> list() const;

 private:
  Result<Backup> take(std::stop_token stop);

  storage::Store& store_;
  const storage::BackupOptions options_;
  Stats stats_;
  Job<Backup> job_;  // Ends before what it uses.
};

}  // namespace orrery::maintenance
