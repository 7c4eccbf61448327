// Base64 in the three spellings that the protocol uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace orrery {

enum class Base64Alphabet {
  Standard,  ///< + and /, padded: keys and signatures
  Rid,       ///< + and -, padded: `_rid`s stand in paths, where '/' cannot be
  Url,       ///< - and _, not padded: continuation tokens
};

/// Characters that `byte_count` bytes take.
constexpr std::size_t base64_size(std::size_t byte_count, Base64Alphabet alphabet) {
  if (alphabet == Base64Alphabet::Url) return (byte_count * 4 + 2) / 3;
  return (byte_count + 2) / 3 * 4;
}

/// Writes base64_size() characters to `out`; returns one past the last.
char* write_base64(char* out, std::string_view bytes, Base64Alphabet alphabet);

/// Decodes into `out` and returns how many bytes that were. Strict, so that every value has exactly
/// one text: nothing for a foreign character, wrong padding, bits left over that are not zero, or
/// more bytes than `out` holds.
std::optional<std::size_t> read_base64(std::string_view text, Base64Alphabet alphabet,
                                       std::span<std::uint8_t> out);

std::string base64_encode(std::string_view bytes,
                          Base64Alphabet alphabet = Base64Alphabet::Standard);
/// Standard alphabet with padding unless told otherwise; nothing for anything else.
std::optional<std::string> base64_decode(std::string_view text,
                                         Base64Alphabet alphabet = Base64Alphabet::Standard);

}  // namespace orrery
