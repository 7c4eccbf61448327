#include "client/log.h"

#include "base/diagnostics.h"

namespace orrery::client {
namespace {

diagnostics::Level level_of(LogLevel level) {
  switch (level) {
    case LogLevel::Debug:
      return diagnostics::Level::Debug;
    case LogLevel::Info:
      return diagnostics::Level::Info;
    case LogLevel::Warning:
      return diagnostics::Level::Warning;
    case LogLevel::Error:
      return diagnostics::Level::Error;
  }
  return diagnostics::Level::Error;
}

}  // namespace

void say(const Log& log, LogLevel level, std::string_view line) noexcept {
  if (!log) return;
  try {
    log(level, line);
  } catch (...) {  // Exceptions of a log are swallowed.
  }
}

Log diagnostics_log() {
  return [](LogLevel level, std::string_view line) {
    if (diagnostics::enabled(level_of(level))) diagnostics::write(level_of(level), line);
  };
}

}  // namespace orrery::client
