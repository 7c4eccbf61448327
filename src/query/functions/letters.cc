#include "query/functions/letters.h"

#include <locale.h>
#include <wctype.h>
#include <algorithm>
#include <cwctype>

#include "protocol/utf8.h"

namespace orrery::query {
namespace {

/// Unicode's own mapping, of no country. It is a part of glibc.
locale_t invariant_locale() {
  static const locale_t locale = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

/// The Turkish letters would map to i and I, which are other letters everywhere else.
bool stays(char32_t character) { return character == 0x130 || character == 0x131; }

template <typename MapAscii, typename MapWide>
std::string mapped(std::string_view text, MapAscii&& map_ascii, MapWide&& map_wide) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      out += map_ascii(text[at++]);
      continue;
    }
    const auto [value, size] = decode_utf8(text, at);
    const locale_t locale = invariant_locale();
    if (size == 0) {
      out += text[at++];
      continue;
    }
    if (stays(value) || locale == nullptr) {
      out.append(text, at, size);
    } else {
      append_utf8(out, static_cast<char32_t>(map_wide(static_cast<wint_t>(value), locale)));
    }
    at += size;
  }
  return out;
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

std::string to_lower(std::string_view text) {
  return mapped(
      text, [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; },
      [](wint_t c, locale_t locale) { return ::towlower_l(c, locale); });
}

std::string to_upper(std::string_view text) {
  return mapped(
      text, [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; },
      [](wint_t c, locale_t locale) { return ::towupper_l(c, locale); });
}

std::size_t utf16_length(std::string_view text) {
  if (is_ascii(text)) return text.size();
  std::size_t units = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto [value, size] = decode_utf8(text, at);
    units += value > 0xFFFF ? 2 : 1;
    at += std::max<std::size_t>(size, 1);
  }
  return units;
}

std::size_t utf16_offset(std::string_view text, std::size_t unit) {
  std::size_t at = 0;
  for (std::size_t units = 0; at < text.size() && units < unit;) {
    const auto [value, size] = decode_utf8(text, at);
    units += value > 0xFFFF ? 2 : 1;
    at += std::max<std::size_t>(size, 1);
  }
  return at;
}

bool is_white_space(char32_t c) {
  return c == ' ' || (c >= 0x09 && c <= 0x0D) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

}  // namespace orrery::query
