#include "query/functions/date_time.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "json/scan.h"
#include "query/syntax/lexer.h"

namespace orrery::query {
namespace {

using std::chrono::sys_days;
using std::chrono::year;

using Wide = __int128;

constexpr Wide kNanosecondsPerTick = 100;
constexpr std::int64_t kTicksPerSecond = Ticks::period::den;
constexpr std::size_t kFractionDigits = 7;
constexpr DateTime kFirst = sys_days(year(1) / 1 / 1);
constexpr DateTime kLast =
    DateTime(sys_days(year(9999) / 12 / 31)) + std::chrono::days(1) - Ticks(1);

/// So many digits from the front of `text`, which loses them.
std::optional<std::int64_t> take_digits(std::string_view& text, std::size_t count) {
  if (text.size() < count) return std::nullopt;
  std::int64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!json::is_digit(text[i])) return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return value;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

/// So many digits and, unless it is nothing, the character after them.
bool take_part(std::string_view& text, std::size_t count, char after, std::int64_t& part) {
  const auto digits = take_digits(text, count);
  if (!digits) return false;
  part = *digits;
  return after == '\0' || take(text, after);
}

/// hh:mm:ss[.fffffff]
bool take_time(std::string_view& text, DateTimeParts& parts) {
  if (!take_part(text, 2, ':', parts.hour) || !take_part(text, 2, ':', parts.minute) ||
      !take_part(text, 2, '\0', parts.second)) {
    return false;
  }
  if (!take(text, '.')) return true;
  std::size_t digits = 0;
  while (digits < text.size() && json::is_digit(text[digits])) ++digits;
  if (digits == 0 || digits > kFractionDigits) return false;
  parts.ticks = *take_digits(text, digits);
  for (; digits < kFractionDigits; ++digits) parts.ticks *= 10;
  return true;
}

DateTimeParts parts_of(DateTime time) {
  const auto midnight = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(midnight);
  const std::chrono::hh_mm_ss<Ticks> clock(time - midnight);
  return {.year = static_cast<int>(date.year()),
          .month = static_cast<unsigned>(date.month()),
          .day = static_cast<unsigned>(date.day()),
          .hour = clock.hours().count(),
          .minute = clock.minutes().count(),
          .second = clock.seconds().count(),
          .ticks = clock.subseconds().count()};
}

bool is_within(std::int64_t value, std::int64_t low, std::int64_t high) {
  return low <= value && value <= high;
}

Wide floor_divided(Wide a, Wide b) { return a / b - (a % b < 0 ? 1 : 0); }

Wide nanoseconds_of(DateTime time) {
  return Wide{time.time_since_epoch().count()} * kNanosecondsPerTick;
}

std::optional<DateTime> at_ticks(Wide ticks) {
  if (ticks < kFirst.time_since_epoch().count() || ticks > kLast.time_since_epoch().count()) {
    return std::nullopt;
  }
  return DateTime(Ticks(static_cast<std::int64_t>(ticks)));
}

/// Of the parts that are always of one length.
Wide nanoseconds_in(DatePart part) {
  switch (part) {
    case DatePart::Day:
      return std::chrono::nanoseconds(std::chrono::days(1)).count();
    case DatePart::Hour:
      return std::chrono::nanoseconds(std::chrono::hours(1)).count();
    case DatePart::Minute:
      return std::chrono::nanoseconds(std::chrono::minutes(1)).count();
    case DatePart::Second:
      return std::chrono::nanoseconds(std::chrono::seconds(1)).count();
    case DatePart::Millisecond:
      return std::chrono::nanoseconds(std::chrono::milliseconds(1)).count();
    case DatePart::Microsecond:
      return std::chrono::nanoseconds(std::chrono::microseconds(1)).count();
    default:
      return 1;
  }
}

std::optional<DateTime> add_months(DateTime time, std::int64_t count) {
  constexpr std::int64_t kMonthsMax = 12 * 10'000;
  if (!is_within(count, -kMonthsMax, kMonthsMax)) return std::nullopt;
  const auto midnight = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(midnight);
  const auto month = date.year() / date.month() + std::chrono::months(count);
  if (!is_within(static_cast<int>(month.year()), 1, 9999)) return std::nullopt;
  const auto day = std::min(date.day(), (month / std::chrono::last).day());
  return DateTime(sys_days(month / day)) + (time - midnight);
}

constexpr std::pair<std::string_view, DatePart> kPartNames[] = {
    {"YEAR", DatePart::Year},       {"YYYY", DatePart::Year},
    {"YY", DatePart::Year},         {"MONTH", DatePart::Month},
    {"MM", DatePart::Month},        {"M", DatePart::Month},
    {"DAY", DatePart::Day},         {"DD", DatePart::Day},
    {"D", DatePart::Day},           {"HOUR", DatePart::Hour},
    {"HH", DatePart::Hour},         {"MINUTE", DatePart::Minute},
    {"MI", DatePart::Minute},       {"N", DatePart::Minute},
    {"SECOND", DatePart::Second},   {"SS", DatePart::Second},
    {"S", DatePart::Second},        {"MILLISECOND", DatePart::Millisecond},
    {"MS", DatePart::Millisecond},  {"MICROSECOND", DatePart::Microsecond},
    {"MCS", DatePart::Microsecond}, {"NANOSECOND", DatePart::Nanosecond},
    {"NS", DatePart::Nanosecond},
};

}  // namespace

std::optional<DateTime> parse_date_time(std::string_view text) {
  DateTimeParts parts;
  if (!take_part(text, 4, '-', parts.year) || !take_part(text, 2, '-', parts.month) ||
      !take_part(text, 2, '\0', parts.day)) {
    return std::nullopt;
  }
  if ((take(text, 'T') || take(text, ' ')) && !take_time(text, parts)) return std::nullopt;
  take(text, 'Z');
  return text.empty() ? date_time_of(parts) : std::nullopt;
}

std::optional<DateTime> date_time_of(const DateTimeParts& parts) {
  if (!is_within(parts.year, 1, 9999) || !is_within(parts.month, 1, 12) ||
      !is_within(parts.day, 1, 31) || !is_within(parts.hour, 0, 23) ||
      !is_within(parts.minute, 0, 59) || !is_within(parts.second, 0, 59) ||
      !is_within(parts.ticks, 0, kTicksPerSecond - 1)) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date(year(static_cast<int>(parts.year)),
                                         std::chrono::month(static_cast<unsigned>(parts.month)),
                                         std::chrono::day(static_cast<unsigned>(parts.day)));
  if (!date.ok()) return std::nullopt;
  return DateTime(sys_days(date)) + std::chrono::hours(parts.hour) +
         std::chrono::minutes(parts.minute) + std::chrono::seconds(parts.second) +
         Ticks(parts.ticks);
}

std::optional<DateTime> date_time_at(Ticks since_1970) { return at_ticks(since_1970.count()); }

std::string print_date_time(DateTime time) {
  const DateTimeParts parts = parts_of(time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:07}Z", parts.year, parts.month,
                     parts.day, parts.hour, parts.minute, parts.second, parts.ticks);
}

