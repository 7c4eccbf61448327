// Characters of strings: their case, and their count as the clients count them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace orrery::query {

// Culture-invariant, one character for one: ß stays ß.
std::string to_lower(std::string_view text);
std::string to_upper(std::string_view text);

/// In UTF-16 units: what clients count.
std::size_t utf16_length(std::string_view text);
/// Where the unit `unit` begins in `text`, or its size if that is beyond it. The second half of a
/// pair begins after it.
std::size_t utf16_offset(std::string_view text, std::size_t unit);

/// Whether .NET trims the character.
bool is_white_space(char32_t character);

}  // namespace orrery::query
