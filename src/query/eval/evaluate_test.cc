#include "query/eval/evaluate.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "query/eval/test_evaluate.h"
#include "query/syntax/parser.h"

namespace orrery::query {
namespace {

using json::Value;

constexpr std::string_view kDocument = R"({
  "id": "1", "name": "Mars", "moons": 2, "rocky": true, "tags": ["red", "dusty"], "none": null,
  "big": 9007199254740993, "half": 0.5, "text": "a\"b\u00e9", "empty": "", "list": [10, [20, 21], {"k": "v"}],
  "o": {"a": 1, "b": [2], "order": 3, "odd name": 4}, "\u0065sc": "escaped name", "long": 123456789012345678901234567890
})";

using query::evaluated;
std::string evaluated_text(std::string_view text) { return query::evaluated(text, kDocument); }

using Case = EvaluationCase;

void expect(std::initializer_list<Case> cases) { expect_values(cases, kDocument); }

// ── Every operator with every type ───────────────────────────────────────────────────────────────

/// One value of each kind, constant and read from a document.
const std::vector<std::pair<std::string, std::string>> kOperands = {
    {"undefined", "c.missing"},
    {"null", "c.none"},
    {"true", "c.rocky"},
    {"2", "c.moons"},
    {"'Mars'", "c.name"},
    {"['red','dusty']", "c.tags"},
    {"{a: 1, b: [2], 'order': 3, 'odd name': 4}", "c.o"}};
enum { kUndefined, kNull, kTrue, kTwo, kMars, kTags, kObject };

/// Checks `a op b` for all pairs of kinds. `expected` gives "-", "true", …, for the places in
/// kOperands.
template <typename Expected>
void expect_for_all_pairs(std::string_view op, Expected&& expected) {
  for (std::size_t i = 0; i < kOperands.size(); ++i) {
    for (std::size_t j = 0; j < kOperands.size(); ++j) {
      const std::string value = expected(i, j);
      for (const std::string& a : {kOperands[i].first, kOperands[i].second}) {
        for (const std::string& b : {kOperands[j].first, kOperands[j].second}) {
          const std::string text = a + " " + std::string(op) + " " + b;
          EXPECT_EQ(evaluated_text(text), value) << text;
        }
      }
    }
  }
}

TEST(Evaluate, EqualityOfEveryPairOfTypes) {
  const auto either_undefined = [](std::size_t i, std::size_t j) {
    return i == kUndefined || j == kUndefined;
  };
  expect_for_all_pairs("=", [&](std::size_t i, std::size_t j) -> std::string {
    return either_undefined(i, j) ? "-" : i == j ? "true" : "false";
  });
  for (const auto* op : {"!=", "<>"}) {
    expect_for_all_pairs(op, [&](std::size_t i, std::size_t j) -> std::string {
      return either_undefined(i, j) ? "-" : i == j ? "false" : "true";
    });
  }
}

TEST(Evaluate, OrderOfEveryPairOfTypes) {
  const auto comparable = [](std::size_t i, std::size_t j) {
    return i == j && (i == kNull || i == kTrue || i == kTwo || i == kMars);
  };
  for (const auto* op : {"<", ">"}) {
    expect_for_all_pairs(op, [&](std::size_t i, std::size_t j) -> std::string {
      return comparable(i, j) ? "false" : "-";
    });
  }
  for (const auto* op : {"<=", ">="}) {
    expect_for_all_pairs(op, [&](std::size_t i, std::size_t j) -> std::string {
      return comparable(i, j) ? "true" : "-";
    });
  }
}

TEST(Evaluate, ArithmeticOfEveryPairOfTypes) {
  const std::pair<const char*, const char*> results[] = {
      {"+", "4"}, {"-", "0"}, {"*", "4"},  {"/", "1"},  {"%", "0"},  {"&", "2"},
      {"|", "2"}, {"^", "0"}, {"<<", "8"}, {">>", "0"}, {">>>", "0"}};
  for (const auto& [op, result] : results) {
    expect_for_all_pairs(op, [&](std::size_t i, std::size_t j) -> std::string {
      return i == kTwo && j == kTwo ? result : "-";
    });
  }
  expect_for_all_pairs("||", [](std::size_t i, std::size_t j) -> std::string {
    return i == kMars && j == kMars ? "\"MarsMars\"" : "-";
  });
}

