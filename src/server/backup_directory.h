// Back-ups in a directory, for commands that see to them without a running server.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "storage/backup.h"

namespace orrery::server {

using storage::Backup;
using storage::list_backups;
using storage::prune_backups;
using storage::verify_backup;

/// Puts a back-up into a data directory, which no server has, and which holds no data yet. Blocks.
/// Errors as DataDirectory::open_for_restore and storage::restore_backup.
Result<Backup> restore_backup(const std::filesystem::path& directory, std::uint32_t number,
                              const std::filesystem::path& data_directory);

}  // namespace orrery::server
