// Looking for one string in another, in linear time whatever they are.
#pragma once

#include <cstddef>
#include <string_view>

namespace orrery::query {

/// The first place of `part` in `text` from `from` on; npos if there is none.
std::size_t find_in(std::string_view text, std::string_view part, std::size_t from = 0);

/// The last place of `part` in `text`; npos if there is none.
std::size_t find_last_in(std::string_view text, std::string_view part);

}  // namespace orrery::query
