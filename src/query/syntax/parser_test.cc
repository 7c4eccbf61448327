// The texts that are refused, with which message, and where.
#include "query/syntax/parser.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "query/bind/bind.h"

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
  BindContext context{.sources = sources, .text = text};
  const auto bound = bind(**expression, context);
  return bound ? "fine" : shortened(bound.error());
}

/// The error of the parser alone for a query.
std::string query_refusal(std::string_view text) {
  const auto query = Parser(text).parse_query();
  return query ? "fine" : shortened(query.error());
}

QueryPtr parsed(std::string_view text) {
  auto query = Parser(text).parse_query();
  if (query) return *std::move(query);
  ADD_FAILURE() << text << ": " << query.error().message();
  return std::make_unique<Query>();
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
  EXPECT_THAT(refusal("COUNT(c.a) > 1"), HasSubstr("0-5 SC2101"));
  EXPECT_THAT(refusal("ABS(max(c.a))"), HasSubstr("4-7 SC2101"));
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
    return "SELECT " + text;
  };
  const std::size_t fine = Parser::kNestingMax - 1;
  for (const auto& [open, close] :
       {std::pair("[", "]"), std::pair("{a:", "}"), std::pair("ABS(", ")"), std::pair("- ", ""),
        std::pair("NOT ", ""), std::pair("1 ? ", " : 2"), std::pair("c[", "]"),
        std::pair("(1 + ", ")"), std::pair("(", " IN (2))"), std::pair("1 IN (", ")"),
        std::pair("(", " LIKE 'a')"), std::pair("(2 BETWEEN ", " AND 3)"),
        std::pair("(SELECT VALUE ", ")"), std::pair("EXISTS(SELECT VALUE ", ")"),
        std::pair("udf.f((", "))")}) {
    EXPECT_EQ(query_refusal(nested(open, close, fine)), "fine") << open;
    for (const std::size_t more : {fine + 1, std::size_t{100'000}}) {
      EXPECT_THAT(query_refusal(nested(open, close, more)),
                  HasSubstr("nested deeper than 100 levels"))
          << open;
    }
  }
}

TEST(Parser, QueriesInQueriesCountAsLevels) {
  const auto nested = [](std::size_t depth) {
    std::string text = "c";
    for (std::size_t i = 0; i < depth; ++i) text = "(SELECT VALUE c FROM " + text + " AS c)";
    return "SELECT * FROM " + text;
  };
  EXPECT_EQ(query_refusal(nested(Parser::kNestingMax - 1)), "fine");
  EXPECT_THAT(query_refusal(nested(Parser::kNestingMax)), HasSubstr("nested deeper than 100"));
  EXPECT_THAT(query_refusal(nested(5'000)), HasSubstr("nested deeper than 100"));
}

TEST(Parser, WhatRepeatsMayBeOfAnyLength) {
  const auto repeated = [](std::string_view open, std::string_view first, std::string_view next) {
    constexpr std::size_t kTimes = 20'000;
    std::string text = "SELECT VALUE ";
    for (std::size_t i = 0; i < kTimes; ++i) text += open;
    text += first;
    for (std::size_t i = 0; i < kTimes; ++i) text += next;
    return text;
  };
  EXPECT_EQ(query_refusal(repeated("", "1", " + 1")), "fine");
  EXPECT_EQ(query_refusal(repeated("", "1", " = 1 AND 1")), "fine");
  EXPECT_EQ(query_refusal(repeated("", "1", " ?? 1")), "fine");
  EXPECT_EQ(query_refusal(repeated("", "1", " ? 2 : 1")), "fine");
  EXPECT_EQ(query_refusal(repeated("", "c", ".a[0]")), "fine");
  EXPECT_EQ(query_refusal(repeated("", "c FROM c", " JOIN c")), "fine");
  // So it is when a program has put parentheses around each pair.
  EXPECT_EQ(query_refusal(repeated("(", "1", ")")), "fine");
  EXPECT_EQ(query_refusal(repeated("(", "1", " - 1)")), "fine");
  EXPECT_EQ(query_refusal(repeated("(", "1 = 1", " OR 1 = 1)")), "fine");
  EXPECT_EQ(query_refusal(repeated("(", "(SELECT 1)", ".a)")), "fine");
  // But not where that means another tree.
  EXPECT_THAT(query_refusal(repeated("((", "1", " AND 1) OR 1)")), HasSubstr("nested deeper"));
  EXPECT_THAT(query_refusal(repeated("((", "1", " + 1) * 1)")), HasSubstr("nested deeper"));
}

TEST(Parser, LongTokensAreShownInPart) {
  const std::string long_name(100'000, 'x');
  EXPECT_LT(refusal("1 " + long_name).size(), 200u);
  EXPECT_LT(refusal("'" + long_name).size(), 200u);
}

TEST(Parser, WhatAQuerySays) {
  const QueryPtr query = parsed(
      "select distinct top 5 c.a, 1, c['b'] x from root c join t in c.tags[0].list "
      "where c.a = 1 group by c.a, c.b order by c.a desc, c.b, c.c asc offset @o limit 7");
  EXPECT_TRUE(query->is_distinct);
  ASSERT_TRUE(query->top.has_value());
  EXPECT_EQ(query->top->value, 5u);
  EXPECT_EQ(query->top->span, (Span{20, 21}));
  ASSERT_EQ(query->selection.kind, Selection::Kind::List);
  ASSERT_EQ(query->selection.items.size(), 3u);
  EXPECT_EQ(query->selection.items[0].name, "a");
  EXPECT_EQ(query->selection.items[1].name, "$1");
  EXPECT_EQ(query->selection.items[2].name, "x");
  ASSERT_EQ(query->from.size(), 2u);
  EXPECT_EQ(query->from[0].alias, "c");
  EXPECT_TRUE(query->from[0].has_alias);
  EXPECT_FALSE(query->from[0].is_iteration);
  EXPECT_EQ(query->from[1].alias, "t");
  EXPECT_TRUE(query->from[1].is_iteration);
  EXPECT_TRUE(query->where);
  EXPECT_EQ(query->group_by.size(), 2u);
  ASSERT_EQ(query->order_by.size(), 3u);
  EXPECT_EQ(query->order_by[0].is_descending, true);
  EXPECT_EQ(query->order_by[1].is_descending, std::nullopt);
  EXPECT_EQ(query->order_by[2].is_descending, false);
  EXPECT_FALSE(query->is_rank);
  ASSERT_TRUE(query->offset.has_value());
  EXPECT_EQ(std::get<Parameter>(query->offset->written->node).name, "@o");
  ASSERT_TRUE(query->limit.has_value());
  EXPECT_EQ(query->limit->value, 7u);
}

TEST(Parser, ClausesThatAreNotThere) {
  const QueryPtr query = parsed("SELECT VALUE 1");
  EXPECT_EQ(query->selection.kind, Selection::Kind::Value);
  EXPECT_EQ(query->span, (Span{0, 14}));
  EXPECT_FALSE(query->is_distinct || query->top || query->where || query->offset || query->limit);
  EXPECT_TRUE(query->from.empty() && query->group_by.empty() && query->order_by.empty());
  EXPECT_EQ(parsed("SELECT * FROM c")->selection.kind, Selection::Kind::Star);
  EXPECT_EQ(parsed("SELECT TOP @n * FROM c")->selection.kind, Selection::Kind::Star);
  EXPECT_TRUE(parsed("SELECT 1 WHERE false")->where);
}

TEST(Parser, SourcesHaveTheirAliasOrTheirLastName) {
  const auto alias = [](std::string_view from) {
    const QueryPtr query = parsed("SELECT 1 FROM " + std::string(from));
    if (query->from.empty()) return std::string("no source");
    return query->from.back().alias + (query->from.back().has_alias ? "" : " by itself");
  };
  EXPECT_EQ(alias("c"), "c by itself");
  EXPECT_EQ(alias("c AS x"), "x");
  EXPECT_EQ(alias("c x"), "x");
  EXPECT_EQ(alias("c.home"), "home by itself");
  EXPECT_EQ(alias("c.home[\"the street\"]"), "the street by itself");
  EXPECT_EQ(alias("c.homes[3]"), "homes by itself");
  EXPECT_EQ(alias("c[0][1]"), "c by itself");
  EXPECT_EQ(alias("c.homes[3] h"), "h");
  EXPECT_EQ(alias("(SELECT 1)"), " by itself");
  EXPECT_EQ(alias("(SELECT 1) AS s"), "s");
  EXPECT_EQ(alias("x IN c.items"), "x");
  EXPECT_EQ(alias("x IN (SELECT VALUE c.items)"), "x");
  EXPECT_EQ(alias("c JOIN (SELECT VALUE t FROM t IN c.tags) s"), "s");
  EXPECT_EQ(alias("c JOIN a IN c.a JOIN b IN a.b"), "b");
}

TEST(Parser, SelectItemsHaveTheirAliasOrTheirLastName) {
  const auto names = [](std::string_view list) {
    const QueryPtr query = parsed("SELECT " + std::string(list) + " FROM c");
    std::string all;
    for (const auto& item : query->selection.items) all.append(item.name).append(" ");
    return all;
  };
  EXPECT_EQ(names("c, c.a, c.a.b, c[\"x y\"]"), "c a b x y ");
  EXPECT_EQ(names("1, c.a[0], c.a AS z, c.a + 1, f(c.b), @p"), "$1 $2 z $3 $4 $5 ");
  EXPECT_EQ(names("c.a 'n 1', c.b \"\", c.c AS '$1'"), "n 1  $1 ");
  EXPECT_EQ(query_refusal("SELECT c.a, d.a FROM c"),
            "12-15 SC2022 Object creation error, property name 'a' specified more than once.");
  EXPECT_EQ(query_refusal("SELECT 1, c.a AS '$1' FROM c"),
            "10-21 SC2022 Object creation error, property name '$1' specified more than once.");
  EXPECT_EQ(query_refusal("SELECT 1 WHERE EXISTS(SELECT c.a, c.b AS a)"),
            "34-42 SC2022 Object creation error, property name 'a' specified more than once.");
}

TEST(Parser, QueriesWithinExpressions) {
  const auto kind = [](std::string_view text) {
    const auto expression = Parser(text).parse_expression();
    if (!expression) return shortened(expression.error());
    const auto* subquery = std::get_if<Subquery>(&(*expression)->node);
    if (subquery == nullptr) return std::string("another expression");
    EXPECT_EQ((*expression)->span, (Span{0, static_cast<std::uint32_t>(text.size())}));
    return fmt::format("{}", static_cast<int>(subquery->kind));
  };
  EXPECT_EQ(kind("(SELECT 1)"), "0");
  EXPECT_EQ(kind("((SELECT 1))"), "0");
  EXPECT_EQ(kind("EXISTS(SELECT 1)"), "1");
  EXPECT_EQ(kind("array (select 1)"), "2");
  EXPECT_EQ(kind("ALL(SELECT 1)"), "3");
  EXPECT_EQ(kind("first(SELECT 1)"), "4");
  EXPECT_EQ(kind("Last ( SELECT 1 )"), "5");
  // Otherwise these three are names like any other.
  EXPECT_EQ(kind("ALL(c.a)"), "another expression");
  EXPECT_EQ(kind("all.first[last]"), "another expression");
  EXPECT_EQ(kind("(SELECT 1) + 1"), "another expression");
  EXPECT_EQ(kind("(SELECT 1).a"), "another expression");
  EXPECT_EQ(kind("((SELECT 1).a)"), "another expression");
  EXPECT_EQ(kind("1 IN (1, (SELECT 1))"), "another expression");
  EXPECT_EQ(kind("1 IN (SELECT 1)"), "6-12 SC1001 Syntax error, incorrect syntax near 'SELECT'.");
  EXPECT_EQ(kind("ABS(SELECT 1)"), "4-10 SC1001 Syntax error, incorrect syntax near 'SELECT'.");
  EXPECT_EQ(kind("EXISTS(1)"), "7-8 SC1001 Syntax error, incorrect syntax near '1'.");
  EXPECT_EQ(kind("EXISTS"), "0-6 SC1001 Syntax error, incorrect syntax near 'EXISTS'.");
  EXPECT_EQ(kind("ARRAY + 1"), "0-5 SC1001 Syntax error, incorrect syntax near 'ARRAY'.");
  EXPECT_EQ(kind("(SELECT 1"), "9-9 SC1002 Syntax error, unexpected end-of-file.");
  EXPECT_EQ(kind("(SELECT 1, )"), "11-12 SC1001 Syntax error, incorrect syntax near ')'.");
  EXPECT_EQ(kind("(LET x = 1 IN x)"), "5-6 SC1001 Syntax error, incorrect syntax near 'x'.");
}

TEST(Parser, OrderByRank) {
  EXPECT_TRUE(parsed("SELECT 1 FROM c ORDER BY RANK RRF(f(c.a), [1, 2])")->is_rank);
  EXPECT_EQ(parsed("SELECT 1 FROM c order by rank f(c.a) desc")->order_by[0].is_descending, true);
  // RANK alone is a name like any other.
  EXPECT_FALSE(parsed("SELECT 1 FROM rank ORDER BY rank.a, rank DESC")->is_rank);
  EXPECT_FALSE(parsed("SELECT 1 FROM c ORDER BY RANK(c.a)")->is_rank);
  EXPECT_EQ(query_refusal("SELECT 1 FROM c ORDER BY RANK c.a"),
            "31-32 SC1001 Syntax error, incorrect syntax near '.'.");
  EXPECT_EQ(query_refusal("SELECT 1 FROM c ORDER BY RANK f(1), c.a"),
            "34-35 SC1001 Syntax error, incorrect syntax near ','.");
  EXPECT_EQ(query_refusal("SELECT 1 FROM c ORDER BY RANK ALL(SELECT 1)"),
            "30-33 SC1001 Syntax error, incorrect syntax near 'ALL'.");
}

TEST(Parser, NumbersOfRows) {
  EXPECT_EQ(parsed("SELECT TOP 4294967295 1")->top->value, Parser::kRowCountMax);
  EXPECT_EQ(parsed("SELECT TOP 0x10 1")->top->value, 16u);
  EXPECT_EQ(parsed("SELECT TOP 0 -1")->top->value, 0u);
  EXPECT_EQ(query_refusal("SELECT TOP 4294967296 1"),
            "11-21 SC2060 The TOP count value exceeds the maximum allowed value.");
  EXPECT_EQ(query_refusal("SELECT TOP 1.5 1"),
            "11-14 SC2060 The TOP count value must be an integer.");
  EXPECT_EQ(query_refusal("SELECT TOP -1 1"),
            "11-12 SC1001 Syntax error, incorrect syntax near '-'.");
  EXPECT_EQ(query_refusal("SELECT TOP 'a' 1"),
            "11-14 SC1001 Syntax error, incorrect syntax near ''a''.");
  EXPECT_EQ(query_refusal("SELECT TOP"), "10-10 SC1002 Syntax error, unexpected end-of-file.");
  EXPECT_EQ(query_refusal("SELECT 1 OFFSET 0 LIMIT 4294967296"),
            "24-34 SC2061 The LIMIT count value exceeds the maximum allowed value.");
  EXPECT_EQ(query_refusal("SELECT 1 OFFSET 99999999999999999999 LIMIT 1"),
            "16-36 SC2062 The OFFSET count value exceeds the maximum allowed value.");
  EXPECT_EQ(query_refusal("SELECT 1 OFFSET 0.5 LIMIT 1"),
            "16-19 SC2062 The OFFSET count value must be an integer.");
  EXPECT_EQ(query_refusal("SELECT 1 OFFSET 1"),
            "17-17 SC1002 Syntax error, unexpected end-of-file.");
  EXPECT_EQ(query_refusal("SELECT 1 LIMIT 1"),
            "9-14 SC1001 Syntax error, incorrect syntax near 'LIMIT'.");
  EXPECT_EQ(query_refusal("SELECT 1 LIMIT 1 OFFSET 1"),
            "9-14 SC1001 Syntax error, incorrect syntax near 'LIMIT'.");
}

TEST(Parser, QueriesThatDoNotFit) {
  EXPECT_EQ(query_refusal(""), "0-0 SC1002 Syntax error, unexpected end-of-file.");
  EXPECT_EQ(query_refusal(" \n-- nothing"), "12-12 SC1002 Syntax error, unexpected end-of-file.");
  EXPECT_EQ(query_refusal("SELECT"), "6-6 SC1002 Syntax error, unexpected end-of-file.");
  EXPECT_EQ(query_refusal("SELCT * FROM c"),
            "0-5 SC1001 Syntax error, incorrect syntax near 'SELCT'.");
  EXPECT_EQ(query_refusal("SELECT FROM c"),
            "7-11 SC1001 Syntax error, incorrect syntax near 'FROM'.");
  EXPECT_EQ(query_refusal("SELECT FROM ;"),
            "7-11 SC1001 Syntax error, incorrect syntax near 'FROM'.");
  EXPECT_EQ(query_refusal("SELECT * FROM c;"), "15-16 SC1010 Syntax error, invalid token ';'.");
  EXPECT_EQ(query_refusal("SELECT * /* all */ FROM c"),
            "9-10 SC1001 Syntax error, incorrect syntax near '/'.");
  EXPECT_EQ(query_refusal("SELECT *, c.a FROM c"),
            "8-9 SC1001 Syntax error, incorrect syntax near ','.");
  EXPECT_EQ(query_refusal("SELECT * AS x FROM c"),
            "9-11 SC1001 Syntax error, incorrect syntax near 'AS'.");
  EXPECT_EQ(query_refusal("SELECT VALUE c.a, c.b FROM c"),
            "16-17 SC1001 Syntax error, incorrect syntax near ','.");
  EXPECT_EQ(query_refusal("SELECT VALUE c.a AS x FROM c"),
            "17-19 SC1001 Syntax error, incorrect syntax near 'AS'.");
  EXPECT_EQ(query_refusal("SELECT c.a AS order FROM c"),
            "14-19 SC1001 Syntax error, incorrect syntax near 'order'.");
  EXPECT_EQ(query_refusal("SELECT c.a AS FROM c"),
            "14-18 SC1001 Syntax error, incorrect syntax near 'FROM'.");
  EXPECT_EQ(query_refusal("SELECT TOP 1 DISTINCT c FROM c"),
            "13-21 SC1001 Syntax error, incorrect syntax near 'DISTINCT'.");
  EXPECT_EQ(query_refusal("SELECT * FROM"), "13-13 SC1002 Syntax error, unexpected end-of-file.");
  EXPECT_EQ(query_refusal("SELECT * FROM c, d"),
            "15-16 SC1001 Syntax error, incorrect syntax near ','.");
  EXPECT_EQ(query_refusal("SELECT * FROM 'c'"),
            "14-17 SC1001 Syntax error, incorrect syntax near ''c''.");
  EXPECT_EQ(query_refusal("SELECT * FROM c[1.5]"),
            "16-19 SC1001 Syntax error, incorrect syntax near '1.5'.");
  EXPECT_EQ(query_refusal("SELECT * FROM c[@p]"),
            "16-18 SC1001 Syntax error, incorrect syntax near '@p'.");
  EXPECT_EQ(query_refusal("SELECT * FROM c['a'"),
            "19-19 SC1002 Syntax error, unexpected end-of-file.");
  EXPECT_EQ(query_refusal("SELECT * FROM (c)"),
            "15-16 SC1001 Syntax error, incorrect syntax near 'c'.");
  EXPECT_EQ(query_refusal("SELECT * FROM x IN"),
            "18-18 SC1002 Syntax error, unexpected end-of-file.");
  EXPECT_EQ(query_refusal("SELECT * FROM x IN c.a y"),
            "23-24 SC1001 Syntax error, incorrect syntax near 'y'.");
  EXPECT_EQ(query_refusal("SELECT * FROM c LEFT JOIN t IN c.a"),
            "16-20 SC1001 Syntax error, incorrect syntax near 'LEFT'.");
  EXPECT_EQ(query_refusal("SELECT * FROM c GROUP c.a"),
            "22-23 SC1001 Syntax error, incorrect syntax near 'c'.");
  EXPECT_EQ(query_refusal("SELECT * FROM c GROUP BY c.a HAVING 1"),
            "29-35 SC1001 Syntax error, incorrect syntax near 'HAVING'.");
  EXPECT_EQ(query_refusal("SELECT * FROM c ORDER c.a"),
            "22-23 SC1001 Syntax error, incorrect syntax near 'c'.");
  EXPECT_EQ(query_refusal("SELECT * FROM c ORDER BY c.a WHERE 1"),
            "29-34 SC1001 Syntax error, incorrect syntax near 'WHERE'.");
  EXPECT_EQ(query_refusal("SELECT * FROM c WHERE ({documentdb-filter})"),
            "34-35 SC1001 Syntax error, incorrect syntax near '-'.");
  EXPECT_EQ(query_refusal("SELECT 1 SELECT 2"),
            "9-15 SC1001 Syntax error, incorrect syntax near 'SELECT'.");
  EXPECT_EQ(query_refusal("INSERT INTO c VALUES (1)"),
            "0-6 SC1001 Syntax error, incorrect syntax near 'INSERT'.");
  EXPECT_EQ(query_refusal("SELECT c.a IN (1) = 2 FROM c"),
            "18-19 SC1001 Syntax error, incorrect syntax near '='.");
  EXPECT_EQ(query_refusal("SELECT c.a LIKE 'x' IN (1) FROM c"),
            "20-22 SC1001 Syntax error, incorrect syntax near 'IN'.");
}

TEST(Parser, ReservedWordsAreNoNames) {
  for (const std::string_view word :
       {"AND",     "ARRAY", "AS",   "ASC",      "BETWEEN", "BY",        "CASE",   "CAST",
        "CONVERT", "CROSS", "DESC", "DISTINCT", "ELSE",    "END",       "ESCAPE", "EXISTS",
        "FALSE",   "FOR",   "FROM", "GROUP",    "HAVING",  "IN",        "INNER",  "INSERT",
        "INTO",    "IS",    "JOIN", "LEFT",     "LIKE",    "LIMIT",     "NOT",    "NULL",
        "OFFSET",  "ON",    "OR",   "ORDER",    "OUTER",   "OVER",      "RIGHT",  "SELECT",
        "SET",     "THEN",  "TOP",  "TRUE",     "UDF",     "UNDEFINED", "UPDATE", "VALUE",
        "WHEN",    "WHERE", "WITH"}) {
    const auto near = fmt::format("9-{} SC1001", 9 + word.size());
    EXPECT_THAT(query_refusal(fmt::format("SELECT c.{}", word)), HasSubstr(near));
    EXPECT_EQ(query_refusal(fmt::format("SELECT c['{}']", word)), "fine");
  }
  for (const std::string_view word : {"LET", "RANK", "ALL", "FIRST", "LAST", "COUNT", "c2", "_"}) {
    EXPECT_EQ(query_refusal(fmt::format("SELECT {0}.{0} AS {0} FROM {0}", word)), "fine");
  }
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
