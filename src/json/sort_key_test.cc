#include "json/sort_key.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "json/order.h"

namespace orrery::json {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string key_of(const Value& value, std::size_t string_bytes_max = SIZE_MAX) {
  std::string key;
  append_sort_key(key, value, string_bytes_max);
  return key;
}

std::string descending_key_of(const Value& value) {
  std::string key;
  append_sort_key_descending(key, value);
  return key;
}

std::string shown(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

Value number(std::int64_t value) { return Value::number(value); }
Value number(double value) { return Value::number(value); }
Value text(std::string_view value) { return Value::string(std::string(value)); }

TEST(SortKey, BytesAreAsTheFormatSays) {
  EXPECT_EQ(shown(key_of(Value())), "05");
  EXPECT_EQ(shown(key_of(Value::null())), "10");
  EXPECT_EQ(shown(key_of(Value::boolean(false))), "20");
  EXPECT_EQ(shown(key_of(Value::boolean(true))), "21");
  EXPECT_EQ(shown(key_of(number(1.0))), "30BFF00000000000008000");
  EXPECT_EQ(shown(key_of(number(-1.0))), "30400FFFFFFFFFFFFF8000");
  EXPECT_EQ(shown(key_of(number(std::int64_t{9007199254740993}))), "30C3400000000000008001");
  EXPECT_EQ(shown(key_of(number(kNan))), "3000000000000000008000");
  EXPECT_EQ(shown(key_of(text(std::string_view("a\0b", 3)))), "406100FF620001");
  EXPECT_EQ(shown(key_of(text(""))), "400001");
  EXPECT_EQ(key_of(Value::of_checked("[1]")).size(), 17u);
  EXPECT_EQ(key_of(Value::of_checked("[1]"))[0], '\x50');
  EXPECT_EQ(key_of(Value::of_checked("{}")).size(), 17u);
  EXPECT_EQ(key_of(Value::of_checked("{}"))[0], '\x60');
}

TEST(SortKey, IsAppendedToWhatIsThere) {
  std::string key = "ab";
  append_sort_key(key, Value::null());
  append_sort_key_descending(key, Value::null());
  EXPECT_EQ(shown(key), "616210EF");
}

/// Numbers where integers and doubles are close to each other, strings that begin alike, and some
/// of everything else that has an order.
std::vector<Value> awkward_values(std::mt19937_64& random) {
  std::vector<Value> values;
  values.emplace_back();
  values.push_back(Value::null());
  values.push_back(Value::boolean(false));
  values.push_back(Value::boolean(true));
  for (const double real : {0.0, -0.0, kNan, kInfinity, -kInfinity, 0.5, -0.5, 5e-324, -5e-324,
                            1.7976931348623157e308, 9007199254740992.0, 9223372036854775808.0,
                            -9223372036854775808.0, 9223372036854774784.0, 1e19, -1e19}) {
    values.push_back(number(real));
  }
  for (int i = 0; i < 60; ++i) {
    const auto near = static_cast<std::int64_t>(random() % 3000) - 1500;
    constexpr std::int64_t kExact = std::int64_t{1} << 53;
    constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
    constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
    for (const std::int64_t integer :
         {near % 10, kExact + near % 10, -kExact + near % 10, kMax - std::abs(near),
          kMin + std::abs(near), (kMax / 2) + near, static_cast<std::int64_t>(random())}) {
      values.push_back(number(integer));
      values.push_back(number(static_cast<double>(integer)));
    }
    values.push_back(number(std::bit_cast<double>(random())));
    constexpr std::string_view kPieces[] = {
        std::string_view("\0", 1), "\x01", "\x02", "a", "b", "é", "\xEF\xBF\xBF", "😀", "\x7F"};
    std::string characters;
    for (auto count = random() % 5; count > 0; --count) {
      characters += kPieces[random() % std::size(kPieces)];
    }
    values.push_back(Value::string(std::move(characters)));
  }
  return values;
}

TEST(SortKey, OrderIsThatOfTheValues) {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto values = awkward_values(random);
    std::vector<std::string> keys;
    std::vector<std::string> descending;
    for (const Value& value : values) {
      keys.push_back(key_of(value));
      descending.push_back(descending_key_of(value));
    }
    for (std::size_t a = 0; a < values.size(); ++a) {
      for (std::size_t b = 0; b < values.size(); ++b) {
        const auto order = compare(values[a], values[b]);
        ASSERT_TRUE(order == (keys[a] <=> keys[b]))
            << values[a].to_text() << " and " << values[b].to_text();
        ASSERT_TRUE(order == (descending[b] <=> descending[a]))
            << values[a].to_text() << " and " << values[b].to_text();
        ASSERT_EQ(order == 0, hash_of(values[a]) == hash_of(values[b]))
            << values[a].to_text() << " and " << values[b].to_text();
      }
    }
  }
}

TEST(SortKey, NoneIsTheBeginningOfAnother) {
  std::mt19937_64 random(4);
  auto values = awkward_values(random);
  for (const auto* json : {"[]", "[1]", "{}", R"({"a":1})"}) {
    values.push_back(Value::of_checked(json));
  }
  std::vector<std::string> keys;
  for (const Value& value : values) {
    for (const std::size_t bound : {SIZE_MAX, std::size_t{3}}) {
      keys.push_back(key_of(value, bound));
    }
  }
  std::ranges::sort(keys);
  const auto repeated = std::ranges::unique(keys);
  keys.erase(repeated.begin(), repeated.end());
  // Of sorted ones, one that begins another stands right ahead of one that it begins.
  for (std::size_t i = 1; i < keys.size(); ++i) {
    ASSERT_FALSE(keys[i].starts_with(keys[i - 1])) << shown(keys[i - 1]) << " " << shown(keys[i]);
  }
}

TEST(SortKey, LongStringsAreCutAndToldApartByAHash) {
  const std::string kept = "abcd";
  const auto whole = key_of(text(kept), 4);
  const auto longer = key_of(text(kept + "x"), 4);
  const auto other = key_of(text(kept + "y"), 4);
  EXPECT_EQ(shown(whole), "40616263640001");
  EXPECT_EQ(shown(longer).substr(0, 14), "40616263640002");
  EXPECT_EQ(longer.size(), 7u + 8u);
  EXPECT_NE(longer, other);
  EXPECT_EQ(longer, key_of(text(kept + "x"), 4));
  EXPECT_LT(whole, longer);
  EXPECT_LT(longer, key_of(text("abce"), 4));
  EXPECT_LT(longer, key_of(text("abd"), 4));
  EXPECT_GT(longer, key_of(text("abc"), 4));
  EXPECT_EQ(shown(key_of(text(std::string_view("\0\0", 2)), 1)).substr(0, 10), "4000FF0002");
}

TEST(SortKey, StringsOfAPrefixAreAnInterval) {
  std::string low;
  append_sort_key_prefix(low, std::string_view("a\0", 2));
  const std::string high = key_successor(low);
  for (const auto inside : {std::string_view("a\0", 2), std::string_view("a\0\0", 3),
                            std::string_view("a\0\xF4\x8F\xBF\xBF", 6)}) {
    const auto key = key_of(text(inside));
    EXPECT_TRUE(key.starts_with(low)) << shown(key);
    EXPECT_TRUE(low <= key && key < high) << shown(key);
  }
  for (const auto outside : {std::string_view("a"), std::string_view("a\x01"),
                             std::string_view("b"), std::string_view("")}) {
    const auto key = key_of(text(outside));
    EXPECT_FALSE(low <= key && key < high) << shown(key);
  }
}

TEST(SortKey, SuccessorIsTheFirstAfterAllThatBeginSo) {
  EXPECT_EQ(key_successor("ab"), "ac");
  EXPECT_EQ(key_successor("a\xFF\xFF"), "b");
  EXPECT_EQ(key_successor("\x7F"), "\x80");
  EXPECT_EQ(key_successor("\xFF\xFF"), "");
  EXPECT_EQ(key_successor(""), "");
}

TEST(Hash, IsTheSameForEqualValues) {
  const std::pair<std::string_view, std::string_view> pairs[] = {
      {"1", "1.0"},
      {"100", "1e2"},
      {"0", "-0"},
      {"0", "-0.0"},
      {"9223372036854775808", "9.223372036854775808e18"},
      {R"("A")", R"("\u0041")"},
      {R"({"a":1,"b":[2]})", R"({ "b" : [2.0], "\u0061" : 1 })"},
      {R"({"a":1,"a":2})", R"({"a":1})"},
      {R"([{"x":{"y":1,"z":null}}])", R"([{"x":{"z":null,"y":1}}])"},
  };
  for (const auto& [a, b] : pairs) {
    ASSERT_TRUE(equal(Value::of_checked(a), Value::of_checked(b))) << a << " and " << b;
    EXPECT_EQ(hash_of(Value::of_checked(a)), hash_of(Value::of_checked(b))) << a << " and " << b;
    EXPECT_EQ(key_of(Value::of_checked(a)), key_of(Value::of_checked(b))) << a << " and " << b;
  }
  EXPECT_EQ(hash_of(number(kNan)), hash_of(number(-kNan)));
  Value tree = Value::object();
  tree.set_member("b", Value::array({number(std::int64_t{2})}));
  tree.set_member("a", number(1.0));
  EXPECT_EQ(hash_of(tree), hash_of(Value::of_checked(R"({"a":1,"b":[2]})")));
}

TEST(Hash, IsAnotherForOtherValues) {
  const std::string_view texts[] = {"null",
                                    "false",
                                    "true",
                                    "0",
                                    "1",
                                    "\"\"",
                                    "\"0\"",
                                    "\"1\"",
                                    "\"null\"",
                                    "[]",
                                    "[[]]",
                                    "[[],[]]",
                                    "[null]",
                                    "[1]",
                                    "[1,1]",
                                    "[1,2]",
                                    "[2,1]",
                                    "[[1],2]",
                                    "[[1,2]]",
                                    "{}",
                                    "[{}]",
                                    R"({"a":1})",
                                    R"({"a":"1"})",
                                    R"({"a":[1]})",
                                    R"({"b":1})",
                                    R"({"1":"a"})",
                                    R"(["a",1])",
                                    R"({"a":{"b":1}})",
                                    R"({"":1})",
                                    R"({"a":1,"b":2})",
                                    R"({"a":2,"b":1})",
                                    R"({"a":2,"a":1})"};
  std::vector<Hash128> hashes{hash_of(Value())};
  for (const auto json : texts) hashes.push_back(hash_of(Value::of_checked(json)));
  std::ranges::sort(hashes);
  EXPECT_EQ(std::ranges::adjacent_find(hashes), hashes.end());
}

TEST(Hash, OfTextNestedWithoutEndComesToOne) {
  const std::string deep(100'000, '[');
  hash_of(Value::of_checked(deep));
}

}  // namespace
}  // namespace orrery::json
