#include "json/value.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/document_text.h"

namespace orrery::json {
namespace {

using ::testing::HasSubstr;

Value parsed_value(std::string_view text) {
  auto value = Value::parse(text);
  EXPECT_TRUE(value.has_value()) << text << ": " << value.error().message();
  return value ? std::move(*value) : Value();
}

std::string string_of(const Value& value) {
  std::string buffer;
  return std::string(value.as_string(buffer));
}

TEST(Value, WhatWasNotTouchedIsWrittenBackByteByByte) {
  for (const std::string_view text :
       {R"({"a":1})", R"({ "a" : 1.50 , "b":[ 1,2 , 3e0 ] })", R"([ ])", R"("\u0041\/")", "-0.0e+7",
        "123456789012345678901234567890", "1e400", "-1E-999", R"({"a":1,"a":2})", "true", "null",
        "\"\xC3\xA9\"", R"({"\u0061":{}})"}) {
    EXPECT_EQ(parsed_value(text).to_text(), text);
  }
}

TEST(Value, ATouchedObjectKeepsTheBytesOfWhatIsInIt) {
  Value value =
      parsed_value(R"({ "a" : 1.50, "b" : { "x" :  1e2 } , "c":[ 1, 2 ], "d" : "\u00e9" })");
  value.set_member("c", Value::number(std::int64_t{7}));
  EXPECT_EQ(value.to_text(), R"({"a":1.50,"b":{ "x" :  1e2 },"c":7,"d":"\u00e9"})");
}

TEST(Value, SpacesAroundAreNoPartOfIt) { EXPECT_EQ(parsed_value(" \n{ } \t").to_text(), "{ }"); }

TEST(Value, EveryKindIsTold) {
  EXPECT_TRUE(Value().is_undefined());
  EXPECT_TRUE(parsed_value("null").is_null());
  EXPECT_TRUE(parsed_value("true").is_true());
  EXPECT_TRUE(parsed_value("false").is_boolean());
  EXPECT_FALSE(parsed_value("false").is_true());
  EXPECT_TRUE(parsed_value("-1").is_number());
  EXPECT_TRUE(parsed_value("\"\"").is_string());
  EXPECT_TRUE(parsed_value("[]").is_array());
  EXPECT_TRUE(parsed_value("{}").is_object());
}

TEST(Value, IntegersOf64BitsAreExactAndAllElseIsADouble) {
  const auto number = [](std::string_view text) { return parsed_value(text).as_number(); };
  EXPECT_TRUE(number("9223372036854775807").is_integer);
  EXPECT_EQ(number("9223372036854775807").integer, INT64_MAX);
  EXPECT_EQ(number("-9223372036854775808").integer, INT64_MIN);
  EXPECT_FALSE(number("9223372036854775808").is_integer);
  EXPECT_EQ(number("9223372036854775808").real, 9223372036854775808.0);
  EXPECT_FALSE(number("1.0").is_integer);
  EXPECT_EQ(number("1.0").real, 1.0);
  EXPECT_TRUE(std::signbit(number("-0").real));
  EXPECT_FALSE(number("-0").is_integer);
  EXPECT_TRUE(std::isinf(number("1e400").real));
  EXPECT_TRUE(std::isinf(number("-1e400").real));
  EXPECT_EQ(number("1e-400").real, 0);
  EXPECT_EQ(number("123456789012345678901234567890").real, 123456789012345678901234567890.0);
}

TEST(Value, EscapesAreCharacters) {
  EXPECT_EQ(string_of(parsed_value(R"("a\"b\\c\/d\b\f\n\r\t")")), "a\"b\\c/d\b\f\n\r\t");
  EXPECT_EQ(string_of(parsed_value(R"("\u00e9\ud83d\ude00!")")), "é😀!");
  EXPECT_TRUE(parsed_value(R"("\u0041")").is_string("A"));
  EXPECT_FALSE(parsed_value(R"("\u0041")").is_string("B"));
  EXPECT_FALSE(parsed_value("1").is_string("1"));
}

TEST(Value, WhatIsNoStringHasNoCharacters) {
  EXPECT_EQ(parsed_value(R"("a\u0041")").string_or_empty(), "aA");
  EXPECT_EQ(Value::string("b").string_or_empty(), "b");
  for (const std::string_view text : {"1", "null", R"(["a"])", R"({"a":"b"})"}) {
    EXPECT_EQ(parsed_value(text).string_or_empty(), "") << text;
  }
  EXPECT_EQ(Value().string_or_empty(), "");
}

TEST(Value, BrokenEscapesInTextThatNobodyCheckedDoNoHarm) {
  for (const std::string_view text : {R"("\)", R"("\u")", R"("\u12)", R"("\ud800")",
                                      R"("\ud800\u0041")", R"("\udc00x")", "\"", R"("\")"}) {
    string_of(Value::of_checked(text));
  }
  EXPECT_EQ(string_of(Value::of_checked(R"("\ud800!")")), "\xEF\xBF\xBD!");
}

TEST(Value, MembersAndElementsAreFoundWhereTheyAre) {
  const Value value = parsed_value(R"({"a":{"b":[10,{"c":"x"}]},"a":1,"\u0065":2,"s":"}],"})");
  EXPECT_EQ(value.member("a").member("b").element(1).member("c").to_text(), R"("x")");
  EXPECT_EQ(value.member("e").to_text(), "2");
  EXPECT_EQ(value.member("s").to_text(), R"("}],")");
  EXPECT_TRUE(value.member("z").is_undefined());
  EXPECT_TRUE(value.element(0).is_undefined());
  EXPECT_TRUE(value.member("a").member("b").element(2).is_undefined());
  EXPECT_TRUE(value.member("a").member("b").member("length").is_undefined());
  EXPECT_TRUE(value.member("s").member("x").is_undefined());
  EXPECT_EQ(value.size(), 4u);
  EXPECT_EQ(value.member("a").member("b").size(), 2u);
  EXPECT_EQ(value.member("s").size(), 0u);
}

