#include "query/functions/functions.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "query/bind/bind.h"
#include "query/eval/evaluate.h"
#include "query/eval/test_evaluate.h"
#include "query/syntax/parser.h"

namespace orrery::query {
namespace {

using json::Value;

constexpr std::string_view kFunctionsDocument = R"({
  "b": false, "n": 1.5, "i": 7, "s": "x", "z": null, "a": [1, {"k": 1, "l": 2}, "two"], "o": {"p": 1, "q": "z"},
  "name": "\u00d6rr\u00ebry", "spaced": [ 1 , { "a" : 1.50 } ]})";

std::string evaluated(std::string_view text) { return query::evaluated(text, kFunctionsDocument); }

using Case = EvaluationCase;

void expect_value(std::initializer_list<Case> cases) { expect_values(cases, kFunctionsDocument); }

TEST(Functions, TypeChecksAreTrueOrFalse) {
  struct Check {
    std::string_view name;
    std::string_view true_of;  ///< of c.b, c.n, c.i, c.s, c.z, c.a, c.o, c.missing
  };
  const std::string_view operands[] = {"c.b", "c.n", "c.i", "c.s",
                                       "c.z", "c.a", "c.o", "c.missing"};
  for (const auto& [name, true_of] :
       {Check{"IS_BOOL", "c.b"}, Check{"IS_BOOLEAN", "c.b"}, Check{"IS_NUMBER", "c.n c.i"},
        Check{"IS_FINITE_NUMBER", "c.n c.i"}, Check{"IS_INTEGER", "c.i"}, Check{"IS_STRING", "c.s"},
        Check{"IS_NULL", "c.z"}, Check{"IS_ARRAY", "c.a"}, Check{"IS_OBJECT", "c.o"},
        Check{"IS_PRIMITIVE", "c.b c.n c.i c.s c.z"}, Check{"IS_DATETIME", ""},
        Check{"IS_DEFINED", "c.b c.n c.i c.s c.z c.a c.o"}}) {
    for (const std::string_view operand : operands) {
      const std::string text = std::string(name) + "(" + std::string(operand) + ")";
      EXPECT_EQ(evaluated(text), true_of.contains(operand) ? "true" : "false") << text;
    }
  }
  expect_value({{"IS_INTEGER(9223372036854775807)", "true"},
                {"IS_INTEGER(18446744073709551615)", "false"},
                {"IS_INTEGER(2.0)", "true"},
                {"IS_INTEGER(1e300)", "false"},
                {"IS_FINITE_NUMBER(1 / 0)", "false"},
                {"IS_FINITE_NUMBER(SQRT(-1))", "false"},
                {"IS_NUMBER(SQRT(-1))", "true"},
                {"is_defined(undefined)", "false"}});
}

TEST(Functions, DateTimesAreToldFromOtherStrings) {
  for (const auto* text : {"2031-02-03", "2031-02-03Z", "2031-02-03T04:05:06",
                           "2031-02-03 04:05:06", "2031-02-03T04:05:06Z", "2031-02-03T04:05:06.1Z",
                           "2031-02-03T04:05:06.1234567Z", "2024-02-29"}) {
    EXPECT_EQ(evaluated("IS_DATETIME('" + std::string(text) + "')"), "true") << text;
  }
  for (const auto* text :
       {"", "2031", "2031-02-03T04Z", "2031-02-03 04:05:06.", "2031-02-03T04:05:06.12345678Z",
        "2031-02-29", "2031-13-01", "2031-00-01", "2031-02-03T24:00:00Z", "2031-02-03T04:60:00",
        "2031-02-03  04:05:06", "2031-02-03ZZ", "31-02-03", "2031-02-03T", "text"}) {
    EXPECT_EQ(evaluated("IS_DATETIME('" + std::string(text) + "')"), "false") << text;
  }
}

