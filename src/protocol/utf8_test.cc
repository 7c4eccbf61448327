#include "protocol/utf8.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(Utf8, DecodesEveryScalarValueItEncodes) {
  for (char32_t value = 0; value <= 0x10FFFF; value += value < 0x11000 ? 1 : 0x101) {
    if (value >= 0xD800 && value <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, value);
    const CodePoint decoded = decode_utf8(text, 0);
    ASSERT_EQ(decoded.value, value);
    ASSERT_EQ(decoded.size, text.size());
  }
}

TEST(Utf8, RefusesBrokenSequences) {
  for (const char* text :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC3", "\xC3(", "\xE0\x80\x80", "\xE2\x82",
        "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x80\x80\x80", "\xF0\x9F\x98", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\xFF", "a\xFE"}) {
    EXPECT_FALSE(is_valid_utf8(text));
  }
  EXPECT_TRUE(is_valid_utf8(""));
  EXPECT_TRUE(is_valid_utf8("a é 日 😀 \xF4\x8F\xBF\xBF"));
}

}  // namespace
}  // namespace orrery
