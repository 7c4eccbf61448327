// Text as roff takes it, the language of man pages.
#pragma once

#include <string>
#include <string_view>

namespace orrery::cli {

/// Part of a line. Every character is shown as it is: hyphens stay ones that can be copied into a
/// shell, and the result is ASCII. `text` is valid UTF-8 without control characters.
std::string roff(std::string_view text);

/// Whole lines, which are filled; aligned ones, with several blanks in a row, stay as they are. An
/// empty line begins a paragraph.
std::string roff_lines(std::string_view text);

/// In bold, or as the name of something to be put in.
std::string roff_bold(std::string_view text);
std::string roff_italic(std::string_view text);

}  // namespace orrery::cli
