// Retries of requests to the source and the destination of a copy.
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <utility>

#include "orrery/exception.h"

namespace orrery::sinks {

/// Whether the same request may succeed later without anybody's help.
bool is_transient(const client::CosmosException& failure);
bool is_transient(int status, int sub_status);

/// Exponential backoff between attempts.
class Backoff {
 public:
  explicit Backoff(std::stop_token stop) : stop_(std::move(stop)) {}
  /// Blocks at least for `at_least`, unless a stop is requested.
  void wait(std::optional<std::chrono::milliseconds> at_least = {});

 private:
  std::stop_token stop_;
  std::chrono::milliseconds next_{20};
};

}  // namespace orrery::sinks
