#include "server/check_directory.h"

#include "api/documents/document_request.h"
#include "server/data_directory.h"
#include "storage/format_file.h"

namespace orrery::server {

Result<CheckReport> check_directory(const std::filesystem::path& data_directory) {
  // Before anything is made where there is nothing.
  ORRERY_TRY(storage::check_readable(data_directory));
  ORRERY_TRY(const auto held, DataDirectory::open(data_directory));
  return maintenance::check_directory({.directory = held->path()}, api::make_rules, {});
}

}  // namespace orrery::server
