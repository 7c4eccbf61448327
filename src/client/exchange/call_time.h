// CallTime: how long a call may take that is made of several requests.
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>

#include "orrery/options.h"

namespace orrery::client {

/// Longer than anybody waits, and short enough to be added to a time.
inline constexpr std::chrono::milliseconds kTimeMax = std::chrono::hours(24 * 365);

/// Begins when it is made. For one call; may be used by several threads.
class CallTime {
 public:
  explicit CallTime(const RequestOptions& options);

  /// The options for the next request: those of the call with the time that is left. Throws
  /// CosmosException (Timeout, Cancelled) when there is none.
  RequestOptions for_next_request() const;

  /// When it is over; the end of time when nobody said so.
  std::chrono::steady_clock::time_point end() const {
    return end_.value_or(std::chrono::steady_clock::time_point::max());
  }

  /// Waits. Throws CosmosException: Cancelled as soon as the call shall end, Timeout at once when
  /// the time that is left is not enough.
  void pause(std::chrono::milliseconds wait) const;

 private:
  RequestOptions options_;
  std::optional<std::chrono::steady_clock::time_point> end_;
};

}  // namespace orrery::client
