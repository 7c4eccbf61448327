// StopSignals: signals that ask for an end as a stop token, for commands that have something to
// finish.
#pragma once

#include <csignal>
#include <functional>
#include <stop_token>
#include <thread>

namespace orrery::cli {

/// Blocks SIGINT, SIGTERM and SIGHUP (the terminal is gone; not under nohup, which has it ignored)
/// in this thread and those that it starts from now on, so that one of them can wait for a signal.
/// Returns which.
sigset_t block_stop_signals();

/// The first signal asks for an end; the second ends the process at once. Made before any other
/// thread, so that all of them leave these signals to this one. SIGPIPE is ignored from then on.
class StopSignals {
 public:
  /// `last_will` runs before a sudden end.
  explicit StopSignals(std::function<void()> last_will = {});
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  std::stop_token token() const { return stop_.get_token(); }

 private:
  void watch(int signals);

  std::function<void()> last_will_;
  std::stop_source stop_;
  int done_;  // An eventfd.
  std::thread thread_;
};

}  // namespace orrery::cli
