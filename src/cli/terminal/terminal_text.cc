#include "cli/terminal/terminal_text.h"

#include <algorithm>
#include <array>

#include "protocol/utf8.h"

namespace orrery::cli {
namespace {

struct Letters {
  char32_t first;
  char32_t last;
};

constexpr std::array kWide = {
    Letters{0x1100, 0x115F},   Letters{0x2E80, 0x303E},   Letters{0x3041, 0xA4CF},
    Letters{0xAC00, 0xD7A3},   Letters{0xF900, 0xFAFF},   Letters{0xFE30, 0xFE6F},
    Letters{0xFF00, 0xFF60},   Letters{0xFFE0, 0xFFE6},   Letters{0x1F300, 0x1F64F},
    Letters{0x1F680, 0x1F6FF}, Letters{0x1F900, 0x1F9FF}, Letters{0x20000, 0x3FFFD},
};
constexpr std::array kCombining = {
    Letters{0x0300, 0x036F}, Letters{0x200B, 0x200F}, Letters{0x20D0, 0x20FF},
    Letters{0xFE00, 0xFE0F}, Letters{0xFE20, 0xFE2F},
};

bool is_among(char32_t letter, const auto& table) {
  return std::ranges::any_of(
      table, [&](const Letters& each) { return each.first <= letter && letter <= each.last; });
}

struct Step {
  std::size_t bytes;
  std::size_t columns;
};

/// Bytes that are no UTF-8 are shown by a terminal as one sign each.
Step step_at(std::string_view text, std::size_t at) {
  const auto [letter, size] = decode_utf8(text, at);
  if (size == 0) return {1, 1};
  return {size, is_among(letter, kCombining) ? 0U : is_among(letter, kWide) ? 2U : 1U};
}

}  // namespace

void defuse(std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7F) text[i] = ' ';
    if (byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0) {
      text.replace(i, 2, " ");
    }
  }
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Step step = step_at(text, at);
    at += step.bytes;
    columns += step.columns;
  }
  return columns;
}

std::string cut_to(std::string_view text, std::size_t columns_max) {
  std::size_t columns = 0;
  std::size_t room_for_dots = 0;  // Up to here there is room for "…" behind.
  for (std::size_t at = 0; at < text.size();) {
    const Step step = step_at(text, at);
    columns += step.columns;
    if (columns > columns_max) return std::string(text.substr(0, room_for_dots)) + "…";
    at += step.bytes;
    if (columns + 1 <= columns_max) room_for_dots = at;
  }
  return std::string(text);
}

}  // namespace orrery::cli
