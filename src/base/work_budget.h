// WorkBudget: tells a long computation when to stop.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/error.h"

namespace orrery {

/// Set when nobody waits for a computation any more. Shared by the waiting caller and by all
/// threads that compute for it.
using Cancellation = std::shared_ptr<const std::atomic<bool>>;

/// The time that passes, and the time that the calling thread has had of a processor.
class WorkClock {
 public:
  virtual ~WorkClock() = default;
  virtual std::chrono::steady_clock::time_point now() const = 0;
  virtual std::chrono::nanoseconds thread_time() const = 0;

  /// The machine's.
  static const WorkClock& system();
};

struct WorkLimits {
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  /// Between two items the work ends then: see WorkBudget::is_over.
  TimePoint deadline = TimePoint::max();
  /// Processor time of one item, which cannot be divided. The wall clock does not count: a thread
  /// that the machine keeps from running is no fault of the item.
  Duration item_time_max = Duration::max();
  /// Processor time of all items.
  Duration total_time_max = Duration::max();
};

/// Deadlines and cancellation of a computation, which spends a step now and then: about one for
/// each expression or 64 bytes that are looked at. Once in so many steps clock and cancellation are
/// checked. Steps only say when to check: counting too many costs time, but never an answer.
///
/// For one thread at a time.
class WorkBudget {
 public:
  using TimePoint = WorkLimits::TimePoint;
  using Duration = WorkLimits::Duration;

  enum class Stop : std::uint8_t {
    None,
    Cancelled,  ///< nobody waits any more
    ItemTime,   ///< one item has taken too long
    TotalTime,  ///< all of them have
  };

  explicit WorkBudget(const WorkLimits& limits = {}, Cancellation cancellation = nullptr,
                      const WorkClock& clock = WorkClock::system())
      : limits_(limits), cancellation_(std::move(cancellation)), clock_(clock) {}
  WorkBudget(const WorkBudget&) = delete;
  WorkBudget& operator=(const WorkBudget&) = delete;

  /// False: the work must end at once, without a result. See stop().
  bool spend(std::uint64_t steps = 1) {
    if (steps < left_) [[likely]] {
      left_ -= steps;
      return true;
    }
    return look();
  }
  /// The steps that so many bytes are.
  static constexpr std::uint64_t steps_of(std::uint64_t bytes) { return bytes / 64; }
  /// Looks at the clock now.
  bool look();

  /// Another item begins, which may take so many times as long as others.
  void begin_item(int shares = 1) {
    ++item_;
    item_shares_ = shares;
  }

  /// Whether the deadline has passed, as of the last look: no other item should begin.
  bool is_over() const { return is_over_; }
  void set_deadline(TimePoint deadline);

  Stop stop() const { return stop_; }
  bool has_stopped() const { return stop_ != Stop::None; }
  const WorkLimits& limits() const { return limits_; }
  const Cancellation& cancellation() const { return cancellation_; }
  const WorkClock& clock() const { return clock_; }

 private:
  /// So many steps are a few tens of microseconds.
  static constexpr std::uint64_t kInterval = 1024;

  bool stop_with(Stop stop);
  bool is_item_too_long(TimePoint now);

  std::uint64_t left_ = kInterval;  // Steps until the next look.
  std::uint32_t item_ = 0;
  int item_shares_ = 1;
  bool is_over_ = false;
  Stop stop_ = Stop::None;

  // As of the last look.
  std::uint32_t seen_item_ = 0;
  TimePoint item_begun_{};  // When it was first looked at.
  // CPU time of the thread when this item, and any item, was looked at for the second time.
  std::chrono::nanoseconds item_thread_time_{-1};
  std::chrono::nanoseconds first_thread_time_{-1};

  WorkLimits limits_;
  const Cancellation cancellation_;
  const WorkClock& clock_;
};

/// The error of work that its budget has stopped: ClientGone when the client has gone, else
/// BadRequest.
Error interruption(const WorkBudget& work);

}  // namespace orrery
