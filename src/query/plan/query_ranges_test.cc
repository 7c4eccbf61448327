#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "query/eval/predicate.h"
#include "query/plan/plan.h"
#include "query/syntax/parser.h"

namespace orrery::query {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class QueryRangesTest : public testing::Test {
 protected:
  std::vector<QueryRange> ranges(std::string_view text) const {
    const auto query = Parser(text).parse_query();
    EXPECT_TRUE(query.has_value()) << text << '\n' << query.error().message();
    if (!query) return {};
    return query_ranges(**query, parameters_, definition_, settings_);
  }
  std::vector<QueryRange> where(std::string_view filter) const {
    return ranges("SELECT * FROM c WHERE " + std::string(filter));
  }
  KeyPin pin(std::string_view filter) const {
    const auto query = Parser("SELECT * FROM c WHERE " + std::string(filter)).parse_query();
    EXPECT_TRUE(query.has_value()) << filter;
    if (!query) return {};
    return key_pin(**query, parameters_, definition_, settings_);
  }
  std::vector<PartitionKey> pinned(std::string_view filter) const { return pin(filter).keys; }

  QueryRange point(std::vector<KeyComponent> key) const {
    const Epk epk = effective_partition_key(definition_, PartitionKey(std::move(key)));
    return {.min = epk, .max = epk, .is_max_inclusive = true};
  }
  QueryRange prefix(std::vector<KeyComponent> key) const {
    const EpkRange range = effective_key_range(definition_, PartitionKey(std::move(key)));
    return {.min = range.min, .max = range.max};
  }
  /// One point for each value of a key of one path, in their order.
  std::vector<QueryRange> points(const std::vector<KeyComponent>& values) const {
    std::vector<QueryRange> points;
    for (const KeyComponent& value : values) points.push_back(point({value}));
    std::ranges::sort(points, {}, &QueryRange::min);
    return points;
  }

  static std::vector<QueryRange> everything() { return {{.min = Epk::min(), .max = Epk::max()}}; }
  static std::vector<QueryRange> nothing() {
    return {{.min = Epk::min(), .max = Epk::min(), .is_max_inclusive = true}};
  }

  static KeyComponent text(std::string_view value) { return std::string(value); }