TEST(Functions, LookingIntoStrings) {
  expect_value({{"CONTAINS('Orrery', 'rer')", "true"},
                {"CONTAINS('Orrery', 'RER')", "false"},
                {"CONTAINS('Orrery', 'RER', true)", "true"},
                {"CONTAINS('Orrery', 'RER', false)", "false"},
                {"CONTAINS('Orrery', '')", "true"},
                {"CONTAINS('', '')", "true"},
                {"STARTSWITH('Orrery', 'Orr')", "true"},
                {"STARTSWITH('Orrery', 'orr')", "false"},
                {"STARTSWITH('Orrery', 'orr', true)", "true"},
                {"STARTSWITH(c.name, 'öRR', true)", "true"},
                {"ENDSWITH('Orrery', 'ry')", "true"},
                {"ENDSWITH('Orrery', 'RY', true)", "true"},
                {"ENDSWITH(c.name, 'ËRY', true)", "true"},
                {"ENDSWITH('Orrery', 'or')", "false"},
                {"STRINGEQUALS('Io', 'IO')", "false"},
                {"StringEquals('Io', 'IO', true)", "true"},
                {"CONTAINS(42, '4')", "-"},
                {"CONTAINS('4', 4)", "-"},
                {"CONTAINS('a', 'a', 1)", "-"},
                {"CONTAINS('a', 'a', undefined)", "-"},
                {"CONTAINS(c.missing, 'a')", "-"},
                {"CONTAINS_ALL_CI('Ring of Saturn', 'RING', 'saturn')", "true"},
                {"CONTAINS_ALL_CI('Ring of Saturn', 'ring', 'mars')", "false"},
                {"ContainsAllCI('Ring of Saturn', undefined, 'ring')", "-"},
                {"CONTAINS_ALL_CS('Ring of Saturn', 'Ring', 'mars', undefined)", "false"},
                {"CONTAINS_ANY_CI('Ring of Saturn', 'mars', 'SATURN')", "true"},
                {"CONTAINS_ANY_CS('Ring of Saturn', 'mars', 'SATURN')", "false"},
                {"CONTAINS_ANY_CI('Ring of Saturn', undefined, 'ring')", "true"},
                {"INDEX_OF('banana', 'an')", "1"},
                {"IndexOf('banana', 'an', 2)", "3"},
                {"INDEX_OF('banana', 'x')", "-1"},
                {"INDEX_OF('banana', 'a', 99)", "-1"},
                {"INDEX_OF('é😀x', 'x')", "3"},
                {"LASTINDEXOF('xyzwxyz', 'xyz')", "4"},
                {"LASTINDEXOF('xyzwxyz', 'xyz', 5)", "0"},
                {"LASTINDEXOF('xyzwxyz', 'xyz', 6)", "4"},
                {"LASTINDEXOF('abcdeabc', 'abc', 1)", "-1"},
                {"LASTINDEXOF('xyz', 'q')", "-1"}});
}

TEST(Functions, PartsOfStrings) {
  expect_value({{"LEFT('Orrery', 3)", "\"Orr\""},
                {"RIGHT('Orrery', 2)", "\"ry\""},
                {"LEFT('Orrery', 0)", "\"\""},
                {"LEFT('Orrery', -1)", "\"\""},
                {"left('Orrery', 50)", "\"Orrery\""},
                {"RIGHT('Orrery', 50)", "\"Orrery\""},
                {"RIGHT(c.name, 3)", "\"ëry\""},
                {"LEFT('x', 0.5)", "-"},
                {"LEFT(1, 1)", "-"},
                {"SUBSTRING('Orrery', 1, 3)", "\"rre\""},
                {"SUBSTRING('Orrery', 0, 100)", "\"Orrery\""},
                {"SUBSTRING('Orrery', 0, -1)", "\"\""},
                {"SUBSTRING('Orrery', 2, 0)", "\"\""},
                {"SUBSTRING('Orrery', -1, 2)", "\"\""},
                {"SUBSTRING('Orrery', 9, 2)", "\"\""},
                {"SUBSTRING('é😀x', 3, 1)", "\"x\""},
                {"SUBSTRINGBEFORE('p/q/r', '/')", "\"p\""},
                {"SUBSTRINGAFTER('p/q/r', '/')", "\"q/r\""},
                {"LASTSUBSTRINGBEFORE('p/q/r', '/')", "\"p/q\""},
                {"LASTSUBSTRINGAFTER('p/q/r', '/')", "\"r\""},
                {"SUBSTRINGBEFORE('p', '/')", "-"},
                {"TRIM('  x ')", "\"x\""},
                {"LTRIM('  x ')", "\"x \""},
                {"RTRIM('  x ')", "\"  x\""},
                {"TRIM('--x--', '-')", "\"x\""},
                {"LTRIM('abcabX', 'cba')", "\"X\""},
                {"TRIM('éxé', 'é')", "\"x\""},
                {"TRIM(' x', '')", "\" x\""},
                {"TRIM('x', 1)", "-"}});
}

