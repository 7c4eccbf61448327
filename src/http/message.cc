#include "http/message.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace orrery::http {
namespace {

bool ends_a_line(char c) { return c == '\r' || c == '\n' || c == '\0'; }

}  // namespace

void Response::add(std::string_view name, std::string_view value) {
  lines_.append(name).append(": ");
  const auto start = lines_.size();
  lines_.append(value);
  // Looked for only after the copy: nearly no value has one, and the copy is in the cache.
  if (value.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) {
    lines_.erase(std::remove_if(lines_.begin() + static_cast<std::ptrdiff_t>(start), lines_.end(),
                                ends_a_line),
                 lines_.end());
  }
  lines_.append("\r\n");
}

void Response::add(std::string_view name, std::uint64_t value) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  lines_.append(name).append(": ").append(digits, end).append("\r\n");
}

}  // namespace orrery::http