  Parameters parameters_;
  Settings settings_;
  PartitionKeyDefinition definition_ = {.paths = {{"k"}}, .version = 2};
};

/// The same for both hash functions.
class QueryRangesOfHashTest : public QueryRangesTest, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override { definition_.version = GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Versions, QueryRangesOfHashTest, testing::Values(1, 2));

TEST_P(QueryRangesOfHashTest, ValuesArePoints) {
  EXPECT_EQ(where("c.k = 'a'"), points({text("a")}));
  EXPECT_EQ(where("'a' = c.k"), points({text("a")}));
  EXPECT_EQ(where("c['k'] = 1.5"), points({1.5}));
  EXPECT_EQ(where("c.k = -7"), points({-7.0}));
  EXPECT_EQ(where("c.k = true"), points({true}));
  EXPECT_EQ(where("c.k = null"), points({Null{}}));
  EXPECT_EQ(where("c.k IN ('b', 'a', 'b', 2)"), points({text("a"), text("b"), 2.0}));
  EXPECT_EQ(where("c.k = 1 OR c.k = 2 OR c.k IN (2, 3)"), points({1.0, 2.0, 3.0}));
  EXPECT_EQ(where("IS_NULL(c.k)"), points({Null{}}));
  EXPECT_EQ(where("c.k"), points({true}));
  EXPECT_EQ(where("NOT c.k"), points({false}));
  EXPECT_EQ(where("IS_BOOL(c.k)"), points({true, false}));
  EXPECT_EQ(where("is_boolean(c.k)"), points({true, false}));
  EXPECT_EQ(where("c.k LIKE 'no wildcard'"), points({text("no wildcard")}));
  EXPECT_EQ(where("ARRAY_CONTAINS([1, 'x', null], c.k)"), points({1.0, text("x"), Null{}}));
  EXPECT_EQ(where("ABS(c.k) = 1"), points({1.0, -1.0}));
  EXPECT_EQ(where("NOT (c.k != 1)"), points({1.0}));
  EXPECT_EQ(where("NOT (c.k NOT IN (1, 2))"), points({1.0, 2.0}));
}

TEST_P(QueryRangesOfHashTest, ZeroIsTwoKeys) {
  // Both zeros are equal, but documents with them have different keys.
  EXPECT_EQ(where("c.k = 0"), points({0.0, -0.0}));
  EXPECT_EQ(where("c.k = -0.0"), points({0.0, -0.0}));
  EXPECT_EQ(where("c.k IN (1, -0.0, 0)"), points({1.0, 0.0, -0.0}));
  EXPECT_EQ(where("c.k = 0 AND c.k = -0.0"), points({0.0, -0.0}));
  EXPECT_EQ(where("ABS(c.k) = 0"), points({0.0, -0.0}));
  for (const auto condition : {"c.k = 0", "c.k = -0.0"}) {
    EXPECT_THAT(pinned(condition), ElementsAre(PartitionKey({0.0}), PartitionKey({-0.0})));
  }
}

TEST_P(QueryRangesOfHashTest, ConditionsThatAllHoldHaveWhatTheyShare) {
  EXPECT_EQ(where("c.k IN (1, 2, 3) AND c.k IN (2, 3, 4)"), points({2.0, 3.0}));
  EXPECT_EQ(where("c.k = 1 AND c.x > 5 AND c.y = 'z'"), points({1.0}));
  EXPECT_EQ(where("(c.k = 1 OR c.k = 2) AND (c.k = 2 OR c.k = 3)"), points({2.0}));
  EXPECT_EQ(where("NOT (c.k != 1 OR c.x)"), points({1.0}));
}

TEST_P(QueryRangesOfHashTest, ContradictionsFindNothing) {
  for (const std::string_view filter :
       {"c.k = 1 AND c.k = 2", "false", "c.k = 1 AND false", "c.k = undefined", "1", "'true'",
        "NOT true", "c.k IN (undefined)", "ABS(c.k) = -1", "c.k LIKE 1", "c.k = @missing",
        "c.k AND NOT c.k", "ARRAY_CONTAINS([], c.k)", "1 = 2", "c.k = 0/0"}) {
    EXPECT_EQ(where(filter), nothing()) << filter;
    EXPECT_THAT(pinned(filter), IsEmpty()) << filter;
    EXPECT_TRUE(pin(filter).finds_nothing) << filter;
  }
  for (const std::string_view filter : {"true", "c.k = 1", "c.x = 1 AND c.x = 2", "c.k != 1",
                                        "c.k = 1 OR false", "c.x = @missing"}) {
    EXPECT_FALSE(pin(filter).finds_nothing) << filter;
  }
  EXPECT_EQ(ranges("SELECT VALUE 1"), nothing());
  EXPECT_EQ(ranges("SELECT * FROM (SELECT 1 AS k) c"), nothing());
}

TEST_P(QueryRangesOfHashTest, WhatIsHashedHasNoOrder) {
  for (const std::string_view filter : {"c.k > 1",
                                        "c.k BETWEEN 1 AND 2",
                                        "STARTSWITH(c.k, 'a')",
                                        "c.k != 1",
                                        "c.k NOT IN (1)",
                                        "c.k LIKE 'a%'",
                                        "c.k LIKE '_'",
                                        "c.k LIKE '[a]'",
                                        "c.k LIKE 'a!%' ESCAPE '!'",
                                        "c.k NOT LIKE 'a'",
                                        "IS_DEFINED(c.k)",
                                        "NOT IS_NULL(c.k)",
                                        "NOT ARRAY_CONTAINS([1], c.k)",
                                        "c.k = c.x",
                                        "c.k IN (1, c.x)",
                                        "c.k[0] = 1",
                                        "c.k.a = 1",
                                        "c.x = 1",
                                        "true",
                                        "LOWER(c.k) = 'a'",
                                        "c.k = 1 = true",
                                        "c.k = GetCurrentTimestamp()",
                                        "ARRAY_CONTAINS(c.tags, c.k)",
                                        "ARRAY_CONTAINS([1, c.x], c.k)",
                                        "c.k ? true : false",
                                        "c.k = 1 ?? true",
                                        "EXISTS(SELECT VALUE t FROM t IN c.tags WHERE c.k = 1)"}) {
    EXPECT_EQ(where(filter), everything()) << filter;
  }
  EXPECT_EQ(ranges("SELECT * FROM c"), everything());
}

TEST_P(QueryRangesOfHashTest, AnAlternativeAboutSomethingElseIsEverywhere) {
  EXPECT_EQ(where("c.k = 1 OR c.x = 1"), everything());
  EXPECT_EQ(where("c.k = 1 AND (c.k = 1 OR c.x = 1)"), points({1.0}));
  EXPECT_EQ(where("c.k = 1 OR false"), points({1.0}));
}

TEST_P(QueryRangesOfHashTest, ArraysAndObjectsAreKeptWithWhatHasNoKey) {
  EXPECT_EQ(where("c.k = [1, 2]"), points({Undefined{}}));
  EXPECT_EQ(where("c.k = {\"a\": c.x}"), points({Undefined{}}));
  EXPECT_EQ(where("ARRAY_CONTAINS([1, {\"a\": 1}], c.k, true)"), points({1.0, Undefined{}}));
}

TEST_P(QueryRangesOfHashTest, ParametersAreValues) {
  const auto list = json::Value::parse(R"([1,"x",[2]])");
  parameters_.set("@s", json::Value::string("a"));
  parameters_.set("@list", *list);
  parameters_.set("@name", json::Value::string("k"));
  parameters_.set("@yes", json::Value::boolean(true));
  EXPECT_EQ(where("c.k = @s"), points({text("a")}));
  EXPECT_EQ(where("c.k = @list"), points({Undefined{}}));
  EXPECT_EQ(where("ARRAY_CONTAINS(@list, c.k)"), points({1.0, text("x"), Undefined{}}));
  EXPECT_EQ(where("c[@name] IN (@s, 1)"), points({text("a"), 1.0}));
  EXPECT_EQ(where("@yes"), everything());
  EXPECT_EQ(where("NOT @yes"), nothing());
  EXPECT_EQ(where("ARRAY_CONTAINS(@s, c.k)"), nothing());
}

TEST_P(QueryRangesOfHashTest, ConstantsAreComputed) {
  EXPECT_EQ(where("c.k = 'a' || 'b'"), points({text("ab")}));
  EXPECT_EQ(where("c.k = UPPER('a')"), points({text("A")}));
  EXPECT_EQ(where("c.k = (1 + 2) * 3"), points({9.0}));
  EXPECT_EQ(where("c['k' || ''] = 1"), points({1.0}));
  EXPECT_EQ(where("1 = 1 AND c.k = 1"), points({1.0}));
}

TEST_P(QueryRangesOfHashTest, TheContainerHasAnyName) {
  EXPECT_EQ(ranges("SELECT * FROM root r WHERE r.k = 1"), points({1.0}));
  EXPECT_EQ(ranges("SELECT * FROM c JOIN t IN c.tags WHERE c.k = 1 AND t.k = 2"), points({1.0}));
  EXPECT_EQ(ranges("SELECT * FROM t IN c.tags WHERE t.k = 1"), everything());
  EXPECT_EQ(ranges("SELECT * FROM c JOIN c IN c.tags WHERE c.k = 1"), everything());
  // The ranges of a query in FROM bound the query around it.
  EXPECT_EQ(ranges("SELECT x.k FROM (SELECT * FROM c WHERE c.k = 1) x WHERE x.k = 2"),
            points({1.0}));
}

TEST_P(QueryRangesOfHashTest, PartsOfDocumentsHaveTheirPaths) {
  definition_.paths = {{"home", "k"}};
  EXPECT_EQ(where("c.home.k = 1"), points({1.0}));
  EXPECT_EQ(where("c.home['k'] = 1"), points({1.0}));
  EXPECT_EQ(where("c.k = 1"), everything());
  EXPECT_EQ(ranges("SELECT * FROM c.home h WHERE h.k = 1"), points({1.0}));
  EXPECT_EQ(ranges("SELECT * FROM c.home.k WHERE k = 1"), points({1.0}));
}

TEST_P(QueryRangesOfHashTest, WhatADocumentOnlySeemsToHaveIsNotItsKey) {
  settings_.computed = {{.name = "k", .query = "SELECT VALUE LOWER(c.x) FROM c"}};
  EXPECT_EQ(where("c.k = 'a'"), everything());
  settings_.computed.clear();
  definition_.paths = {{"_ts"}};
  EXPECT_EQ(where("c._ts = 1"), everything());
}

TEST_P(QueryRangesOfHashTest, OneValuePinsTheKey) {
  EXPECT_THAT(pinned("c.k = 'a' AND c.x > 1"), ElementsAre(PartitionKey({text("a")})));
  EXPECT_THAT(pinned("c.k IN (1, 2) AND c.k != 3 AND c.k = 2"), ElementsAre(PartitionKey({2.0})));
  EXPECT_THAT(pinned("c.k IN (1, 2)"), IsEmpty());
  EXPECT_THAT(pinned("c.x = 1"), IsEmpty());
}

TEST_P(QueryRangesOfHashTest, AFilterMaySayNoMoreThanTheKey) {
  for (const std::string_view filter : {"c.k = 'a'", "'a' = c.k", "c.k = 7", "c.k = true",
                                        "c.k = 0", "c.k = 'a' AND c['k'] = 'a'"}) {
    EXPECT_TRUE(pin(filter).is_whole_filter) << filter;
  }
  // Of an object only that it is none of the others is known; of a large number not all digits.
  for (const std::string_view filter :
       {"c.k = 'a' AND c.x = 1", "c.k = {}", "c.k = null", "c.k = 9007199254740993",
        "c.k = -9007199254740992", "c.k IN ('a')", "c.k = 'a' OR false", "c.k = 'a' AND true",
        "c.k LIKE 'a'", "c.x = 1"}) {
    EXPECT_FALSE(pin(filter).is_whole_filter) << filter;
  }
}

TEST(OnlyCountsTest, IsTrueOfCountsOfConstantsOverWholeDocuments) {
  const auto counts = [](std::string_view text) {
    const auto query = Parser(text).parse_query();
    return query.has_value() && only_counts(**query);
  };
  for (const std::string_view text :
       {"SELECT VALUE COUNT(1) FROM c", "SELECT COUNT(1) FROM c WHERE c.x = 1",
        "SELECT COUNT('x') AS a, COUNT(null) AS b FROM c"}) {
    EXPECT_TRUE(counts(text)) << text;
  }
  for (const std::string_view text :
       {"SELECT VALUE COUNT(c.x) FROM c", "SELECT VALUE COUNT(undefined) FROM c",
        "SELECT VALUE COUNT(1) + 1 FROM c", "SELECT VALUE MAX(1) FROM c",
        "SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags", "SELECT VALUE COUNT(1) FROM t IN c.tags",
        "SELECT VALUE COUNT(1) FROM c.x", "SELECT VALUE COUNT(1) FROM c GROUP BY c.x",
        "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.x FROM c)", "SELECT VALUE COUNT(1)",
        "SELECT VALUE COUNT() FROM c", "SELECT VALUE COUNT(1, 2) FROM c", "SELECT * FROM c",
        "SELECT COUNT(1) AS n, c.x FROM c"}) {
    EXPECT_FALSE(counts(text)) << text;
  }
}

TEST_P(QueryRangesOfHashTest, LongListsStayWithinBounds) {
  std::string list = "c.k IN (-1";
  for (int i = 1; i < 5000; ++i) list += ',' + std::to_string(i);
  EXPECT_EQ(where(list + ")").size(), 5000);
  for (int i = 5000; i < 12000; ++i) list += ',' + std::to_string(i);
  EXPECT_EQ(where(list + ")"), everything());

  std::string alternatives = "c.k = 0.5";
  for (int i = 1; i < 5000; ++i) alternatives += " OR c.k = " + std::to_string(i);
  EXPECT_EQ(where(alternatives).size(), 5000);
}

TEST_F(QueryRangesTest, NoKeyNoPoints) {
  definition_ = {};
  EXPECT_EQ(where("c.k = 1"), everything());
  EXPECT_THAT(pinned("c.k = 1"), IsEmpty());
  EXPECT_EQ(where("false"), nothing());
}

class QueryRangesOfHierarchyTest : public QueryRangesTest {
 protected:
  void SetUp() override {
    definition_ = {.paths = {{"a"}, {"b"}, {"c"}}, .kind = KeyKind::MultiHash, .version = 2};
  }
};

TEST_F(QueryRangesOfHierarchyTest, AllPathsAreAPoint) {
  EXPECT_THAT(where("c.a = 1 AND c.b = 'x' AND c.c = true"),
              ElementsAre(point({1.0, text("x"), true})));
  EXPECT_THAT(pinned("c.c = 3 AND c.a = 1 AND c.b = 2"),
              ElementsAre(PartitionKey({1.0, 2.0, 3.0})));
}

TEST_F(QueryRangesOfHierarchyTest, TheFirstPathsAreAPrefix) {
  EXPECT_THAT(where("c.a = 1"), ElementsAre(prefix({1.0})));
  EXPECT_THAT(where("c.a = 1 AND c.b = 2"), ElementsAre(prefix({1.0, 2.0})));
  EXPECT_THAT(where("c.a = 1 AND c.c = 2"), ElementsAre(prefix({1.0})));
  EXPECT_THAT(pinned("c.a = 1 AND c.b = 2"), IsEmpty());
}

TEST_F(QueryRangesOfHierarchyTest, OtherPathsAreEverywhere) {
  EXPECT_EQ(where("c.b = 1"), everything());
  EXPECT_EQ(where("c.b = 1 AND c.c = 2"), everything());
  EXPECT_EQ(where("c.a = 1 OR c.b = 1"), everything());
}

TEST_F(QueryRangesOfHierarchyTest, AlternativesOfPrefixesAreApart) {
  auto expected = std::vector{prefix({1.0, 2.0}), prefix({1.0, 3.0}), prefix({4.0})};
  std::ranges::sort(expected, {}, &QueryRange::min);
  EXPECT_EQ(where("c.a = 1 AND c.b IN (2, 3) OR c.a = 4"), expected);
  // One that is within another is not there.
  EXPECT_THAT(where("c.a = 1 AND c.b = 2 OR c.a = 1"), ElementsAre(prefix({1.0})));
  EXPECT_THAT(where("c.a = 1 AND c.b = 2 AND c.c = 3 OR c.a = 1 AND c.b = 2"),
              ElementsAre(prefix({1.0, 2.0})));
  EXPECT_EQ(where("c.a = 1 AND c.b = 2 AND (c.a = 2 OR c.b = 3)"), nothing());
}

TEST_F(QueryRangesOfHierarchyTest, WhatIsNotThereMayBeKeptAsNull) {
  auto expected = std::vector{prefix({Undefined{}}), prefix({Null{}})};
  std::ranges::sort(expected, {}, &QueryRange::min);
  EXPECT_EQ(where("c.a = [1]"), expected);
}

TEST_F(QueryRangesOfHierarchyTest, ManyCombinationsFallBackToShorterPrefixes) {
  std::string list = "(1";
  for (int i = 2; i <= 200; ++i) list += ',' + std::to_string(i);
  list += ')';
  EXPECT_EQ(where("c.a IN " + list + " AND c.b IN " + list).size(), 200);
}

TEST_F(QueryRangesOfHierarchyTest, RepeatedAlternativesEnd) {
  // Each condition doubles the combinations, were they all kept.
  std::string filter = "c.a IN (1";
  for (int i = 2; i < 2000; ++i) filter += ',' + std::to_string(i);
  filter += ')';
  for (int i = 0; i < 2000; ++i) filter += " AND (c.a = 1 OR c.b = 2)";
  const auto found = where(filter);
  // The document {"a": 1, "b": 2} passes, so it must be in one of them.
  const QueryRange wanted = prefix({1.0, 2.0});
  EXPECT_TRUE(std::ranges::any_of(found, [&](const QueryRange& range) {
    return range.min <= wanted.min && wanted.max <= range.max;
  }));
}

// ── No document that passes a filter is outside of its ranges ──

/// Filters over the two levels of a key and something else, in all their combinations.
class RandomFilter {
 public:
  explicit RandomFilter(std::uint64_t seed) : random_(seed) {}