TEST(Functions, MakingStrings) {
  expect_value({{"CONCAT('or', 're', 'ry')", "\"orrery\""},
                {"CONCAT('a', 1)", "-"},
                {"LENGTH('Orrery')", "6"},
                {"LENGTH('')", "0"},
                {"LENGTH('é😀')", "3"},
                {"LENGTH(5)", "-"},
                {"LENGTH([1])", "-"},
                {"LOWER('Io And GÖ')", "\"io and gö\""},
                {"UPPER('Io and gö ß ı')", "\"IO AND GÖ ß ı\""},
                {"REVERSE('aé😀')", "\"😀éa\""},
                {"REPLACE('moonmoon', 'oo', '0')", "\"m0nm0n\""},
                {"REPLACE('x', 'y', 'z')", "\"x\""},
                {"REPLACE('x', '', 'z')", "\"x\""},
                {"REPLICATE('ab', 3)", "\"ababab\""},
                {"REPLICATE('ab', 2.9)", "\"abab\""},
                {"REPLICATE('ab', -1)", "-"},
                {"REPLICATE('ab', 5001)", "-"},
                {"LENGTH(REPLICATE('ab', 5000))", "10000"},
                {"REPLICATE('', 1e18)", "\"\""},
                {"REPLICATE('a', 1 / 0)", "-"},
                {"StringJoin(['a', 'b', 'c'], '-')", "\"a-b-c\""},
                {"StringJoin(['a', 1], '-')", "-"},
                {"StringJoin([], '-')", "\"\""},
                {"StringSplit('a-b-c', '-')", R"(["a","b","c"])"},
                {"StringSplit('abc', '')", R"(["abc"])"},
                {"StringSplit('', '')", R"([""])"},
                {"StringSplit('-a-', '-')", R"(["","a",""])"}});
}

