// The only place that reads the clock. Everything else is handed a Clock, so that tests own time.
#pragma once

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
