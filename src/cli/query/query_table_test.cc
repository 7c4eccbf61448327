#include "cli/query/query_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/terminal/terminal_text.h"

namespace orrery::cli {
namespace {

std::string table_of(const std::vector<std::string>& rows, std::size_t columns_max = 0) {
  QueryTable table(columns_max);
  for (const std::string& row : rows) table.add(row);
  return table.take();
}

TEST(QueryTable, ColumnsAreMembersInTheOrderOfAppearance) {
  EXPECT_EQ(table_of({R"({"id":"io","radius":1821})", R"({"radius":9.5,"id":"x","moon":true})",
                      R"({"moon":null})"}),
            "id  radius  moon\n"
            "--  ------  ----\n"
            "io    1821\n"
            "x      9.5  true\n"
            "            null\n");
}

TEST(QueryTable, ScalarsStandInOneColumn) {
  EXPECT_EQ(table_of({"7", R"("a\"b")", "null", "[1, {\"x\":2}]", R"({"value":1})"}),
            "value         value\n"
            "------------  -----\n"
            "           7\n"
            "a\"b\n"
            "null\n"
            "[1, {\"x\":2}]\n"
            "                  1\n")
      << "a member of that name is another column";
}

TEST(QueryTable, WholeDocumentsAreShownWithoutWhatTheServerAdds) {
  EXPECT_EQ(
      table_of({R"({"id":"a","_rid":"r","_self":"s","_etag":"e","_attachments":"x/","_ts":1})"}),
      "id\n"
      "--\n"
      "a\n");
  // A query that names them shows them.
  EXPECT_THAT(table_of({R"({"_rid":"r","_ts":1})"}), ::testing::HasSubstr("_rid  _ts"));
}

TEST(QueryTable, LongValuesAreCut) {
  const std::string text = table_of({R"({"a":")" + std::string(100, 'x') + R"(","b":1})"});
  EXPECT_THAT(text, ::testing::HasSubstr(std::string(59, 'x') + "…  1\n"));
}

TEST(QueryTable, FitsInTheTerminal) {
  const std::string row = R"({"short":"a","one":")" + std::string(50, 'x') + R"(","two":")" +
                          std::string(50, 'y') + "\"}";
  const std::string text = table_of({row}, 60);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    EXPECT_LE(columns_of(text.substr(at, end - at)), 60U);
    at = end + 1;
  }
  EXPECT_THAT(text, ::testing::HasSubstr("a"));
  EXPECT_THAT(text, ::testing::HasSubstr("xxx…"));
  EXPECT_THAT(text, ::testing::HasSubstr("yyy…"));
}

TEST(QueryTable, WideCharactersKeepTheColumnsAligned) {
  EXPECT_EQ(table_of({R"({"a":"月","b":"x"})", R"({"a":"moon","b":"y"})"}),
            "a     b\n"
            "----  -\n"
            "月    x\n"
            "moon  y\n");
}

TEST(QueryTable, WhatATerminalWouldObeyIsTakenOut) {
  const std::string text = table_of({R"({"\u001b[2J":"a\n\u001b[31m"})"});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(QueryTable, NoRowsAreNoTable) {
  QueryTable table(80);
  EXPECT_EQ(table.take(), "");
  table.add("1");
  EXPECT_EQ(table.take(), "value\n-----\n    1\n");
  EXPECT_EQ(table.take(), "") << "what was taken is gone";
  table.add("{}");
  EXPECT_EQ(table.take(), "\n") << "a row without members is a row all the same";
}

}  // namespace
}  // namespace orrery::cli