  std::string filter(int depth) {
    if (depth == 0) return condition();
    switch (below(5)) {
      case 0:
        return '(' + filter(depth - 1) + " AND " + filter(depth - 1) + ')';
      case 1:
        return '(' + filter(depth - 1) + " OR " + filter(depth - 1) + ')';
      case 2:
        return "(NOT " + filter(depth - 1) + ')';
      default:
        return condition();
    }
  }

  std::string document() {
    std::string text = "{";
    for (const std::string_view name : {"a", "b", "x"}) {
      if (below(6) == 0) continue;
      if (text.size() > 1) text += ',';
      text += '"' + std::string(name) + "\":" + std::string(pick(kValues));
    }
    return text + '}';
  }

 private:
  static constexpr std::string_view kPaths[] = {"c.a", "c.b", "c['a']", "c.x"};
  static constexpr std::string_view kValues[] = {"1",     "2",     "-1",        "0",
                                                 "-0.0",  "\"s\"", "\"S\"",     "true",
                                                 "false", "null",  "[1,\"s\"]", "{\"k\":1}"};

  std::string condition() {
    const std::string path(pick(kPaths));
    const std::string value(pick(kValues));
    switch (below(12)) {
      case 0:
        return '(' + path + " != " + value + ')';
      case 1:
        return '(' + path + " IN (" + value + ", " + std::string(pick(kValues)) + "))";
      case 2:
        return '(' + path + " NOT IN (" + value + "))";
      case 3:
        return "IS_NULL(" + path + ')';
      case 4:
        return "IS_BOOL(" + path + ')';
      case 5:
        return path;
      case 6:
        return '(' + path + " LIKE " + value + ')';
      case 7:
        return "ARRAY_CONTAINS([" + value + ", \"s\"], " + path + ')';
      case 8:
        return "(ABS(" + path + ") = " + value + ')';
      case 9:
        return value;
      default:
        return '(' + path + " = " + value + ')';
    }
  }

