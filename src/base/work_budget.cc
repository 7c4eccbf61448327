#include "base/work_budget.h"

#include <fmt/format.h>

#include "base/clock.h"

namespace orrery {
namespace {

class SystemWorkClock final : public WorkClock {
 public:
  std::chrono::steady_clock::time_point now() const override {
    return std::chrono::steady_clock::now();
  }
  std::chrono::nanoseconds thread_time() const override { return thread_cpu_time(); }
};

constexpr std::chrono::nanoseconds kUnknown{-1};

/// `duration` times `factor`, where that can be said.
WorkLimits::Duration times(WorkLimits::Duration duration, int factor) {
  constexpr auto kMax = WorkLimits::Duration::max();
  return duration > kMax / factor ? kMax : duration * factor;
}

}  // namespace

const WorkClock& WorkClock::system() {
  static const SystemWorkClock clock;
  return clock;
}

bool WorkBudget::look() {
  left_ = kInterval;
  if (has_stopped()) {
    left_ = 0;
    return false;
  }
  if (cancellation_ && cancellation_->load(std::memory_order_relaxed)) {
    return stop_with(Stop::Cancelled);
  }
  const TimePoint now = clock_.now();
  is_over_ = now > limits_.deadline;
  if (item_ != seen_item_ || item_begun_ == TimePoint{}) {
    seen_item_ = item_;
    item_begun_ = now;
    item_thread_time_ = kUnknown;
  } else if (is_item_too_long(now)) {
    return stop_with(Stop::ItemTime);
  }
  if (limits_.total_time_max == Duration::max()) return true;
  const auto spent = clock_.thread_time();
  if (first_thread_time_ == kUnknown) first_thread_time_ = spent;
  return spent - first_thread_time_ < limits_.total_time_max || stop_with(Stop::TotalTime);
}

/// Asks for the thread's CPU time, a system call, only once the wall clock says that it can be
/// over.
bool WorkBudget::is_item_too_long(TimePoint now) {
  if (limits_.item_time_max == Duration::max()) return false;
  if (item_thread_time_ == kUnknown) {
    item_thread_time_ = clock_.thread_time();
    return false;
  }
  const Duration time_max = times(limits_.item_time_max, item_shares_);
  return now - item_begun_ >= time_max && clock_.thread_time() - item_thread_time_ >= time_max;
}

void WorkBudget::set_deadline(TimePoint deadline) {
  if (limits_.deadline == deadline) return;
  limits_.deadline = deadline;
  is_over_ = false;
  // Whether it has passed is to be known soon.
  if (!has_stopped()) left_ = 0;
}

bool WorkBudget::stop_with(Stop stop) {
  stop_ = stop;
  left_ = 0;
  return false;
}

Error interruption(const WorkBudget& work) {
  if (work.stop() == WorkBudget::Stop::Cancelled) {
    return Error(ErrorCode::ClientGone, "The client has gone: its request was given up.");
  }
  const bool is_item = work.stop() == WorkBudget::Stop::ItemTime;
  const auto time_max = is_item ? work.limits().item_time_max : work.limits().total_time_max;
  return Error(
      ErrorCode::BadRequest,
      fmt::format("The expression takes more than {} ms of processor time {}, which is the limit: "
                  "filter earlier, join less, or search shorter texts with simpler patterns.",
                  std::chrono::duration_cast<std::chrono::milliseconds>(time_max).count(),
                  is_item ? "for one document" : "in all"));
}

}  // namespace orrery
