#include "protocol/container/index_path.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace orrery {
namespace {

IndexPath path_of(std::vector<IndexPath::Step> steps) { return {std::move(steps)}; }

TEST(IndexPathTest, IsWrittenWithQuotesWhereANameIsNoPlainWord) {
  const auto path = path_of({{"a"}, {.name = "", .is_element = true}, {"b c"}, {"x\"y/\n"}, {""}});
  EXPECT_EQ(path.text(), R"(/a/[]/"b c"/"x\"y/\n"/"")");
  EXPECT_EQ(IndexPath::parse(path.text()), path);
  EXPECT_TRUE(path.has_elements());
}

TEST(IndexPathTest, AMemberThatIsCalledLikeAnElementIsNoElement) {
  const auto path = path_of({{"[]"}});
  EXPECT_EQ(path.text(), R"(/"[]")");
  EXPECT_EQ(IndexPath::parse(path.text()), path);
  EXPECT_FALSE(path.has_elements());
}

TEST(IndexPathTest, TheRootHasNoSteps) {
  EXPECT_EQ(IndexPath{}.text(), "/");
  EXPECT_EQ(IndexPath::parse("/"), IndexPath{});
}

TEST(IndexPathTest, NamesOfOtherLettersStandInQuotes) {
  const auto path = path_of({{"größe"}});
  EXPECT_EQ(path.text(), R"(/"größe")");
  EXPECT_EQ(IndexPath::parse(path.text()), path);
}

TEST(IndexPathTest, AQuotedWordIsTheSameAsAPlainOne) {
  EXPECT_EQ(IndexPath::parse(R"(/"a"/"\u0062")"), path_of({{"a"}, {"b"}}));
}

TEST(IndexPathTest, RefusesWhatIsNoPath) {
  for (const std::string_view text : {"", "a", "/a/", "//a", "/a b", "/[", "/[]x", "/[0]", "/\"a",
                                      "/\"\\q\"", "/a?", "/*", "/a/?", "/a,/b", "/-1", "/\"a\"b"}) {
    EXPECT_FALSE(IndexPath::parse(text)) << text;
  }
}

TEST(IndexSpecTest, ASinglePathIsWrittenAsSuch) {
  const auto spec = IndexSpec::single(path_of({{"a"}, {.name = "", .is_element = true}}));
  EXPECT_EQ(spec.text(), "/a/[]");
  EXPECT_EQ(IndexSpec::parse("/a/[]"), spec);
  EXPECT_FALSE(spec.is_composite());
}

TEST(IndexSpecTest, ACompositeIsWrittenWithItsDirections) {
  const IndexSpec spec{{{path_of({{"a"}, {"b"}}), false}, {path_of({{"c ASC,"}}), true}}};
  EXPECT_EQ(spec.text(), R"(/a/b ASC,/"c ASC," DESC)");
  EXPECT_EQ(IndexSpec::parse(spec.text()), spec);
  EXPECT_TRUE(spec.is_composite());
}

TEST(IndexSpecTest, ASpatialOneSaysWhereItsGeometriesLie) {
  const auto path = path_of({{"a"}, {.name = "", .is_element = true}, {"b SPATIAL"}});
  const auto earth = IndexSpec::single(path, IndexKind::EarthCells);
  EXPECT_EQ(earth.text(), R"(/a/[]/"b SPATIAL" SPATIAL)");
  EXPECT_EQ(IndexSpec::parse(earth.text()), earth);
  const auto plane = IndexSpec::single(path, IndexKind::PlaneCells);
  EXPECT_EQ(plane.text(), R"(/a/[]/"b SPATIAL" SPATIAL PLANAR)");
  EXPECT_EQ(IndexSpec::parse(plane.text()), plane);
  EXPECT_NE(earth, plane);
  EXPECT_NE(earth, IndexSpec::single(path));
  EXPECT_TRUE(earth.is_spatial() && plane.is_spatial() && !IndexSpec::single(path).is_spatial());
}

TEST(IndexSpecTest, RefusesWhatIsNoSpec) {
  for (const std::string_view text :
       {"", "/a ASC", "/a DESC", "/a,/b", "/a ASC,", "/a ASC,/b", "/a ASC,/b DESC,",
        "/a asc,/b asc", "/a ASC, /b ASC", "/a/[] ASC,/b ASC", "/a ASC/b ASC", "/a PLANAR",
        "/a SPATIAL,/b SPATIAL", "/a ASC,/b SPATIAL", "/a SPATIAL ASC", "/a SPATIAL PLANAR PLANAR",
        "/a spatial"}) {
    EXPECT_FALSE(IndexSpec::parse(text)) << text;
  }
}

}  // namespace
}  // namespace orrery
