#include "http/message.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>

namespace orrery::http {
namespace {

// Reserved for the headers of a response, so that they are not moved as they grow.
constexpr std::size_t kLinesBytes = 1024;

bool ends_a_line(char c) { return c == '\r' || c == '\n' || c == '\0'; }

}  // namespace

void Response::add(std::string_view name, std::string_view value) { add(name, {value}); }

void Response::add(std::string_view name, std::initializer_list<std::string_view> parts) {
  if (lines_.empty()) lines_.reserve(kLinesBytes);
  lines_.append(name).append(": ");
  for (const auto part : parts) {
    if (std::none_of(part.begin(), part.end(), ends_a_line)) {
      lines_.append(part);
    } else {
      std::copy_if(part.begin(), part.end(), std::back_inserter(lines_),
                   [](char c) { return !ends_a_line(c); });
    }
  }
  lines_.append("\r\n");
}

void Response::add(std::string_view name, std::uint64_t value) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  add(name, std::string_view(digits, end));
}

}  // namespace orrery::http
