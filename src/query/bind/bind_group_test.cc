#include "query/bind/bind_group.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "query/syntax/parser.h"
#include "query/syntax/print.h"

namespace orrery::query {
namespace {

/// c and d are known.
std::optional<std::size_t> find_name(std::string_view name) {
  if (name == "c") return 0;
  if (name == "d") return 1;
  return std::nullopt;
}

ExpressionPtr parsed_group(const std::string& text) {
  auto expression = Parser(text).parse_expression();
  EXPECT_TRUE(expression) << text;
  return std::move(*expression);
}

/// The expression with @key in place of the item of GROUP BY; empty: that is not in it.
std::string without_key(const std::string& item, const std::string& text) {
  GroupKeys keys;
  keys.add(ComparedText(*parsed_group(item), find_name));
  const ExpressionPtr expression = parsed_group(text);
  const auto found = keys.find(ComparedText(*expression, find_name));
  if (!found) return "";
  replace_first_parts(*expression, found->parts, Parameter{"@key"});
  return print(*expression);
}

TEST(BindGroupTest, WhatIsWrittenLikeTheItemIsTheItem) {
  EXPECT_EQ(without_key("c.a", "c.a"), "@key");
  EXPECT_EQ(without_key("c.a", R"((c)["a"])"), "@key");
  EXPECT_EQ(without_key(R"(c["a b"])", R"(c["a b"])"), "@key");
  EXPECT_EQ(without_key("c[0]", "c[0]"), "@key");
  EXPECT_EQ(without_key("c.a+@p", "(c.a + @p)"), "@key");
  EXPECT_EQ(without_key("UPPER(c.a)", "upper(c.a)"), "@key");
  EXPECT_EQ(without_key("IS_BOOL(c.a)", "is_boolean(c.a)"), "@key");
  EXPECT_EQ(without_key("NOT c.a", "not c.a"), "@key");
  EXPECT_EQ(without_key("c.a NOT LIKE 'x' ESCAPE '!'", "c.a NOT LIKE \"x\" ESCAPE \"!\""), "@key");
  EXPECT_EQ(without_key("{a: c.a}", R"({"a": c["a"]})"), "@key");
}

TEST(BindGroupTest, WhatIsWrittenOtherwiseIsNot) {
  const std::pair<const char*, const char*> cases[] = {
      {"c.a", "d.a"},
      {"c.a", "c.b"},
      {"c.a", "x.a"},
      {"c.a.b", R"(c["a.b"])"},
      {"c[0]", R"(c["0"])"},
      {"c[@p]", R"(c["@p"])"},
      {"c.a + 1", "c.a + 1.0"},
      {"c.a + c.b", "c.a - c.b + 1"},
      {"c.a + c.b", "1 + c.a + c.b"},
      {"c.a * c.b", "c.a * (c.b + 1)"},
      {"c.a AND c.b", "c.a OR c.b"},
      {"c.a ?? c.b", "c.a ?? c.b ?? 1"},
      {"c.a IN (1)", "c.a NOT IN (1)"},
      {"c.a LIKE 'x'", "c.a LIKE 'x' ESCAPE '!'"},
      {"c.a BETWEEN 1 AND 2", "c.a NOT BETWEEN 1 AND 2"},
      {"udf.f(c.a)", "udf.F(c.a)"},
      {"LOWER(c.a)", "udf.LOWER(c.a)"},
      {"[c.a, c.b]", "[c.a, [c.b]]"},
      {"{a: c.a}", "{b: c.a}"},
      {"-c.a", "~c.a"},
  };
  for (const auto& [item, text] : cases) EXPECT_EQ(without_key(item, text), "") << text;
}

TEST(BindGroupTest, WhatRepeatsGoesOnFromTheItem) {
  EXPECT_EQ(without_key("c.a", "c.a.b[0]"), "@key.b[0]");
  EXPECT_EQ(without_key("c.a.b", "(c.a).b.d"), "@key.d");
  EXPECT_EQ(without_key("c.a + c.b", "c.a + c.b - 1 + 2"), "((@key - 1) + 2)");
  EXPECT_EQ(without_key("c.a || c.b", "(c.a || c.b) || '!'"), R"((@key || "!"))");
  EXPECT_EQ(without_key("c.a AND c.b", "c.a AND c.b AND c.d"), "(@key AND c.d)");
  EXPECT_EQ(without_key("c.a OR c.b", "c.a OR c.b OR c.d OR c.e"), "((@key OR c.d) OR c.e)");
}

TEST(BindGroupTest, WhatNestsToTheRightEndsWithTheItem) {
  EXPECT_EQ(without_key("c.b ?? c.d", "c.a ?? c.b ?? c.d"), "(c.a ?? @key)");
  EXPECT_EQ(without_key("c.b ? 1 : 2", "c.a ? 3 : c.b ? 1 : 2"), "(c.a ? 3 : @key)");
}

TEST(BindGroupTest, TheLongestItemIsFound) {
  GroupKeys keys;
  for (const char* item : {"c", "c.a", "c.a.b.d", "c.a.b", "c.a"}) {
    keys.add(ComparedText(*parsed_group(item), find_name));
  }
  const auto slot_of = [&](const std::string& text) {
    return keys.find(ComparedText(*parsed_group(text), find_name))->slot;
  };
  EXPECT_EQ(slot_of("c"), 0u);
  EXPECT_EQ(slot_of("c.a"), 1u);
  EXPECT_EQ(slot_of("c.a.x"), 1u);
  EXPECT_EQ(slot_of("c.a.b.x"), 3u);
  EXPECT_EQ(slot_of("c.a.b.d.x"), 2u);
}

}  // namespace
}  // namespace orrery::query
