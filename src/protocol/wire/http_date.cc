#include "protocol/wire/http_date.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

#include "base/header_name.h"

namespace orrery {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<std::string_view, 7> kLongDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                       "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/// Eats a text from its front. Once something did not fit, ok() stays false.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }

  void expect(std::string_view text) {
    if (!equal_ignoring_case(rest_.substr(0, text.size()), text)) {
      ok_ = false;
      return;
    }
    rest_.remove_prefix(text.size());
  }

  int number(std::size_t digits_min, std::size_t digits_max) {
    int value = 0;
    std::size_t digits = 0;
    while (digits < digits_max && digits < rest_.size() && rest_[digits] >= '0' &&
           rest_[digits] <= '9') {
      value = value * 10 + (rest_[digits++] - '0');
    }
    if (digits < digits_min) ok_ = false;
    rest_.remove_prefix(digits);
    return value;
  }

  template <std::size_t N>
  std::size_t one_of(const std::array<std::string_view, N>& words) {
    for (std::size_t i = 0; i < N; ++i) {
      if (equal_ignoring_case(rest_.substr(0, 3), words[i])) {
        rest_.remove_prefix(3);
        return i;
      }
    }
    ok_ = false;
    return 0;
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

/// A date and time as they are read.
struct Moment {
  int year = 0;
  std::size_t month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;

  void take_time(Scanner& scanner) {
    hour = scanner.number(2, 2);
    scanner.expect(":");
    minute = scanner.number(2, 2);
    scanner.expect(":");
    second = scanner.number(2, 2);
  }
  /// Nothing when something did not fit, or more follows.
  std::optional<UnixSeconds> at_end_of(const Scanner& scanner) const {
    if (!scanner.ok() || !scanner.at_end()) return std::nullopt;
    const std::chrono::year_month_day date{std::chrono::year(year),
                                           std::chrono::month(static_cast<unsigned>(month)),
                                           std::chrono::day(static_cast<unsigned>(day))};
    if (!date.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
    const auto days = std::chrono::sys_days(date).time_since_epoch();
    return UnixSeconds{days.count()} * 86400 + hour * 3600 + minute * 60 + second;
  }
};

void append_number(std::string& out, int value, int digits) {
  std::array<char, 4> text{};
  for (int i = digits - 1; i >= 0; --i, value /= 10) {
    text[static_cast<std::size_t>(i)] = static_cast<char>('0' + value % 10);
  }
  out.append(text.data(), static_cast<std::size_t>(digits));
}

}  // namespace

std::optional<UnixSeconds> parse_http_date(std::string_view text) {
  Scanner scanner(text);
  Moment moment;
  scanner.one_of(kDays);
  scanner.expect(", ");
  moment.day = scanner.number(1, 2);
  scanner.expect(" ");
  moment.month = scanner.one_of(kMonths) + 1;
  scanner.expect(" ");
  moment.year = scanner.number(4, 4);
  scanner.expect(" ");
  moment.take_time(scanner);
  scanner.expect(" GMT");
  return moment.at_end_of(scanner);
}

std::optional<UnixSeconds> parse_any_http_date(std::string_view text) {
  if (const auto modern = parse_http_date(text)) return modern;
  for (const std::string_view day : kLongDays) {
    if (!equal_ignoring_case(text.substr(0, day.size()), day)) continue;
    Scanner scanner(text.substr(day.size()));
    Moment moment;
    scanner.expect(", ");
    moment.day = scanner.number(2, 2);
    scanner.expect("-");
    moment.month = scanner.one_of(kMonths) + 1;
    scanner.expect("-");
    const int year = scanner.number(2, 2);
    moment.year = year < 70 ? 2000 + year : 1900 + year;
    scanner.expect(" ");
    moment.take_time(scanner);
    scanner.expect(" GMT");
    return moment.at_end_of(scanner);
  }
  Scanner scanner(text);
  Moment moment;
  scanner.one_of(kDays);
  scanner.expect(" ");
  moment.month = scanner.one_of(kMonths) + 1;
  scanner.expect(" ");
  if (scanner.ok() && text.size() > 8 && text[8] == ' ') scanner.expect(" ");
  moment.day = scanner.number(1, 2);
  scanner.expect(" ");
  moment.take_time(scanner);
  scanner.expect(" ");
  moment.year = scanner.number(4, 4);
  return moment.at_end_of(scanner);
}

std::string format_http_date(UnixSeconds time) {
  using namespace std::chrono;
  constexpr UnixSeconds kFirst = sys_days(year(0) / 1 / 1).time_since_epoch().count() * 86400LL;
  constexpr UnixSeconds kLast =
      sys_days(year(10000) / 1 / 1).time_since_epoch().count() * 86400LL - 1;
  const sys_seconds moment{seconds(std::clamp(time, kFirst, kLast))};
  const auto midnight = floor<days>(moment);
  const year_month_day date(midnight);
  const auto of_day = static_cast<int>((moment - midnight).count());

  std::string text;
  text.reserve(29);
  text += kDays[weekday(midnight).c_encoding()];
  text += ", ";
  append_number(text, static_cast<int>(static_cast<unsigned>(date.day())), 2);
  text += ' ';
  text += kMonths[static_cast<unsigned>(date.month()) - 1];
  text += ' ';
  append_number(text, static_cast<int>(date.year()), 4);
  text += ' ';
  append_number(text, of_day / 3600, 2);
  text += ':';
  append_number(text, of_day / 60 % 60, 2);
  text += ':';
  append_number(text, of_day % 60, 2);
  text += " GMT";
  return text;
}

}  // namespace orrery
