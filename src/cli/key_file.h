// Key files: account keys, one a line.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace orrery::cli {

/// The keys in a file. Empty lines and lines that begin with # don't count. A file without a key is
/// refused: to go on with the well-known one instead would open the door that somebody meant to
/// close. So is one in which a line is not a whole key, or in which a key seems to be broken over
/// several lines: each part would open the account. BadRequest, naming the lines; Unavailable when
/// the file cannot be read.
Result<std::vector<std::string>> read_key_file(const std::string& path);

/// Whether others on this machine may read it.
bool is_readable_by_others(const std::string& path);

}  // namespace orrery::cli
