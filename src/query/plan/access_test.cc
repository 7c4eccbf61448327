#include "query/plan/access.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_seed.h"
#include "json/value.h"
#include "query/eval/evaluate.h"
#include "query/eval/rows.h"

namespace orrery::query {
namespace {

using json::Value;
using testing::ElementsAre;
using testing::IsEmpty;

PreparedQueryPtr access_query(const std::string& text) {
  auto query = PreparedQuery::prepare(text, {}, {});
  EXPECT_TRUE(query) << text << ": " << (query ? "" : query.error().message());
  return *query;
}

QueryAccess access_to(const std::string& text) { return access_of(*access_query(text)); }

QueryAccess where(const std::string& condition) {
  return access_to("SELECT * FROM c WHERE " + condition);
}

bool contains(const PathCondition& condition, const Value& value) {
  std::string key;
  json::append_sort_key(key, value, json::kIndexedStringBytesMax);
  return std::ranges::any_of(condition.intervals, [&](const json::KeyInterval& interval) {
    return interval.low <= key && key < interval.high;
  });
}

Value value_of(std::string_view text) {
  return text == "undefined" ? Value() : Value::of_checked(text);
}

/// Which of some values the condition lets through, as text; after = where it is an equality.
std::string admitted(const PathCondition& condition) {
  std::string texts = condition.path.text() + (condition.is_equality ? " =" : " :");
  for (const auto* text : {"undefined", "null", "false", "true", "-1", "0", "1", "1.5", "2",
                           R"("")", R"("a")", R"("ab")", R"("b")", "[1]", R"({"x":1})"}) {
    if (contains(condition, value_of(text))) texts.append(" ").append(text);
  }
  return texts;
}

std::vector<std::string> admitted(const std::vector<PathCondition>& conditions) {
  std::vector<std::string> texts;
  for (const auto& condition : conditions) texts.push_back(admitted(condition));
  return texts;
}

std::vector<std::string> conditions(const std::string& condition) {
  const auto access = where(condition);
  EXPECT_FALSE(access.is_empty) << condition;
  EXPECT_THAT(access.alternatives, IsEmpty()) << condition;
  return admitted(access.conditions);
}

/// Of a query with one condition.
std::string only_condition(const std::string& condition) {
  const auto all = conditions(condition);
  EXPECT_EQ(all.size(), 1U) << condition;
  return all.empty() ? "" : all[0];
}

// ── single conditions ────────────────────────────────────────────────────────────────────────────

TEST(AccessTest, EqualityIsOneValue) {
  EXPECT_EQ(only_condition("c.a = 1"), "/a = 1");
  EXPECT_EQ(only_condition("1.0 = c.a"), "/a = 1");
  EXPECT_EQ(only_condition(R"(c.a["b c"] = "ab")"), R"(/a/"b c" = "ab")");
  EXPECT_EQ(only_condition("c.a = null"), "/a = null");
  EXPECT_EQ(only_condition("c.a = [1]"), "/a = [1]");
  EXPECT_EQ(only_condition(R"(c.a = {"x": 1})"), R"(/a = {"x":1})");
  EXPECT_EQ(only_condition(R"(StringEquals(c.a, "a"))"), R"(/a = "a")");
  EXPECT_EQ(only_condition(R"(StringEquals("a", c.a, false))"), R"(/a = "a")");
  EXPECT_EQ(only_condition("c.a"), "/a = true");
  EXPECT_EQ(only_condition("NOT c.a"), "/a = false");
  EXPECT_EQ(only_condition("NOT (c.a != 1)"), "/a = 1");
}

TEST(AccessTest, ListsAreSeveralValues) {
  EXPECT_EQ(only_condition(R"(c.a IN (1, "b", undefined, 1))"), R"(/a = 1 "b")");
  EXPECT_EQ(only_condition("c.a = 1 OR c.a = 2 OR c.a = null"), "/a = null 1 2");
  EXPECT_EQ(only_condition(R"(ARRAY_CONTAINS([1, "a"], c.a))"), R"(/a = 1 "a")");
  EXPECT_EQ(only_condition("c.a IN (false, true)"), "/a = false true");
}

TEST(AccessTest, RangesStayWithinTheTypeOfTheirBound) {
  EXPECT_EQ(only_condition("c.a > 0"), "/a : 1 1.5 2");
  EXPECT_EQ(only_condition("c.a >= 1"), "/a : 1 1.5 2");
  EXPECT_EQ(only_condition("1 > c.a"), "/a : -1 0");
  EXPECT_EQ(only_condition("c.a <= 0"), "/a : -1 0");
  EXPECT_EQ(only_condition(R"(c.a < "ab")"), R"(/a : "" "a")");
  EXPECT_EQ(only_condition(R"(c.a >= "ab")"), R"(/a : "ab" "b")");
  EXPECT_EQ(only_condition("c.a > false"), "/a : true");
  EXPECT_EQ(only_condition("c.a <= true"), "/a : false true");
  EXPECT_EQ(only_condition("c.a >= null"), "/a : null");
  EXPECT_EQ(only_condition("c.a BETWEEN 0 AND 1.5"), "/a : 0 1 1.5");
  EXPECT_EQ(only_condition("NOT (c.a < 1)"), "/a : 1 1.5 2");
  EXPECT_EQ(only_condition("c.a NOT BETWEEN 0 AND 1"), "/a : -1 1.5 2");
}

TEST(AccessTest, IntegersBeyondDoublesAreExact) {
  const auto access = where("c.a > 9007199254740992");
  ASSERT_EQ(access.conditions.size(), 1U);
  EXPECT_FALSE(contains(access.conditions[0], value_of("9007199254740992")));
  EXPECT_TRUE(contains(access.conditions[0], value_of("9007199254740993")));
}

TEST(AccessTest, WhatIsNotANumberComparesFalse) {
  EXPECT_TRUE(where("c.a = NaN").is_empty);
  EXPECT_TRUE(where("c.a < NaN").is_empty);
  EXPECT_EQ(only_condition("NOT (c.a < NaN)"), "/a : -1 0 1 1.5 2");
  EXPECT_EQ(only_condition("c.a IN (NaN, 1)"), "/a = 1");
}

TEST(AccessTest, InequalityIsTheRestOfWhatIsThere) {
  EXPECT_EQ(only_condition("c.a != 1"),
            R"(/a : null false true -1 0 1.5 2 "" "a" "ab" "b" [1] {"x":1})");
  EXPECT_EQ(only_condition(R"(c.a NOT IN (1, null, "a"))"),
            R"(/a : false true -1 0 1.5 2 "" "ab" "b" [1] {"x":1})");
  EXPECT_EQ(only_condition("c.a != [1]"),
            R"(/a : null false true -1 0 1 1.5 2 "" "a" "ab" "b" [1] {"x":1})")
      << "a hash does not tell";
}

TEST(AccessTest, PrefixesAreRanges) {
  EXPECT_EQ(only_condition(R"(STARTSWITH(c.a, "a"))"), R"(/a : "a" "ab")");
  EXPECT_EQ(only_condition(R"(STARTSWITH(c.a, "a", false))"), R"(/a : "a" "ab")");
  EXPECT_EQ(only_condition(R"(c.a LIKE "a%")"), R"(/a : "a" "ab")");
  EXPECT_EQ(only_condition(R"(c.a LIKE "a_")"), R"(/a : "a" "ab")");
  EXPECT_EQ(only_condition(R"(c.a LIKE "ab")"), R"(/a = "ab")");
  EXPECT_EQ(only_condition(R"(c.a LIKE "!a[bc]" ESCAPE "!")"), R"(/a : "a" "ab")");
  EXPECT_EQ(only_condition(R"(c.a LIKE "%a")"), R"(/a : "" "a" "ab" "b")");
  EXPECT_EQ(only_condition(R"(c.a NOT LIKE "a%")"), R"(/a : "" "a" "ab" "b")");
  EXPECT_EQ(only_condition(R"(STARTSWITH(c.a, ""))"), R"(/a : "" "a" "ab" "b")");
}

TEST(AccessTest, TypesAreRanges) {
  EXPECT_EQ(only_condition("IS_NULL(c.a)"), "/a = null");
  EXPECT_EQ(only_condition("IS_BOOL(c.a)"), "/a : false true");
  EXPECT_EQ(only_condition("IS_NUMBER(c.a)"), "/a : -1 0 1 1.5 2");
  EXPECT_EQ(only_condition("IS_INTEGER(c.a)"), "/a : -1 0 1 1.5 2");
  EXPECT_EQ(only_condition("IS_STRING(c.a)"), R"(/a : "" "a" "ab" "b")");
  EXPECT_EQ(only_condition("IS_ARRAY(c.a)"), "/a : [1]");
  EXPECT_EQ(only_condition("IS_OBJECT(c.a)"), R"(/a : {"x":1})");
  EXPECT_EQ(only_condition("IS_DEFINED(c.a)"),
            R"(/a : null false true -1 0 1 1.5 2 "" "a" "ab" "b" [1] {"x":1})");
  EXPECT_EQ(only_condition("NOT IS_DEFINED(c.a)"), "/a = undefined");
  EXPECT_EQ(only_condition("NOT IS_NUMBER(c.a)"),
            R"(/a : undefined null false true "" "a" "ab" "b" [1] {"x":1})");
}

// ── together ─────────────────────────────────────────────────────────────────────────────────────

TEST(AccessTest, ConditionsOnOneValueAreOne) {
  EXPECT_EQ(only_condition("c.a > 0 AND c.a < 2 AND c.a != 1.5"), "/a : 1");
  EXPECT_EQ(only_condition("c.a IN (0, 1, 2) AND c.a > 0"), "/a = 1 2");
  EXPECT_THAT(conditions("c.a = 1 AND c.b = 2"), ElementsAre("/a = 1", "/b = 2"));
}

TEST(AccessTest, ContradictionsAreEmpty) {
  for (const auto* condition :
       {"false", "null", "c.a = undefined", "c.a = 1 AND c.a = 2", "c.a > 2 AND c.a < 1",
        "c.a < [1]", "c.a AND NOT c.a", "c.b = 1 AND false", "c.a = 1 AND c.a > 'x'",
        "c.a IN (undefined)", "false OR (c.a = 1 AND c.a = 2)", "STARTSWITH(c.a, 1)"}) {
    EXPECT_TRUE(where(condition).is_empty) << condition;
  }
  EXPECT_FALSE(where("true").is_empty);
  EXPECT_FALSE(access_to("SELECT * FROM c").is_empty);
}

TEST(AccessTest, AlternativesOnDifferentPathsAreKeptTogether) {
  const auto access = where("c.a = 1 OR c.b = 2 OR (c.a = 2 AND c.d > 1) OR false");
  EXPECT_THAT(access.conditions, IsEmpty());
  ASSERT_EQ(access.alternatives.size(), 1U);
  EXPECT_THAT(admitted(access.alternatives[0]), ElementsAre("/a = 1 2", "/b = 2"));
}

TEST(AccessTest, WhatAllAlternativesShareIsACondition) {
  const auto access = where("(c.a = 1 AND c.b = 1) OR (c.a = 2 AND c.d = 2)");
  EXPECT_THAT(admitted(access.conditions), ElementsAre("/a = 1 2"));
  ASSERT_EQ(access.alternatives.size(), 1U);
  EXPECT_THAT(admitted(access.alternatives[0]), ElementsAre("/b = 1", "/d = 2"));
}

TEST(AccessTest, OneAlternativeThatSaysNothingLeavesNothing) {
  const auto access = where(R"(c.a = 1 OR CONTAINS(c.b, "x"))");
  EXPECT_THAT(access.conditions, IsEmpty());
  EXPECT_THAT(access.alternatives, IsEmpty());
  EXPECT_THAT(access.unbounded_paths, ElementsAre(*IndexPath::parse("/b")));
}

TEST(AccessTest, NotOfAndIsOneOfThem) {
  const auto access = where("NOT (c.a = 1 AND c.b)");
  ASSERT_EQ(access.alternatives.size(), 1U);
  EXPECT_EQ(admitted(access.alternatives[0][1]), "/b = false");
  EXPECT_THAT(conditions("NOT (c.a = 1 OR c.b)").back(), "/b = false");
}

TEST(AccessTest, BranchesOfExpressions) {
  EXPECT_EQ(only_condition("c.a ?? false"), "/a = true");
  EXPECT_THAT(conditions("c.b = 1 ? c.a : false"), ElementsAre("/a = true", "/b = 1"));
}

TEST(AccessTest, WhatFunctionsHideSaysNothing) {
  for (const auto* condition :
       {R"(CONTAINS(c.a, "x"))", R"(UPPER(c.a) = "X")", R"(STARTSWITH(c.a, "x", true))",
        "c.a + 1 = 2", "c.a = c.b", "c.a = 1 = true", R"(RegexMatch(c.a, "x"))"}) {
    const auto access = where(condition);
    EXPECT_THAT(access.conditions, IsEmpty()) << condition;
    EXPECT_FALSE(access.is_empty) << condition;
    ASSERT_FALSE(access.unbounded_paths.empty()) << condition;
    EXPECT_EQ(access.unbounded_paths[0].text(), "/a") << condition;
  }
}

// ── elements ─────────────────────────────────────────────────────────────────────────────────────

TEST(AccessTest, ElementsOfArrays) {
  EXPECT_EQ(only_condition("ARRAY_CONTAINS(c.a, 1)"), "/a/[] = 1");
  EXPECT_EQ(only_condition("ARRAY_CONTAINS_ANY(c.a, 1, 2)"), "/a/[] = 1 2");
  EXPECT_THAT(conditions("ARRAY_CONTAINS_ALL(c.a, 1, 2)"), ElementsAre("/a/[] = 1", "/a/[] = 2"));
  EXPECT_THAT(conditions(R"(ARRAY_CONTAINS(c.a, {"x": 1, "y": "b"}, true))"),
              ElementsAre("/a/[]/x = 1", R"(/a/[]/y = "b")"));
  EXPECT_EQ(only_condition(R"(ARRAY_CONTAINS(c.a, {"x": 1}))"), R"(/a/[] = {"x":1})");
  EXPECT_EQ(only_condition("c.a[0] = 1"), "/a/[] = 1");
  EXPECT_EQ(only_condition("EXISTS(SELECT VALUE x FROM x IN c.a WHERE x.p > 1)"),
            "/a/[]/p : 1.5 2");
  EXPECT_THAT(admitted(access_to("SELECT b.id FROM c.b JOIN x IN b.a WHERE x = 1").conditions),
              ElementsAre("/b/a/[] = 1"));
  EXPECT_THAT(admitted(access_to("SELECT VALUE x FROM x IN c.a WHERE x = 1").conditions),
              ElementsAre("/a/[] = 1"));
  EXPECT_THAT(admitted(access_to("SELECT VALUE x.p FROM c JOIN x IN (SELECT VALUE t FROM t IN c.a "
                                 "WHERE t.p = 1)")
                           .conditions),
              ElementsAre("/a/[]/p = 1"));
}

TEST(AccessTest, ConditionsOnOneElementAreOne) {
  EXPECT_THAT(
      admitted(access_to("SELECT c.id FROM c JOIN x IN c.a WHERE x.p > 0 AND x.p < 2").conditions),
      ElementsAre("/a/[]/p : 1 1.5"));
}

TEST(AccessTest, ConditionsOnDifferentElementsStayApart) {
  EXPECT_THAT(conditions("c.a[0] = 1 AND c.a[1] = 2"), ElementsAre("/a/[] = 1", "/a/[] = 2"));
  EXPECT_THAT(admitted(access_to("SELECT c.id FROM c JOIN x IN c.a JOIN y IN c.a "
                                 "WHERE x.p = 1 AND y.p = 2")
                           .conditions),
              ElementsAre("/a/[]/p = 1", "/a/[]/p = 2"));
}

TEST(AccessTest, WhatElementsLackSaysNothing) {
  EXPECT_THAT(conditions("EXISTS(SELECT VALUE x FROM x IN c.a WHERE NOT IS_DEFINED(x.p))"),
              IsEmpty());
  EXPECT_THAT(conditions("NOT IS_DEFINED(c.a[3])"), IsEmpty());
}

TEST(AccessTest, ASubqueryThatAlwaysHasARowSaysNothing) {
  EXPECT_THAT(conditions("EXISTS(SELECT VALUE COUNT(1) FROM x IN c.a WHERE x = 1)"), IsEmpty());
  EXPECT_THAT(conditions("NOT EXISTS(SELECT VALUE x FROM x IN c.a WHERE x = 1)"), IsEmpty());
}

TEST(AccessTest, AnInnerQueryDecides) {
  const auto access =
      access_to("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.b FROM c WHERE c.a = 1)");
  EXPECT_THAT(admitted(access.conditions), ElementsAre("/a = 1"));
}

// ── order ────────────────────────────────────────────────────────────────────────────────────────

TEST(AccessTest, TheOrderIsOfPaths) {
  const auto access = access_to("SELECT * FROM c ORDER BY c.a.b DESC, c.d");
  ASSERT_EQ(access.order.size(), 2U);
  EXPECT_EQ(access.order[0].path.text(), "/a/b");
  EXPECT_TRUE(access.order[0].is_descending);
  EXPECT_EQ(access.order[1].path.text(), "/d");
  EXPECT_FALSE(access.order[1].is_descending);
  EXPECT_EQ(access_to("SELECT * FROM c.h ORDER BY h.a").order[0].path.text(), "/h/a");
  EXPECT_THAT(access_to("SELECT * FROM c ORDER BY c.a[0]").order, IsEmpty());
}

// ── long strings ─────────────────────────────────────────────────────────────────────────────────

TEST(AccessTest, NothingOfStringsThatIndexesCutIsMissed) {
  const std::string head(json::kIndexedStringBytesMax, 'm');
  const auto text = [&](std::string_view tail) { return Value::string(head + std::string(tail)); };
  const auto is_in = [&](const std::string& condition, const Value& value) {
    const auto access = where(condition);
    EXPECT_EQ(access.conditions.size(), 1U);
    return contains(access.conditions.at(0), value);
  };
  const std::string bound = "\"" + head + "m\"";
  for (const auto* op : {"<", "<=", ">", ">=", "!="}) {
    for (const auto* tail : {"a", "l", "m", "n", "mm"}) {
      EXPECT_TRUE(is_in(std::string("c.a ") + op + bound, text(tail))) << op << tail;
    }
  }
  EXPECT_FALSE(is_in("c.a > " + bound, text(""))) << "it is not cut";
  EXPECT_TRUE(is_in("c.a < " + bound, text("")));
  EXPECT_FALSE(is_in("c.a = " + bound, text("n")));
  EXPECT_TRUE(is_in("c.a = " + bound, text("m")));
  EXPECT_TRUE(is_in("STARTSWITH(c.a, " + bound + ")", text("mn")));
  EXPECT_FALSE(is_in("STARTSWITH(c.a, " + bound + ")", Value::string("m")));
  EXPECT_TRUE(is_in("c.a > \"" + head + "\"", text("a")));
  EXPECT_FALSE(is_in("c.a <= \"" + head + "\"", text("a")));
}

// ── chance ───────────────────────────────────────────────────────────────────────────────────────

/// Documents and conditions by chance: a document with a row must be one that the conditions admit.
class ChanceTest {
 public:
  explicit ChanceTest(std::uint32_t seed) : random_(seed) {}

