// ChildProcess: a shell command whose input is written and output read at the same time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace orrery::sinks {

/// The process groups of all children, to kill them when the process ends at once. Thread-safe.
class ProcessGroups {
 public:
  void add(pid_t group);
  void remove(pid_t group);
  void kill_all();

 private:
  std::mutex mutex_;  // Guards what follows.
  std::set<pid_t> groups_;
};

/// Runs in a process group of its own, so that a Ctrl-C is ours to handle, and so that its own
/// children end with it. Its standard error is ours. For one thread at a time.
class ChildProcess {
 public:
  /// `variables` ("NAME=value") are added to our environment. Unavailable when the machine refuses.
  static Result<std::unique_ptr<ChildProcess>> start(const std::string& command,
                                                     const std::vector<std::string>& variables,
                                                     std::shared_ptr<ProcessGroups> groups);
  /// Kills it if it still runs.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  struct Limits {
    std::chrono::milliseconds time_max{0};  ///< 0: no bound
    std::stop_token stop;                   ///< from then on there is only `grace` left
    std::chrono::milliseconds grace{0};
  };
  enum class Ending {
    Satisfied,  ///< `take` has seen enough
    Exited,
    TimedOut,  ///< killed
    Stopped,   ///< killed
  };
  /// Gets its output as it comes; true: that is enough.
  using Take = std::function<bool(std::string_view chunk)>;

  /// Writes `input` and reads output at the same time, so that no full pipe blocks the other, until
  /// one of the endings. `close_input`: closes its input after that. A child that does not read all
  /// of it has not failed by that: its exit status tells.
  Ending exchange(std::string_view input, bool close_input, const Limits& limits, const Take& take);
  /// No more input; waits so long for it to exit by itself, and then kills it.
  void finish(std::chrono::milliseconds grace);

  /// How it ended: an exit code, or in words the signal that did it.
  struct Status {
    std::optional<int> code;
    std::string words;  ///< "exit code 3", "killed by signal 9"
  };
  /// Once it has ended.
  const Status& status() const { return status_; }

 private:
  ChildProcess(pid_t pid, FileDescriptor watch, FileDescriptor input, FileDescriptor output,
               std::shared_ptr<ProcessGroups> groups);
  void write_some(std::string_view& input);
  /// True: enough.
  bool read_some(const Take& take);
  bool wait_for_exit(std::chrono::milliseconds time);
  void kill_group();
  void reap();

  pid_t pid_;
  FileDescriptor watch_;   // Readable when it has exited.
  FileDescriptor input_;   // Our ends of its standard input
  FileDescriptor output_;  // and output.
  std::shared_ptr<ProcessGroups> groups_;
  bool reaped_ = false;
  Status status_;
};

}  // namespace orrery::sinks
