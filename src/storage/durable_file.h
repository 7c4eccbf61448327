// Small files that must survive a power failure whole: the old text or the new, never half of one.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace orrery::storage {

/// Writes `text` to `path`, readable by the owner only, and returns once it is on stable storage.
/// Blocks. Unavailable with the path when the disk refuses.
Result<> write_durably(const std::filesystem::path& path, std::string_view text);

/// The same with a text that says something of the file itself: `make` is called with the name that
/// the file has until it is complete.
Result<> write_durably(const std::filesystem::path& path,
                       const std::function<std::string(const std::filesystem::path&)>& make);

}  // namespace orrery::storage
