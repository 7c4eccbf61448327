// Job: long work that somebody asks for, done once at a time on a thread of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"

namespace orrery::maintenance {

enum class JobState { Idle, Running, Done, Failed };

/// Thread-safe.
template <typename Outcome>
class Job {
 public:
  using Work = std::move_only_function<Result<Outcome>(std::stop_token)>;
  /// Of the run that was asked for last.
  struct Status {
    JobState state = JobState::Idle;
    std::uint64_t run = 0;  ///< counts them, from 1; 0: none was asked for
    UnixSeconds began = 0;
    std::optional<Outcome> outcome = {};  ///< once it is Done
    std::string failure = {};             ///< once it has Failed
  };

  explicit Job(const Clock& clock) : clock_(clock) {}
  ~Job() { stop(); }

  /// Begins and returns the number of the run. Conflict while one is going on; Unavailable after
  /// stop().
  Result<std::uint64_t> start(Work work) {
    std::lock_guard lock(mutex_);
    if (is_stopped_) return Error(ErrorCode::Unavailable, "The server is stopping.");
    if (status_.state == JobState::Running) {
      return Error(ErrorCode::Conflict, "One is going on. Wait for its end.");
    }
    status_ = {.state = JobState::Running, .run = status_.run + 1, .began = clock_.unix_seconds()};
    // The thread before has nothing left to do but return.
    thread_ = std::jthread([this, work = std::move(work)](std::stop_token stop) mutable {
      auto outcome = work(std::move(stop));
      std::lock_guard ending(mutex_);
      status_.state = outcome ? JobState::Done : JobState::Failed;
      if (outcome) {
        status_.outcome = std::move(*outcome);
      } else {
        status_.failure = outcome.error().message();
      }
    });
    return status_.run;
  }

  /// Asks the one that is going on to stop, and waits for that. There will be no other one.
  void stop() {
    {
      std::lock_guard lock(mutex_);
      is_stopped_ = true;
    }
    // Nobody else touches it any more.
    thread_ = {};
  }

  Status status() const {
    std::lock_guard lock(mutex_);
    return status_;
  }

 private:
  const Clock& clock_;
  mutable std::mutex mutex_;
  Status status_;            // Guarded by mutex_.
  bool is_stopped_ = false;  // Likewise.
  std::jthread thread_;      // Likewise, until it is stopped.
};

}  // namespace orrery::maintenance
