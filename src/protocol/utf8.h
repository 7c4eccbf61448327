// UTF-8 as Unicode defines it: shortest form, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace orrery {

struct CodePoint {
  char32_t value;
  std::size_t size;  ///< bytes that it takes; 0 when there is no valid sequence at that place
};

/// The code point that begins at `text[at]`; `at` must be inside `text`.
CodePoint decode_utf8(std::string_view text, std::size_t at);

bool is_valid_utf8(std::string_view text);

/// `code_point` must be a Unicode scalar value.
void append_utf8(std::string& out, char32_t code_point);

}  // namespace orrery
