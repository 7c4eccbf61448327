// Console: what a long-running command says, by many threads, beside a progress line.
#pragma once

#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "cli/terminal/progress_line.h"

namespace orrery::cli {

/// Output of handlers goes to standard output, problems and progress to standard error.
/// Thread-safe.
class Console {
 public:
  explicit Console(std::string what);

  /// "orrery: …", unless the same was said a moment ago.
  void complain(const std::string& problem);
  void print(std::string_view text);
  void show(const ProgressLine::Progress& progress);
  bool is_terminal() const { return is_terminal_; }

 private:
  /// So that nothing is written behind the progress line.
  void clear_line();

  std::mutex mutex_;  // Guards what follows.
  bool is_terminal_;
  ProgressLine line_;
  std::map<std::string, std::chrono::steady_clock::time_point> said_;
};

}  // namespace orrery::cli
