// What texts are refused, with which message, and where.
#include "query/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "query/bind.h"

namespace orrery::query {
namespace {

using ::testing::HasSubstr;

/// "7-11 SC1001 message", or "fine".
std::string shortened(const Error& error) {
  EXPECT_EQ(error.code(), ErrorCode::BadRequest);
  std::string text = error.message();
  const std::string_view head = R"(Message: {"errors":[{"severity":"Error","location":{"start":)";
  EXPECT_TRUE(text.starts_with(head)) << text;
  EXPECT_TRUE(text.ends_with("\"}]}")) << text;
  text.erase(0, head.size());
  text.erase(text.size() - 4);
  const auto replace = [&](std::string_view from, std::string_view to) {
    if (const auto at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
  };
  replace(",\"end\":", "-");
  replace("},", " ");
  replace("\"code\":\"", "");
  replace("\",\"message\":\"", " ");
  replace("\"message\":\"", "");
  return text;
}

std::string refusal(std::string_view text) {
  const std::string_view aliases[] = {"c"};
  Sources sources(aliases);
  auto expression = Parser(text).parse_expression();
  if (!expression) return shortened(expression.error());
  const auto bound = bind(**expression, sources, text);
  return bound ? "fine" : shortened(bound.error());
}

TEST(Parser, ErrorsHaveTheFormThatClientsKnow) {
  const auto expression = Parser("c.a FROM").parse_expression();
  ASSERT_FALSE(expression.has_value());
  EXPECT_EQ(expression.error().message(),
            R"(Message: {"errors":[{"severity":"Error","location":{"start":4,"end":8},)"
            R"("code":"SC1001","message":"Syntax error, incorrect syntax near 'FROM'."}]})");
}

TEST(Parser, WhatDoesNotFitIsNamedWithItsPlace) {
  EXPECT_EQ(refusal("1 +* 2"), "3-4 SC1001 Syntax error, incorrect syntax near '*'.");
  EXPECT_EQ(refusal("c.a = = 2"), "6-7 SC1001 Syntax error, incorrect syntax near '='.");
  EXPECT_EQ(refusal("c.order"), "2-7 SC1001 Syntax error, incorrect syntax near 'order'.");
  EXPECT_EQ(refusal("c.1"), "2-3 SC1001 Syntax error, incorrect syntax near '1'.");
  EXPECT_EQ(refusal("1 2"), "2-3 SC1001 Syntax error, incorrect syntax near '2'.");
  EXPECT_EQ(refusal("c.a IN ()"), "8-9 SC1001 Syntax error, incorrect syntax near ')'.");
  EXPECT_EQ(refusal("c.a IN 1"), "7-8 SC1001 Syntax error, incorrect syntax near '1'.");
  EXPECT_EQ(refusal("c.a NOT 1"), "8-9 SC1001 Syntax error, incorrect syntax near '1'.");
  EXPECT_EQ(refusal("[1, 2"), "5-5 SC1002 Syntax error, unexpected end-of-file.");
  EXPECT_EQ(refusal("[1,]"), "3-4 SC1001 Syntax error, incorrect syntax near ']'.");
  EXPECT_EQ(refusal("{a: 1,}"), "6-7 SC1001 Syntax error, incorrect syntax near '}'.");
  EXPECT_EQ(refusal("{1: 2}"), "1-2 SC1001 Syntax error, incorrect syntax near '1'.");
  EXPECT_EQ(refusal("{value: 2}"), "1-6 SC1001 Syntax error, incorrect syntax near 'value'.");
  EXPECT_EQ(refusal("(1"), "2-2 SC1002 Syntax error, unexpected end-of-file.");
  EXPECT_EQ(refusal("1)"), "1-2 SC1001 Syntax error, incorrect syntax near ')'.");
  EXPECT_EQ(refusal("true ? 1"), "8-8 SC1002 Syntax error, unexpected end-of-file.");
  EXPECT_EQ(refusal("LEFT"), "0-4 SC1001 Syntax error, incorrect syntax near 'LEFT'.");
  EXPECT_EQ(refusal("SELECT 1"), "0-6 SC1001 Syntax error, incorrect syntax near 'SELECT'.");
  EXPECT_EQ(refusal("WHERE c.a"), "0-5 SC1001 Syntax error, incorrect syntax near 'WHERE'.");
  EXPECT_EQ(refusal("/* no */ 1"), "0-1 SC1001 Syntax error, incorrect syntax near '/'.");
  EXPECT_EQ(refusal("01"), "1-2 SC1001 Syntax error, incorrect syntax near '1'.");
  EXPECT_EQ(refusal("c.a LIKE 'x' ESCAPE 1"),
            "20-21 SC1001 Syntax error, incorrect syntax near '1'.");
  EXPECT_EQ(refusal("c.a LIKE 'x' ESCAPE '!!'"),
            "20-24 The text after ESCAPE must be one character.");
}

TEST(Parser, TextsThatEndTooEarly) {
  EXPECT_EQ(refusal(""), "0-0 SC1002 Syntax error, unexpected end-of-file.");
  EXPECT_EQ(refusal("  "), "2-2 SC1002 Syntax error, unexpected end-of-file.");
  EXPECT_EQ(refusal("c.a ="), "5-5 SC1002 Syntax error, unexpected end-of-file.");
  EXPECT_EQ(refusal("c."), "2-2 SC1002 Syntax error, unexpected end-of-file.");
  EXPECT_EQ(refusal("c.a BETWEEN 1"), "13-13 SC1002 Syntax error, unexpected end-of-file.");
  EXPECT_EQ(refusal("NOT"), "3-3 SC1002 Syntax error, unexpected end-of-file.");
}

TEST(Parser, CharactersThatBeginNoToken) {
  EXPECT_EQ(refusal("c.a;"), "3-4 SC1010 Syntax error, invalid token ';'.");
  EXPECT_EQ(refusal("c.a = 1;"), "7-8 SC1010 Syntax error, invalid token ';'.");
  EXPECT_EQ(refusal("c.a ! 1"), "4-5 SC1010 Syntax error, invalid token '!'.");
  EXPECT_EQ(refusal("@"), "0-1 SC1010 Syntax error, invalid token '@'.");
  EXPECT_EQ(refusal("@1"), "0-2 SC1010 Syntax error, invalid token '@1'.");
  EXPECT_EQ(refusal("'abc"), "0-4 SC1010 Syntax error, invalid token ''abc'.");
  EXPECT_EQ(refusal("'a\\x'"), "2-4 SC1010 Syntax error, invalid token '\\\\x'.");
  EXPECT_EQ(refusal("'\\ud800'"), "1-3 SC1010 Syntax error, invalid token '\\\\u'.");
  EXPECT_EQ(refusal("'\\u12'"), "1-3 SC1010 Syntax error, invalid token '\\\\u'.");
  EXPECT_EQ(refusal("0x"), "0-2 SC1010 Syntax error, invalid token '0x'.");
  EXPECT_EQ(refusal("#"), "0-1 SC1010 Syntax error, invalid token '#'.");
}

TEST(Parser, PlacesCountUtf16Units) {
  EXPECT_EQ(refusal("'é😀' ;"), "6-7 SC1010 Syntax error, invalid token ';'.");
}

TEST(Parser, NamesThatNobodyKnows) {
  EXPECT_EQ(refusal("c.a = d.b"), "6-7 SC2001 Identifier 'd' could not be resolved.");
  EXPECT_EQ(refusal("C.a"), "0-1 SC2001 Identifier 'C' could not be resolved.");
  EXPECT_EQ(refusal("name"), "0-4 SC2001 Identifier 'name' could not be resolved.");
  EXPECT_EQ(refusal("[c, {k: root}]"), "8-12 SC2001 Identifier 'root' could not be resolved.");
  EXPECT_EQ(refusal("c[d]"), "2-3 SC2001 Identifier 'd' could not be resolved.");
  EXPECT_EQ(refusal("größe.x"), "0-5 SC2001 Identifier 'größe' could not be resolved.");
}

TEST(Parser, FunctionsThatNobodyKnowsOrOfOtherArguments) {
  EXPECT_EQ(refusal("1 + nosuch(c)"),
            "4-10 SC2005 'nosuch' is not a recognized built-in function name.");
  EXPECT_EQ(refusal("CONTAINS(c.a)"),
            "0-13 SC2050 The CONTAINS function requires 2 to 3 argument(s).");
  EXPECT_EQ(refusal("abs()"), "0-5 SC2050 The ABS function requires 1 argument(s).");
  EXPECT_EQ(refusal("CONCAT('a')"),
            "0-11 SC2050 The CONCAT function requires at least 2 argument(s).");
  EXPECT_EQ(refusal("PI(1)"), "0-5 SC2050 The PI function requires 0 argument(s).");
  std::string many = "CONCAT('a'";
  for (int i = 0; i < 300; ++i) many += ",'a'";
  EXPECT_EQ(refusal(many + ")"), "fine");
}

TEST(Parser, WhatIsNoExpressionOverOneDocument) {
  const auto no_subquery =
      "A subquery is not allowed here: only an expression over one document is.";
  EXPECT_EQ(refusal("EXISTS(SELECT 1)"), std::string("0-6 ") + no_subquery);
  EXPECT_EQ(refusal("1 = ARRAY(SELECT 1)"), std::string("4-9 ") + no_subquery);
  EXPECT_EQ(refusal("(SELECT 1)"), std::string("1-7 ") + no_subquery);
  EXPECT_EQ(refusal("all(select 1)"), std::string("0-3 ") + no_subquery);
  EXPECT_EQ(refusal("1 IN (SELECT 1)"), std::string("6-12 ") + no_subquery);
  EXPECT_THAT(refusal("COUNT(c.a) > 1"), HasSubstr("0-5 SC2101 The aggregate function COUNT"));
  EXPECT_THAT(refusal("ABS(max(c.a))"), HasSubstr("4-7 SC2101 The aggregate function MAX"));
  EXPECT_THAT(refusal("udf.tax(c.a)"), HasSubstr("0-7 The user-defined function 'tax'"));
  EXPECT_THAT(refusal("c.a = @p"), HasSubstr("6-8 The parameter '@p' has no value"));
}

TEST(Parser, ObjectsHaveEachNameOnce) {
  EXPECT_EQ(refusal("{a: 1, 'a': 2}"),
            "7-10 SC2022 Object creation error, property name 'a' specified more than once.");
}

TEST(Parser, NestingIsBounded) {
  const auto nested = [](std::string_view open, std::string_view close, std::size_t depth) {
    std::string text;
    for (std::size_t i = 0; i < depth; ++i) text += open;
    text += "1";
    for (std::size_t i = 0; i < depth; ++i) text += close;
    return text;
  };
  const std::size_t fine = Parser::kNestingMax - 1;
  for (const auto& [open, close] :
       {std::pair("(", ")"), std::pair("[", "]"), std::pair("{a:", "}"), std::pair("ABS(", ")"),
        std::pair("- ", ""), std::pair("NOT ", ""), std::pair("1 ? ", " : 2"),
        std::pair("c[", "]")}) {
    EXPECT_EQ(refusal(nested(open, close, fine)), "fine") << open;
    EXPECT_THAT(refusal(nested(open, close, fine + 1)), HasSubstr("nested deeper than 100 levels"))
        << open;
    EXPECT_THAT(refusal(nested(open, close, 100'000)), HasSubstr("nested deeper than 100 levels"))
        << open;
  }
}

TEST(Parser, LongTokensAreShownInPart) {
  const std::string long_name(100'000, 'x');
  EXPECT_LT(refusal("1 " + long_name).size(), 200u);
  EXPECT_LT(refusal("'" + long_name).size(), 200u);
}

TEST(Parser, TextsThatAreTooLongOrNotUtf8AreRefused) {
  EXPECT_TRUE(check_text(std::string(Lexer::kCharactersMax, ' ')).has_value());
  const auto too_long = check_text(std::string(Lexer::kCharactersMax + 1, ' '));
  ASSERT_FALSE(too_long.has_value());
  EXPECT_EQ(too_long.error().message(),
            "The SQL query text exceeded the maximum limit of 524288 characters.");
  EXPECT_FALSE(check_text("c.\xFF").has_value());
}

}  // namespace
}  // namespace orrery::query
