// Functions of dates and times.
#include "base/clock.h"
#include "query/functions/arguments.h"
#include "query/functions/date_time.h"
#include "query/functions/functions.h"

namespace orrery::query {
namespace {

using json::Value;
using std::chrono::milliseconds;

std::optional<DateTime> date_of(const Value& value) {
  std::string buffer;
  return value.is_string() ? parse_date_time(value.as_string(buffer)) : std::nullopt;
}

std::optional<DatePart> part_named(const Value& value) {
  std::string buffer;
  return value.is_string() ? find_date_part(value.as_string(buffer)) : std::nullopt;
}

Value printed_date(std::optional<DateTime> time) {
  return time ? Value::string(print_date_time(*time)) : Value();
}

Value date_time_add(Arguments arguments) {
  const auto part = part_named(*arguments[0]);
  const auto count = integer_of(*arguments[1]);
  const auto time = date_of(*arguments[2]);
  return part && count && time ? printed_date(add_parts(*time, *part, *count)) : Value();
}

/// (date, part [, count [, origin]])
Value date_time_bin(Arguments arguments) {
  constexpr DateTime kFirstOrigin = std::chrono::sys_days(std::chrono::year(1601) / 1 / 1);
  const auto time = date_of(*arguments[0]);
  const auto part = part_named(*arguments[1]);
  const auto count = arguments.size() > 2 ? integer_of(*arguments[2]) : 1;
  const auto origin = arguments.size() > 3 ? date_of(*arguments[3]) : DateTime();
  if (!time || !part || !count || *count <= 0 || !origin || *origin < kFirstOrigin) return {};
  return printed_date(bin_of(*time, *part, *count, *origin));
}

Value date_time_diff(Arguments arguments) {
  const auto part = part_named(*arguments[0]);
  const auto start = date_of(*arguments[1]);
  const auto end = date_of(*arguments[2]);
  return part && start && end ? Value::number(boundaries_between(*start, *end, *part)) : Value();
}

Value date_time_format(Arguments arguments) {
  const Texts texts(arguments, 2);
  if (!texts) return {};
  const auto time = parse_date_time(texts[0]);
  return time ? Value::string(format_date_time(*time, texts[1])) : Value();
}

/// (year, month, day [, hour [, minute [, second [, ticks]]]])
Value date_time_from_parts(Arguments arguments) {
  DateTimeParts parts;
  std::int64_t* const places[] = {&parts.year,   &parts.month,  &parts.day,  &parts.hour,
                                  &parts.minute, &parts.second, &parts.ticks};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto part = integer_of(*arguments[i]);
    if (!part) return {};
    *places[i] = *part;
  }
  return printed_date(date_time_of(parts));
}

Value date_time_part(Arguments arguments) {
  const auto part = part_named(*arguments[0]);
  const auto time = date_of(*arguments[1]);
  return part && time ? Value::number(part_of(*time, *part)) : Value();
}

template <DatePart part>
Value part_in(Arguments arguments) {
  const auto time = date_of(*arguments[0]);
  return time ? Value::number(part_of(*time, part)) : Value();
}

// ── A point in time in one of three ways: as a string, in ticks, in milliseconds ─────────────────

Value in_ticks(DateTime time) {
  return Value::number(std::int64_t{time.time_since_epoch().count()});
}

Value in_milliseconds(DateTime time) {
  return Value::number(
      std::int64_t{std::chrono::floor<milliseconds>(time).time_since_epoch().count()});
}

Value in_text(DateTime time) { return printed_date(time); }

template <Value (*shown)(DateTime)>
Value shown_of(Arguments arguments) {
  const auto time = date_of(*arguments[0]);
  return time ? shown(*time) : Value();
}

Value ticks_to_date_time(Arguments arguments) {
  const auto ticks = integer_of(*arguments[0]);
  return ticks ? printed_date(date_time_at(Ticks(*ticks))) : Value();
}

Value timestamp_to_date_time(Arguments arguments) {
  const auto count = integer_of(*arguments[0]);
  return count ? printed_date(add_parts(DateTime(), DatePart::Millisecond, *count)) : Value();
}

// ── Now ──────────────────────────────────────────────────────────────────────────────────────────

template <Value (*shown)(DateTime)>
Value current(Arguments) {
  return shown(std::chrono::floor<Ticks>(SystemClock().now()));
}

template <Value (*shown)(DateTime)>
Value begun(Arguments, const Surroundings& surroundings) {
  const auto time = date_time_at(Ticks(surroundings.begun_ticks));
  return time ? shown(*time) : Value();
}

/// So many parts after the query began, or before it.
Value begun_and(Arguments arguments, const Surroundings& surroundings, bool is_before) {
  const auto part = part_named(*arguments[0]);
  const auto count = integer_of(*arguments[1]);
  const auto time = date_time_at(Ticks(surroundings.begun_ticks));
  if (!part || !count || !time) return {};
  if (!is_before) return printed_date(add_parts(*time, *part, *count));
  if (*count == std::numeric_limits<std::int64_t>::min()) return {};
  return printed_date(add_parts(*time, *part, -*count));
}

/// () or (part, count)
Value now(Arguments arguments, const Surroundings& surroundings) {
  if (arguments.empty()) return begun<in_text>(arguments, surroundings);
  return arguments.size() == 2 ? begun_and(arguments, surroundings, false) : Value();
}

Value ago(Arguments arguments, const Surroundings& surroundings) {
  return begun_and(arguments, surroundings, true);
}

using enum Function::Kind;

constexpr Function per_query(std::string_view name, std::uint8_t arguments_min,
                             std::uint8_t arguments_max,
                             Value (*call_in)(Arguments, const Surroundings&),
                             bool is_least_or_most = false) {
  return {.name = name,
          .arguments_min = arguments_min,
          .arguments_max = arguments_max,
          .call = nullptr,
          .kind = PerQuery,
          .is_least_or_most = is_least_or_most,
          .call_in = call_in};
}

constexpr Function kDateFunctions[] = {
    per_query("AGO", 2, 2, ago),
    {"DATETIMEADD", 3, 3, date_time_add},
    {"DATETIMEBIN", 2, 4, date_time_bin},
    {"DATETIMEDIFF", 3, 3, date_time_diff},
    {"DATETIMEFORMAT", 2, 2, date_time_format},
    {"DATETIMEFROMPARTS", 3, 7, date_time_from_parts},
    {"DATETIMEPART", 2, 2, date_time_part},
    {"DATETIMETOTICKS", 1, 1, shown_of<in_ticks>},
    {"DATETIMETOTIMESTAMP", 1, 1, shown_of<in_milliseconds>},
    {"DAY", 1, 1, part_in<DatePart::Day>},
    {"GETCURRENTDATETIME", 0, 0, current<in_text>, false, PerRow},
    per_query("GETCURRENTDATETIMESTATIC", 0, 0, begun<in_text>),
    {"GETCURRENTTICKS", 0, 0, current<in_ticks>, false, PerRow},
    per_query("GETCURRENTTICKSSTATIC", 0, 0, begun<in_ticks>),
    {"GETCURRENTTIMESTAMP", 0, 0, current<in_milliseconds>, false, PerRow},
    per_query("GETCURRENTTIMESTAMPSTATIC", 0, 0, begun<in_milliseconds>),
    {"MONTH", 1, 1, part_in<DatePart::Month>},
    per_query("NOW", 0, 2, now, true),
    {"TICKSTODATETIME", 1, 1, ticks_to_date_time},
    {"TIMESTAMPTODATETIME", 1, 1, timestamp_to_date_time},
    {"YEAR", 1, 1, part_in<DatePart::Year>},
};

}  // namespace

std::span<const Function> date_functions() { return kDateFunctions; }

}  // namespace orrery::query