TEST(Evaluate, LogicOfEveryPairOfTypes) {
  expect_for_all_pairs("AND", [](std::size_t i, std::size_t j) -> std::string {
    return i == kTrue && j == kTrue ? "true" : "-";
  });
  expect_for_all_pairs("OR", [](std::size_t i, std::size_t j) -> std::string {
    return i == kTrue || j == kTrue ? "true" : "-";
  });
  // With all that is neither true nor false.
  for (const auto* unknown : {"undefined", "null", "2", "'x'", "[]", "{}", "c.missing"}) {
    const std::string other(unknown);
    EXPECT_EQ(evaluated_text("false AND " + other), "false");
    EXPECT_EQ(evaluated_text(other + " AND false"), "false");
    EXPECT_EQ(evaluated_text("false OR " + other), "-");
    EXPECT_EQ(evaluated_text(other + " OR false"), "-");
    EXPECT_EQ(evaluated_text("NOT " + other), "-");
    EXPECT_EQ(evaluated_text(other + " ? 1 : 2"), "2");
  }
}

TEST(Evaluate, UnaryOperatorsOfEveryType) {
  for (std::size_t i = 0; i < kOperands.size(); ++i) {
    for (const std::string& operand : {kOperands[i].first, kOperands[i].second}) {
      EXPECT_EQ(evaluated_text("- " + operand), i == kTwo ? "-2" : "-") << operand;
      EXPECT_EQ(evaluated_text("+ " + operand), i == kTwo ? "2" : "-") << operand;
      EXPECT_EQ(evaluated_text("~" + operand), i == kTwo ? "-3" : "-") << operand;
      EXPECT_EQ(evaluated_text("NOT " + operand), i == kTrue ? "false" : "-") << operand;
    }
  }
}

TEST(Evaluate, LogicOfTruthTables) {
  expect({{"true AND true", "true"},
          {"true AND false", "false"},
          {"false AND false", "false"},
          {"true OR false", "true"},
          {"false OR false", "false"},
          {"NOT true", "false"},
          {"NOT false", "true"},
          {"NOT (c.nope = 1 AND c.id = 'none')", "true"},
          {"c.nope = 1 OR c.id = '1'", "true"},
          {"c.nope AND c.nope AND false AND c.nope", "false"},
          {"c.nope OR c.nope OR true OR c.nope", "true"}});
}

// ── Precedence ───────────────────────────────────────────────────────────────────────────────────

TEST(Evaluate, Precedence) {
  expect({{"2 + 3 * 4", "14"},
          {"(2 + 3) * 4", "20"},
          {"10 - 4 - 3", "3"},
          {"2 * -3", "-6"},
          {"-(3 + 4)", "-7"},
          {"1 | 2 + 3", "6"},  // One level, from the left: (1 | 2) + 3.
          {"6 & 3 + 1", "3"},
          {"1 + 2 = 3", "true"},
          {"1 << 2 + 1", "8"},
          {"1 << 2 = 4", "true"},
          {"1 = 1 = true", "true"},  // (1 = 1) = true
          {"'a' || 'b' = 'ab'", "true"},
          {"NOT false = true", "true"},  // (NOT false) = true
          {"NOT 1 = 2", "-"},            // (NOT 1) = 2
          {"NOT false AND false", "false"},
          {"NOT c.moons IN (2)", "-"},  // (NOT c.moons) IN (2)
          {"true OR false AND false", "true"},
          {"(true OR false) AND false", "false"},
          {"1 + 2 ?? 3", "3"},
          {"c.nope + 1 ?? 9", "9"},
          {"c.nope ?? c.nada ?? 'x'", "\"x\""},
          {"true ? 2 ?? 3 : 4", "2"},
          {"false ? 1 : true ? 2 : 3", "2"},
          {"false ? 1 : false ? 2 : 3", "3"},
          {"true ? false ? 1 : 2 : 3", "2"},
          {"c.nope ?? true ? 1 : 2", "1"},
          {"5 BETWEEN 1 AND 5 AND true", "true"},
          {"1 + 1 BETWEEN 0 + 1 AND 1 + 2", "true"},
          {"2 IN (1, 1 + 1)", "true"},
          {"- - 3", "3"},
          {"NOT NOT true", "true"},
          {"~~5", "5"}});
}

