// Diagnostics of the program: one line per event, to standard error. The word "log" is kept for the
// log of a partition.
#pragma once

#include <string_view>

#include <fmt/format.h>

namespace orrery::diagnostics {

enum class Level { Debug, Info, Warning, Error, Off };

/// Lines below `level` are dropped. Thread-safe; call once at start.
void set_level(Level level);
bool enabled(Level level);
void write(Level level, std::string_view line);

template <typename... Args>
void debug(fmt::format_string<Args...> text, Args&&... args) {
  if (enabled(Level::Debug)) write(Level::Debug, fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void info(fmt::format_string<Args...> text, Args&&... args) {
  if (enabled(Level::Info)) write(Level::Info, fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void warning(fmt::format_string<Args...> text, Args&&... args) {
  if (enabled(Level::Warning))
    write(Level::Warning, fmt::format(text, std::forward<Args>(args)...));
}
template <typename... Args>
void error(fmt::format_string<Args...> text, Args&&... args) {
  if (enabled(Level::Error)) write(Level::Error, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace orrery::diagnostics