  std::string document() {
    std::string text = R"({"id":"1")";
    for (const auto* name : {"a", "b", "d"}) {
      if (chance(4) > 0) text += std::string(",\"") + name + "\":" + any_value(2);
    }
    return text + "}";
  }

  std::string query() {
    switch (chance(4)) {
      case 0:
        joined_ = true;
        return "SELECT c.id FROM c JOIN x IN c.a WHERE " + condition(3);
      default:
        joined_ = false;
        return "SELECT c.id FROM c WHERE " + condition(3);
    }
  }

 private:
  std::size_t chance(std::size_t count) { return random_() % count; }
  std::string one_of(std::vector<std::string> texts) { return texts[chance(texts.size())]; }

  std::string scalar() {
    return one_of({"null", "false", "true", "-1", "0", "1", "1.5", "2", R"("")", R"("a")",
                   R"("ab")", R"("b")"});
  }
  std::string any_value(int depth) {
    if (depth == 0 || chance(2) > 0) return scalar();
    if (chance(2) > 0) return R"({"p":)" + any_value(depth - 1) + "}";
    std::string text = "[";
    for (auto left = chance(4); left > 0; --left)
      text += any_value(depth - 1) + (left > 1 ? "," : "");
    return text + "]";
  }
  std::string constant() {
    return one_of({scalar(), scalar(), scalar(), any_value(1), "undefined", "NaN", "Infinity"});
  }
  std::string path() {
    return one_of({"c.a", "c.b", "c.d", "c.a.p", "c.a[0]", "c.a[1].p", joined_ ? "x" : "c.b.p",
                   joined_ ? "x.p" : "c.d"});
  }
  std::string condition(int depth) {
    const std::string at = path();
    switch (chance(depth > 0 ? 20 : 14)) {
      case 0:
      case 1:
      case 2:
        return "(" + at + one_of({" = ", " != ", " < ", " <= ", " > ", " >= "}) + constant() + ")";
      case 3:
        return "(" + constant() + one_of({" = ", " < ", " >= "}) + at + ")";
      case 4:
        return "(" + at + one_of({" IN (", " NOT IN ("}) + constant() + ", " + constant() + "))";
      case 5:
        return "(" + at + one_of({" BETWEEN ", " NOT BETWEEN "}) + constant() + " AND " +
               constant() + ")";
      case 6:
        return one_of({"IS_NULL(", "IS_BOOL(", "IS_NUMBER(", "IS_STRING(", "IS_ARRAY(",
                       "IS_OBJECT(", "IS_DEFINED(", "IS_PRIMITIVE(", "IS_INTEGER("}) +
               at + ")";
      case 7:
        return "(" + at + one_of({" LIKE ", " NOT LIKE "}) +
               one_of({R"("a%")", R"("%")", R"("_b")", R"("ab")", R"("a!%" ESCAPE "!")"}) + ")";
      case 8:
        return "STARTSWITH(" + at + ", " + one_of({R"("")", R"("a")", R"("b")", "1"}) + ")";
      case 9:
        return "ARRAY_CONTAINS(" + at + ", " + constant() + ")";
      case 10:
        return "ARRAY_CONTAINS(" + at + R"(, {"p": )" + scalar() + "}, true)";
      case 11:
        return one_of({"ARRAY_CONTAINS_ANY(", "ARRAY_CONTAINS_ALL("}) + at + ", " + constant() +
               ", " + constant() + ")";
      case 12:
        return "ARRAY_CONTAINS([" + scalar() + ", " + any_value(1) + "], " + at + ")";
      case 13:
        return at;
      case 14:
        return "(NOT " + condition(depth - 1) + ")";
      case 15:
      case 16:
        return "(" + condition(depth - 1) + " AND " + condition(depth - 1) + ")";
      case 17:
      case 18:
        return "(" + condition(depth - 1) + " OR " + condition(depth - 1) + ")";
      default:
        return one_of({"", "NOT "}) + "EXISTS(SELECT VALUE y FROM y IN c.a WHERE y" +
               one_of({"", ".p"}) + one_of({" = ", " > ", " != "}) + constant() + " AND " +
               condition(depth - 1) + ")";
    }
  }

