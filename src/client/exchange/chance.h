// Chance: random numbers, for waits that must not be the same everywhere and for activity ids.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace orrery::client {

/// The same seed gives the same numbers. Thread-safe, without a lock. Not for secrets.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed) {}

  /// SplitMix64.
  std::uint64_t next() {
    std::uint64_t value = state_.fetch_add(kStep, std::memory_order_relaxed) + kStep;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
    return value ^ (value >> 31);
  }

  /// From 0 up to, but not with, 1.
  double fraction() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  /// A random UUID: "7c4b2c1e-…".
  std::string uuid();

 private:
  static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15u;
  std::atomic<std::uint64_t> state_;
};

inline std::string Chance::uuid() {
  // Version 4, variant 1: the bits that a random UUID has fixed.
  const std::uint64_t high = (next() & 0xFFFFFFFFFFFF0FFFu) | 0x4000u;
  const std::uint64_t low = (next() & 0x3FFFFFFFFFFFFFFFu) | 0x8000000000000000u;
  std::string text(36, '-');
  std::size_t at = 0;
  for (int digit = 0; digit < 32; ++digit) {
    if (digit == 8 || digit == 12 || digit == 16 || digit == 20) ++at;
    const std::uint64_t half = digit < 16 ? high : low;
    text[at++] = "0123456789abcdef"[half >> (60 - 4 * (digit % 16)) & 0xF];
  }
  return text;
}

}  // namespace orrery::client
