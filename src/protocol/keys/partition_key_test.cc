#include "protocol/keys/partition_key.h"

#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PartitionKey parsed_key(std::vector<KeyComponent> components) {
  return PartitionKey(std::move(components));
}

PartitionKey parsed(std::string_view header) {
  auto result = PartitionKey::parse(header);
  EXPECT_TRUE(result.has_value()) << header << ": " << result.error().message();
  return result.value_or(PartitionKey());
}

std::string canonical(const PartitionKey& value) {
  std::string bytes;
  value.append_canonical(bytes);
  return bytes;
}

TEST(PartitionKeyHeader, ReadsEveryKindOfValue) {
  EXPECT_EQ(parsed(R"(["a"])"), parsed_key({"a"}));
  EXPECT_EQ(parsed("[1]"), parsed_key({1.0}));
  EXPECT_EQ(parsed("[1.0]"), parsed_key({1.0}));
  EXPECT_EQ(parsed("[-2.5]"), parsed_key({-2.5}));
  EXPECT_EQ(parsed("[true]"), parsed_key({true}));
  EXPECT_EQ(parsed("[false]"), parsed_key({false}));
  EXPECT_EQ(parsed("[null]"), parsed_key({Null{}}));
  EXPECT_EQ(parsed("[{}]"), parsed_key({Undefined{}}));
  EXPECT_EQ(parsed("[]"), parsed_key({}));
  EXPECT_EQ(parsed(R"(["USA","Redmond"])"), parsed_key({"USA", "Redmond"}));
  EXPECT_EQ(parsed(" [ \"a\" , 1 ,\t{ } , null ] "), parsed_key({"a", 1.0, Undefined{}, Null{}}));
}

TEST(PartitionKeyHeader, DecodesEscapesToUtf8) {
  EXPECT_EQ(parsed(R"(["\u00e9"])"), parsed_key({"é"}));
  EXPECT_EQ(parsed(R"(["\u65E5\u672c"])"), parsed_key({"日本"}));
  EXPECT_EQ(parsed(R"(["\ud83d\uDE00"])"), parsed_key({"😀"}));
  EXPECT_EQ(parsed(R"(["\"\\\/\b\f\n\r\t"])"), parsed_key({"\"\\/\b\f\n\r\t"}));
  EXPECT_EQ(parsed(R"(["a\u0000b"])"), parsed_key({std::string("a\0b", 3)}));
  EXPECT_EQ(parsed("[\"日本 é\"]"), parsed_key({"日本 é"}));
}

TEST(PartitionKeyHeader, NumbersAreDoubles) {
  EXPECT_EQ(parsed("[4294967296]"), parsed_key({4294967296.0}));
  EXPECT_EQ(parsed("[9007199254740993]"), parsed_key({9007199254740992.0}));
  EXPECT_EQ(parsed("[1e308]"), parsed_key({1e308}));
  EXPECT_EQ(parsed("[1E+2]"), parsed_key({100.0}));
  EXPECT_EQ(parsed("[5e-324]"), parsed_key({5e-324}));
  EXPECT_EQ(parsed("[1e-400]"), parsed_key({0.0}));
  EXPECT_EQ(parsed("[-1e-400]"), parsed_key({-0.0}));
  EXPECT_EQ(parsed("[0." + std::string(500, '0') + "1]"), parsed_key({0.0}));
  EXPECT_EQ(parsed("[0e999]"), parsed_key({0.0}));
  EXPECT_EQ(parsed("[-0]"), parsed_key({-0.0}));
}

TEST(PartitionKeyHeader, ZeroAndMinusZeroAreDifferentKeys) {
  EXPECT_FALSE(parsed_key({0.0}) == parsed_key({-0.0}));
  EXPECT_NE(canonical(parsed_key({0.0})), canonical(parsed_key({-0.0})));
}