TEST(Value, AReaderGoesOverTextAndTreesAlike) {
  Value value = parsed_value(R"({"a":1,"b":[2,3]})");
  for (const bool spread : {false, true}) {
    if (spread) value.members();
    std::string seen;
    for (Reader reader(value); reader.next();) {
      seen += string_of(reader.name()) + "=" + reader.value().to_text() + ";";
    }
    EXPECT_EQ(seen, "a=1;b=[2,3];");
  }
  std::string elements;
  value.find("b")->elements();
  const Value array = value.member("b");
  for (Reader reader(array); reader.next();) elements += reader.value().to_text() + ";";
  EXPECT_EQ(elements, "2;3;");
  const Value number = parsed_value("5");
  EXPECT_FALSE(Reader(number).next());
  EXPECT_FALSE(Reader(Value::string_at("{\"a\":1}")).next());
}

TEST(Value, MembersAreSetInPlaceOrAddedAtTheEnd) {
  Value value = parsed_value(R"({"a":1,"b":2})");
  value.set_member("a", Value::string("x"));
  value.set_member("c d\n", Value::null());
  EXPECT_EQ(value.to_text(), R"({"a":"x","b":2,"c d\n":null})");
}

TEST(Value, ErasingANameErasesEveryMemberOfThatName) {
  Value value = parsed_value(R"({"a":1,"b":2,"a":3,"\u0061":4})");
  EXPECT_TRUE(value.erase_member("a"));
  EXPECT_FALSE(value.erase_member("a"));
  EXPECT_EQ(value.to_text(), R"({"b":2})");
}

TEST(Value, ElementsAreInsertedAndErased) {
  Value value = parsed_value("[1,2,3]");
  value.insert_element(0, Value::boolean(true));
  value.insert_element(4, Value::number(0.5));
  value.erase_element(2);
  EXPECT_EQ(value.to_text(), "[true,1,3,0.5]");
  EXPECT_EQ(value.find(1)->to_text(), "1");
  EXPECT_EQ(value.find(4), nullptr);
  EXPECT_EQ(value.find("a"), nullptr);
}

TEST(Value, AChangeDeepInsideReachesTheTop) {
  Value value = parsed_value(R"({"a":{"b":[{"c":1}]},"z": 1.0})");
  value.find("a")->find("b")->find(0u)->set_member("c", Value::number(std::int64_t{2}));
  EXPECT_EQ(value.to_text(), R"({"a":{"b":[{"c":2}]},"z":1.0})");
}

TEST(Value, ACopyIsIndependent) {
  Value value = parsed_value(R"({"a":[1]})");
  value.find("a")->elements();
  Value copy = value;
  copy.find("a")->insert_element(0, Value::null());
  EXPECT_EQ(value.to_text(), R"({"a":[1]})");
  EXPECT_EQ(copy.to_text(), R"({"a":[null,1]})");
  const Value part = copy.member("a");
  EXPECT_EQ(part.to_text(), "[null,1]");
}

TEST(Value, WhatIsOwnedSurvivesItsText) {
  Value whole;
  Value part;
  Value spread;
  {
    const std::string text =
        R"({"a":{"b":["x","\u0041",1.50]},"c":"long enough for the heap, surely"})";
    whole = parsed_value(text);
    part = whole.member("a").member("b");
    spread = whole;
    spread.find("a")->find("b")->elements();
    whole.own(), part.own(), spread.own();
  }
  Value copy = spread;
  spread = Value();
  EXPECT_EQ(part.to_text(), R"(["x","\u0041",1.50])");
  EXPECT_EQ(copy.to_text(),
            R"({"a":{"b":["x","\u0041",1.50]},"c":"long enough for the heap, surely"})");
  // Spreading what it owns, and dropping the rest of it.
  Value again = whole;
  whole = Value();
  Value inner = *again.find("a");
  again = Value();
  EXPECT_EQ(inner.to_text(), R"({"b":["x","\u0041",1.50]})");
}

