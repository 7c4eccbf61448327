#include "client/exchange/call_time.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "client/exchange/refusal.h"

namespace orrery::client {

CallTime::CallTime(const RequestOptions& options) : options_(options) {
  if (options.timeout)
    end_ = std::chrono::steady_clock::now() + std::min(*options.timeout, kTimeMax);
}

RequestOptions CallTime::for_next_request() const {
  if (options_.stop.stop_requested()) {
    throw failure_of(Failure::Cancelled, "The call was cancelled.");
  }
  RequestOptions next = options_;
  if (end_) {
    next.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(
        *end_ - std::chrono::steady_clock::now());
    if (next.timeout->count() <= 0) {
      throw failure_of(Failure::Timeout, "The time for the call is over.");
    }
  }
  return next;
}

void CallTime::pause(std::chrono::milliseconds wait) const {
  if (end_ && std::chrono::steady_clock::now() + wait >= *end_) {
    throw failure_of(Failure::Timeout, "The time for the call is over.");
  }
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, options_.stop, wait, [] { return false; });
  if (options_.stop.stop_requested()) {
    throw failure_of(Failure::Cancelled, "The call was cancelled.");
  }
}

}  // namespace orrery::client
