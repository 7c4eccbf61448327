#include "maintenance/backup_runner.h"

#include <stop_token>
#include <utility>

#include "base/diagnostics.h"

namespace orrery::maintenance {

Result<std::uint64_t> BackupRunner::start() {
  if (options_.directory.empty()) {
    return Error(ErrorCode::BadRequest,
                 "This server has no directory for back-ups. Start it with --backup-dir.");
  }
  return job_.start([this](std::stop_token stop) { return take(std::move(stop)); });
}

Result<Backup> BackupRunner::take(std::stop_token stop) {
  stats_.is_running = true;
  storage::BackupStop backup_stop;
  const std::stop_callback on_stop(stop, [&backup_stop] { backup_stop.request(); });
  auto taken = storage::take_backup(store_, options_, backup_stop);
  if (taken) {
    diagnostics::info("back-up {} in {}: {} bytes, of which {} are new", taken->number,
                      options_.directory.string(), taken->bytes, taken->new_bytes);
    stats_.taken.fetch_add(1, std::memory_order_relaxed);
    stats_.last_taken = taken->taken;
  } else {
    diagnostics::error("no back-up was taken: {}", taken.error().message());
    stats_.failed.fetch_add(1, std::memory_order_relaxed);
  }
  stats_.is_running = false;
  return taken;
}

Result<std::vector<Backup>> BackupRunner::list() const {
  if (options_.directory.empty()) return std::vector<Backup>();
  auto backups = storage::list_backups(options_.directory);
  if (!backups && backups.error().code() == ErrorCode::NotFound) return std::vector<Backup>();
  return backups;
}

}  // namespace orrery::maintenance
