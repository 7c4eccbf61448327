// Waiting in tests: for a condition, never for a time.
#pragma once

#include <chrono>
#include <thread>

namespace orrery::test {

/// Longer than anything takes, under a sanitizer and on a machine that is busy with other things:
/// only what would never come is given up.
inline constexpr std::chrono::seconds kPatience{60};

/// Whether the condition came true. Leaves the processor to those who make it so.
template <typename Condition>
bool eventually(Condition&& condition, std::chrono::milliseconds patience = kPatience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

}  // namespace orrery::test
