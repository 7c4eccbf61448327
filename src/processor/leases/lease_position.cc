// Positions, timestamps and names in leases.
#include <algorithm>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>

#include "processor/leases/lease.h"

namespace orrery::processor {
namespace {

/// Orrery's etag of a reader of tombstones: "00", the position in 19 digits, and when it began.
constexpr std::size_t kPositionDigits = 19;

/// WallTime, which counts nanoseconds, has room for these whole years.
constexpr int kYearMin = 1678;
constexpr int kYearMax = 2261;

std::optional<std::uint64_t> whole_number(std::string_view digits) {
  std::uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, failure] = std::from_chars(digits.data(), end, value);
  if (failure != std::errc() || stop != end) return std::nullopt;
  return value;
}

/// Takes digits off the front of a text.
class DigitReader {
 public:
  explicit DigitReader(std::string_view text) : rest_(text) {}

  std::optional<int> digits(std::size_t count) {
    if (rest_.size() < count) return std::nullopt;
    const auto value = whole_number(rest_.substr(0, count));
    if (!value) return std::nullopt;
    rest_.remove_prefix(count);
    return static_cast<int>(*value);
  }
  bool skip(char expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

std::optional<std::chrono::nanoseconds> fraction(DigitReader& reader) {
  std::int64_t nanoseconds = 0;
  std::int64_t unit = 100'000'000;
  for (int count = 0; count < 9; ++count) {
    const auto digit = reader.digits(1);
    if (!digit) break;
    nanoseconds += *digit * unit;
    unit /= 10;
  }
  return std::chrono::nanoseconds(nanoseconds);
}

/// `Z`, `+02:00`, `+0200` or `+02`.
std::optional<std::chrono::minutes> offset(DigitReader& reader) {
  if (reader.skip('Z') || reader.skip('z')) return std::chrono::minutes(0);
  const bool east = reader.skip('+');
  if (!east && !reader.skip('-')) return std::nullopt;
  const auto hours = reader.digits(2);
  if (!hours) return std::nullopt;
  int minutes = 0;
  if (!reader.rest().empty()) {
    reader.skip(':');
    const auto given = reader.digits(2);
    if (!given) return std::nullopt;
    minutes = *given;
  }
  const auto distance = std::chrono::hours(*hours) + std::chrono::minutes(minutes);
  return east ? distance : -distance;
}

}  // namespace

std::string_view plain_position(std::string_view etag) {
  const bool quoted = etag.size() >= 2 && etag.starts_with('"') && etag.ends_with('"');
  return quoted ? etag.substr(1, etag.size() - 2) : etag;
}

std::optional<std::uint64_t> position_lsn(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  etag = plain_position(etag);
  if (etag.starts_with("00") && etag.size() > 2 + kPositionDigits) {
    etag = etag.substr(2, kPositionDigits);
  }
  return whole_number(etag);
}

std::partial_ordering compare_positions(const std::optional<std::string>& a,
                                        const std::optional<std::string>& b) {
  if (!a || !b) return a.has_value() <=> b.has_value();
  if (*a == *b) return std::partial_ordering::equivalent;
  const auto left = position_lsn(*a);
  const auto right = position_lsn(*b);
  if (!left || !right) return std::partial_ordering::unordered;
  return *left <=> *right;
}

std::optional<std::string> lowest_position(const std::optional<std::string>& a,
                                           const std::optional<std::string>& b) {
  return compare_positions(b, a) < 0 ? b : a;
}

std::optional<WallTime> parse_timestamp(std::string_view text) {
  DigitReader reader(text);
  const auto year = reader.digits(4);
  if (!year || !reader.skip('-')) return std::nullopt;
  const auto month = reader.digits(2);
  if (!month || !reader.skip('-')) return std::nullopt;
  const auto day = reader.digits(2);
  if (!day || !(reader.skip('T') || reader.skip('t') || reader.skip(' '))) return std::nullopt;
  const auto hour = reader.digits(2);
  if (!hour || !reader.skip(':')) return std::nullopt;
  const auto minute = reader.digits(2);
  if (!minute || !reader.skip(':')) return std::nullopt;
  const auto second = reader.digits(2);
  if (!second) return std::nullopt;
  std::chrono::nanoseconds part(0);
  if (reader.skip('.')) {
    const auto given = fraction(reader);
    if (!given) return std::nullopt;
    part = *given;
  }
  const auto zone = offset(reader);
  if (!zone || !reader.rest().empty()) return std::nullopt;

  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok() || *year < kYearMin || *year > kYearMax || *hour > 23 || *minute > 59 ||
      *second > 60)
    return std::nullopt;
  return std::chrono::time_point_cast<WallTime::duration>(
      std::chrono::sys_days(date) + std::chrono::hours(*hour) + std::chrono::minutes(*minute) +
      std::chrono::seconds(*second) + part - *zone);
}

std::string format_timestamp(WallTime time, int fraction_digits) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  const auto of_day = (second - day).count();
  auto part = std::chrono::duration_cast<std::chrono::nanoseconds>(time - second).count();
  for (int digit = 9; digit > fraction_digits; --digit) part /= 10;
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:0{}}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     of_day / 3600, of_day / 60 % 60, of_day % 60, part, fraction_digits);
}

bool same_host(std::string_view a, std::string_view b) {
  const auto lower = [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  };
  return std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace orrery::processor
