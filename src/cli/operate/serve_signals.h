// ServeSignals: what the signals that a server gets ask of it.
#pragma once

#include <csignal>

namespace orrery::cli {

/// SIGINT and SIGTERM ask for an end, and so does a terminal that is gone, except under nohup. A
/// SIGHUP that somebody has sent asks for reading keys and certificate again. Made before any other
/// thread, so that all of them leave these signals to wait(). SIGPIPE is ignored from then on.
class ServeSignals {
 public:
  enum class Wish { Stop, Reload };

  ServeSignals();

  /// Blocks until there is one.
  Wish wait() const;

 private:
  sigset_t signals_;
  bool survives_terminal_ = false;
};

}  // namespace orrery::cli
