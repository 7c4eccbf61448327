// Findings of a check of the store, and how fast the check may go on.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/stop_wait.h"

namespace orrery::partition {

struct Finding {
  std::string where;  ///< for instance "shop/orders, range 0 (partition 7), log 42.0"
  std::string what;
  bool operator==(const Finding&) const = default;
};

/// Keeps the first of them and counts the rest: a store with a fault in every document must not
/// fill the memory.
class Findings {
 public:
  static constexpr std::size_t kKeptMax = 100;

  void add(std::string where, std::string what) {
    ++count_;
    if (kept_.size() < kKeptMax) kept_.push_back({std::move(where), std::move(what)});
  }
  std::uint64_t count() const { return count_; }
  const std::vector<Finding>& kept() const { return kept_; }

 private:
  std::uint64_t count_ = 0;
  std::vector<Finding> kept_;
};

/// The pace of background work: it rests as long as it has worked, or not at all.
class CheckPace {
 public:
  using Clock = std::chrono::steady_clock;
  /// How many go by between two looks at the clock.
  static constexpr std::uint64_t kPiecesPerLook = 16;

  CheckPace(std::stop_token stop, bool rests) : stop_(std::move(stop)), rests_(rests) {}

  /// To be called between small pieces of work, or between large ones that count for many. False:
  /// it is to stop.
  bool go_on(std::uint64_t pieces = 1) {
    if (stop_.stop_requested()) return false;
    pieces_ += pieces;
    if (!rests_ || pieces_ < kPiecesPerLook) return true;
    pieces_ = 0;
    const auto now = Clock::now();
    const auto worked = now - since_;
    if (worked < kWorkMin) return true;
    const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(worked);
    const bool goes_on = wait_unless_stopped(stop_, std::min(rest, kRestMax));
    since_ = Clock::now();
    return goes_on;
  }

 private:
  static constexpr std::chrono::milliseconds kWorkMin{5};
  static constexpr std::chrono::milliseconds kRestMax{1000};

  const std::stop_token stop_;
  const bool rests_;
  std::uint64_t pieces_ = 0;
  Clock::time_point since_ = Clock::now();
};

}  // namespace orrery::partition
