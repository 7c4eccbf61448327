// The only place that reads the clock. Everything else is handed a Clock, so that tests own time.
#pragma once

#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace orrery {

/// Seconds since 1970, as in `_ts`.
using UnixSeconds = std::int64_t;

class Clock {
 public:
  virtual ~Clock() = default;
  /// Wall-clock time. May jump; never used for ordering.
  virtual std::chrono::system_clock::time_point now() const = 0;

  UnixSeconds unix_seconds() const {
    return std::chrono::duration_cast<std::chrono::seconds>(now().time_since_epoch()).count();
  }
};

class SystemClock final : public Clock {
 public:
  std::chrono::system_clock::time_point now() const override {
    return std::chrono::system_clock::now();
  }
};

/// The CPU time of the calling thread so far. For measuring cost on a machine that does other
/// things too; never for behaviour that a client sees.
inline std::chrono::nanoseconds thread_cpu_time() {
  timespec spent{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
}

/// A clock that stands still until it is moved. Thread-safe.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(UnixSeconds start) : now_(start) {}
  std::chrono::system_clock::time_point now() const override {
    return std::chrono::system_clock::time_point(std::chrono::seconds(now_.load()));
  }
  void advance(std::chrono::seconds by) { now_ += by.count(); }

 private:
  std::atomic<UnixSeconds> now_;
};

}  // namespace orrery
