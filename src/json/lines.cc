#include "json/lines.h"

namespace orrery::json {

void append_on_one_line(std::string& out, std::string_view text) {
  for (const char letter : text) {
    out += letter == '\n' || letter == '\r' ? ' ' : letter;
  }
}

std::string lines(std::span<const std::string_view> texts) {
  std::size_t size = 0;
  for (const std::string_view text : texts) size += text.size() + 1;
  std::string lines;
  lines.reserve(size);
  for (const std::string_view text : texts) {
    append_on_one_line(lines, text);
    lines += '\n';
  }
  return lines;
}

}  // namespace orrery::json
