#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "query/eval/test_evaluate.h"
#include "query/functions/date_time.h"
#include "query/functions/functions.h"

namespace orrery::query {
namespace {

using json::Value;

constexpr std::string_view kDateDocument = R"({"t": "2027-11-05T06:07:08.0910111Z", "n": 2})";

void expect_date(std::initializer_list<EvaluationCase> cases) {
  expect_values(cases, kDateDocument);
}

/// The value of a function of literal arguments, in a query that began at `begun`.
std::string asked_at(std::string_view name, std::string_view arguments, DateTime begun) {
  const Function* function = find_function(name);
  if (function == nullptr || function->kind != Function::Kind::PerQuery) return "no such function";
  std::vector<Value> values;
  for (json::Reader reader(Value::of_checked(arguments)); reader.next();) {
    values.push_back(reader.value());
  }
  std::vector<const Value*> pointers;
  for (const Value& value : values) pointers.push_back(&value);
  const Surroundings surroundings{.begun_ticks = begun.time_since_epoch().count()};
  const Value value = function->call_in(pointers, surroundings);
  return value.is_undefined() ? "-" : value.to_text();
}

TEST(DateFunctions, Adding) {
  expect_date({
      {"DateTimeAdd('year', 3, '2027-11-05T06:07:08Z')", R"("2030-11-05T06:07:08.0000000Z")"},
      {"DateTimeAdd('YYYY', -27, '2027-11-05')", R"("2000-11-05T00:00:00.0000000Z")"},
      {"DateTimeAdd('yy', 1, '2028-02-29')", R"("2029-02-28T00:00:00.0000000Z")"},
      {"DateTimeAdd('month', 2, '2027-11-05Z')", R"("2028-01-05T00:00:00.0000000Z")"},
      {"DateTimeAdd('mm', 1, '2027-01-31 23:59:59.5')", R"("2027-02-28T23:59:59.5000000Z")"},
      {"DateTimeAdd('M', -11, '2028-01-31')", R"("2027-02-28T00:00:00.0000000Z")"},
      {"DateTimeAdd('m', -1, '2027-01-15')", R"("2026-12-15T00:00:00.0000000Z")"},
      {"DateTimeAdd('Day', 60, '2028-01-01')", R"("2028-03-01T00:00:00.0000000Z")"},
      {"DateTimeAdd('d', -1, '2027-01-01')", R"("2026-12-31T00:00:00.0000000Z")"},
      {"DateTimeAdd('hh', 25, c.t)", R"("2027-11-06T07:07:08.0910111Z")"},
      {"DateTimeAdd('mi', -8, c.t)", R"("2027-11-05T05:59:08.0910111Z")"},
      {"DateTimeAdd('n', c.n, c.t)", R"("2027-11-05T06:09:08.0910111Z")"},
      {"DateTimeAdd('s', 52, c.t)", R"("2027-11-05T06:08:00.0910111Z")"},
      {"DateTimeAdd('ms', 909, c.t)", R"("2027-11-05T06:07:09.0000111Z")"},
      {"DateTimeAdd('mcs', -91, c.t)", R"("2027-11-05T06:07:08.0909201Z")"},
      {"DateTimeAdd('ns', 100, c.t)", R"("2027-11-05T06:07:08.0910112Z")"},
      {"DateTimeAdd('ns', 99, c.t)", R"("2027-11-05T06:07:08.0910111Z")"},
      {"DateTimeAdd('ns', -99, c.t)", R"("2027-11-05T06:07:08.0910111Z")"},
      {"DateTimeAdd('hour', 2.0, '2027-11-05')", R"("2027-11-05T02:00:00.0000000Z")"},
  });
}

TEST(DateFunctions, WhatIsNoSumIsUndefined) {
  expect_date({{"DateTimeAdd('hour', 0.5, '2027-11-05')", "-"},
               {"DateTimeAdd('week', 1, '2027-11-05')", "-"},
               {"DateTimeAdd('', 1, '2027-11-05')", "-"},
               {"DateTimeAdd('day', '1', '2027-11-05')", "-"},
               {"DateTimeAdd('day', 1, '2027-02-29')", "-"},
               {"DateTimeAdd('day', 1, 'tomorrow')", "-"},
               {"DateTimeAdd('day', 1, 20271105)", "-"},
               {"DateTimeAdd(1, 1, '2027-11-05')", "-"},
               {"DateTimeAdd('day', 1, c.missing)", "-"},
               {"DateTimeAdd('year', 7973, '2027-11-05')", "-"},
               {"DateTimeAdd('year', -2027, '2027-11-05')", "-"},
               {"DateTimeAdd('year', -2026, '2027-11-05')", R"("0001-11-05T00:00:00.0000000Z")"},
               {"DateTimeAdd('month', 1, '9999-12-01')", "-"},
               {"DateTimeAdd('ns', 100, '9999-12-31T23:59:59.9999999Z')", "-"},
               {"DateTimeAdd('ns', -100, '0001-01-01')", "-"}});
  for (const auto part : {"yyyy", "mm", "dd", "hh", "mi", "ss", "ms", "mcs"}) {
    for (const auto count : {"9223372036854775807", "-9223372036854775808"}) {
      const auto text = "DateTimeAdd('" + std::string(part) + "', " + count + ", '2027-11-05')";
      EXPECT_EQ(evaluated(text, kDateDocument), "-") << text;
    }
  }
}

TEST(DateFunctions, Bins) {
  expect_date({
      {"DateTimeBin('2027-11-05T18:35:00Z', 'hh', 5)", R"("2027-11-05T17:00:00.0000000Z")"},
      {"DateTimeBin('2021-01-08T18:35:00Z', 'hh', 5)", R"("2021-01-08T15:00:00.0000000Z")"},
      {"DateTimeBin('2021-01-08T18:35:00Z', 'dd', 7)", R"("2021-01-07T00:00:00.0000000Z")"},
      {"DateTimeBin('2021-01-08T18:35:00Z', 'dd', 7, '1601-01-01T00:00:00Z')",
       R"("2021-01-04T00:00:00.0000000Z")"},
      {"DateTimeBin(c.t, 'dd')", R"("2027-11-05T00:00:00.0000000Z")"},
      {"DateTimeBin(c.t, 'hh')", R"("2027-11-05T06:00:00.0000000Z")"},
      {"DateTimeBin(c.t, 'mi', 5)", R"("2027-11-05T06:05:00.0000000Z")"},
      {"DateTimeBin(c.t, 'ss', 10)", R"("2027-11-05T06:07:00.0000000Z")"},
      {"DateTimeBin(c.t, 'ms', 50)", R"("2027-11-05T06:07:08.0500000Z")"},
      {"DateTimeBin(c.t, 'mcs')", R"("2027-11-05T06:07:08.0910110Z")"},
      {"DateTimeBin(c.t, 'ns', 500)", R"("2027-11-05T06:07:08.0910110Z")"},
      {"DateTimeBin(c.t, 'ns', 1)", R"("2027-11-05T06:07:08.0910111Z")"},
      {"DateTimeBin('1970-01-01T00:00:00.0000005Z', 'ns', 150)",
       R"("1970-01-01T00:00:00.0000004Z")"},
      {"DateTimeBin('1969-12-31T23:00:00', 'dd', 2)", R"("1969-12-30T00:00:00.0000000Z")"},
      {"DateTimeBin(c.t, 'hh', 1, '2030-01-01T00:30:00')", R"("2027-11-05T05:30:00.0000000Z")"},
      {"DateTimeBin('9999-12-31', 'ns', 1)", R"("9999-12-31T00:00:00.0000000Z")"},
      {"DateTimeBin(c.t, 'yyyy')", "-"},
      {"DateTimeBin(c.t, 'mm')", "-"},
      {"DateTimeBin(c.t, 'hh', 0)", "-"},
      {"DateTimeBin(c.t, 'hh', -1)", "-"},
      {"DateTimeBin(c.t, 'hh', 1.5)", "-"},
      {"DateTimeBin(c.t, 'hh', 1, '1600-12-31')", "-"},
      {"DateTimeBin(c.t, 'hh', 1, 'then')", "-"},
      {"DateTimeBin(c.t, 'hh', 9223372036854775807)", R"("1970-01-01T00:00:00.0000000Z")"},
      {"DateTimeBin('1969-01-01', 'dd', 9223372036854775807)", "-"},
      {"DateTimeBin('0001-01-01', 'dd', 1000)", "-"},
  });
}

TEST(DateFunctions, DifferencesCountBoundaries) {
  expect_date({
      {"DateTimeDiff('year', '2027-12-31T23:59:59Z', '2028-01-01')", "1"},
      {"DateTimeDiff('year', '2027-01-01', '2027-12-31T23:59:59Z')", "0"},
      {"DateTimeDiff('yy', '2030-01-01', '2027-12-31')", "-3"},
      {"DateTimeDiff('month', '2027-11-30', '2028-02-01')", "3"},
      {"DateTimeDiff('mm', '2027-11-01', '2027-11-30')", "0"},
      {"DateTimeDiff('day', '2028-02-28T23:00:00', '2028-03-01T01:00:00')", "2"},
      {"DateTimeDiff('dd', '1970-01-01T12:00:00', '1969-12-31T23:00:00')", "-1"},
      {"DateTimeDiff('hour', '2027-11-05T06:59:59', '2027-11-05T07:00:00')", "1"},
      {"DateTimeDiff('mi', '2027-11-05T06:00:59', '2027-11-05T06:02:00')", "2"},
      {"DateTimeDiff('ss', '1969-12-31T23:59:59.9', '1970-01-01T00:00:00.1')", "1"},
      {"DateTimeDiff('ms', '2027-11-05T00:00:00.0019999', '2027-11-05T00:00:00.0020000')", "1"},
      {"DateTimeDiff('mcs', '2027-11-05T00:00:00', '2027-11-05T00:00:01')", "1000000"},
      {"DateTimeDiff('ns', '2027-11-05T00:00:00', '2027-11-05T00:00:00.0000003')", "300"},
      {"DateTimeDiff('ns', '0001-01-01', '9999-12-31') > 3.15e20", "true"},
      {"DateTimeDiff('week', '2027-11-05', '2027-11-05')", "-"},
      {"DateTimeDiff('day', '2027-11-05', 'x')", "-"},
      {"DateTimeDiff('day', 5, '2027-11-05')", "-"},
  });
}

TEST(DateFunctions, Formats) {
  expect_date({
      {"DateTimeFormat(c.t, 'yyyyMMdd')", R"("20271105")"},
      {"DateTimeFormat(c.t, 'dd.MM.yyyy [HH:mm:ss]')", R"("05.11.2027 [06:07:08]")"},
      {"DateTimeFormat(c.t, 'f ff fff ffff fffff ffffff fffffff')",
       R"("0 09 091 0910 09101 091011 0910111")"},
      {"DateTimeFormat(c.t, 'F FF FFF FFFF')", R"(" 09 091 091")"},
      {"DateTimeFormat('2027-11-05', 'ss.fff ss.FFF')", R"("00.000 00.")"},
      {R"(DateTimeFormat(c.t, '\\dd \\yyyy \\\\ \\'))", R"("dd yyyy \\ \\")"},
      {"DateTimeFormat(c.t, 'dddd')", R"("0505")"},
      {"DateTimeFormat(c.t, 'ffffffffff')", R"("0910111091")"},
      {"DateTimeFormat(c.t, 'é')", R"("é")"},
      {"DateTimeFormat(c.t, '')", R"("")"},
      {"DateTimeFormat('0007-01-02', 'yyyy')", R"("0007")"},
      {"DateTimeFormat('x', 'yyyy')", "-"},
      {"DateTimeFormat(c.t, 1)", "-"},
  });
}

TEST(DateFunctions, FromParts) {
  expect_date({
      {"DateTimeFromParts(2027, 11, 5)", R"("2027-11-05T00:00:00.0000000Z")"},
      {"DateTimeFromParts(2027, 11, 5, 6)", R"("2027-11-05T06:00:00.0000000Z")"},
      {"DateTimeFromParts(2027, 11, 5, 6, 7)", R"("2027-11-05T06:07:00.0000000Z")"},
      {"DateTimeFromParts(2027, 11, 5, 6, 7, 8)", R"("2027-11-05T06:07:08.0000000Z")"},
      {"DateTimeFromParts(2027, 11, 5, 6, 7, 8, 9)", R"("2027-11-05T06:07:08.0000009Z")"},
      {"DateTimeFromParts(1, 1, 1, 23, 59, 59, 9999999)", R"("0001-01-01T23:59:59.9999999Z")"},
      {"DateTimeFromParts(2028, 2, 29)", R"("2028-02-29T00:00:00.0000000Z")"},
      {"DateTimeFromParts(2027, 2, 29)", "-"},
      {"DateTimeFromParts(0, 1, 1)", "-"},
      {"DateTimeFromParts(10000, 1, 1)", "-"},
      {"DateTimeFromParts(2027, 13, 1)", "-"},
      {"DateTimeFromParts(2027, 4294967297, 1)", "-"},
      {"DateTimeFromParts(2027, 1, 0)", "-"},
      {"DateTimeFromParts(2027, 1, 1, 24)", "-"},
      {"DateTimeFromParts(2027, 1, 1, 0, 60)", "-"},
      {"DateTimeFromParts(2027, 1, 1, 0, 0, 60)", "-"},
      {"DateTimeFromParts(2027, 1, 1, 0, 0, 0, 10000000)", "-"},
      {"DateTimeFromParts(2027, 1, 1, 0, 0, 0, -1)", "-"},
      {"DateTimeFromParts(2027, 1.5, 1)", "-"},
      {"DateTimeFromParts('2027', 1, 1)", "-"},
  });
}

TEST(DateFunctions, Parts) {
  expect_date({
      {"DateTimePart('yyyy', c.t)", "2027"},
      {"DateTimePart('MONTH', c.t)", "11"},
      {"DateTimePart('d', c.t)", "5"},
      {"DateTimePart('hh', c.t)", "6"},
      {"DateTimePart('minute', c.t)", "7"},
      {"DateTimePart('s', c.t)", "8"},
      {"DateTimePart('millisecond', c.t)", "91"},
      {"DateTimePart('microsecond', c.t)", "91011"},
      {"DateTimePart('nanosecond', c.t)", "91011100"},
      {"DateTimePart('ms', '1969-12-31T23:59:59.1301617')", "130"},
      {"DateTimePart('mcs', '1969-12-31T23:59:59.1301617')", "130161"},
      {"DateTimePart('ns', '1969-12-31T23:59:59.1301617')", "130161700"},
      {"YEAR(c.t)", "2027"},
      {"Month(c.t)", "11"},
      {"day(c.t)", "5"},
      {"YEAR('2027')", "-"},
      {"DateTimePart('weekday', c.t)", "-"},
      {"DateTimePart('day', 'x')", "-"},
  });
}

TEST(DateFunctions, TicksAndTimestamps) {
  expect_date({
      {"DateTimeToTicks('1970-01-02')", "864000000000"},
      {"DateTimeToTicks('1969-12-31T23:59:59.9999999Z')", "-1"},
      {"DateTimeToTicks('2027-02-30')", "-"},
      {"TicksToDateTime(-1)", R"("1969-12-31T23:59:59.9999999Z")"},
      {"TicksToDateTime(DateTimeToTicks(c.t)) = c.t", "true"},
      {"TicksToDateTime(2534023008000000000)", "-"},
      {"TicksToDateTime(2534023007999999999)", R"("9999-12-31T23:59:59.9999999Z")"},
      {"TicksToDateTime(1.5)", "-"},
      {"TicksToDateTime(9223372036854775807)", "-"},
      {"DateTimeToTimestamp('2001-09-09T01:46:40.1239Z')", "1000000000123"},
      {"DateTimeToTimestamp('1969-12-31T23:59:59.9999Z')", "-1"},
      {"DateTimeToTimestamp(5)", "-"},
      {"TimestampToDateTime(1000000000123)", R"("2001-09-09T01:46:40.1230000Z")"},
      {"TimestampToDateTime(-11644473600000)", R"("1601-01-01T00:00:00.0000000Z")"},
      {"TimestampToDateTime(9223372036854775807)", "-"},
      {"TimestampToDateTime(0.5)", "-"},
      {"TimestampToDateTime('0')", "-"},
  });
}

TEST(DateFunctions, NowIsTheTimeOfTheRow) {
  for (const auto name : {"GetCurrentDateTime", "GetCurrentTicks", "GetCurrentTimestamp"}) {
    ASSERT_NE(find_function(name), nullptr);
    EXPECT_EQ(find_function(name)->kind, Function::Kind::PerRow) << name;
  }
  const auto ticks = [] {
    return std::chrono::floor<Ticks>(SystemClock().now()).time_since_epoch().count();
  };
  const auto before = ticks();
  const std::string in_ticks = evaluated("GetCurrentTicks()", kDateDocument);
  const std::string in_milliseconds = evaluated("GetCurrentTimestamp()", kDateDocument);
  const std::string in_text = evaluated("DateTimeToTicks(GetCurrentDateTime())", kDateDocument);
  const auto after = ticks();
  for (const auto& text : {in_ticks, in_text}) {
    EXPECT_LE(before, std::stoll(text));
    EXPECT_LE(std::stoll(text), after);
  }
  EXPECT_LE(before / 10'000, std::stoll(in_milliseconds));
  EXPECT_LE(std::stoll(in_milliseconds), after / 10'000);
}

TEST(DateFunctions, NowHasAPartAndACountOrNeither) {
  const Function* const now = find_function("NOW");
  ASSERT_NE(now, nullptr);
  EXPECT_TRUE(now->takes(0));
  EXPECT_FALSE(now->takes(1));
  EXPECT_TRUE(now->takes(2));
  EXPECT_FALSE(now->takes(3));
}

TEST(DateFunctions, TheTimeOfAQueryIsOne) {
  const DateTime begun = *parse_date_time("2027-03-31T22:21:20.1234567Z");
  EXPECT_EQ(asked_at("GetCurrentDateTimeStatic", "[]", begun), R"("2027-03-31T22:21:20.1234567Z")");
  EXPECT_EQ(asked_at("GetCurrentTicksStatic", "[]", begun), "18065316801234567");
  EXPECT_EQ(asked_at("GetCurrentTimestampStatic", "[]", begun), "1806531680123");
  EXPECT_EQ(asked_at("NOW", "[]", begun), R"("2027-03-31T22:21:20.1234567Z")");
  EXPECT_EQ(asked_at("now", R"(["month", -1])", begun), R"("2027-02-28T22:21:20.1234567Z")");
  EXPECT_EQ(asked_at("NOW", R"(["hh", 2])", begun), R"("2027-04-01T00:21:20.1234567Z")");
  EXPECT_EQ(asked_at("NOW", R"(["hh"])", begun), "-");
  EXPECT_EQ(asked_at("NOW", R"(["hh", 0.5])", begun), "-");
  EXPECT_EQ(asked_at("NOW", R"(["x", 1])", begun), "-");
  EXPECT_EQ(asked_at("AGO", R"(["dd", 31])", begun), R"("2027-02-28T22:21:20.1234567Z")");
  EXPECT_EQ(asked_at("AGO", R"(["ss", -40])", begun), R"("2027-03-31T22:22:00.1234567Z")");
  EXPECT_EQ(asked_at("AGO", R"(["yyyy", 5000])", begun), "-");
  EXPECT_EQ(asked_at("AGO", R"(["ns", -9223372036854775808])", begun), "-");
}

TEST(DateFunctions, EveryDayIsReadAsItIsPrinted) {
  DateTime time = *parse_date_time("0001-01-01");
  const DateTime last = *parse_date_time("9999-12-31");
  // A step of 997 days and some meets every month and many leap days.
  for (; time < last; time += std::chrono::days(997) + std::chrono::minutes(7) + Ticks(1)) {
    const auto text = print_date_time(time);
    ASSERT_EQ(text.size(), 28u);
    ASSERT_EQ(parse_date_time(text), time) << text;
    ASSERT_EQ(format_date_time(time, "yyyy-MM-ddTHH:mm:\\ss.fffffffZ"),
              text.substr(0, 17) + "ss" + text.substr(19))
        << text;
  }
}

}  // namespace
}  // namespace orrery::query