TEST(Functions, FromAndToJson) {
  expect_value({{"StringToNumber(' 12.5 ')", "12.5"},
                {"StringToNumber('abc')", "-"},
                {"StringToNumber(5)", "-"},
                {"StringToBoolean(' true ')", "true"},
                {"StringToBoolean('TRUE')", "-"},
                {"StringToNull('null')", "null"},
                {"StringToNull('Null')", "-"},
                {"StringToArray('[1, \"x\", null]')", R"([1, "x", null])"},
                {"StringToArray('[\\'x\\']')", "-"},
                {"StringToObject('{\"a\": [1]}').a[0]", "1"},
                {"StringToObject('[1]')", "-"},
                {"ToString(125)", "\"125\""},
                {"ToString(0.25)", "\"0.25\""},
                {"ToString(true)", "\"true\""},
                {"ToString(null)", "\"null\""},
                {"ToString('s')", "\"s\""},
                {"ToString([1, 2])", "\"[1,2]\""},
                {"ToString({k: 'v'})", R"("{\"k\":\"v\"}")"},
                {"ToString(c.spaced)", R"("[1,{\"a\":1.5}]")"},
                {"ToString(0 / 0)", "\"NaN\""},
                {"ToString(-1 / 0)", "\"-Infinity\""},
                {"ToString(undefined)", "-"}});
}

TEST(Functions, Mathematics) {
  expect_value({{"ABS(-3.5)", "3.5"},
                {"ABS(-3)", "3"},
                {"ABS(-9223372036854775808)", "9.223372036854776e+18"},
                {"CEILING(-1.5)", "-1"},
                {"FLOOR(-1.5)", "-2"},
                {"TRUNC(-1.5)", "-1"},
                {"FLOOR(9007199254740993)", "9007199254740993"},
                {"SIGN(-9)", "-1"},
                {"SIGN(0)", "0"},
                {"SIGN(0.1)", "1"},
                {"SQUARE(12)", "144"},
                {"SQRT(81)", "9"},
                {"POWER(2, 10)", "1024"},
                {"ROUND(7.4)", "7"},
                {"ROUND(7.6)", "8"},
                {"ROUND(2.5)", "3"},
                {"ROUND(-2.5)", "-3"},
                {"ROUND(1.2345, 2)", "1.23"},
                {"ROUND(1250, -2)", "1300"},
                {"ROUND(5, 2)", "5"},
                {"ROUND(1.5, 400)", "1.5"},
                {"ROUND(5.1, 300)", "5.1"},
                {"ROUND(1e300, 400)", "1e+300"},
                {"ROUND(1e300, -400)", "0"},
                {"ROUND(1e300, -300)", "1e+300"},
                {"ROUND(-1.5, -9223372036854775808)", "0"},
                {"ROUND(1.5, 9223372036854775807)", "1.5"},
                {"ROUND(7, -400)", "0"},
                {"ROUND(9007199254740993, -1)", "9007199254740990"},
                {"ROUND(-9007199254740995, -1)", "-9007199254741000"},
                {"ROUND(9223372036854775807, -18)", "9000000000000000000"},
                {"ROUND(9223372036854775807, -1)", "9.223372036854776e+18"},
                {"ROUND(-9223372036854775808, -19)", "-1e+19"},
                {"ROUND(4999999999999999999, -19)", "1e+19"},
                {"ROUND(1 / 0, -2) > 1e308", "true"},
                {"SIN(0)", "0"},
                {"COS(0)", "1"},
                {"TAN(0)", "0"},
                {"ASIN(0)", "0"},
                {"ACOS(1)", "0"},
                {"ATAN(0)", "0"},
                {"ATN2(0, 1)", "0"},
                {"EXP(0)", "1"},
                {"LOG(1)", "0"},
                {"LOG(8, 2)", "3"},
                {"LOG10(100)", "2"},
                {"DEGREES(PI())", "180"},
                {"RADIANS(0)", "0"},
                {"PI()", "3.141592653589793"},
                {"COT(PI() / 4) > 0.99", "true"},
                {"NumberBin(37.752, 10)", "30"},
                {"NumberBin(37.752)", "37"},
                {"NumberBin(37.752, 0.1)", "37.7"},
                {"NumberBin(37.752, -100)", "100"},
                {"NumberBin(37.752, 0)", "-"},
                {"NumberBin(9007199254740993)", "9007199254740993"},
                {"NumberBin(9007199254740993, 10)", "9007199254740990"},
                {"NumberBin(9007199254740993, 10.0)", "9007199254740990"},
                {"NumberBin(-9007199254740993, 10)", "-9007199254741000"},
                {"NumberBin(9007199254740993, -10)", "9007199254741000"},
                {"NumberBin(-9007199254740993, -10)", "-9007199254740990"},
                {"NumberBin(-9223372036854775808, -1)", "-9223372036854775808"},
                {"NumberBin(-9223372036854775808, 10)", "-9.223372036854776e+18"},
                {"NumberBin(9007199254740993, 0)", "-"},
                {"NumberBin(7, 0.5)", "7"},
                {"NumberBin(7, 2.5)", "5"},
                {"ABS('1')", "-"},
                {"FLOOR(null)", "-"},
                {"POWER(null, 2)", "-"},
                {"SQUARE(true)", "-"},
                {"ROUND(1, 'x')", "-"},
                {"LOG(1, 'x')", "-"},
                {"ACOS(2) = ACOS(2)", "false"}});
}

TEST(Functions, RandomNumbersAreFromZeroToBelowOneAndNotTheSame) {
  ASSERT_NE(find_function("RAND"), nullptr);
  EXPECT_EQ(find_function("RAND")->kind, Function::Kind::PerRow);
  double smallest = 1;
  double largest = 0;
  for (int i = 0; i < 1000; ++i) {
    const double number = std::stod(evaluated("RAND()"));
    ASSERT_GE(number, 0);
    ASSERT_LT(number, 1);
    smallest = std::min(smallest, number);
    largest = std::max(largest, number);
  }
  // Were they not spread out, this would fail once in 10^45 runs.
  EXPECT_LT(smallest, 0.1);
  EXPECT_GT(largest, 0.9);
}

TEST(Functions, IntegersWrapAround) {
  expect_value({{"IntAdd(7, 5)", "12"},
                {"IntAdd(9223372036854775807, 1)", "-9223372036854775808"},
                {"IntSub(7, 5)", "2"},
                {"IntMul(7, 5)", "35"},
                {"IntDiv(14, 7)", "2"},
                {"IntDiv(-7, 2)", "-3"},
                {"IntDiv(1, 0)", "-"},
                {"IntDiv(-9223372036854775808, -1)", "-9223372036854775808"},
                {"IntMod(-12, 5)", "-2"},
                {"IntMod(1, 0)", "-"},
                {"IntMod(-9223372036854775808, -1)", "0"},
                {"IntAdd(1, 0.5)", "-"},
                {"IntBitAnd(12, 10)", "8"},
                {"IntBitwiseOr(12, 10)", "14"},
                {"IntBitXor(12, 10)", "6"},
                {"IntBitNot(0)", "-1"},
                {"IntBitLeftShift(3, 4)", "48"},
                {"IntBitRightShift(48, 4)", "3"},
                {"IntBitRightShift(-1, 63)", "-1"},
                {"IntBitAnd(12, 'x')", "-"}});
}

TEST(Functions, Arrays) {
  expect_value({{"ARRAY_CONTAINS(['io', 'europa'], 'io')", "true"},
                {"ARRAY_CONTAINS([1, 2], 3)", "false"},
                {"ARRAY_CONTAINS(c.a, 'two')", "true"},
                {"ARRAY_CONTAINS(c.a, {k: 1})", "false"},
                {"ARRAY_CONTAINS(c.a, {k: 1}, true)", "true"},
                {"ARRAY_CONTAINS(c.a, {k: 1}, undefined)", "false"},
                {"ARRAY_CONTAINS(c.a, {l: 2, k: 1})", "true"},
                {"ARRAY_CONTAINS(c.a, {k: 9}, true)", "false"},
                {"ARRAY_CONTAINS(c.a, 1, true)", "true"},
                {"ARRAY_CONTAINS(c.a, 1, 'x')", "-"},
                {"ARRAY_CONTAINS(c.o, 1)", "-"},
                {"ARRAY_CONTAINS(c.missing, 1)", "-"},
                {"ARRAY_CONTAINS(c.a, c.missing)", "-"},
                {"ARRAY_CONTAINS_ANY([1, 2], 2, 7)", "true"},
                {"ARRAY_CONTAINS_ANY([1, 2], 8, 9)", "false"},
                {"ARRAY_CONTAINS_ANY([1, 2], undefined, 1)", "true"},
                {"ARRAY_CONTAINS_ANY([1, 2], 9, undefined)", "-"},
                {"ARRAY_CONTAINS_ALL([1, 2, 3], 3, 1)", "true"},
                {"ARRAY_CONTAINS_ALL([1, 2], 2, 7)", "false"},
                {"ARRAY_CONTAINS_ALL([1, 2], 1, undefined)", "-"},
                {"ARRAY_CONTAINS_ALL([1, 2], undefined, 9)", "false"},
                {"ARRAY_LENGTH(c.a)", "3"},
                {"ARRAY_LENGTH([])", "0"},
                {"ARRAY_LENGTH(null)", "-"},
                {"ARRAY_CONCAT([1], ['a', null], [])", "[1,\"a\",null]"},
                {"ARRAY_CONCAT(c.a, [c.s || '!'])[3]", "\"x!\""},
                {"ARRAY_CONCAT([1], 2)", "-"},
                {"ARRAY_SLICE([1, 2, 3, 4], 1)", "[2,3,4]"},
                {"ARRAY_SLICE([1, 2, 3, 4], 1, 2)", "[2,3]"},
                {"ARRAY_SLICE([1, 2, 3, 4], -2)", "[3,4]"},
                {"ARRAY_SLICE([1, 2, 3, 4], -2, 1)", "[3]"},
                {"ARRAY_SLICE([1, 2, 3, 4], 0, 99)", "[1,2,3,4]"},
                {"ARRAY_SLICE([1, 2], -9223372036854775808, 9223372036854775807)", "[1,2]"},
                {"ARRAY_SLICE([1, 2], 5)", "[]"},
                {"ARRAY_SLICE([1, 2], 0, -1)", "[]"},
                {"ARRAY_SLICE([1, 2], 0.5)", "-"},
                {"ARRAY_SUM([1, 2, 6])", "9"},
                {"ARRAY_SUM([])", "0"},
                {"ARRAY_SUM(['x', 1])", "-"},
                {"ARRAY_AVG([1, 2, 6])", "3"},
                {"ARRAY_AVG([1, null])", "-"},
                {"ARRAY_AVG([])", "-"},
                {"ARRAY_MEDIAN([9, 1, 4])", "4"},
                {"ARRAY_MEDIAN([4, 1, 2, 3])", "2.5"},
                {"ARRAY_MIN([7, 3, 5])", "3"},
                {"ARRAY_MAX([7, 3, 5])", "7"},
                {"ARRAY_MAX([3, 'm', true, null])", "\"m\""},
                {"ARRAY_MIN([3, 'm', true, null])", "null"},
                {"ARRAY_MIN([])", "-"},
                {"ARRAY_MIN(c.a)", "-"}});
}

TEST(Functions, Sets) {
  expect_value({{"SetIntersect([1, 2, 2, 3], [9, 2, 2, 1])", "[2,1]"},
                {"SetUnion([2, 1, 2], [2, 3])", "[2,1,3]"},
                {"SetUnion([{a: 1, b: 2}], [{b: 2, a: 1.0}])", R"([{"a":1,"b":2}])"},
                {"SetDifference([1, 2, 3], [1, 3])", "[2]"},
                {"SetDifference([5, 5], [6])", "[5]"},
                {"SetDifference([], [1])", "[]"},
                {"SetEqual([1, 2], [2, 1, 1])", "true"},
                {"SetEqual([1], [1, 2])", "false"},
                {"SetUnion([1], 2)", "-"}});
}

TEST(Functions, Choosing) {
  expect_value({{"CHOOSE(1, 'x', 'y')", "\"x\""},
                {"CHOOSE(2, undefined, c.name || '!')", "\"Örrëry!\""},
                {"CHOOSE(0, 'x', 'y')", "-"},
                {"CHOOSE(3, 'x', 'y')", "-"},
                {"CHOOSE(1.5, 'x', 'y')", "-"},
                {"IIF(true, 1, 2)", "1"},
                {"IIF(c.b, undefined, c.s || 'y')", "\"xy\""},
                {"IIF(7, 1, 2)", "2"},
                {"IIF('true', 1, 2)", "2"},
                {"IIF(undefined, 1, 2)", "2"},
                {"ObjectToArray(c.o)", R"([{"k":"p","v":1},{"k":"q","v":"z"}])"},
                {"ObjectToArray({p: 1}, 'name')", R"([{"name":"p","v":1}])"},
                {"ObjectToArray({p: 1}, 'name', 'val')", R"([{"name":"p","val":1}])"},
                {"ObjectToArray(c.a)", "-"}});
}

TEST(Functions, AggregatesAreKnownByName) {
  EXPECT_EQ(find_aggregate("count"), AggregateKind::Count);
  EXPECT_EQ(find_aggregate("CountIf"), AggregateKind::CountIf);
  EXPECT_EQ(find_aggregate("AVG"), AggregateKind::Avg);
  EXPECT_EQ(find_aggregate("SUM"), AggregateKind::Sum);
  EXPECT_EQ(find_aggregate("Min"), AggregateKind::Min);
  EXPECT_EQ(find_aggregate("MAX"), AggregateKind::Max);
  EXPECT_EQ(find_aggregate("MakeList"), AggregateKind::MakeList);
  EXPECT_EQ(find_aggregate("MakeSet"), AggregateKind::MakeSet);
  EXPECT_EQ(find_aggregate("ABS"), std::nullopt);
  EXPECT_EQ(find_aggregate(""), std::nullopt);
}

TEST(Functions, AnUndefinedArgumentMakesTheResultUndefined) {
  expect_value({{"UPPER(c.missing)", "-"},
                {"ABS(undefined)", "-"},
                {"CONCAT('a', c.missing)", "-"},
                {"ARRAY_LENGTH(c.missing)", "-"},
                {"POWER(2, c.missing)", "-"}});
}

}  // namespace
}  // namespace orrery::query
