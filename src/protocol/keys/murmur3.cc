#include "protocol/keys/murmur3.h"

#include <bit>
#include <cstddef>
#include <cstring>

namespace orrery {
namespace {

static_assert(std::endian::native == std::endian::little, "blocks are read as they lie in memory");

template <typename Integer>
Integer load(const char* from) {
  Integer value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

/// Up to eight bytes, the first lowest.
std::uint64_t load_tail(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

std::uint32_t mix_block_32(std::uint32_t k) { return std::rotl(k * 0xcc9e2d51u, 15) * 0x1b873593u; }

constexpr std::uint64_t kC1 = 0x87c37b91114253d5;
constexpr std::uint64_t kC2 = 0x4cf5ad432745937f;

std::uint64_t mix_first_64(std::uint64_t k) { return std::rotl(k * kC1, 31) * kC2; }
std::uint64_t mix_second_64(std::uint64_t k) { return std::rotl(k * kC2, 33) * kC1; }

std::uint64_t finish_64(std::uint64_t k) {
  k = (k ^ k >> 33) * 0xff51afd7ed558ccd;
  k = (k ^ k >> 33) * 0xc4ceb9fe1a85ec53;
  return k ^ k >> 33;
}

}  // namespace

std::uint32_t murmur3_32(std::string_view bytes) {
  const auto size = static_cast<std::uint32_t>(bytes.size());
  std::uint32_t h = 0;
  for (; bytes.size() >= 4; bytes.remove_prefix(4)) {
    h ^= mix_block_32(load<std::uint32_t>(bytes.data()));
    h = std::rotl(h, 13) * 5 + 0xe6546b64u;
  }
  h ^= mix_block_32(static_cast<std::uint32_t>(load_tail(bytes)));

  h ^= size;
  h = (h ^ h >> 16) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  return h ^ h >> 16;
}

Murmur3Hash128 murmur3_128(std::string_view bytes) {
  const std::uint64_t size = bytes.size();
  std::uint64_t h1 = 0;
  std::uint64_t h2 = 0;
  for (; bytes.size() >= 16; bytes.remove_prefix(16)) {
    h1 ^= mix_first_64(load<std::uint64_t>(bytes.data()));
    h1 = (std::rotl(h1, 27) + h2) * 5 + 0x52dce729;
    h2 ^= mix_second_64(load<std::uint64_t>(bytes.data() + 8));
    h2 = (std::rotl(h2, 31) + h1) * 5 + 0x38495ab5;
  }
  if (bytes.size() > 8) h2 ^= mix_second_64(load_tail(bytes.substr(8)));
  h1 ^= mix_first_64(load_tail(bytes.substr(0, 8)));

  h1 ^= size;
  h2 ^= size;
  h1 += h2;
  h2 += h1;
  h1 = finish_64(h1);
  h2 = finish_64(h2);
  h1 += h2;
  h2 += h1;
  return {.low = h1, .high = h2};
}

}  // namespace orrery
