#include "json/order.h"

#include <cmath>

#include <gtest/gtest.h>

namespace orrery::json {
namespace {

TEST(Order, KindsComeInTheOrderOfTheServiceAndValuesWithinThem) {
  const std::string_view ascending[] = {"",
                                        "null",
                                        "false",
                                        "true",
                                        "-1e400",
                                        "-1e19",
                                        "-9223372036854775808",
                                        "-1.5",
                                        "-1",
                                        "0",
                                        "0.5",
                                        "1",
                                        "1.5",
                                        "9007199254740992",
                                        "9007199254740993",
                                        "9223372036854775807",
                                        "9223372036854775808",
                                        "1e400",
                                        "\"\"",
                                        "\"Z\"",
                                        "\"a\"",
                                        "\"aa\"",
                                        "\"\\u00e9\"",
                                        "[]",
                                        "[1]",
                                        "[1,2]",
                                        "[2]",
                                        "[[]]",
                                        "{}",
                                        R"({"a":1})",
                                        R"({"a":1,"b":0})",
                                        R"({"a":2})",
                                        R"({"b":0})"};
  for (std::size_t i = 0; i < std::size(ascending); ++i) {
    for (std::size_t j = 0; j < std::size(ascending); ++j) {
      const Value a = Value::of_checked(ascending[i]);
      const Value b = Value::of_checked(ascending[j]);
      EXPECT_TRUE(compare(a, b) == (i <=> j)) << ascending[i] << " and " << ascending[j];
      EXPECT_EQ(equal(a, b), i == j) << ascending[i] << " and " << ascending[j];
    }
  }
}

TEST(Order, EqualIsWhatSaysTheSame) {
  const std::pair<std::string_view, std::string_view> pairs[] = {
      {"1", "1.0"},
      {"100", "1e2"},
      {"0", "-0"},
      {R"("A")", R"("\u0041")"},
      {R"({"a":1,"b":[2]})", R"({ "b" : [2.0], "\u0061" : 1 })"},
      {R"({"a":1,"a":2})", R"({"a":1})"}};
  for (const auto& [a, b] : pairs) {
    EXPECT_TRUE(equal(Value::of_checked(a), Value::of_checked(b))) << a << " and " << b;
    EXPECT_TRUE(compare(Value::of_checked(a), Value::of_checked(b)) == 0) << a << " and " << b;
  }
}

TEST(Order, IntegersAndDoublesCompareExactly) {
  const auto order = [](std::int64_t a, double b) { return compare(Number::of(a), Number::of(b)); };
  EXPECT_TRUE(order(9007199254740993, 9007199254740992.0) == std::partial_ordering::greater);
  EXPECT_TRUE(order(INT64_MAX, 9223372036854775808.0) == std::partial_ordering::less);
  EXPECT_TRUE(order(INT64_MIN, -9223372036854775808.0) == std::partial_ordering::equivalent);
  EXPECT_TRUE(order(INT64_MIN, -INFINITY) == std::partial_ordering::greater);
  EXPECT_TRUE(order(-1, -1.5) == std::partial_ordering::greater);
  EXPECT_TRUE(order(-2, -1.5) == std::partial_ordering::less);
  EXPECT_TRUE(compare(Number::of(1.5), Number::of(std::int64_t{2})) == std::partial_ordering::less);
}

TEST(Order, WhatIsNotANumberEqualsNothingButHasItsPlace) {
  const Value nan = Value::number(std::nan(""));
  EXPECT_FALSE(equal(nan, nan));
  EXPECT_TRUE(compare(nan, nan) == 0);
  EXPECT_TRUE(compare(nan, Value::number(-INFINITY)) < 0);
  EXPECT_TRUE(compare(nan, Value::boolean(true)) > 0);
}

TEST(Order, TreesCompareWithText) {
  Value tree = Value::object();
  tree.set_member("b", Value::array({Value::number(std::int64_t{2})}));
  tree.set_member("a", Value::string("x"));
  EXPECT_TRUE(equal(tree, Value::of_checked(R"({"a":"x","b":[2]})")));
  EXPECT_FALSE(equal(tree, Value::of_checked(R"({"a":"x","b":[2,2]})")));
}

TEST(Order, NestingThatNobodyCheckedIsSurvived) {
  const std::string deep(20'000, '[');
  EXPECT_FALSE(equal(Value::of_checked(deep), Value::of_checked(deep)));
  EXPECT_TRUE(compare(Value::of_checked(deep), Value::of_checked(deep)) == 0);
}

}  // namespace
}  // namespace orrery::json