// ── Numbers ──────────────────────────────────────────────────────────────────────────────────────

TEST(Evaluate, Integers) {
  expect({{"9007199254740993 + 1", "9007199254740994"},
          {"c.big + 1", "9007199254740994"},
          {"c.big = 9007199254740992", "false"},
          {"c.big > 9007199254740992.0", "true"},
          {"9223372036854775807", "9223372036854775807"},
          {"-9223372036854775808", "-9223372036854775808"},
          {"9223372036854775807 + 1", "9.223372036854776e+18"},
          {"-9223372036854775808 - 1", "-9.223372036854776e+18"},
          {"-(-9223372036854775808)", "9.223372036854776e+18"},
          {"9223372036854775807 * 2", "1.8446744073709552e+19"},
          {"18446744073709551615", "1.8446744073709552e+19"},
          {"0x1F", "31"},
          {"0xffffffffffffffff", "1.8446744073709552e+19"},
          {"0x7fffffffffffffff", "9223372036854775807"},
          {"c.long = 123456789012345678901234567890", "true"},
          {"c.long", "123456789012345678901234567890"}});
}

TEST(Evaluate, Doubles) {
  expect({{"5 / 2", "2.5"},
          {"6 / 2", "3"},
          {"17 % 5", "2"},
          {"-7 % 3", "-1"},
          {"7 % -3", "1"},
          {"5.5 % 2", "1.5"},
          {"0.1 + 0.2", "0.30000000000000004"},
          {"1.5e3", "1500"},
          {"1E2", "100"},
          {"1.5e-3", "0.0015"},
          {"c.half * 2", "1"},
          {"1 = 1.0", "true"},
          {"c.half < 1", "true"},
          {"-0", "0"},
          {"1 / -0", "null"},
          {"1 / 0 > 1e308", "true"},
          {"0 / 0 = 0 / 0", "false"},
          {"0 / 0 != 0 / 0", "true"},
          {"0 / 0 < 1", "false"},
          {"1 % 0 = 1 % 0", "false"},
          {"Infinity = 1 / 0", "true"},
          {"NaN = NaN", "false"},
          {"-9223372036854775808 % -1", "0"}});
}

TEST(Evaluate, BitsAreOf32BitIntegers) {
  expect({{"6 & 3", "2"},
          {"6 | 3", "7"},
          {"6 ^ 3", "5"},
          {"~5", "-6"},
          {"100 << 2", "400"},
          {"100 >> 2", "25"},
          {"100 >>> 0", "100"},
          {"-1 >>> 0", "4294967295"},
          {"-1 >> 1", "-1"},
          {"1 << 31", "-2147483648"},
          {"1 << 32", "1"},
          {"1 << 33", "2"},
          {"4294967297 | 0", "1"},
          {"1.9 | 0", "1"},
          {"-1.9 | 0", "-1"},
          {"(1 / 0) | 0", "0"},
          {"~130679749712577953", "-1022657953"}});
}

// ── Strings and comparisons ──────────────────────────────────────────────────────────────────────

TEST(Evaluate, StringsCompareByTheirCharacters) {
  expect({{"'Z' < 'a'", "true"},
          {"'a' < 'b'", "true"},
          {"'a' < 'aa'", "true"},
          {"c.text = 'a\"bé'", "true"},
          {"c.text = \"a\\\"b\\u00e9\"", "true"},
          {"'\\ud83d\\ude00' = '😀'", "true"},
          {"c.text || '!'", "\"a\\\"bé!\""},
          {"c.empty = ''", "true"},
          {"c.name >= 'Mars'", "true"},
          {"'it\\'s' = \"it's\"", "true"},
          {"'a\\tb\\/\\\\'", "\"a\\tb/\\\\\""}});
}

TEST(Evaluate, BooleansAndNullCompare) {
  expect({{"false < true", "true"},
          {"true > false", "true"},
          {"true <= true", "true"},
          {"null <= null", "true"},
          {"null < null", "false"},
          {"null = null", "true"}});
}

