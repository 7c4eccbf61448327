// Text on a terminal: what it would obey is taken out, and columns are counted as they are seen.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace orrery::cli {

/// Replaces control characters, which a terminal would obey, by blanks: those of one byte, and of
/// two (C1).
void defuse(std::string& text);

/// How many columns it takes: two for wide characters (East Asian, emoji), none for marks that
/// combine with the one before.
std::size_t columns_of(std::string_view text);

/// `text` if it takes no more columns than that; else as much of it as there is room for, and "…".
std::string cut_to(std::string_view text, std::size_t columns_max);

}  // namespace orrery::cli