  std::size_t below(std::size_t bound) { return random_() % bound; }
  template <typename T, std::size_t count>
  const T& pick(const T (&list)[count]) {
    return list[below(count)];
  }

  std::mt19937_64 random_;
};

KeyComponent component_of(const json::Value& value) {
  std::string buffer;
  switch (value.kind()) {
    case json::Kind::Null:
      return Null{};
    case json::Kind::Boolean:
      return value.as_boolean();
    case json::Kind::Number:
      return value.as_number().real;
    case json::Kind::String:
      return std::string(value.as_string(buffer));
    default:
      return Undefined{};
  }
}

bool holds(const QueryRange& range, const Epk& epk) {
  return range.min <= epk && (epk < range.max || (range.is_max_inclusive && epk == range.max));
}

TEST_F(QueryRangesTest, WhateverPassesIsWithinThem) {
  const PartitionKeyDefinition definitions[] = {
      {.paths = {{"a"}}, .version = 1},
      {.paths = {{"a"}}, .version = 2},
      {.paths = {{"a"}, {"b"}}, .kind = KeyKind::MultiHash, .version = 2},
  };
  const std::string_view aliases[] = {"c"};
  std::size_t passed = 0;
  std::size_t bounded = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    RandomFilter random(seed);
    const std::string filter = random.filter(3);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << filter);
    const auto predicate = Predicate::parse(filter, aliases);
    ASSERT_TRUE(predicate.has_value()) << predicate.error().message();
    for (const PartitionKeyDefinition& definition : definitions) {
      definition_ = definition;
      const std::vector<QueryRange> found = where(filter);
      bounded += found != everything();
      for (int i = 0; i < 10; ++i) {
        const std::string text = random.document();
        const json::Value document = json::Value::of_checked(text);
        if (!predicate->is_true_of(document).value_or(false)) continue;
        ++passed;
        std::vector<KeyComponent> key;
        for (const auto& path : definition.paths) {
          key.push_back(component_of(document.member(path[0])));
        }
        const Epk epk = effective_partition_key(definition, PartitionKey(std::move(key)));
        EXPECT_TRUE(std::ranges::any_of(found, [&](const QueryRange& range) {
          return holds(range, epk);
        })) << text;
      }
    }
  }
  // Otherwise it says nothing.
  EXPECT_GT(passed, 1000);
  EXPECT_GT(bounded, 1000);
}

}  // namespace
}  // namespace orrery::query
