// What all continuation tokens are made of: bytes with a kind in front and a checksum behind, as
// base64url.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/continuation.h"

namespace orrery::sealed_token {

inline constexpr std::size_t kNumberSize = 8;
inline constexpr std::size_t kChecksumSize = 4;

void append_big_endian(std::string& out, std::uint64_t value, std::size_t size);
std::uint64_t read_big_endian(std::string_view bytes);

/// `bytes` begin with the kind.
std::string seal(std::string bytes);
/// What stands between the kind and the checksum; nothing when the token is not of that kind.
std::optional<std::string> unseal(std::string_view token, char kind);

}  // namespace orrery::sealed_token
