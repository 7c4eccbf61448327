#include "query/eval/predicate.h"

#include <map>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "protocol/ids.h"
#include "query/eval/projection.h"

namespace orrery::query {
namespace {

using json::Value;
using ::testing::HasSubstr;

constexpr std::string_view kCurrent[] = {"c"};
constexpr std::string_view kBoth[] = {"c", "p"};

bool matches(std::string_view text, std::string_view document) {
  const auto predicate = Predicate::parse(text, kCurrent);
  EXPECT_TRUE(predicate.has_value()) << text << ": " << predicate.error().message();
  return predicate && predicate->is_true_of(Value::of_checked(document)).value_or(false);
}

TEST(Predicate, OnlyTrueMatches) {
  EXPECT_TRUE(matches("c.a = 1", R"({"a":1})"));
  EXPECT_FALSE(matches("c.a = 1", R"({"a":2})"));
  EXPECT_FALSE(matches("c.a = 1", "{}"));
  EXPECT_FALSE(matches("NOT (c.a = 1)", "{}"));
  EXPECT_FALSE(matches("c.a != 1", "{}"));
  EXPECT_TRUE(matches("c.a != 1", R"({"a":"1"})"));
  EXPECT_TRUE(matches("c.a", R"({"a":true})"));
  EXPECT_FALSE(matches("c.a", R"({"a":1})"));
  EXPECT_FALSE(matches("c.a", R"({"a":"true"})"));
  EXPECT_FALSE(matches("c.a", R"({"a":null})"));
  EXPECT_TRUE(matches("true", "{}"));
  EXPECT_FALSE(matches("'true'", "{}"));
}

TEST(Predicate, ComparesWhatADocumentWasWithWhatItIs) {
  const auto changed = Predicate::parse("c.price != p.price AND p.price > 1", kBoth);
  ASSERT_TRUE(changed.has_value());
  const auto says = [&](std::string_view current, std::string_view previous) {
    const Value documents[] = {Value::of_checked(current), Value::of_checked(previous)};
    return changed->is_true_of(documents).value_or(false);
  };
  EXPECT_TRUE(says(R"({"price":3})", R"({"price":2})"));
  EXPECT_FALSE(says(R"({"price":2})", R"({"price":2.0})"));
  EXPECT_FALSE(says(R"({"price":2})", ""));  // Created: there is no previous one.
  EXPECT_FALSE(says("", R"({"price":2})"));
}

TEST(Predicate, DeletesAreTellable) {
  const auto deleted = Predicate::parse("NOT IS_DEFINED(c) AND p.kind = 'moon'", kBoth);
  ASSERT_TRUE(deleted.has_value());
  const Value documents[] = {Value(), Value::of_checked(R"({"kind":"moon"})")};
  EXPECT_TRUE(deleted->is_true_of(documents).value_or(false));
}

TEST(Predicate, ThePreviousOneIsUnknownWhereThereIsNone) {
  const auto predicate = Predicate::parse("c.a = p.a", kCurrent);
  ASSERT_FALSE(predicate.has_value());
  EXPECT_THAT(predicate.error().message(), HasSubstr("Identifier 'p' could not be resolved."));
}

TEST(Predicate, AQueryIsNoPredicate) {
  EXPECT_FALSE(Predicate::parse("SELECT * FROM c WHERE c.a = 1", kCurrent).has_value());
  EXPECT_FALSE(Predicate::parse("WHERE c.a = 1", kCurrent).has_value());
  EXPECT_FALSE(Predicate::parse("a = 1", kCurrent).has_value());
  EXPECT_FALSE(Predicate::parse("", kCurrent).has_value());
  EXPECT_FALSE(Predicate::parse("c.a = 1;", kCurrent).has_value());
  EXPECT_FALSE(Predicate::parse("c.a = '\xFF'", kCurrent).has_value());
}

TEST(Predicate, CopiesOutliveTheFirstAndTheText) {
  std::optional<Predicate> copy;
  {
    std::string text = "c.name = 'a long enough name for the heap' AND c.b IN ('x', 'y')";
    const auto predicate = Predicate::parse(text, kCurrent);
    copy = *predicate;
    text.assign(text.size(), '#');
  }
  EXPECT_TRUE(
      copy->is_true_of(Value::of_checked(R"({"b":"x","name":"a long enough name for the heap"})"))
          .value_or(false));
}

// ── What the container says ──────────────────────────────────────────────────────────────────────

Settings settings_of_a_container() {
  Settings settings = plain_settings();
  settings.surroundings.is_planar = true;
  settings.languages.push_back({{"t"}, "de-DE"});
  settings.vectors.push_back({{"v"}, "euclidean", "float32"});
  settings.computed.push_back({"low", "SELECT VALUE LOWER(x.name) FROM x"});
  return settings;
}

TEST(Predicate, ObeysWhatTheContainerSaysOfItsDocuments) {
  const Value document =
      Value::of_checked(R"({"name":"ORRERY","tags":["orrery"],"t":"Die Häuser","v":[1,1],)"
                        R"("p":{"type":"Point","coordinates":[0,0]}})");
  for (const auto* text :
       {"c.low = 'orrery'", "c['low'] = 'orrery'", "FullTextContains(c.t, 'Haus')",
        "VectorDistance(c.v, [0, 0]) < 2 AND VectorDistance(c.v, [0, 0]) > 1",
        "ST_DISTANCE(c.p, {'type':'Point','coordinates':[1,0]}) < 1.5",
        "EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = c.low)"}) {
    const auto obeying = Predicate::parse(text, kCurrent, settings_of_a_container());
    ASSERT_TRUE(obeying.has_value()) << text << ": " << obeying.error().message();
    EXPECT_TRUE(obeying->is_true_of(document).value_or(false)) << text;
    const auto plain = Predicate::parse(text, kCurrent);
    ASSERT_TRUE(plain.has_value()) << text << ": " << plain.error().message();
    EXPECT_FALSE(plain->is_true_of(document).value_or(false)) << text;
    const auto beside_another = Predicate::parse(text, kBoth, settings_of_a_container());
    ASSERT_TRUE(beside_another.has_value()) << text << ": " << beside_another.error().message();
    const Value documents[] = {Value::referring_to(document), Value::of_checked("{}")};
    EXPECT_TRUE(beside_another->is_true_of(documents).value_or(false)) << text;
  }
  const auto condition =
      Predicate::parse_condition("from d where d.low = 'orrery'", settings_of_a_container());
  ASSERT_TRUE(condition.has_value()) << condition.error().message();
  EXPECT_TRUE(condition->is_true_of(document).value_or(false));
}

TEST(Predicate, KnowsTheNumberOfItsDocument) {
  const Rid container = Rid::container({0, 0, 0, 1}, {0x80, 0, 0, 1});
  const Rid document = Rid::document(container, DocumentNumber{7});
  const std::string text = R"({"_rid":")" + document.text() + R"("})";
  EXPECT_TRUE(matches("DOCUMENTID(c) = 7", text));
  EXPECT_FALSE(matches("DOCUMENTID(c) >= 0", "{}"));
}

/// A document whose list has so many rows when it is joined with itself twice that it is too much.
std::string document_of_too_many_rows() {
  std::string text = R"({"l":[0)";
  for (int i = 1; i <= 100; ++i) text += ",0";
  return text + "]}";
}
constexpr auto kTooManyRows =
    "(SELECT VALUE COUNT(1) FROM x IN c.l JOIN y IN c.l JOIN z IN c.l) > 0";

TEST(Predicate, WhatEndsAQueryIsAnErrorHereToo) {
  const auto predicate = Predicate::parse(kTooManyRows, kCurrent);
  ASSERT_TRUE(predicate.has_value()) << predicate.error().message();
  const std::string text = document_of_too_many_rows();
  const auto answer = predicate->is_true_of(Value::of_checked(text));
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code(), ErrorCode::BadRequest);
  EXPECT_THAT(answer.error().message(), HasSubstr("more than 1000000 rows"));
  EXPECT_TRUE(predicate->is_true_of(Value::of_checked(R"({"l":[1]})")).value_or(false));
}

TEST(Condition, NamesItsDocumentItself) {
  const auto says = [](std::string_view text) {
    const auto condition = Predicate::parse_condition(text);
    EXPECT_TRUE(condition.has_value()) << text << ": " << condition.error().message();
    return condition &&
           condition->is_true_of(Value::of_checked(R"({"a":1,"b":"x"})")).value_or(false);
  };
  EXPECT_TRUE(says("from c where c.a = 1"));
  EXPECT_TRUE(says("FROM root WHERE root.a = 1 AND root.b = 'x'"));
  EXPECT_TRUE(says("From products p Where p.a = 1"));
  EXPECT_TRUE(says("from products as p where p.a = 1"));
  EXPECT_FALSE(says("from c where c.a = 2"));
  EXPECT_FALSE(says("from c where c.missing = 2"));
}

TEST(Condition, WhatIsNoneIsRefusedWithItsPlace) {
  const auto refusal = [](std::string_view text) {
    const auto condition = Predicate::parse_condition(text);
    EXPECT_FALSE(condition.has_value()) << text;
    return condition ? "" : condition.error().message();
  };
  EXPECT_THAT(refusal("from products p where products.a = 1"),
              HasSubstr(R"("start":22,"end":30},"code":"SC2001")"));
  EXPECT_THAT(refusal("c.a = 1"), HasSubstr(R"("start":0,"end":1},"code":"SC1001")"));
  EXPECT_THAT(refusal("from c"), HasSubstr(R"("start":6,"end":6},"code":"SC1002")"));
  EXPECT_THAT(refusal("from c where"), HasSubstr("SC1002"));
  EXPECT_THAT(refusal("select * from c where c.a = 1"), HasSubstr("SC1001"));
  EXPECT_THAT(refusal("from c where c.a = 1 order by c.a"), HasSubstr("near 'order'"));
  EXPECT_THAT(refusal("from c join t in c.tags where t = 1"), HasSubstr("near 'join'"));
  EXPECT_THAT(refusal("from t in c.tags where t = 1"), HasSubstr("near 'in'"));
  EXPECT_THAT(refusal(""), HasSubstr("SC1002"));
}

// ── Projections ──────────────────────────────────────────────────────────────────────────────────

std::string shown(std::string_view text, std::string_view document) {
  const auto projection = Projection::parse(text, kCurrent, "_lsn");
  if (!projection) return projection.error().message();
  std::string out = "# ";
  const Value documents[] = {Value::of_checked(document)};
  if (!projection->show(out, documents).value_or(false)) return "too large";
  return out.substr(2);
}

TEST(Projection, ShowsWhatIsSelected) {
  const std::string_view document =
      R"({"id":"1","a":{"b": [1, 2]},"price":2,"odd name":1.50,"none":null})";
  EXPECT_EQ(shown("c.id", document), R"({"id":"1"})");
  EXPECT_EQ(shown("c.id, c.price * 2 AS twice", document), R"({"id":"1","twice":4})");
  EXPECT_EQ(shown("c.a.b, c[\"odd name\"]", document), R"({"b":[1, 2],"odd name":1.50})");
  EXPECT_EQ(shown("c.id name, c.price 'the price'", document), R"({"name":"1","the price":2})");
  EXPECT_EQ(shown("1 + 1, c.id, c.a.b[0]", document), R"({"$1":2,"id":"1","$2":1})");
  EXPECT_EQ(shown("c.missing, c.none", document), R"({"none":null})");
  EXPECT_EQ(shown("c.missing", document), "{}");
  EXPECT_EQ(shown("c", R"({"id": "1"})"), R"({"c":{"id": "1"}})");
  EXPECT_EQ(shown("*", R"({"id": "1"})"), R"({"id": "1"})");
}

TEST(Projection, AValueThatIsNoObjectBecomesOne) {
  EXPECT_EQ(shown("VALUE {n: c.a}", R"({"a":1})"), R"({"n":1})");
  EXPECT_EQ(shown("VALUE c.o", R"({"o":{"x": 1}})"), R"({"x": 1})");
  EXPECT_EQ(shown("VALUE c.o", R"({"o":{ }})"), "{}");
  EXPECT_EQ(shown("value c.a", R"({"a":1})"), R"({"$1":1})");
  EXPECT_EQ(shown("VALUE c.missing", R"({"a":1})"), "{}");
  EXPECT_EQ(shown("VALUE [c.a]", R"({"a":1})"), R"({"$1":[1]})");
  EXPECT_EQ(shown("VALUE {_lsn: 1, n: c.a}", R"({"a":1})"), R"({"n":1})");
}

TEST(Projection, ShowsWhatTheContainerComputes) {
  const Value documents[] = {Value::of_checked(R"({"name":"ORRERY"})")};
  for (const auto& [text, expected] :
       std::map<std::string, std::string>{{"c.low", R"({"low":"orrery"})"},
                                          {"VALUE c.low", R"({"$1":"orrery"})"},
                                          {"c", R"({"c":{"name":"ORRERY"}})"},
                                          {"*", R"({"name":"ORRERY"})"}}) {
    const auto projection = Projection::parse(text, kCurrent, "_lsn", settings_of_a_container());
    ASSERT_TRUE(projection.has_value()) << text << ": " << projection.error().message();
    std::string out;
    EXPECT_TRUE(projection->show(out, documents).value_or(false)) << text;
    EXPECT_EQ(out, expected);
  }
}

TEST(Projection, WhatEndsAQueryIsAnErrorHereToo) {
  const std::string document = document_of_too_many_rows();
  const Value documents[] = {Value::of_checked(document)};
  const std::string too_many = std::string(kTooManyRows) + " AS x";
  for (const auto& [text, code] : std::map<std::string, ErrorCode>{
           {"c.l[0] AS first, 1 / 0 AS x", ErrorCode::NumberNotInJson},
           {"[{n: -1 / 0}] AS x", ErrorCode::NumberNotInJson},
           {"VALUE 0 / 0", ErrorCode::NumberNotInJson},
           {too_many, ErrorCode::BadRequest},
           {"VALUE " + std::string(kTooManyRows), ErrorCode::BadRequest}}) {
    const auto projection = Projection::parse(text, kCurrent);
    ASSERT_TRUE(projection.has_value()) << text << ": " << projection.error().message();
    std::string out = "before";
    const auto shown = projection->show(out, documents);
    ASSERT_FALSE(shown.has_value()) << text;
    EXPECT_EQ(shown.error().code(), code) << text;
    EXPECT_EQ(out, "before") << text;
  }
}

TEST(Projection, NamesAreUnique) {
  EXPECT_THAT(shown("c.a, c.b.a", "{}"), HasSubstr("SC2022"));
  EXPECT_THAT(shown("c.a AS x, c.b AS x", "{}"),
              HasSubstr("property name 'x' specified more than once"));
  EXPECT_THAT(shown("c.a, c._lsn", "{}"), HasSubstr(R"("start":5,"end":11},"code":"SC2022")"));
}

TEST(Projection, WhatIsNoListIsRefused) {
  for (const auto* text :
       {"", "c.a,", "VALUE c.a, c.b", "*, c.a", "c.a AS", "c.a AS order", "DISTINCT c.a",
        "TOP 1 c.a", "SELECT c.a", "c.a FROM c", "COUNT(1)", "d.a", "VALUE"}) {
    EXPECT_FALSE(Projection::parse(text, kCurrent).has_value()) << text;
  }
}

TEST(Projection, WhatWouldBeVeryLargeIsNotMade) {
  std::string document = R"({"a":")" + std::string(1'000'000, 'x') + R"("})";
  std::string list = "[c.a";
  for (int i = 0; i < 1000; ++i) list += ",c.a";
  EXPECT_EQ(shown(list + "] AS all", document), "too large");
  EXPECT_EQ(shown("VALUE " + list + "]", document), "too large");
  std::string items = "c.a AS a0";
  for (int i = 1; i < 10; ++i) items += ", c.a AS a" + std::to_string(i);
  EXPECT_EQ(shown(items, document), "too large");
  EXPECT_EQ(shown("c.a", document), document);
}

TEST(Projection, ShowsBothVersions) {
  const auto projection = Projection::parse("p.a AS before, c.a AS after", kBoth, "metadata");
  ASSERT_TRUE(projection.has_value());
  const Value documents[] = {Value::of_checked(R"({"a":2})"), Value::of_checked(R"({"a":1})")};
  std::string out;
  ASSERT_TRUE(projection->show(out, documents).value_or(false));
  EXPECT_EQ(out, R"({"before":1,"after":2})");
}

}  // namespace
}  // namespace orrery::query
