#include "sinks/container/retry.h"

#include <algorithm>

#include "base/stop_wait.h"

namespace orrery::sinks {
namespace {

constexpr std::chrono::milliseconds kWaitMax{2000};

}  // namespace

bool is_transient(int status, int sub_status) {
  return status == 0 || status == 408 || status == 410 || status == 429 || status == 449 ||
         status >= 500 || (status == 404 && sub_status == 1002);
}

bool is_transient(const client::CosmosException& failure) {
  switch (failure.failure()) {
    case client::Failure::Network:
    case client::Failure::Timeout:
    case client::Failure::Cancelled:
      return true;
    case client::Failure::Argument:
      return false;
    case client::Failure::Response:
      return is_transient(failure.status(), failure.sub_status());
  }
  return false;
}

void Backoff::wait(std::optional<std::chrono::milliseconds> at_least) {
  const auto time = std::max(next_, at_least.value_or(next_));
  next_ = std::min(next_ * 2, kWaitMax);
  wait_unless_stopped(stop_, time);
}

}  // namespace orrery::sinks
