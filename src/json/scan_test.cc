#include "json/scan.h"

#include <random>

#include <gtest/gtest.h>

namespace orrery::json {
namespace {

/// One byte after the other: what after_brackets must find faster.
std::size_t after_brackets_slowly(std::string_view text, std::size_t at, std::size_t level) {
  bool in_string = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') {
        ++at;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++level;
    } else if ((c == '}' || c == ']') && --level == 0) {
      return at + 1;
    }
  }
  return text.size();
}

TEST(Scan, BracketsAreFoundWhateverIsBetween) {
  for (const unsigned seed : {1u, 2u, 3u, 4u, 5u}) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    // Backslashes are rare in some texts and frequent in others, so that both ways are gone.
    const std::string_view alphabets[] = {"abc {}[]\"\",:", "abcdefghijk{}[]\"\"\\", "a\"\\",
                                          "{}[]"};
    for (int round = 0; round < 4000; ++round) {
      const std::string_view alphabet = alphabets[random() % 4];
      std::string text(random() % 400, ' ');
      for (char& c : text) c = alphabet[random() % alphabet.size()];
      const std::size_t level = 1 + random() % 3;
      ASSERT_EQ(after_brackets(text, 0, level), after_brackets_slowly(text, 0, level)) << text;
    }
  }
}

TEST(Scan, StringsEndAtTheirQuote) {
  for (std::size_t size = 0; size < 70; ++size) {
    const std::string characters(size, 'x');
    EXPECT_EQ(after_string("\"" + characters + "\"}", 0), size + 2);
    EXPECT_EQ(after_string("\"" + characters + "\\\"\"}", 0), size + 4);
    EXPECT_EQ(after_string("\"" + characters + "\\\\\"\"}", 0), size + 4);
    EXPECT_EQ(after_string("\"" + characters, 0), size + 1);
    EXPECT_EQ(after_string("\"" + characters + "\\", 0), size + 2);
    EXPECT_EQ(after_string("\"" + characters + "\\\"", 0), size + 3);
    bool has_escapes = false;
    after_string("\"" + characters + "\"\\n", 0, has_escapes);
    EXPECT_FALSE(has_escapes);
    after_string("\"" + characters + "\\n\"", 0, has_escapes);
    EXPECT_TRUE(has_escapes);
  }
}

TEST(Scan, NumbersAreWrittenAsJsonWritesThem) {
  for (const auto* number : {"0", "-0", "10", "1.5", "1e5", "-1.25E-10", "0.0e+0"}) {
    EXPECT_TRUE(is_json_number(number)) << number;
  }
  for (const auto* number : {"", "-", "01", "1.", ".5", "1e", "+1", "1e+", "--1", "0x1", "1 "}) {
    EXPECT_FALSE(is_json_number(number)) << number;
  }
}

/// By walking: what MemberSearch must find faster.
std::size_t find_slowly(std::string_view text, std::string_view name) {
  std::string buffer;
  for (Walk walk(text, 0); walk.next();) {
    if (walk.plain_name(buffer) == name) return walk.begin;
  }
  return MemberSearch::kNone;
}

/// A random value, for the places between and beside members.
std::string random_value(std::mt19937& random, int level) {
  static constexpr std::string_view kStrings[] = {R"("x")",
                                                  R"("quantity")",
                                                  R"("a,\"quantity\":1")",
                                                  R"("quantity\"")",
                                                  R"("\"quantity")",
                                                  R"("{[")",
                                                  R"("]}")",
                                                  R"("|")",
                                                  R"("\\")",
                                                  R"("\u0071uantity")",
                                                  R"("")"};
  switch (random() % (level < 3 ? 4 : 2)) {
    case 0:
      return std::to_string(random() % 100'000);
    case 1:
      return random() % 3 == 0 ? '"' + std::string(random() % 40, 'y') + '"'
                               : std::string(kStrings[random() % std::size(kStrings)]);
    case 2: {
      std::string text = "[";
      for (auto left = random() % 3; left > 0; --left) {
        text += random_value(random, level + 1) + (left > 1 ? "," : "");
      }
      return text + "]";
    }
    default: {
      std::string text = "{";
      for (auto left = random() % 4; left > 0; --left) {
        text += kStrings[random() % std::size(kStrings)];
        text += random() % 8 == 0 ? " :\n" : ":";
        text += random_value(random, level + 1) + (left > 1 ? "," : "");
      }
      return text + "}";
    }
  }
}

TEST(Scan, MembersAreFoundWhateverStandsBeforeThem) {
  std::mt19937 random(20);
  std::size_t known = 0;
  for (int round = 0; round < 50'000; ++round) {
    std::string text = "{";
    for (auto left = random() % 6; left > 0; --left) {
      text += R"("m)" + std::to_string(random() % 10) + R"(":)" + random_value(random, 0) + ",";
    }
    if (random() % 2 == 0) text += R"("quantity":)" + random_value(random, 0) + ",";
    if (random() % 9 == 0) text += R"("quantit\u0079":5,)";
    text +=
        R"("x":17,"_self":")" + std::string(60, 's') + R"(","_etag":"\"00000002-0000\"","_ts":1})";
    for (const std::string_view name : {"quantity", "x", "_ts", "y", "m7"}) {
      const std::size_t found = MemberSearch::find(text, 0, MemberSearch::quoted(name));
      if (found == MemberSearch::kUnknown) continue;
      ++known;
      ASSERT_EQ(found, find_slowly(text, name)) << name << " in " << text;
    }
  }
  EXPECT_GT(known, 150'000u) << "too many were left to a walk";
}

TEST(Scan, MembersAreLookedForInAnyText) {
  std::mt19937 random(21);
  for (int round = 0; round < 50'000; ++round) {
    const std::string_view alphabet = R"({}[]"":,\\abx |)";
    std::string text(1 + random() % 200, ' ');
    for (char& c : text) c = alphabet[random() % alphabet.size()];
    const std::size_t found = MemberSearch::find(text, 0, R"("a")");
    EXPECT_TRUE(found < text.size() || found >= MemberSearch::kUnknown) << text;
  }
}

TEST(Scan, NamesThatEndAStringAreWalkedTo) {
  for (const std::string_view name : {"", ",", ":a", "]", "}", " ", "a\"", "a\\b", "a\n"}) {
    EXPECT_EQ(MemberSearch::quoted(name), "") << name;
  }
  EXPECT_EQ(MemberSearch::quoted("größe, :"), "\"größe, :\"");
}

}  // namespace
}  // namespace orrery::json
