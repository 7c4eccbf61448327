#include "query/functions/find.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace orrery::query {

// std::string_view::find takes the product of the two lengths when both repeat themselves; memmem
// of glibc their sum.
std::size_t find_in(std::string_view text, std::string_view part, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (part.empty()) return from;
  const void* found = ::memmem(text.data() + from, text.size() - from, part.data(), part.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

std::size_t find_last_in(std::string_view text, std::string_view part) {
  if (part.size() > text.size()) return std::string_view::npos;
  const std::string text_reversed(text.rbegin(), text.rend());
  const std::string part_reversed(part.rbegin(), part.rend());
  const std::size_t found = find_in(text_reversed, part_reversed);
  if (found == std::string_view::npos) return found;
  return text.size() - found - part.size();
}

}  // namespace orrery::query
