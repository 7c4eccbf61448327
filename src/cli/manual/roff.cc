#include "cli/manual/roff.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include <fmt/format.h>

#include "base/trim.h"

namespace orrery::cli {
namespace {

/// The character that `text` begins with, of more than one byte; takes it away.
std::uint32_t take_code_point(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text.front());
  const auto size = static_cast<std::size_t>(std::countl_one(first));
  std::uint32_t code_point = first & (0xffU >> (size + 1));
  text.remove_prefix(1);
  for (std::size_t i = 1; i < size && !text.empty(); ++i) {
    code_point = code_point << 6 | (static_cast<unsigned char>(text.front()) & 0x3fU);
    text.remove_prefix(1);
  }
  return code_point;
}

/// roff makes typographic signs of some characters, which no shell would know again.
std::string_view name_in_roff(char c) {
  switch (c) {
    case '\\':
      return "\\e";
    case '-':
      return "\\-";
    case '\'':
      return "\\(aq";
    case '"':
      return "\\(dq";
    case '`':
      return "\\(ga";
    case '^':
      return "\\(ha";
    case '~':
      return "\\(ti";
    default:
      return {};
  }
}

}  // namespace

std::string roff(std::string_view text) {
  std::string out;
  // A dot in the first column begins a request.
  if (text.starts_with('.')) out += "\\&";
  while (!text.empty()) {
    const char c = text.front();
    if (static_cast<unsigned char>(c) >= 0x80) {
      out += fmt::format("\\[u{:04X}]", take_code_point(text));
      continue;
    }
    const std::string_view name = name_in_roff(c);
    if (name.empty()) {
      out += c;
    } else {
      out += name;
    }
    text.remove_prefix(1);
  }
  return out;
}

std::string roff_lines(std::string_view text) {
  std::string out;
  bool is_aligned = false;
  const auto align = [&](bool wanted) {
    if (wanted != is_aligned) out += wanted ? ".nf\n" : ".fi\n";
    is_aligned = wanted;
  };
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (trimmed(line).empty()) {
      align(false);
      out += ".PP\n";
      continue;
    }
    align(line.find("  ") != std::string_view::npos);
    out += roff(is_aligned ? line : trimmed(line)) + "\n";
  }
  align(false);
  return out;
}

std::string roff_bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }

std::string roff_italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

}  // namespace orrery::cli