TEST(Evaluate, ArraysAndObjectsAreEqualWhenTheirPartsAre) {
  expect({{"c.tags = ['red', 'dusty']", "true"},
          {"c.tags = ['dusty', 'red']", "false"},
          {"c.tags = ['red']", "false"},
          {"c.o = {b: [2.0], a: 1, 'odd name': 4, \"order\": 3}", "true"},
          {"c.o = {a: 1}", "false"},
          {"{} = {}", "true"},
          {"[] = {}", "false"},
          {"[1] < [2]", "-"}});
}

TEST(Evaluate, In) {
  expect({{"c.name IN ('Venus', 'Mars')", "true"},
          {"c.name IN ('Venus')", "false"},
          {"c.name NOT IN ('Venus')", "true"},
          {"c.moons IN ('2', 2)", "true"},
          {"c.nope IN (1)", "-"},
          {"c.nope NOT IN (1)", "-"},
          {"1 IN (undefined, 1)", "true"},
          {"1 IN (undefined, 2)", "false"},
          {"null IN (null)", "true"},
          {"c.tags IN (['red', 'dusty'])", "true"},
          {"c.id IN (c.name, c.id)", "true"}});
}

TEST(Evaluate, Between) {
  expect({{"5 BETWEEN 1 AND 5", "true"},
          {"0 BETWEEN 1 AND 5", "false"},
          {"c.name BETWEEN 'A' AND 'N'", "true"},
          {"c.moons NOT BETWEEN 1 AND 10", "false"},
          {"c.moons NOT BETWEEN 3 AND 10", "true"},
          {"c.moons BETWEEN '1' AND '3'", "-"},
          {"c.moons BETWEEN 3 AND 'x'", "false"},  // 2 >= 3 is false, whatever the other is.
          {"c.nope BETWEEN 1 AND 2", "-"}});
}

TEST(Evaluate, Like) {
  expect({{"c.name LIKE 'M%'", "true"},
          {"c.name LIKE '%s'", "true"},
          {"c.name LIKE '%ar%'", "true"},
          {"c.name LIKE 'M%a%s'", "true"},
          {"c.name LIKE 'M%z%s'", "false"},
          {"c.name LIKE '_ars'", "true"},
          {"c.name LIKE '_rs'", "false"},
          {"c.name LIKE '%_rs'", "true"},
          {"c.name LIKE '[MV]%'", "true"},
          {"c.name LIKE '[^MV]%'", "false"},
          {"c.name LIKE '[A-N]ars'", "true"},
          {"c.name LIKE '[a-n]ars'", "false"},
          {"c.name LIKE 'mars'", "false"},
          {"c.name LIKE 'Mars'", "true"},
          {"c.name NOT LIKE '%s'", "false"},
          {"c.name LIKE '%'", "true"},
          {"c.empty LIKE ''", "true"},
          {"c.empty LIKE '%'", "true"},
          {"c.empty LIKE '_'", "false"},
          {"'30%' LIKE '30!%' ESCAPE '!'", "true"},
          {"'30x' LIKE '30!%' ESCAPE '!'", "false"},
          {"'a_b' LIKE 'a!_b' ESCAPE '!'", "true"},
          {"'a[b' LIKE 'a[b'", "true"},
          {"'a[]b' LIKE 'a[]b'", "true"},
          {"'é' LIKE '_'", "true"},
          {"'abab' LIKE '%ab'", "true"},
          {"'aab' LIKE '%ab'", "true"},
          {"'abcab' LIKE 'ab%ab'", "true"},
          {"'ab' LIKE 'ab%ab'", "false"},
          {"c.moons LIKE '2'", "-"},
          {"c.name LIKE 5", "-"},
          {"c.name LIKE c.name", "true"},
          {"c.name LIKE c.nope", "-"},
          {"c.name LIKE c.name || '%'", "true"}});
}

// ── Access and constructors ──────────────────────────────────────────────────────────────────────

