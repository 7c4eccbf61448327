// MurmurHash3 with seed 0, as the hash functions of partition keys are made of it.
#pragma once

#include <cstdint>
#include <string_view>

namespace orrery {

/// The x86 variant of 32 bits.
std::uint32_t murmur3_32(std::string_view bytes);

struct Murmur3Hash128 {
  std::uint64_t low;   ///< h1
  std::uint64_t high;  ///< h2
};

/// The x64 variant of 128 bits.
Murmur3Hash128 murmur3_128(std::string_view bytes);

}  // namespace orrery
