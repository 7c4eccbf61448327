// Log: where the library says what it does and what goes wrong. Silent unless somebody listens.
#pragma once

#include <functional>
#include <string_view>

namespace orrery::client {

enum class LogLevel { Debug, Info, Warning, Error };

/// Gets one line at a time, without a line break. Called from threads of the library, several at
/// the same time; must not block for long. Exceptions that it throws are swallowed.
using Log = std::function<void(LogLevel level, std::string_view line)>;

}  // namespace orrery::client
