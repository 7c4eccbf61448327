#include "cli/terminal/terminal_text.h"

#include <gtest/gtest.h>

namespace orrery::cli {
namespace {

TEST(TerminalText, CountsColumnsAsTheyAreSeen) {
  EXPECT_EQ(columns_of(""), 0U);
  EXPECT_EQ(columns_of("moon"), 4U);
  EXPECT_EQ(columns_of("Mädchen"), 7U);
  EXPECT_EQ(columns_of("月"), 2U);
  EXPECT_EQ(columns_of("e\xCC\x81"), 1U) << "a mark stands above its letter";
  EXPECT_EQ(columns_of("\xFF\xFE"), 2U);
}

TEST(TerminalText, CutsBetweenCharacters) {
  EXPECT_EQ(cut_to("moon", 4), "moon");
  EXPECT_EQ(cut_to("moons", 4), "moo…");
  EXPECT_EQ(cut_to("äöüß", 3), "äö…");
  EXPECT_EQ(cut_to("月月月", 4), "月…") << "half a wide character is none";
  EXPECT_EQ(cut_to("moon", 1), "…");
  EXPECT_EQ(cut_to("", 0), "");
}

TEST(TerminalText, WhatATerminalWouldObeyIsTakenOut) {
  std::string text =
      "a\x1b[2Jb\nc\xC2\x9B"
      "d\x7F ä";
  defuse(text);
  EXPECT_EQ(text, "a [2Jb c d  ä");
}

}  // namespace
}  // namespace orrery::cli
