// How trees are printed, and that what is printed says the same.
#include "query/syntax/print.h"

#include <limits>

#include <gtest/gtest.h>

#include "query/syntax/parser.h"

namespace orrery::query {
namespace {

std::string printed(std::string_view text) {
  const auto expression = Parser(text).parse_expression();
  return expression ? print(**expression) : expression.error().message();
}

std::string printed_query(std::string_view text) {
  const auto query = Parser(text).parse_query();
  return query ? print(**query) : query.error().message();
}

TEST(Print, Operands) {
  EXPECT_EQ(printed("'it\\'s \"so\"'"), R"("it's \"so\"")");
  EXPECT_EQ(printed("'\\u0001\\n\\u00e9\\ud83d\\ude00/'"), R"("\u0001\né😀/")");
  EXPECT_EQ(printed("TRUE"), "true");
  EXPECT_EQ(printed("False"), "false");
  EXPECT_EQ(printed("NULL"), "null");
  EXPECT_EQ(printed("Undefined"), "undefined");
  EXPECT_EQ(printed("NaN"), "NaN");
  EXPECT_EQ(printed("Infinity"), "Infinity");
  EXPECT_EQ(printed("@p"), "@p");
  EXPECT_EQ(printed("c"), "c");
  EXPECT_EQ(printed("c . a [ 'b c' ] [ 0 ] [ @p ]"), R"(c.a["b c"][0][@p])");
  EXPECT_EQ(printed("count(1)"), "count(1)");
  EXPECT_EQ(printed("LEFT(c.a,2)"), "LEFT(c.a, 2)");
  EXPECT_EQ(printed("PI( )"), "PI()");
  EXPECT_EQ(printed("UDF.tax(c.a)"), "udf.tax(c.a)");
  EXPECT_EQ(printed("VectorDistance(c.v,[1,2])"), "VectorDistance(c.v, [1, 2])");
  EXPECT_EQ(printed("{id:c.id,'$1':c.t+1}"), R"({"id": c.id, "$1": (c.t + 1)})");
  EXPECT_EQ(printed("[{item:c.t},{item:c.u}]"), R"([{"item": c.t}, {"item": c.u}])");
  EXPECT_EQ(printed("[{},[]]"), "[{}, []]");
}

TEST(Print, NumbersStayWhatTheyAre) {
  EXPECT_EQ(printed("0"), "0");
  EXPECT_EQ(printed("0x1F"), "31");
  EXPECT_EQ(printed("1.50"), "1.5");
  EXPECT_EQ(printed("9007199254740993"), "9007199254740993");
  // A double is not an integer, though it may be as large as one.
  EXPECT_EQ(printed("1.0"), "1.0");
  EXPECT_EQ(printed("0.0"), "0.0");
  EXPECT_EQ(printed("1e3"), "1000.0");
  EXPECT_EQ(printed("1e20"), "1e+20");
  EXPECT_EQ(printed("9007199254740993.0"), "9007199254740992.0");
  EXPECT_EQ(printed("1e999"), "Infinity");
  EXPECT_EQ(printed("0.1"), "0.1");
  EXPECT_EQ(printed("1.7976931348623157e308"), "1.7976931348623157e+308");
  EXPECT_EQ(printed("18446744073709551615"), "1.8446744073709552e+19");
  EXPECT_EQ(printed("-1"), "(-1)");
  EXPECT_EQ(printed("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(printed("-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(printed("- -9223372036854775808"), "(-(-9223372036854775808))");
  EXPECT_EQ(printed("(-9223372036854775808).a"), "(-9223372036854775808).a");
  EXPECT_EQ(printed("-(9223372036854775808)"), "(-9.223372036854776e+18)");
}

TEST(Print, NumbersThatBindOrAPlanHasMade) {
  const auto of = [](double value) {
    return print(Expression{.span = {}, .node = Literal{json::Value::number(value)}});
  };
  EXPECT_EQ(of(-1.5), "-1.5");
  EXPECT_EQ(of(-std::numeric_limits<double>::infinity()), "-Infinity");
}

TEST(Print, EveryOperatorHasItsParentheses) {
  EXPECT_EQ(printed("c.t+1"), "(c.t + 1)");
  EXPECT_EQ(printed("NOT c.a"), "(NOT c.a)");
  EXPECT_EQ(printed("- + ~ c.a"), "(-(+(~c.a)))");
  EXPECT_EQ(printed("1*2/3%4"), "(((1 * 2) / 3) % 4)");
  EXPECT_EQ(printed("1+2-3&4|5^6"), "(((((1 + 2) - 3) & 4) | 5) ^ 6)");
  EXPECT_EQ(printed("'a'||'b'||'c'"), R"((("a" || "b") || "c"))");
  EXPECT_EQ(printed("1=2!=3<>4<5<=6>7>=8"), "(((((((1 = 2) != 3) != 4) < 5) <= 6) > 7) >= 8)");
  EXPECT_EQ(printed("1<<2>>3>>>4"), "(((1 << 2) >> 3) >>> 4)");
  EXPECT_EQ(printed("c.k='a' AND c.x AND c.y"), R"((((c.k = "a") AND c.x) AND c.y))");
  EXPECT_EQ(printed("a OR b OR c"), "((a OR b) OR c)");
  EXPECT_EQ(printed("a ?? b ?? c"), "(a ?? (b ?? c))");
  EXPECT_EQ(printed("a ? b : c"), "(a ? b : c)");
  EXPECT_EQ(printed("a ? b : c ? d : e"), "(a ? b : (c ? d : e))");
  EXPECT_EQ(printed("a IN (1,2)"), "(a IN (1, 2))");
  EXPECT_EQ(printed("a NOT IN (1)"), "(a NOT IN (1))");
  EXPECT_EQ(printed("a BETWEEN 1 AND 2"), "(a BETWEEN 1 AND 2)");
  EXPECT_EQ(printed("a NOT BETWEEN 1 AND 2"), "(a NOT BETWEEN 1 AND 2)");
  EXPECT_EQ(printed("a LIKE 'x%'"), R"((a LIKE "x%"))");
  EXPECT_EQ(printed("a NOT LIKE 'x' ESCAPE '\"'"), R"((a NOT LIKE "x" ESCAPE "\""))");
}

TEST(Print, OperatorsBindFromTightToLoose) {
  EXPECT_EQ(printed("NOT a = b"), "((NOT a) = b)");
  EXPECT_EQ(printed("NOT c.x IN (1)"), "((NOT c.x) IN (1))");
  EXPECT_EQ(printed("-c.a.b"), "(-c.a.b)");
  EXPECT_EQ(printed("-2 * 3"), "((-2) * 3)");
  EXPECT_EQ(printed("1 | 2 + 3"), "((1 | 2) + 3)");
  EXPECT_EQ(printed("1 + 2 * 3"), "(1 + (2 * 3))");
  EXPECT_EQ(printed("'a' || 1 + 2"), R"(("a" || (1 + 2)))");
  EXPECT_EQ(printed("a = b || c"), "(a = (b || c))");
  EXPECT_EQ(printed("a = b = c"), "((a = b) = c)");
  EXPECT_EQ(printed("1 << 2 + 3 = 4"), "((1 << (2 + 3)) = 4)");
  EXPECT_EQ(printed("a = 1 IN (true)"), "((a = 1) IN (true))");
  EXPECT_EQ(printed("a IN (1) AND b"), "((a IN (1)) AND b)");
  EXPECT_EQ(printed("c.x BETWEEN 1 AND 2 AND c.y = 3"), "((c.x BETWEEN 1 AND 2) AND (c.y = 3))");
  EXPECT_EQ(printed("c.x BETWEEN 1 + 1 AND 2 = 2"), "(c.x BETWEEN (1 + 1) AND (2 = 2))");
  EXPECT_EQ(printed("a OR b AND c OR d"), "((a OR (b AND c)) OR d)");
  EXPECT_EQ(printed("1 + 2 ?? 3"), "((1 + 2) ?? 3)");
  EXPECT_EQ(printed("a OR b ?? c OR d"), "((a OR b) ?? (c OR d))");
  EXPECT_EQ(printed("1 ? 2 ?? 3 : 4"), "(1 ? (2 ?? 3) : 4)");
  EXPECT_EQ(printed("a ?? b ? c : d ?? e"), "((a ?? b) ? c : (d ?? e))");
  EXPECT_EQ(printed("a ? b ? c : d : e"), "(a ? (b ? c : d) : e)");
  EXPECT_EQ(printed("'a' LIKE 'a' || 'b' AND c"), R"((("a" LIKE ("a" || "b")) AND c))");
}

TEST(Print, ParenthesesThatChangeNothingAreNotRemembered) {
  EXPECT_EQ(printed("((((c)))).a"), "c.a");
  EXPECT_EQ(printed("(c.a).b[(0)]"), "c.a.b[0]");
  EXPECT_EQ(printed("((a AND b) AND c) AND (d AND e)"), "(((a AND b) AND c) AND (d AND e))");
  EXPECT_EQ(printed("(a + b) - c"), printed("a + b - c"));
  EXPECT_EQ(printed("a - (b + c)"), "(a - (b + c))");
  EXPECT_EQ(printed("(a + b) * c"), "((a + b) * c)");
  EXPECT_EQ(printed("(a ?? b) ?? c"), "((a ?? b) ?? c)");
  EXPECT_EQ(printed("a ?? (b ?? c)"), printed("a ?? b ?? c"));
  EXPECT_EQ(printed("(a ? b : c) ? d : e"), "((a ? b : c) ? d : e)");
  EXPECT_EQ(printed("((SELECT 1)) = ((1))"), "((SELECT 1) = 1)");
}

TEST(Print, Queries) {
  EXPECT_EQ(printed_query("select * from c"), "SELECT *\nFROM c");
  EXPECT_EQ(printed_query("SELECT VALUE AVG(c.mag) FROM c WHERE c.kind = \"star\""),
            "SELECT VALUE AVG(c.mag)\nFROM c\nWHERE (c.kind = \"star\")");
  EXPECT_EQ(printed_query("SELECT c.id, c.t + 1 FROM c WHERE c.k = 'a' ORDER BY c.t DESC, c.u"),
            "SELECT c.id, (c.t + 1)\nFROM c\nWHERE (c.k = \"a\")\nORDER BY c.t DESC, c.u");
  EXPECT_EQ(printed_query("SELECT DISTINCT TOP 5 VALUE c.a FROM c ORDER BY c.a ASC"),
            "SELECT DISTINCT TOP 5 VALUE c.a\nFROM c\nORDER BY c.a ASC");
  EXPECT_EQ(printed_query("SELECT TOP @n c FROM root c JOIN x IN c.items JOIN (SELECT 1) y"),
            "SELECT TOP @n c\nFROM root AS c\nJOIN x IN c.items\nJOIN (SELECT 1) AS y");
  EXPECT_EQ(printed_query("SELECT c.cls, COUNT(1) n FROM c GROUP BY c.cls, c.x OFFSET 0 LIMIT @l"),
            "SELECT c.cls, COUNT(1) AS n\nFROM c\nGROUP BY c.cls, c.x\nOFFSET 0 LIMIT @l");
  EXPECT_EQ(printed_query("SELECT 1 WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 1)"),
            "SELECT 1\nWHERE EXISTS(SELECT VALUE t\nFROM t IN c.tags\nWHERE (t = 1))");
  EXPECT_EQ(printed_query("SELECT ARRAY(SELECT 1), all(SELECT 2), First(SELECT 3), LAST(SELECT 4)"),
            "SELECT ARRAY(SELECT 1), ALL(SELECT 2), FIRST(SELECT 3), LAST(SELECT 4)");
  EXPECT_EQ(printed_query("SELECT 1 FROM c ORDER BY rank RRF(FullTextScore(c.t, 'sun'), [2, 1])"),
            "SELECT 1\nFROM c\nORDER BY RANK RRF(FullTextScore(c.t, \"sun\"), [2, 1])");
  EXPECT_EQ(printed_query("SELECT * FROM c.home['the street'][0]"),
            "SELECT *\nFROM c.home[\"the street\"][0]");
  // Texts of plans.
  for (const std::string_view text : {
           "SELECT VALUE [{\"item\": COUNT(1)}]\nFROM c",
           "SELECT c._rid, [{\"item\": c.t}, {\"item\": c.u}] AS orderByItems, {\"id\": c.id, "
           "\"$1\": (c.t + 1)} AS payload\nFROM c\nWHERE ((c.k = \"a\") AND true)\nORDER BY c.t "
           "DESC, c.u",
           "SELECT [{\"item\": c.cls}] AS groupByItems, {\"cls\": c.cls, \"n\": {\"item\": "
           "COUNT(1)}, \"m\": {\"item\": {\"sum\": SUM(c.mag), \"count\": COUNT(c.mag)}}} AS "
           "payload\nFROM c\nGROUP BY c.cls",
           "SELECT DISTINCT VALUE c.cls\nFROM c",
           "SELECT COUNT(1) AS documentCount, [{\"totalWordCount\": SUM(_FullTextWordCount(c.t)), "
           "\"hitCounts\": [COUNTIF(FullTextContains(c.t, \"sun\"))]}] AS fullTextStatistics\n"
           "FROM c",
       }) {
    EXPECT_EQ(printed_query(text), text);
  }
}

TEST(Print, NamesOfSelectItems) {
  const auto list = [](std::string_view text) {
    const auto selection = Parser(text).parse_selection();
    return selection ? print_selection(*selection) : selection.error().message();
  };
  EXPECT_EQ(list("c.a, c.a.b, c['x y'], c.a + 1, 2"), "c.a, c.a.b, c[\"x y\"], (c.a + 1), 2");
  EXPECT_EQ(list("c.a AS a, c.b x"), "c.a AS a, c.b AS x");
  EXPECT_EQ(list("c.a 'x', c.b AS 'x y', c.c AS 'order', c.d ''"),
            "c.a AS x, c.b AS \"x y\", c.c AS \"order\", c.d AS \"\"");
  EXPECT_EQ(list("c.a AS '$2', 1"), "c.a AS \"$2\", 1");
  EXPECT_EQ(list("*"), "*");
  EXPECT_EQ(list("VALUE 1"), "VALUE 1");
}

/// A list that nobody parsed keeps its names too.
TEST(Print, SelectItemsOfATreeThatWasBuilt) {
  const auto item = [](std::string name, Expression::Node node) {
    return Selection::Item{.expression = std::make_unique<Expression>(Span(), std::move(node)),
                           .name = std::move(name),
                           .span = {}};
  };
  Selection selection;
  selection.items.push_back(item("payload", Name{"c"}));
  selection.items.push_back(item("c", Name{"c"}));
  selection.items.push_back(item("$1", Literal{json::Value::number(std::int64_t{1})}));
  selection.items.push_back(item("two", Literal{json::Value::number(std::int64_t{2})}));
  EXPECT_EQ(print_selection(selection), "c AS payload, c, 1, 2 AS two");

  Query query;
  query.selection = std::move(selection);
  query.top = RowCount{.span = {}, .written = nullptr, .value = 120};
  EXPECT_EQ(print(query), "SELECT TOP 120 c AS payload, c, 1, 2 AS two");
  EXPECT_EQ(print_from(query), "");
}

TEST(Print, SourcesAlone) {
  const auto query = Parser("SELECT 1 FROM c x JOIN t IN x.tags WHERE true").parse_query();
  ASSERT_TRUE(query.has_value());
  EXPECT_EQ(print_from(**query), "FROM c AS x\nJOIN t IN x.tags");
}

/// Whatever was printed can be parsed, and is printed the same again.
void expect_round_trip(std::string_view text) {
  const auto query = Parser(text).parse_query();
  ASSERT_TRUE(query.has_value()) << text << ": " << query.error().message();
  const std::string once = print(**query);
  const auto again = Parser(once).parse_query();
  ASSERT_TRUE(again.has_value()) << once << ": " << again.error().message();
  EXPECT_EQ(print(**again), once) << text;
}

TEST(Print, WhatIsPrintedSaysTheSame) {
  for (const std::string_view text : {
           "SELECT c.name, c.moons FROM c WHERE c.id = \"1\"",
           "SELECT VALUE c.a.b[0]['x'].y FROM c",
           "SELECT VALUE {a: 1, 'b c': [1, undefined, null], \"d\": {e: {}}}",
           "SELECT c AS x, c.id 'the id', 1 + 1, -1, NOT true FROM c",
           "SELECT DISTINCT TOP 3 VALUE t FROM c JOIN t IN c.tags WHERE t != 'x' ORDER BY c.id",
           "SELECT p.name, m FROM root p JOIN m IN p.moons JOIN n IN p.notes[0].list",
           "SELECT * FROM c.home",
           "SELECT VALUE x FROM x IN c.items WHERE x.n BETWEEN 1 AND 2 AND NOT x.m",
           "SELECT VALUE s.n FROM (SELECT COUNT(1) AS n FROM c GROUP BY c.k) AS s",
           "SELECT VALUE s FROM c JOIN (SELECT VALUE t FROM t IN c.tags WHERE t > 1) s",
           "SELECT c.id, (SELECT VALUE COUNT(1) FROM t IN c.tags) AS n FROM c",
           "SELECT VALUE EXISTS(SELECT 1) AND ARRAY(SELECT VALUE 1)[0] = 1",
           "SELECT VALUE ALL(SELECT VALUE true) ? FIRST(SELECT 1).a : LAST(SELECT 2)['b']",
           "SELECT c.k, SUM(c.n) FROM c GROUP BY c.k ORDER BY c.k DESC OFFSET 1 LIMIT 2",
           "SELECT TOP @n * FROM c ORDER BY c.a ASC, c.b DESC, c.c OFFSET @o LIMIT @l",
           "SELECT c.id FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'a'), f(c.v, [-1.5]), [2, 1])",
           "SELECT c.id FROM c ORDER BY VectorDistance(c.v, [0.1, 2e-3]) ",
           "SELECT VALUE 1 - -1 - - - 1 + (+1)",
           "SELECT VALUE ~1 << 2 >> 3 >>> 4 & 5 | 6 ^ 7",
           "SELECT VALUE 'a' || \"b\" || 'c\\\\\\'\\n\\u0000'",
           "SELECT VALUE c.a LIKE '%x!%%' ESCAPE '!' OR c.b NOT LIKE @p FROM c",
           "SELECT VALUE c.a IN (1, 'x', null, [1], {a: 1}) AND c.b NOT IN (@p, @q) FROM c",
           "SELECT VALUE a ? b : c ? d : (e ? f : g) ?? h ?? (i ?? j)",
           "SELECT VALUE udf.f(udf.g(), LEFT('a', 1), RIGHT('b', 2))",
           "SELECT VALUE NaN = Infinity OR -Infinity < 0x7fffffffffffffff",
           "SELECT VALUE 1.0 + 1e5 + 1.5e-7 + 18446744073709551615 + 9223372036854775808",
           "SELECT VALUE -9223372036854775808 - -9223372036854775808",
           "SELECT VALUE größe.straße FROM größe",
           "SELECT VALUE c[c.key][@p][1 + 1] FROM c -- and a comment",
           "SELECT rank.all, first.last FROM rank JOIN first IN rank.let ORDER BY rank",
       }) {
    expect_round_trip(text);
  }
}

TEST(Print, HoweverLongOrNestedATextIsItsPrintIsFine) {
  const auto nested = [](std::size_t times, std::string_view open, std::string_view close) {
    std::string text = "1";
    for (std::size_t i = 0; i < times; ++i) text = std::string(open) + text + std::string(close);
    return "SELECT VALUE " + text;
  };
  for (const std::string_view next :
       {" + 1", " OR 1", " AND 1", " = 1", " ?? 1", " ? 2 : 1", ".a", " || 1 * 2"}) {
    expect_round_trip(nested(1'000, "", next));
  }
  const std::size_t most = Parser::kNestingMax - 1;
  for (const auto& [open, close] :
       {std::pair("- ", ""), std::pair("NOT ", ""), std::pair("[", "]"), std::pair("1 ? ", " : 2"),
        std::pair("1 IN (", ")"), std::pair("(SELECT VALUE ", ")"), std::pair("f(", ")"),
        std::pair("(2 BETWEEN ", " AND 3)")}) {
    expect_round_trip(nested(most, open, close));
  }
  // Both at once: at every level a row of what nests to its right.
  std::string coalesces;
  std::string conditionals;
  for (int i = 0; i < 20; ++i) {
    coalesces += "a ?? ";
    conditionals += "a ? b : ";
  }
  expect_round_trip(nested(most / 2, coalesces + "[", "]"));
  expect_round_trip(nested(most / 2, conditionals + "[", "]"));
}

}  // namespace
}  // namespace orrery::query
