#include "query/date_time.h"

#include <chrono>
#include <cstddef>
#include <optional>

#include "json/scan.h"

namespace orrery::query {
namespace {

/// So many digits from the front of `text`, which loses them.
std::optional<int> take_digits(std::string_view& text, std::size_t count) {
  if (text.size() < count) return std::nullopt;
  int value = 0;
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

/// hh:mm:ss[.fffffff]
bool take_time(std::string_view& text) {
  constexpr std::size_t kFractionDigitsMax = 7;
  const auto hour = take_digits(text, 2);
  if (!hour || *hour > 23 || !take(text, ':')) return false;
  const auto minute = take_digits(text, 2);
  if (!minute || *minute > 59 || !take(text, ':')) return false;
  const auto second = take_digits(text, 2);
  if (!second || *second > 59) return false;
  if (!take(text, '.')) return true;
  std::size_t digits = 0;
  while (digits < text.size() && json::is_digit(text[digits])) ++digits;
  text.remove_prefix(digits);
  return digits >= 1 && digits <= kFractionDigitsMax;
}

}  // namespace

bool is_date_time_text(std::string_view text) {
  const auto year = take_digits(text, 4);
  if (!year || !take(text, '-')) return false;
  const auto month = take_digits(text, 2);
  if (!month || !take(text, '-')) return false;
  const auto day = take_digits(text, 2);
  if (!day) return false;
  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok() || *year == 0) return false;
  if ((take(text, 'T') || take(text, ' ')) && !take_time(text)) return false;
  take(text, 'Z');
  return text.empty();
}

}  // namespace orrery::query
