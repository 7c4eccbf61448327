#include "base/diagnostics.h"

#include <atomic>
#include <memory>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace orrery::diagnostics {
namespace {

std::atomic<Level> current_level{Level::Info};

spdlog::logger& logger() {
  // Deliberately never destroyed: threads may still speak while the process exits.
  static auto* instance = [] {
    auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    auto* made = new spdlog::logger("orrery", std::move(sink));
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v", spdlog::pattern_time_type::utc);
    made->set_level(spdlog::level::trace);
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *instance;
}

}  // namespace

void set_level(Level level) { current_level = level; }

bool enabled(Level level) { return level >= current_level.load(std::memory_order_relaxed); }

void write(Level level, std::string_view line) {
  const auto severity = level == Level::Debug     ? spdlog::level::debug
                        : level == Level::Info    ? spdlog::level::info
                        : level == Level::Warning ? spdlog::level::warn
                                                  : spdlog::level::err;
  logger().log(severity, line);
}

}  // namespace orrery::diagnostics
