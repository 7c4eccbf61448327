// Points in time as strings.
#pragma once

#include <string_view>

namespace orrery::query {

/// YYYY-MM-DD with or without Z, or that with T or one space, hh:mm:ss, perhaps a fraction of up to
/// seven digits, and perhaps Z. The day must exist.
bool is_date_time_text(std::string_view text);

}  // namespace orrery::query
