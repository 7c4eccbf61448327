// LagWatch: whether the sinks of a group have caught up.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "orrery/processor.h"

namespace orrery::sinks {

/// Measures the lag of a group against the time at which it was made. For one thread.
class LagWatch {
 public:
  explicit LagWatch(processor::LeaseGroup group) : group_(std::move(group)) {}

  /// Reads the lag: a request for each lease. Throws CosmosException.
  void refresh();

  /// As of the last refresh; nullopt before the first.
  std::optional<std::uint64_t> documents_left() const { return documents_left_; }
  /// Whether every change that was there when this was made is processed.
  bool caught_up() const { return caught_up_; }

 private:
  processor::LeaseGroup group_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::optional<std::uint64_t> documents_left_;
  bool caught_up_ = false;
};

}  // namespace orrery::sinks
