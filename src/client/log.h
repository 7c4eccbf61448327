// Speaking to a user's Log; and one that is this program's diagnostics.
#pragma once

#include <string_view>

#include "orrery/log.h"

namespace orrery::client {

/// Gives `line` to the log, if there is one. Throws nothing.
void say(const Log& log, LogLevel level, std::string_view line) noexcept;

/// For the commands and tests of Orrery itself.
Log diagnostics_log();

}  // namespace orrery::client
