// ORRERY_SEED for tests in C++, as seeds.py has it for those in Python: the seed of this run, which
// is printed, so that the log of a failure shows it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace orrery::test {

/// From the environment, else `otherwise`.
inline std::uint64_t seed_or(std::uint64_t otherwise) {
  const char* given = std::getenv("ORRERY_SEED");
  const std::uint64_t seed =
      given != nullptr && *given != '\0' ? std::strtoull(given, nullptr, 10) : otherwise;
  std::printf("ORRERY_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  return seed;
}

/// From the environment, else drawn.
inline std::uint64_t seed() { return seed_or(std::random_device{}()); }

}  // namespace orrery::test
