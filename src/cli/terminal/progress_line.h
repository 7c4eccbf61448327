// ProgressLine: how far long work has come, on one line of a terminal that is written over and
// over.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace orrery::cli {

/// Documents, rate, lag and time left. Silent where `out` is no terminal. For one thread.
class ProgressLine {
 public:
  struct Progress {
    std::uint64_t documents = 0;                  ///< done so far
    std::optional<std::uint64_t> documents_left;  ///< where it is known
    std::string note;  ///< such as "paused" or the number of dead letters
  };

  using Clock = std::chrono::steady_clock;

  ProgressLine(std::FILE* out, std::string what);
  /// Leaves the line as it was last shown, ended.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Shows it, a few times per second at the most.
  void show(const Progress& progress, Clock::time_point now = Clock::now());
  /// The text of the line, for a terminal of that width.
  static std::string text(const std::string& what, const Progress& progress,
                          double documents_per_second, std::size_t width);

 private:
  std::FILE* out_;
  std::string what_;
  bool on_;  // A terminal.
  bool shown_ = false;
  Clock::time_point last_shown_;
  Clock::time_point rated_at_;  // The rate is that of the last few seconds.
  std::uint64_t rated_documents_ = 0;
  double rate_ = 0;
};

}  // namespace orrery::cli
