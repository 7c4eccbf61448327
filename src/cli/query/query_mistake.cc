#include "cli/query/query_mistake.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/terminal/terminal_text.h"
#include "protocol/utf8.h"

namespace orrery::cli {
namespace {

/// Of a line that is shown, and how much of it comes before the mistake.
constexpr std::size_t kColumnsMax = 76;
constexpr std::size_t kColumnsBefore = 40;

/// The byte at which so many UTF-16 units are over; the end when there are not so many.
std::size_t byte_at(std::string_view text, std::size_t units) {
  std::size_t at = 0;
  for (std::size_t count = 0; at < text.size() && count < units;) {
    const auto [letter, size] = decode_utf8(text, at);
    count += letter > 0xFFFF ? 2 : 1;
    at += size == 0 ? 1 : size;
  }
  return std::min(at, text.size());
}

/// Where the last characters of `text` begin that take no more columns than that.
std::size_t begin_of_end(std::string_view text, std::size_t columns_max) {
  std::size_t begin = text.size();
  for (std::size_t columns = 0; begin > 0;) {
    std::size_t before = begin - 1;
    while (before > 0 && (static_cast<unsigned char>(text[before]) & 0xC0) == 0x80) --before;
    columns += columns_of(text.substr(before, begin - before));
    if (columns > columns_max) break;
    begin = before;
  }
  return begin;
}

}  // namespace

std::string point_at(std::string_view query, client::TextLocation where) {
  const std::size_t start = byte_at(query, where.start);
  const std::size_t line_break = query.substr(0, start).rfind('\n');
  const std::size_t line_begin = line_break == std::string_view::npos ? 0 : line_break + 1;
  const std::size_t line_end = std::min(query.find('\n', line_begin), query.size());
  const std::size_t end = std::clamp(byte_at(query, where.end), start, std::max(start, line_end));

  const std::size_t from =
      line_begin + begin_of_end(query.substr(line_begin, start - line_begin), kColumnsBefore);
  const std::string dots = from > line_begin ? "…" : "";
  std::string before = dots + std::string(query.substr(from, start - from));
  std::string marked(query.substr(start, end - start));
  std::string after(query.substr(end, line_end > end ? line_end - end : 0));
  for (std::string* part : {&before, &marked, &after}) defuse(*part);

  const std::size_t room = kColumnsMax - columns_of(before);
  std::string line = before + cut_to(marked + after, room);
  const std::size_t carets = std::clamp<std::size_t>(columns_of(marked), 1, room);
  std::string label;
  if (query.find('\n') != std::string_view::npos) {
    label = fmt::format("line {}: ", 1 + std::ranges::count(query.substr(0, line_begin), '\n'));
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return fmt::format("  {}{}\n  {}{}\n", label, line,
                     std::string(columns_of(label) + columns_of(before), ' '),
                     std::string(carets, '^'));
}

}  // namespace orrery::cli
