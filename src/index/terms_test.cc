#include "index/terms.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "geo/cells.h"
#include "json/sort_key.h"

namespace orrery::index {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

/// The key of what a JSON text says; of undefined for an empty one.
std::string key_of(std::string_view json) {
  std::string key;
  const auto value = json.empty() ? json::Value() : json::Value::of_checked(json);
  json::append_sort_key(key, value, json::kIndexedStringBytesMax);
  return key;
}

std::vector<std::vector<std::string>> terms_of(std::vector<std::string_view> specs,
                                               std::string_view document) {
  std::vector<IndexSpec> parsed;
  for (const auto spec : specs) parsed.push_back(IndexSpec::parse(spec).value());
  std::vector<std::vector<std::string>> terms(specs.size());
  TermFinder(std::move(parsed)).find(document, terms);
  return terms;
}

TEST(TermFinderTest, APathHasTheValueThatIsThere) {
  const auto terms = terms_of({"/a", "/b/c", "/\"d e\"", "/n", "/o"},
                              R"({"a":1,"b":{"c":"x"},"d e":true,"n":null,"o":{"p":[1]}})");
  EXPECT_THAT(terms, ElementsAre(ElementsAre(key_of("1")), ElementsAre(key_of(R"("x")")),
                                 ElementsAre(key_of("true")), ElementsAre(key_of("null")),
                                 ElementsAre(key_of(R"({"p":[1]})"))));
}

TEST(TermFinderTest, WhatIsNotThereIsUndefined) {
  const auto terms = terms_of({"/a", "/b/c", "/d/c"}, R"({"b":7,"d":{}})");
  EXPECT_THAT(terms, ElementsAre(ElementsAre(key_of("")), ElementsAre(key_of("")),
                                 ElementsAre(key_of(""))));
}

TEST(TermFinderTest, ElementsHaveOneTermForEachDifferentValue) {
  const auto terms = terms_of({"/a/[]"}, R"({"a":[3,"x",3.0,[1],"x"]})");
  EXPECT_THAT(terms[0], UnorderedElementsAre(key_of("3"), key_of(R"("x")"), key_of("[1]")));
}

TEST(TermFinderTest, WhereThereAreNoElementsThereAreNoTerms) {
  for (const std::string_view document :
       {R"({})", R"({"a":[]})", R"({"a":{"x":1}})", R"({"a":5})"}) {
    EXPECT_THAT(terms_of({"/a/[]"}, document)[0], IsEmpty()) << document;
    EXPECT_THAT(terms_of({"/a/[]/b/[]"}, document)[0], IsEmpty()) << document;
  }
}

TEST(TermFinderTest, GoesThroughElementsOfElements) {
  const std::string_view document =
      R"({"a":[{"b":[{"c":1},{"c":2}]},{"b":5},{"b":[{"c":2},{}]},7,{"b":[[]]}]})";
  const auto terms = terms_of({"/a/[]/b/[]/c", "/a/[]/b", "/x/a/[]"}, document);
  EXPECT_THAT(terms[0], UnorderedElementsAre(key_of("1"), key_of("2"), key_of("")));
  EXPECT_THAT(terms[1],
              UnorderedElementsAre(key_of(R"([{"c":1},{"c":2}])"), key_of("5"),
                                   key_of(R"([{"c":2},{}])"), key_of(""), key_of("[[]]")));
  EXPECT_THAT(terms[2], IsEmpty());
}

TEST(TermFinderTest, ACompositeHasItsValuesBehindEachOther) {
  const auto terms = terms_of({"/a ASC,/b/c DESC", "/a ASC,/z ASC"}, R"({"b":{"c":"x"},"a":4})");
  std::string expected = key_of("4");
  json::append_sort_key_descending(expected, json::Value::string_at("x"),
                                   json::kIndexedStringBytesMax);
  EXPECT_THAT(terms[0], ElementsAre(expected));
  EXPECT_THAT(terms[1], ElementsAre(key_of("4") + key_of("")));
}

TEST(TermFinderTest, LongStringsAreCut) {
  const std::string text = "\"" + std::string(5000, 'x') + "\"";
  const auto terms = terms_of({"/a", "/b/[]"}, R"({"a":)" + text + R"(,"b":[)" + text + "]}");
  EXPECT_THAT(terms[0], ElementsAre(key_of(text)));
  EXPECT_THAT(terms[1], ElementsAre(key_of(text)));
  EXPECT_LT(terms[0][0].size(), json::kIndexedStringBytesMax + 20);
}

TEST(TermFinderTest, AppendsToWhatIsThere) {
  const TermFinder finder({IndexSpec::parse("/a/[]").value()});
  std::vector<std::vector<std::string>> terms(1);
  finder.find(R"({"a":[2,1]})", terms);
  finder.find(R"({"a":[1]})", terms);
  EXPECT_THAT(terms[0], ElementsAre(key_of("1"), key_of("2"), key_of("1")));
}

TEST(TermFinderTest, TheRootIsTheDocument) {
  EXPECT_THAT(terms_of({"/"}, R"({"a":1})")[0], ElementsAre(key_of(R"({"a":1})")));
}

// ── geometries ───────────────────────────────────────────────────────────────────────────────────

std::vector<std::string> cells_of(std::string_view geometry, bool is_planar = false) {
  return geo::covering_cells(json::Value::of_checked(geometry), is_planar, geo::kEntryCellsMax);
}

constexpr std::string_view kPoint = R"({"type":"Point","coordinates":[12.5,41.9]})";
constexpr std::string_view kLine = R"({"type":"LineString","coordinates":[[0,0],[7,3]]})";

TEST(TermFinderTest, AGeometryHasItsCells) {
  const std::string document =
      R"({"p":)" + std::string(kPoint) + R"(,"l":)" + std::string(kLine) + "}";
  const auto terms = terms_of({"/p SPATIAL", "/l SPATIAL", "/l SPATIAL PLANAR", "/l"}, document);
  EXPECT_EQ(terms[0].size(), 1U);
  EXPECT_EQ(terms[0], cells_of(kPoint));
  EXPECT_GT(terms[1].size(), 1U);
  EXPECT_EQ(terms[1], cells_of(kLine));
  EXPECT_EQ(terms[2], cells_of(kLine, true));
  EXPECT_NE(terms[1], terms[2]);
  EXPECT_THAT(terms[3], ElementsAre(key_of(kLine)));
}

TEST(TermFinderTest, WhatIsNoGeometryHasNoCells) {
  const auto terms = terms_of({"/a SPATIAL", "/b SPATIAL", "/c SPATIAL", "/d SPATIAL"},
                              R"({"a":1,"b":{"type":"Point","coordinates":[1,91]},"c":[]})");
  EXPECT_THAT(terms, ElementsAre(IsEmpty(), IsEmpty(), IsEmpty(), IsEmpty()));
}

TEST(TermFinderTest, GeometriesInAnArrayHaveTheirCellsOnceAndInOrder) {
  const std::string point(kPoint);
  const auto terms =
      terms_of({"/a/[]/at SPATIAL"}, R"({"a":[{"at":)" + std::string(kLine) + R"(},7,{"at":)" +
                                         point + R"(},{"at":)" + point + "}]}");
  auto expected = cells_of(kLine);
  expected.push_back(cells_of(kPoint).front());
  std::ranges::sort(expected);
  EXPECT_EQ(terms.front(), expected);
}

}  // namespace
}  // namespace orrery::index
