// A check of a data directory that no server has open, for the command that asks for it.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "maintenance/store_check.h"

namespace orrery::server {

using maintenance::CheckReport;
using maintenance::Finding;

/// Reads everything and changes nothing. Blocks. Unavailable when a server has the directory, when
/// it holds no data, or when the store cannot be opened at all; the message says which.
Result<CheckReport> check_directory(const std::filesystem::path& data_directory);

}  // namespace orrery::server
