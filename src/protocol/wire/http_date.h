// RFC 1123 dates, as in HTTP.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace orrery {

/// "Tue, 01 Apr 2025 12:00:00 GMT". Any letter case, since some clients send the lower-cased text
/// that they signed, and one-digit days, as Java writes them. The day of the week is not compared
/// with the date.
std::optional<UnixSeconds> parse_http_date(std::string_view text);

/// The same, or one of the two older forms that HTTP still admits: "Tuesday, 01-Apr-25 12:00:00
/// GMT" and "Tue Apr  1 12:00:00 2025". Years of two digits are those from 1970 on.
std::optional<UnixSeconds> parse_any_http_date(std::string_view text);

/// Always 29 characters; times outside the years 0 to 9999 become the nearest in them.
std::string format_http_date(UnixSeconds time);

}  // namespace orrery
