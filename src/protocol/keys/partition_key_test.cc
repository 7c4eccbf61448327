#include "protocol/keys/partition_key.h"

#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PartitionKey key(std::vector<KeyComponent> components) {
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
  EXPECT_EQ(parsed(R"(["a"])"), key({"a"}));
  EXPECT_EQ(parsed("[1]"), key({1.0}));
  EXPECT_EQ(parsed("[1.0]"), key({1.0}));
  EXPECT_EQ(parsed("[-2.5]"), key({-2.5}));
  EXPECT_EQ(parsed("[true]"), key({true}));
  EXPECT_EQ(parsed("[false]"), key({false}));
  EXPECT_EQ(parsed("[null]"), key({Null{}}));
  EXPECT_EQ(parsed("[{}]"), key({Undefined{}}));
  EXPECT_EQ(parsed("[]"), key({}));
  EXPECT_EQ(parsed(R"(["USA","Redmond"])"), key({"USA", "Redmond"}));
  EXPECT_EQ(parsed(" [ \"a\" , 1 ,\t{ } , null ] "), key({"a", 1.0, Undefined{}, Null{}}));
}

TEST(PartitionKeyHeader, DecodesEscapesToUtf8) {
  EXPECT_EQ(parsed(R"(["\u00e9"])"), key({"é"}));
  EXPECT_EQ(parsed(R"(["\u65E5\u672c"])"), key({"日本"}));
  EXPECT_EQ(parsed(R"(["\ud83d\uDE00"])"), key({"😀"}));
  EXPECT_EQ(parsed(R"(["\"\\\/\b\f\n\r\t"])"), key({"\"\\/\b\f\n\r\t"}));
  EXPECT_EQ(parsed(R"(["a\u0000b"])"), key({std::string("a\0b", 3)}));
  EXPECT_EQ(parsed("[\"日本 é\"]"), key({"日本 é"}));
}

TEST(PartitionKeyHeader, NumbersAreDoubles) {
  EXPECT_EQ(parsed("[4294967296]"), key({4294967296.0}));
  EXPECT_EQ(parsed("[9007199254740993]"), key({9007199254740992.0}));
  EXPECT_EQ(parsed("[1e308]"), key({1e308}));
  EXPECT_EQ(parsed("[1E+2]"), key({100.0}));
  EXPECT_EQ(parsed("[5e-324]"), key({5e-324}));
  EXPECT_EQ(parsed("[1e-400]"), key({0.0}));
  EXPECT_EQ(parsed("[-1e-400]"), key({-0.0}));
  EXPECT_EQ(parsed("[0." + std::string(500, '0') + "1]"), key({0.0}));
  EXPECT_EQ(parsed("[0e999]"), key({0.0}));
  EXPECT_EQ(parsed("[-0]"), key({-0.0}));
}

TEST(PartitionKeyHeader, ZeroAndMinusZeroAreDifferentKeys) {
  EXPECT_FALSE(key({0.0}) == key({-0.0}));
  EXPECT_NE(canonical(key({0.0})), canonical(key({-0.0})));
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
  const PartitionKey value =
      key({"é日😀\"\\\n\x7F", 0.1, -0.0, 1e308, 5e-324, true, false, Null{}, Undefined{}, ""});
  const std::string json = value.to_json();
  for (char c : json) EXPECT_TRUE(c >= 0x20 && c < 0x7F) << json;
  EXPECT_EQ(parsed(json), value);
  EXPECT_EQ(key({"a", 1.0, Null{}, Undefined{}}).to_json(), R"(["a",1,null,{}])");
  EXPECT_EQ(key({}).to_json(), "[]");
}

TEST(PartitionKeyCanonical, HasTheDrawnFormat) {
  EXPECT_EQ(canonical(key({})), "");
  EXPECT_EQ(canonical(key({Undefined{}, Null{}, false, true})), std::string("\0\1\2\3", 4));
  EXPECT_EQ(canonical(key({1.0})), std::string("\x05\x3F\xF0\0\0\0\0\0\0", 9));
  EXPECT_EQ(canonical(key({"ab"})), std::string("\x08\x61\x62\0\1", 5));
  EXPECT_EQ(canonical(key({std::string("a\0b", 3)})), std::string("\x08\x61\0\xFF\x62\0\1", 7));
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
    one.insert(canonical(key({first})));
    for (const auto& second : values) two.insert(canonical(key({first, second})));
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
  EXPECT_TRUE(check_key_size(key({std::string(102, 'a')})).has_value());
  EXPECT_TRUE(check_key_size(key({std::string(2048, 'a')})).has_value());
  EXPECT_EQ(check_key_size(key({std::string(2049, 'a')})).error().code(), ErrorCode::BadRequest);
  EXPECT_FALSE(check_key_size(key({"a", std::string(2049, 'a')})).has_value());
  EXPECT_TRUE(check_key_size(key({1.0, Null{}, true})).has_value());
}

TEST(PartitionKeyCanonical, IsReadBack) {
  const std::vector<PartitionKey> keys = {
      key({"a"}),         key({""}),          key({std::string("\0x\0", 3)}),
      key({1.5}),         key({-0.0}),        key({Null{}}),
      key({Undefined{}}), key({true, false}), key({"t", 7.0, "u"})};
  for (const PartitionKey& each : keys) {
    const auto back = PartitionKey::from_canonical(canonical(each), each.size());
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(*back, each);
  }
  EXPECT_FALSE(PartitionKey::from_canonical(canonical(key({"a"})), 2));
  EXPECT_FALSE(PartitionKey::from_canonical(canonical(key({"a", "b"})), 1));
  EXPECT_FALSE(PartitionKey::from_canonical(canonical(key({1.0})).substr(0, 5), 1));
  EXPECT_FALSE(PartitionKey::from_canonical(canonical(key({"abc"})).substr(0, 4), 1));
  EXPECT_FALSE(PartitionKey::from_canonical("\x04", 1));
}

}  // namespace
}  // namespace orrery