TEST(Evaluate, AccessFindsWhatIsThere) {
  expect({{"c.o.a", "1"},
          {"c.o[\"odd name\"]", "4"},
          {"c['o']['order']", "3"},
          {"c.list[0]", "10"},
          {"c.list[1][1]", "21"},
          {"c.list[1.0][0]", "20"},
          {"c.list[2].k", "\"v\""},
          {"c.list[3]", "-"},
          {"c.list[-1]", "-"},
          {"c.list[0.5]", "-"},
          {"c.list['0']", "-"},
          {"c.o[0]", "-"},
          {"c.name.x", "-"},
          {"c.name[0]", "-"},
          {"c.list.k", "-"},
          {"c.Name", "-"},
          {"c.esc", "\"escaped name\""},
          {"c.nope.nope.nope", "-"},
          {"c['o']['o' || 'rder']", "3"},
          {"c.list[c.moons].k", "\"v\""},
          {"c[c.id || 'x']", "-"},
          {"c[c.name]", "-"},
          {"c['ta' || 'gs'][c.moons - 1]", "\"dusty\""},
          {"{a: {b: 41}}.a.b", "41"},
          {"{a: {b: c.o}}.a.b.b[0]", "2"},
          {"[c.name || '!', 2][0]", "\"Mars!\""},
          {"[1, 2, 3][1]", "2"},
          {"{a: c.name}[c.nope]", "-"},
          {"'text'.length", "-"},
          {"(c).id", "\"1\""},
          {"c.id = c['id']", "true"}});
}

TEST(Evaluate, ConstructorsLeaveUndefinedOut) {
  expect({{"[1, undefined, null]", "[1,null]"},
          {"[c.moons, c.nope, c.none]", "[2,null]"},
          {"{a: c.nope, b: c.none, \"c d\": 1}", R"({"b":null,"c d":1})"},
          {"[]", "[]"},
          {"{}", "{}"},
          {"[c.tags, [c.o.b]]", R"([["red", "dusty"],[[2]]])"},
          {"{'k': {n: c.name || '?'}}", R"({"k":{"n":"Mars?"}})"}});
}

TEST(Evaluate, TheDocumentItselfIsAValue) {
  EXPECT_EQ(evaluated("c", R"({"a": 1})"), R"({"a": 1})");
  EXPECT_EQ(evaluated("c = {a: 1}", R"({"a": 1})"), "true");
  EXPECT_EQ(evaluated("IS_DEFINED(c)", ""), "false");
  EXPECT_EQ(evaluated("c.a", ""), "-");
}

TEST(Evaluate, LiteralsAndCommentsInAnyCase) {
  expect({{"TRUE", "true"},
          {"False", "false"},
          {"NULL", "null"},
          {"Undefined", "-"},
          {"true and not False", "true"},
          {"1 -- one\n + 1", "2"},
          {"1 --", "1"},
          {"c.moons\tbetween\r\n1 AND 2", "true"}});
}

TEST(Evaluate, LongChainsAreNoDeepTrees) {
  std::string sum = "0";
  std::string any = "c.moons = 0";
  std::string path = "c";
  std::string conditional;
  std::string coalesce = "c.nope";
  std::string in = "c.moons IN (0";
  for (int i = 1; i <= 20'000; ++i) {
    sum += " + 1";
    any += " OR c.moons = " + std::to_string(i);
    path += ".x";
    conditional += "c.nope ? 1 : ";
    coalesce += " ?? c.nope";
    in += ", " + std::to_string(i);
  }
  EXPECT_EQ(evaluated_text(sum), "20000");
  EXPECT_EQ(evaluated_text(any), "true");
  EXPECT_EQ(evaluated_text(path), "-");
  EXPECT_EQ(evaluated_text(conditional + "2"), "2");
  EXPECT_EQ(evaluated_text(coalesce + " ?? 3"), "3");
  EXPECT_EQ(evaluated_text(in + ")"), "true");
}

TEST(Evaluate, WhatIsMadeIsBounded) {
  std::string text = "LENGTH(REPLICATE(c.name, 2000)";
  for (int i = 0; i < 5000; ++i) text += " || REPLICATE(c.name, 2000)";
  EXPECT_EQ(evaluated_text(text + ")"), "-");
  EXPECT_EQ(evaluated_text("LENGTH(REPLACE(REPLICATE('a', 9999), 'a', REPLICATE('b', 9999)))"),
            "-");
}

}  // namespace
}  // namespace orrery::query