TEST(PartitionKeyHeader, RefusesWhatIsNotAnArrayOfScalars) {
  const std::string broken[] = {
      "",
      " ",
      "a",
      "\"a\"",
      "null",
      "{}",
      "[",
      "]",
      "[\"a\"",
      "[\"a\"]x",
      "[\"a\"][]",
      "[,]",
      "[1,]",
      "[1 2]",
      "[[]]",
      "[[1]]",
      "[{\"a\":1}]",
      "[{]",
      "[nul]",
      "[nulll]",
      "[True]",
      "[NaN]",
      "[Infinity]",
      "[-Infinity]",
      "[1e309]",
      "[-1e999999999999999999999]",
      "[" + std::string(400, '9') + "]",
      "[01]",
      "[+1]",
      "[.5]",
      "[1.]",
      "[1e]",
      "[-]",
      "[0x10]",
      "[\"a]",
      "[\"\\\"]",
      "[\"\\x\"]",
      "[\"\\",
      "[\"\\u12\"]",
      "[\"\\u12g4\"]",
      "[\"\\u-123\"]",
      "[\"\\ud83d\"]",
      "[\"\\ud83dx\"]",
      "[\"\\ud83d\\u0041\"]",
      "[\"\\ude00\"]",
      "[\"\n\"]",
      std::string("[\"\0\"]", 5),
      std::string("[\0]", 3),
      "[\"\xFF\"]",
      "[\"\xC3\"]",
      "[\"\xED\xA0\x80\"]",
      "[\"\xC0\x80\"]",
      "[\"\xF4\x90\x80\x80\"]",
      "['a']",
  };
  for (const std::string& header : broken) {
    const auto result = PartitionKey::parse(header);
    ASSERT_FALSE(result.has_value()) << header;
    EXPECT_EQ(result.error().code(), ErrorCode::BadRequest);
    EXPECT_THAT(result.error().message(), HasSubstr("x-ms-documentdb-partitionkey"));
  }
}

TEST(PartitionKeyHeader, IsWrittenInAsciiAndReadsBack) {
  const PartitionKey value = parsed_key(
      {"é日😀\"\\\n\x7F", 0.1, -0.0, 1e308, 5e-324, true, false, Null{}, Undefined{}, ""});
  const std::string json = value.to_json();
  for (char c : json) EXPECT_TRUE(c >= 0x20 && c < 0x7F) << json;
  EXPECT_EQ(parsed(json), value);
  EXPECT_EQ(parsed_key({"a", 1.0, Null{}, Undefined{}}).to_json(), R"(["a",1,null,{}])");
  EXPECT_EQ(parsed_key({}).to_json(), "[]");
}

TEST(PartitionKeyCanonical, HasTheDrawnFormat) {
  EXPECT_EQ(canonical(parsed_key({})), "");
  EXPECT_EQ(canonical(parsed_key({Undefined{}, Null{}, false, true})), std::string("\0\1\2\3", 4));
  EXPECT_EQ(canonical(parsed_key({1.0})), std::string("\x05\x3F\xF0\0\0\0\0\0\0", 9));
  EXPECT_EQ(canonical(parsed_key({"ab"})), std::string("\x08\x61\x62\0\1", 5));
  EXPECT_EQ(canonical(parsed_key({std::string("a\0b", 3)})),
            std::string("\x08\x61\0\xFF\x62\0\1", 7));
}

TEST(PartitionKeyCanonical, NoKeyBeginsAnotherOfTheSameSize) {
  std::vector<KeyComponent> values = {Undefined{}, Null{}, false, true, 0.0, -0.0, 1.0};
  for (const std::string& text :
       {std::string(), std::string("a"), std::string("ab"), std::string("a\0", 2),
        std::string("a\0\1", 3), std::string("a\0b", 3), std::string("a\xFF"), std::string("\0", 1),
        std::string("\1"), std::string("\0\xFF", 2)}) {
    values.emplace_back(text);
  }
  std::set<std::string> one;
  std::set<std::string> two;
  for (const auto& first : values) {
    one.insert(canonical(parsed_key({first})));
    for (const auto& second : values) two.insert(canonical(parsed_key({first, second})));
  }
  EXPECT_EQ(one.size(), values.size());
  EXPECT_EQ(two.size(), values.size() * values.size());
  for (const auto* keys : {&one, &two}) {
    // In sorted order a key that begins others stands right before one of them.
    for (auto it = keys->begin(), next = std::next(it); next != keys->end(); ++it, ++next) {
      EXPECT_FALSE(next->starts_with(*it));
    }
  }
}

