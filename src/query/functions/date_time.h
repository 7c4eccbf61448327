// Points in time: as strings, and their arithmetic. From the year 1 to 9999, always UTC.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <ratio>
#include <string>
#include <string_view>

#include "json/value.h"

namespace orrery::query {

using Ticks = std::chrono::duration<std::int64_t, std::ratio<1, 10'000'000>>;  ///< 100 ns
using DateTime = std::chrono::sys_time<Ticks>;

/// YYYY-MM-DD with or without Z, or that with T or one space, hh:mm:ss, perhaps a fraction of up to
/// seven digits, and perhaps Z. The day must exist.
std::optional<DateTime> parse_date_time(std::string_view text);

/// YYYY-MM-DDThh:mm:ss.fffffffZ. Of one within the years above.
std::string print_date_time(DateTime time);

/// yyyy, MM, dd, HH, mm and ss are those of `time`; one to seven f are as many digits of the
/// fraction, one to seven F the same without zeros at the end; after a backslash, any character is
/// itself, as all others are.
std::string format_date_time(DateTime time, std::string_view format);

/// So long after 1970. Nothing if that is outside the years above.
std::optional<DateTime> date_time_at(Ticks since_1970);

/// Nothing if there is no such day or time, or a year outside those above.
struct DateTimeParts {
  std::int64_t year = 0;
  std::int64_t month = 0;
  std::int64_t day = 0;
  std::int64_t hour = 0;
  std::int64_t minute = 0;
  std::int64_t second = 0;
  std::int64_t ticks = 0;  ///< of the second
};
std::optional<DateTime> date_time_of(const DateTimeParts& parts);

enum class DatePart : std::uint8_t {
  Year,
  Month,
  Day,
  Hour,
  Minute,
  Second,
  Millisecond,
  Microsecond,
  Nanosecond,
};

/// By any of its names, in any case.
std::optional<DatePart> find_date_part(std::string_view name);

/// Of the parts of a second, all of the second's fraction: 130 ms are also 130000 µs.
std::int64_t part_of(DateTime time, DatePart part);

/// A month later than the 31st is the last day of a month that has fewer. Less than a tick is
/// nothing. Nothing if the sum is outside the years above.
std::optional<DateTime> add_parts(DateTime time, DatePart part, std::int64_t count);

/// How often the part changes on the way from one to the other; negative if that leads back.
json::Number boundaries_between(DateTime start, DateTime end, DatePart part);

/// The last one at or before `time` that is a multiple of `count` parts away from `origin`. Nothing
/// of years and months, which are not of one length, and if it is outside the years above.
std::optional<DateTime> bin_of(DateTime time, DatePart part, std::int64_t count, DateTime origin);

}  // namespace orrery::query