std::string format_date_time(DateTime time, std::string_view format) {
  const DateTimeParts parts = parts_of(time);
  const std::pair<std::string_view, std::int64_t> fields[] = {
      {"yyyy", parts.year}, {"MM", parts.month},  {"dd", parts.day},
      {"HH", parts.hour},   {"mm", parts.minute}, {"ss", parts.second},
  };
  const std::string fraction = fmt::format("{:07}", parts.ticks);
  std::string out;
  while (!format.empty()) {
    if (const auto* field = std::ranges::find_if(
            fields, [&](const auto& named) { return format.starts_with(named.first); });
        field != std::end(fields)) {
      out += fmt::format("{:0{}}", field->second, field->first.size());
      format.remove_prefix(field->first.size());
    } else if (format[0] == 'f' || format[0] == 'F') {
      const std::size_t run = std::min(format.find_first_not_of(format[0]), format.size());
      const std::size_t digits = std::min(run, kFractionDigits);
      std::string_view shown = std::string_view(fraction).substr(0, digits);
      if (format[0] == 'F') shown = shown.substr(0, shown.find_last_not_of('0') + 1);
      out += shown;
      format.remove_prefix(digits);
    } else {
      if (format[0] == '\\' && format.size() > 1) format.remove_prefix(1);
      out += format[0];
      format.remove_prefix(1);
    }
  }
  return out;
}

std::optional<DatePart> find_date_part(std::string_view name) {
  const auto* found = std::ranges::find(kPartNames, to_upper_ascii(name),
                                        &std::pair<std::string_view, DatePart>::first);
  return found == std::end(kPartNames) ? std::nullopt : std::optional(found->second);
}

std::int64_t part_of(DateTime time, DatePart part) {
  const DateTimeParts parts = parts_of(time);
  switch (part) {
    case DatePart::Year:
      return parts.year;
    case DatePart::Month:
      return parts.month;
    case DatePart::Day:
      return parts.day;
    case DatePart::Hour:
      return parts.hour;
    case DatePart::Minute:
      return parts.minute;
    case DatePart::Second:
      return parts.second;
    default:
      return static_cast<std::int64_t>(parts.ticks * kNanosecondsPerTick / nanoseconds_in(part));
  }
}

std::optional<DateTime> add_parts(DateTime time, DatePart part, std::int64_t count) {
  if (part == DatePart::Month) return add_months(time, count);
  if (part == DatePart::Year) {
    return is_within(count, -10'000, 10'000) ? add_months(time, 12 * count) : std::nullopt;
  }
  const Wide ticks = Wide{count} * nanoseconds_in(part) / kNanosecondsPerTick;
  return at_ticks(time.time_since_epoch().count() + ticks);
}

json::Number boundaries_between(DateTime start, DateTime end, DatePart part) {
  if (part == DatePart::Year || part == DatePart::Month) {
    const DateTimeParts from = parts_of(start);
    const DateTimeParts to = parts_of(end);
    const std::int64_t years = to.year - from.year;
    return json::Number::of(part == DatePart::Year ? years : 12 * years + to.month - from.month);
  }
  const Wide length = nanoseconds_in(part);
  const Wide count =
      floor_divided(nanoseconds_of(end), length) - floor_divided(nanoseconds_of(start), length);
  // Nanoseconds of more than 292 years are too many for an integer.
  using Limits = std::numeric_limits<std::int64_t>;
  return Limits::min() <= count && count <= Limits::max()
             ? json::Number::of(static_cast<std::int64_t>(count))
             : json::Number::of(static_cast<double>(count));
}

std::optional<DateTime> bin_of(DateTime time, DatePart part, std::int64_t count, DateTime origin) {
  if (part == DatePart::Year || part == DatePart::Month) return std::nullopt;
  const Wide length = Wide{count} * nanoseconds_in(part);
  const Wide since = nanoseconds_of(time) - nanoseconds_of(origin);
  const Wide begin = nanoseconds_of(origin) + floor_divided(since, length) * length;
  return at_ticks(floor_divided(begin, kNanosecondsPerTick));
}

}  // namespace orrery::query