TEST(Value, APartOfATemporaryOwnsItself) {
  const auto make = [] {
    Value text = Value::object();
    text.set_member("a", Value::array({Value::string("characters beyond the small buffer")}));
    return text;
  };
  const Value part = make().member("a").element(0);
  EXPECT_TRUE(part.is_string("characters beyond the small buffer"));
}

TEST(Value, UndefinedIsNeverWritten) {
  Value value = Value::object();
  value.set_member("a", Value());
  value.set_member("b", Value::array({Value(), Value::null(), Value()}));
  EXPECT_EQ(value.to_text(), R"({"b":[null]})");
}

TEST(Value, NumbersPrintWithTheFewestDigitsThatTellThem) {
  const auto print = [](double number) { return Value::number(number).to_text(); };
  EXPECT_EQ(print(2.5), "2.5");
  EXPECT_EQ(print(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(print(0.1), "0.1");
  EXPECT_EQ(print(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(print(-2.0 / 3), "-0.6666666666666666");
  EXPECT_EQ(print(5019.9999999999909), "5019.999999999991");
  EXPECT_EQ(print(0.0001), "0.0001");
  EXPECT_EQ(print(0.00012345), "0.00012345");
  EXPECT_EQ(print(0.00001), "1e-05");
  EXPECT_EQ(print(1234567890123456.0), "1234567890123456");
  EXPECT_EQ(print(1000000000000000.5), "1000000000000000.5");
  EXPECT_EQ(print(12345678901234567890.0), "1.2345678901234567e+19");
  EXPECT_EQ(print(1.7976931348623157e308), "1.7976931348623157e+308");
  EXPECT_EQ(print(18446744073709551615.0), "1.8446744073709552e+19");
  EXPECT_EQ(print(-0.0), "0");
  EXPECT_EQ(print(3), "3");
  EXPECT_EQ(print(999999999999999), "999999999999999");
  EXPECT_EQ(print(1e15), "1e+15");
  EXPECT_EQ(print(1e-7), "1e-07");
  EXPECT_EQ(print(5e-324), "5e-324");
  EXPECT_EQ(print(std::nan("")), "null");
  EXPECT_EQ(print(-INFINITY), "null");
  EXPECT_EQ(Value::number(INT64_MIN).to_text(), "-9223372036854775808");
}

TEST(Value, NestingIsBoundedExactly) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(Value::parse(nested(kNestingMax)).has_value());
  const auto deep = Value::parse(nested(kNestingMax + 1));
  ASSERT_FALSE(deep.has_value());
  EXPECT_THAT(deep.error().message(), HasSubstr("nested deeper than 128"));
  EXPECT_FALSE(Value::parse(std::string(1'000'000, '[')).has_value());
  std::string brackets_in_string = "\"" + std::string(1000, '[') + "\"";
  EXPECT_TRUE(Value::parse(brackets_in_string).has_value());
}

TEST(Value, WhatIsNoJsonIsRefused) {
  for (const std::string_view text : {"",
                                      " ",
                                      "{",
                                      "}",
                                      "[1,]",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{a:1}",
                                      "01",
                                      "1.",
                                      "+1",
                                      "1e",
                                      "--1",
                                      ".5",
                                      "NaN",
                                      "tru",
                                      "\"",
                                      "\"\\x\"",
                                      "\"\\ud800\"",
                                      "\"\n\"",
                                      "1 2",
                                      "[1 2]",
                                      "{\"a\":1,}",
                                      "\xFF",
                                      "\"\xC0\xAF\"",
                                      "[1e5000,01]",
                                      "[123456789012345678901234567890,]"}) {
    const auto value = Value::parse(text);
    EXPECT_FALSE(value.has_value()) << text;
    if (!value) EXPECT_EQ(value.error().code(), ErrorCode::BadRequest);
  }
}

TEST(Value, TextThatNobodyCheckedNeitherHangsNorOverruns) {
  for (const std::string_view text :
       {"{", "{\"", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":,", "{\"a\":1", "{,,,}", "[,,,]", "[[[[",
        "[\"", "{]", "[}", "{\"a\":]]]]", "]", "::", "[1:2]"}) {
    Value value = Value::of_checked(text);
    value.member("a").element(0);
    value.element(3);
    value.size();
    if (value.is_object()) value.members();
    if (value.is_array()) value.elements();
    value.to_text();
  }
}

}  // namespace
}  // namespace orrery::json
