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

}  // namespace
}  // namespace orrery::json
