// Points in time, as people write them on a command line.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"

namespace orrery::cli {

/// "2026-11-15T22:00:00Z", with a blank for the T and without the Z or the seconds if need be, a
/// day alone, or a date as in HTTP: always UTC.
std::optional<UnixSeconds> parse_utc_time(const std::string& text);

/// "2026-11-15T22:00:00Z".
std::string format_utc_time(UnixSeconds time);

}  // namespace orrery::cli
