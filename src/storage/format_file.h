// The file `format` in the data directory: one line that says how the store in it is written. A
// store of another number is refused, never misread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace orrery::storage {

inline constexpr std::string_view kFormatFile = "format";
inline constexpr std::string_view kFormatLine = "orrery store format 1";
/// From the second life on: heads may have gaps.
inline constexpr std::string_view kFormatLineWithGaps = "orrery store format 2";

/// Whether this version reads what the line names.
bool reads_format(std::string_view line);

/// The line of a data directory; empty when there is none. Blocks.
std::string read_format(const std::filesystem::path& directory);

/// Durable when it returns. Blocks. Unavailable when the disk refuses.
Result<> write_format(const std::filesystem::path& directory, std::string_view line);

/// Blocks. Unavailable when the directory holds no store, or one of another format.
Result<> check_readable(const std::filesystem::path& directory);

/// The same for a directory that may be new, which is marked. Blocks. Unavailable when the
/// directory holds a store of another format, or one without the file.
Result<> check_format(const std::filesystem::path& directory);

}  // namespace orrery::storage
