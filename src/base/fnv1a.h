// FNV-1a: a hash that is the same on every machine and in every version. It tells texts apart; it
// withstands nobody who looks for collisions.
#pragma once

#include <cstdint>
#include <string_view>

namespace orrery {

inline constexpr std::uint64_t kFnv1aBasis = 0xcbf29ce484222325;

/// The hash of `bytes`, or with the hash of other bytes as `before`, that of both in a row.
constexpr std::uint64_t fnv1a(std::string_view bytes, std::uint64_t before = kFnv1aBasis) {
  constexpr std::uint64_t kPrime = 0x100000001b3;
  std::uint64_t hash = before;
  for (const char byte : bytes) hash = (hash ^ static_cast<std::uint8_t>(byte)) * kPrime;
  return hash;
}

}  // namespace orrery
