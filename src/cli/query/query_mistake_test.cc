#include "cli/query/query_mistake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/terminal/terminal_text.h"

namespace orrery::cli {
namespace {

using ::testing::HasSubstr;

TEST(QueryMistake, IsMarkedUnderItsPlace) {
  EXPECT_EQ(point_at("SELECT * FORM c", {9, 13}),
            "  SELECT * FORM c\n"
            "           ^^^^\n");
}

TEST(QueryMistake, OfATextThatEndsTooEarlyIsBehindIt) {
  EXPECT_EQ(point_at("SELECT *", {8, 8}),
            "  SELECT *\n"
            "          ^\n");
  EXPECT_EQ(point_at("", {0, 0}), "  \n  ^\n");
  EXPECT_EQ(point_at("abc", {700, 900}),
            "  abc\n"
            "     ^\n");
}

TEST(QueryMistake, IsInOneOfSeveralLines) {
  EXPECT_EQ(point_at("SELECT *\nFROM c\nWHER c.a = 1", {16, 20}),
            "  line 3: WHER c.a = 1\n"
            "          ^^^^\n");
  EXPECT_EQ(point_at("SELECT 'a\nb", {7, 11}),
            "  line 1: SELECT 'a\n"
            "                 ^^\n")
      << "what goes on in the next line is marked to the end of this one";
}

TEST(QueryMistake, IsCountedInUtf16UnitsAndShownInColumns) {
  // The moon is two units and two columns, 月 one unit and two columns.
  EXPECT_EQ(point_at("SELECT '🌙月' FORM", {13, 17}),
            "  SELECT '🌙月' FORM\n"
            "                ^^^^\n");
}

TEST(QueryMistake, OfALongLineIsShownWithWhatIsNear) {
  const std::string text = "SELECT " + std::string(200, 'a') + " FORM " + std::string(200, 'b');
  const std::string shown = point_at(text, {208, 212});
  EXPECT_THAT(shown, HasSubstr("  …"));
  EXPECT_THAT(shown, HasSubstr("a FORM b"));
  EXPECT_THAT(shown, HasSubstr("b…\n"));
  const std::size_t second = shown.find('\n') + 1;
  EXPECT_EQ(columns_of(shown.substr(0, shown.find("FORM"))), shown.find('^', second) - second);
  EXPECT_LE(columns_of(shown.substr(0, second - 1)), 80U);
}

TEST(QueryMistake, TabsAndOrdersToTheTerminalAreBlanks) {
  EXPECT_EQ(point_at("SELECT\t*\x1b[2J FORM", {13, 17}),
            "  SELECT * [2J FORM\n"
            "               ^^^^\n");
}

}  // namespace
}  // namespace orrery::cli