TEST(PropertyPath, SplitsIntoMemberNames) {
  EXPECT_THAT(*parse_property_path("/a"), ElementsAre("a"));
  EXPECT_THAT(*parse_property_path("/a/b c/d"), ElementsAre("a", "b c", "d"));
  EXPECT_THAT(*parse_property_path(R"(/a/"b c"/d)"), ElementsAre("a", "b c", "d"));
  EXPECT_THAT(*parse_property_path(R"x(/"level' 1*()"/"le/vel2")x"),
              ElementsAre("level' 1*()", "le/vel2"));
  EXPECT_THAT(*parse_property_path(R"(/'level" 1*()'/'le/vel2')"),
              ElementsAre("level\" 1*()", "le/vel2"));
  EXPECT_THAT(*parse_property_path(R"(/"a\"b\\c\d")"), ElementsAre(R"(a"b\c\d)"));
  EXPECT_THAT(*parse_property_path(R"(/"*")"), ElementsAre("*"));
}

TEST(PropertyPath, RefusesWhatNamesNoProperty) {
  for (const char* path : {"", "a", "a/b", "/", "/a/", "//a", "/a//b", "/*", "/a/?", "/a/[]/b",
                           "/\"a", "/\"a\\\"", "/\"a\"b", "/\"\"", "/'a", "/a/\""}) {
    const auto result = parse_property_path(path);
    ASSERT_FALSE(result.has_value()) << path;
    EXPECT_EQ(result.error().code(), ErrorCode::BadRequest);
  }
}

TEST(PartitionKeySize, IsTheSameForBothHashVersions) {
  EXPECT_TRUE(check_key_size(parsed_key({std::string(102, 'a')})).has_value());
  EXPECT_TRUE(check_key_size(parsed_key({std::string(2048, 'a')})).has_value());
  EXPECT_EQ(check_key_size(parsed_key({std::string(2049, 'a')})).error().code(),
            ErrorCode::BadRequest);
  EXPECT_FALSE(check_key_size(parsed_key({"a", std::string(2049, 'a')})).has_value());
  EXPECT_TRUE(check_key_size(parsed_key({1.0, Null{}, true})).has_value());
}

TEST(PartitionKeyCanonical, IsReadBack) {
  const std::vector<PartitionKey> keys = {
      parsed_key({"a"}),         parsed_key({""}),          parsed_key({std::string("\0x\0", 3)}),
      parsed_key({1.5}),         parsed_key({-0.0}),        parsed_key({Null{}}),
      parsed_key({Undefined{}}), parsed_key({true, false}), parsed_key({"t", 7.0, "u"})};
  for (const PartitionKey& each : keys) {
    const auto back = PartitionKey::from_canonical(canonical(each), each.size());
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(*back, each);
  }
  EXPECT_FALSE(PartitionKey::from_canonical(canonical(parsed_key({"a"})), 2));
  EXPECT_FALSE(PartitionKey::from_canonical(canonical(parsed_key({"a", "b"})), 1));
  EXPECT_FALSE(PartitionKey::from_canonical(canonical(parsed_key({1.0})).substr(0, 5), 1));
  EXPECT_FALSE(PartitionKey::from_canonical(canonical(parsed_key({"abc"})).substr(0, 4), 1));
  EXPECT_FALSE(PartitionKey::from_canonical("\x04", 1));
}

}  // namespace
}  // namespace orrery
