#include "protocol/wire/http_date.h"

#include <limits>

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(HttpDate, IsReadAndWritten) {
  EXPECT_EQ(parse_http_date("Tue, 01 Apr 2025 12:00:00 GMT"), 1743508800);
  EXPECT_EQ(format_http_date(1743508800), "Tue, 01 Apr 2025 12:00:00 GMT");
  EXPECT_EQ(format_http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(parse_http_date("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
  EXPECT_EQ(format_http_date(-1), "Wed, 31 Dec 1969 23:59:59 GMT");
  EXPECT_EQ(parse_http_date("Thu, 29 Feb 2024 23:59:59 GMT"), 1709251199);
}

TEST(HttpDate, ToleratesWhatClientsSend) {
  EXPECT_EQ(parse_http_date("tue, 01 apr 2025 12:00:00 gmt"), 1743508800);
  EXPECT_EQ(parse_http_date("Tue, 1 Apr 2025 12:00:00 GMT"), 1743508800);
}

TEST(HttpDate, RefusesOtherForms) {
  for (const char* text : {"",
                           "2025-04-01T12:00:00Z",
                           "1743508800",
                           "Tue, 01 Apr 2025 12:00:00",
                           "Tue, 01 Apr 2025",
                           "Tue, 01 Apr 2025 12:00:00 UTC",
                           "Tue, 01 Apr 2025 12:00:00 GMT ",
                           " Tue, 01 Apr 2025 12:00:00 GMT",
                           "Tue, 01 Apr 25 12:00:00 GMT",
                           "Tue, 31 Apr 2025 12:00:00 GMT",
                           "Tue, 29 Feb 2025 12:00:00 GMT",
                           "Tue, 00 Apr 2025 12:00:00 GMT",
                           "Tue, 01 Apr 2025 24:00:00 GMT",
                           "Tue, 01 Apr 2025 12:60:00 GMT",
                           "Tue, 01 Apr 2025 12:00:60 GMT",
                           "Tue, 01 Foo 2025 12:00:00 GMT",
                           "Foo, 01 Apr 2025 12:00:00 GMT",
                           "Tue, 01 Apr 2025 1:00:00 GMT",
                           "Tue, -1 Apr 2025 12:00:00 GMT",
                           "Tue,"}) {
    EXPECT_EQ(parse_http_date(text), std::nullopt) << text;
  }
}

TEST(HttpDate, ReadsBackWhatItWrites) {
  for (UnixSeconds time = -10'000'000'000; time < 100'000'000'000; time += 86'400'000 + 12'345) {
    EXPECT_EQ(parse_http_date(format_http_date(time)), time);
  }
}

TEST(HttpDate, KeepsItsShapeForAnyTime) {
  EXPECT_EQ(format_http_date(std::numeric_limits<UnixSeconds>::max()),
            "Fri, 31 Dec 9999 23:59:59 GMT");
  EXPECT_EQ(format_http_date(std::numeric_limits<UnixSeconds>::min()).size(), 29u);
}

TEST(HttpDate, ReadsTheOlderFormsWhereTheyAreAdmitted) {
  const auto modern = parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT");
  ASSERT_TRUE(modern);
  EXPECT_EQ(parse_any_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), modern);
  EXPECT_EQ(parse_any_http_date("Sunday, 06-Nov-94 08:49:37 GMT"), modern);
  EXPECT_EQ(parse_any_http_date("Sun Nov  6 08:49:37 1994"), modern);
  EXPECT_EQ(parse_any_http_date("Wed Nov 16 08:49:37 1994"),
            parse_http_date("Wed, 16 Nov 1994 08:49:37 GMT"));
  EXPECT_EQ(parse_any_http_date("Tuesday, 01-Apr-25 12:00:00 GMT"),
            parse_http_date("Tue, 01 Apr 2025 12:00:00 GMT"));
  EXPECT_FALSE(parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT"));
  for (const char* text : {"", "yesterday", "1994-11-06T08:49:37Z", "Sun Nov  6 08:49:37 1994 GMT",
                           "Sunday, 06-Nov-1994 08:49:37 GMT", "Sun Nov 31 08:49:37 1994"}) {
    EXPECT_FALSE(parse_any_http_date(text)) << text;
  }
}

}  // namespace
}  // namespace orrery
