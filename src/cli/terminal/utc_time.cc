#include "cli/terminal/utc_time.h"

#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "protocol/wire/http_date.h"

namespace orrery::cli {

std::optional<UnixSeconds> parse_utc_time(const std::string& text) {
  for (const char* format : {"%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S",
                             "%Y-%m-%dT%H:%MZ", "%Y-%m-%d %H:%M", "%Y-%m-%d"}) {
    std::tm time{};
    const char* end = ::strptime(text.c_str(), format, &time);
    if (end != nullptr && *end == '\0') return ::timegm(&time);
  }
  return parse_http_date(text);
}

std::string format_utc_time(UnixSeconds time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(time)));
}

}  // namespace orrery::cli
