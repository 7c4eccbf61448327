// JSON lines: texts of JSON, each on a line of its own.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace orrery::json {

/// Appends a text that was checked, with a blank for each line break in it. Outside of strings a
/// break is white space, and inside of them JSON has none.
void append_on_one_line(std::string& out, std::string_view text);

/// One text per line, each line ended.
std::string lines(std::span<const std::string_view> texts);

}  // namespace orrery::json