  std::mt19937 random_;
  bool joined_ = false;
};

void append_values(const Value& value, const IndexPath& path, std::size_t step,
                   std::vector<Value>& values) {
  if (step == path.steps.size()) {
    values.push_back(value);
  } else if (path.steps[step].is_element) {
    for (json::Reader reader(value); value.is_array() && reader.next();) {
      append_values(reader.value(), path, step + 1, values);
    }
  } else {
    append_values(value.member(path.steps[step].name), path, step + 1, values);
  }
}

bool admits(const PathCondition& condition, const Value& document) {
  std::vector<Value> values;
  append_values(document, condition.path, 0, values);
  return std::ranges::any_of(values,
                             [&](const Value& value) { return contains(condition, value); });
}

bool admits(const QueryAccess& access, const Value& document) {
  const auto one = [&](const PathCondition& condition) { return admits(condition, document); };
  return !access.is_empty && std::ranges::all_of(access.conditions, one) &&
         std::ranges::all_of(access.alternatives, [&](const auto& alternatives) {
           return std::ranges::any_of(alternatives, one);
         });
}

TEST(AccessTest, NoRowIsEverMissed) {
  const auto seed = static_cast<std::uint32_t>(test::seed());
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  ChanceTest chance(seed);
  std::size_t bounded = 0;
  std::size_t refused = 0;
  for (int round = 0; round < 2000; ++round) {
    const auto query = access_query(chance.query());
    const auto access = access_of(*query);
    bounded += access.is_empty || !access.conditions.empty() || !access.alternatives.empty();
    for (int i = 0; i < 20; ++i) {
      const std::string text = chance.document();
      const Value document = Value::of_checked(text);
      Frame frame(query->sources());
      frame.row.set(0, document);
      bool has_row = false;
      for_each_row(query->tree(), frame, [&] {
        has_row = true;
        return false;
      });
      const bool admitted = admits(access, document);
      refused += !admitted;
      ASSERT_TRUE(!has_row || admitted) << query->text() << "\n" << text;
    }
  }
  EXPECT_GT(bounded, 1000U);
  EXPECT_GT(refused, 10'000U);
}

}  // namespace
}  // namespace orrery::query
