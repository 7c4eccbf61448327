// A WorkClock that tests own.
#pragma once

#include <chrono>

#include "base/work_budget.h"

namespace orrery {

/// Stands still until it is moved. With a `pace` each look at it moves it, as if the thread had
/// worked so long since the last one.
class ManualWorkClock final : public WorkClock {
 public:
  std::chrono::steady_clock::time_point now() const override {
    time += pace;
    spent += pace;
    return std::chrono::steady_clock::time_point(time);
  }
  std::chrono::nanoseconds thread_time() const override { return spent; }
  void work(std::chrono::milliseconds by) {
    time += by;
    spent += by;
  }
  void wait(std::chrono::milliseconds by) { time += by; }

  std::chrono::nanoseconds pace{0};
  mutable std::chrono::nanoseconds time = std::chrono::hours(1);
  mutable std::chrono::nanoseconds spent = std::chrono::seconds(1);
};

}  // namespace orrery
