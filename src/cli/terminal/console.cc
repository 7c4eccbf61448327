#include "cli/terminal/console.h"

#include <unistd.h>

#include <fmt/format.h>

namespace orrery::cli {
namespace {

/// The same problem, many times: people need to see it now and then, not all the time.
constexpr std::chrono::seconds kSilence{10};
constexpr std::size_t kRememberedMax = 1000;

}  // namespace

Console::Console(std::string what)
    : is_terminal_(::isatty(STDERR_FILENO) == 1), line_(stderr, std::move(what)) {}

void Console::complain(const std::string& problem) {
  const auto now = std::chrono::steady_clock::now();
  const std::scoped_lock lock(mutex_);
  const auto [entry, is_new] = said_.try_emplace(problem, now);
  if (!is_new && now - entry->second < kSilence) return;
  entry->second = now;
  if (said_.size() > kRememberedMax) said_.clear();
  clear_line();
  fmt::print(stderr, "orrery: {}\n", problem);
}

void Console::print(std::string_view text) {
  const std::scoped_lock lock(mutex_);
  clear_line();
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void Console::show(const ProgressLine::Progress& progress) {
  const std::scoped_lock lock(mutex_);
  line_.show(progress);
}

void Console::clear_line() {
  if (is_terminal_) std::fputs("\r\x1b[K", stderr);
}

}  // namespace orrery::cli
