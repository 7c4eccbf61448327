#include "server/backup_directory.h"

#include "server/data_directory.h"

namespace orrery::server {

Result<Backup> restore_backup(const std::filesystem::path& directory, std::uint32_t number,
                              const std::filesystem::path& data_directory) {
  ORRERY_TRY(const auto held, DataDirectory::open_for_restore(data_directory));
  return storage::restore_backup(directory, number, held->path());
}

}  // namespace orrery::server
