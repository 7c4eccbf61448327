#include "protocol/container/indexing_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

using testing::HasSubstr;

constexpr const char* kOld = "2017-11-15";
constexpr const char* kNew = "2020-07-15";

IndexingPolicy policy(std::string_view text) {
  const Json json = Json::parse(text);
  auto result = IndexingPolicy::parse(&json);
  EXPECT_TRUE(result.has_value()) << text << ": " << result.error().message();
  return result.value_or(IndexingPolicy());
}

std::string refusal(std::string_view text) {
  const Json json = Json::parse(text);
  const auto result = IndexingPolicy::parse(&json);
  if (result) return "accepted";
  EXPECT_EQ(result.error().code(), ErrorCode::BadRequest);
  return result.error().message();
}

std::vector<std::string> paths(const Json& list) {
  std::vector<std::string> result;
  for (const Json& entry : list) result.push_back(entry["path"]);
  return result;
}

TEST(IndexingPolicyTest, NothingAndAnEmptyObjectAreTheDefault) {
  const std::string expected =
      R"({"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],)"
      R"("excludedPaths":[{"path":"/\"_etag\"/?"}]})";
  EXPECT_EQ(IndexingPolicy().to_wire(kNew).dump(), expected);
  EXPECT_EQ(IndexingPolicy().to_wire("").dump(), expected) << "no version is the newest";
  EXPECT_EQ(policy("{}").to_wire(kNew).dump(), expected);
  EXPECT_EQ(policy(R"({"includedPaths":[],"excludedPaths":[]})").to_wire(kNew).dump(), expected);
  EXPECT_EQ(policy(R"({"indexingMode":null,"automatic":null})").to_wire(kNew).dump(), expected);
}

TEST(IndexingPolicyTest, OldVersionsAreShownTheOldDefault) {
  const std::string expected =
      R"({"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*","indexes":)"
      R"([{"kind":"Range","dataType":"Number","precision":-1},)"
      R"({"kind":"Hash","dataType":"String","precision":3}]}],"excludedPaths":[]})";
  EXPECT_EQ(IndexingPolicy().to_wire(kOld).dump(), expected);
  EXPECT_EQ(IndexingPolicy().to_wire("2018-09-16").dump(), expected);
  EXPECT_NE(IndexingPolicy().to_wire("2018-09-17").dump(), expected);
}

TEST(IndexingPolicyTest, OldVersionsAreShownADefaultIndexBehindASingleOne) {
  const auto hash_only = policy(
      R"({"includedPaths":[{"path":"/","indexes":[{"kind":"Hash","dataType":"Number","precision":2}]}],
          "excludedPaths":[{"path":"/\"systemMetadata\"/*"}]})");
  const Json wire = hash_only.to_wire(kOld);
  EXPECT_EQ(wire["includedPaths"].dump(),
            R"([{"path":"/","indexes":[{"kind":"Hash","dataType":"Number","precision":2},)"
            R"({"kind":"Hash","dataType":"String","precision":3}]}])");
  EXPECT_THAT(paths(wire["excludedPaths"]), testing::ElementsAre("/\"systemMetadata\"/*"));
}

TEST(IndexingPolicyTest, NewVersionsAreShownOnlySpatialIndexesOfAPath) {
  const auto mixed = policy(
      R"({"includedPaths":[{"path":"/*","indexes":[{"kind":"Hash","dataType":"String"},
          {"kind":"Range","dataType":"Number"}]},
          {"path":"/\"Location\"/?","indexes":[{"kind":"Spatial","dataType":"Point"}]}]})");
  EXPECT_EQ(mixed.to_wire(kNew)["includedPaths"].dump(),
            R"([{"path":"/*"},{"path":"/\"Location\"/?",)"
            R"("indexes":[{"kind":"Spatial","dataType":"Point"}]}])");
}

TEST(IndexingPolicyTest, TheModeIsReturnedInLowerCase) {
  EXPECT_EQ(policy(R"({"indexingMode":"Consistent"})").to_wire(kNew)["indexingMode"], "consistent");
  const auto lazy = policy(R"({"indexingMode":"Lazy"})");
  EXPECT_TRUE(lazy.lazy());
  EXPECT_EQ(lazy.to_wire(kOld)["indexingMode"], "lazy");
  EXPECT_THAT(refusal(R"({"indexingMode":"sometimes"})"), HasSubstr("indexingMode"));
  EXPECT_THAT(refusal(R"({"indexingMode":1})"), HasSubstr("indexingMode"));
}

TEST(IndexingPolicyTest, ModeNoneHasNoPathsAndIsNotAutomatic) {
  const auto none = policy(R"({"indexingMode":"None"})");
  EXPECT_TRUE(none.none());
  const std::string expected =
      R"({"indexingMode":"none","automatic":false,"includedPaths":[],"excludedPaths":[]})";
  EXPECT_EQ(none.to_wire(kNew).dump(), expected);
  EXPECT_EQ(none.to_wire(kOld).dump(), expected);
  EXPECT_FALSE(none.indexes({"id"}));
  EXPECT_FALSE(none.indexes_everything());
  EXPECT_THAT(refusal(R"({"indexingMode":"none","automatic":true})"), HasSubstr("automatic"));
  EXPECT_THAT(refusal(R"({"indexingMode":"none","includedPaths":[{"path":"/*"}]})"),
              HasSubstr("none"));
}

TEST(IndexingPolicyTest, TheExcludedEtagIsAppendedOnce) {
  const auto one = policy(R"({"excludedPaths":[{"path":"/a/*"}]})");
  EXPECT_THAT(paths(one.to_wire(kNew)["excludedPaths"]),
              testing::ElementsAre("/a/*", "/\"_etag\"/?"));
  for (const char* given : {R"({"excludedPaths":[{"path":"/\"_etag\"/?"},{"path":"/a/*"}]})",
                            R"({"excludedPaths":[{"path":"/_etag/?"},{"path":"/a/*"}]})"}) {
    EXPECT_EQ(policy(given).to_wire(kNew)["excludedPaths"].size(), 2u) << given;
  }
}

TEST(IndexingPolicyTest, TheRootMustBeInOneOfTheLists) {
  EXPECT_THAT(refusal(R"({"includedPaths":[{"path":"/a/?"}]})"), HasSubstr("mandatory"));
  EXPECT_THAT(refusal(R"({"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/*"}]})"),
              HasSubstr("both included and excluded"));
  EXPECT_THAT(refusal(R"({"includedPaths":[{"path":"/"}],"excludedPaths":[{"path":"/*"}]})"),
              HasSubstr("both included and excluded"));
  EXPECT_EQ(refusal(R"({"includedPaths":[{"path":"/a/?"}],"excludedPaths":[{"path":"/*"}]})"),
            "accepted");
  const auto excluded = policy(R"({"excludedPaths":[{"path":"/*"}]})");
  EXPECT_EQ(excluded.to_wire(kNew)["includedPaths"].size(), 0u);
  EXPECT_THAT(refusal(R"({"includedPaths":[],"excludedPaths":[{"path":"/a/?"}]})"),
              HasSubstr("mandatory"));
}

TEST(IndexingPolicyTest, AListThatIsLeftOutIsCompleted) {
  for (const char* given : {R"({"excludedPaths":[{"path":"/a/?"}]})",
                            R"({"includedPaths":null,"excludedPaths":[{"path":"/a/?"}]})",
                            R"({"includedPaths":[]})", R"({"excludedPaths":[]})"}) {
    EXPECT_THAT(paths(policy(given).to_wire(kNew)["includedPaths"]), testing::ElementsAre("/*"))
        << given;
  }
}

TEST(IndexingPolicyTest, PathsMustBeWellFormed) {
  for (const char* path : {"/a/?", "/a/*", "/a/[]/?", "/a/[]/b/*", "/\"a b\"/?", "/'a/b'/?", "/?",
                           "/events/[]/{name, kind}/?", "/e/[]/{a}/?", R"(/e/[]/{",,", 'b'}/?)",
                           "/größe/?", "/a-b/?"}) {
    const Json json = {{"includedPaths", {{{"path", "/*"}}, {{"path", path}}}}};
    EXPECT_TRUE(IndexingPolicy::parse(&json).has_value()) << path;
  }
  for (const char* path : {"", "a", "a/?", "/a", "/a/", "//?", "/a//?", "/a b/?", "/*/a/?", "/a?/?",
                           "/\"a/?", "/\"a\"b/?", "/\"\"/?", "/[0]/?", "/{a/?"}) {
    const Json json = {{"includedPaths", {{{"path", "/*"}}, {{"path", path}}}}};
    const auto result = IndexingPolicy::parse(&json);
    ASSERT_FALSE(result.has_value()) << path;
    EXPECT_THAT(result.error().message(), HasSubstr("could not be accepted")) << path;
  }
  EXPECT_THAT(refusal(R"({"includedPaths":["/*"]})"), HasSubstr("'path'"));
  EXPECT_THAT(refusal(R"({"includedPaths":{}})"), HasSubstr("array"));
  EXPECT_THAT(refusal(R"({"includedPaths":[{"path":"/*","indexes":[{"kind":"Tree"}]}]})"),
              HasSubstr("kind"));
}

TEST(IndexingPolicyTest, ThereAreAtMost1500Paths) {
  Json json = {{"excludedPaths", Json::array()}};
  for (int i = 0; i < 1500; ++i) {
    json["excludedPaths"].push_back(Json{{"path", "/p" + std::to_string(i) + "/*"}});
  }
  const auto full = IndexingPolicy::parse(&json);
  ASSERT_TRUE(full.has_value());
  const Json shown = full->to_wire(kNew);
  EXPECT_FALSE(shown["excludedPaths"].empty());
  json["excludedPaths"].push_back(Json{{"path", "/x/*"}});
  json["excludedPaths"].push_back(Json{{"path", "/y/*"}});
  EXPECT_FALSE(IndexingPolicy::parse(&json).has_value());
}

TEST(IndexingPolicyTest, CompositeIndexesHaveTwoToEightPlainPaths) {
  const auto composite = policy(
      R"({"compositeIndexes":[[{"path":"/a"},{"path":"/b/\"c d\"","order":"descending"}]]})");
  EXPECT_EQ(composite.to_wire(kNew)["compositeIndexes"].dump(),
            R"([[{"path":"/a","order":"ascending"},{"path":"/b/\"c d\"","order":"descending"}]])");
  EXPECT_THAT(refusal(R"({"compositeIndexes":[[{"path":"/a"}]]})"), HasSubstr("2 to 8"));
  EXPECT_THAT(refusal(R"({"compositeIndexes":[[{"path":"/a"},{"path":"/b/?"}]]})"),
              HasSubstr("could not be accepted"));
  EXPECT_THAT(refusal(R"({"compositeIndexes":[[{"path":"/a"},{"path":"/b","order":"up"}]]})"),
              HasSubstr("order"));
  EXPECT_THAT(refusal(R"({"compositeIndexes":[{"path":"/a"}]})"), HasSubstr("array"));
}

TEST(IndexingPolicyTest, SpatialIndexesAreEchoed) {
  const std::string text =
      R"([{"path":"/region/?","types":["Polygon"],"boundingBox":{"xmin":0,"ymin":0,"xmax":1,"ymax":2}}])";
  EXPECT_EQ(policy(R"({"spatialIndexes":)" + text + "}").to_wire(kNew)["spatialIndexes"].dump(),
            text);
  EXPECT_THAT(refusal(R"({"spatialIndexes":[{"path":"/a","types":["Point"]}]})"),
              HasSubstr("could not be accepted"));
  EXPECT_THAT(refusal(R"({"spatialIndexes":[{"path":"/a/*","types":["Circle"]}]})"),
              HasSubstr("types"));
  EXPECT_THAT(
      refusal(R"({"spatialIndexes":[{"path":"/a/*","types":["Point"],"boundingBox":{"xmin":0}}]})"),
      HasSubstr("boundingBox"));
}

TEST(IndexingPolicyTest, BoundingBoxesAreChecked) {
  for (const char* types : {R"("types":["Point"],)", ""}) {
    const auto refusal_of = [&](const std::string& box) {
      return refusal(std::string(R"({"spatialIndexes":[{"path":"/a/*",)") + types +
                     R"("boundingBox":)" + box + "}]}");
    };
    EXPECT_EQ(refusal_of(R"({"xmin":-1e3,"ymin":-2.5,"xmax":1e3,"ymax":-2.5})"), "accepted");
    EXPECT_THAT(refusal_of(R"({"xmin":0,"ymin":1,"xmax":1,"ymax":"2"})"), HasSubstr("numbers"));
    EXPECT_THAT(refusal_of("[0,0,1,1]"), HasSubstr("numbers"));
  }
}

TEST(IndexingPolicyTest, UnknownMembersAreKept) {
  EXPECT_EQ(policy(R"({"future":{"a":[1]}})").to_wire(kNew)["future"].dump(), R"({"a":[1]})");
}

TEST(IndexingPolicyTest, StoredFormsAreReadBack) {
  const auto original = policy(
      R"({"indexingMode":"LAZY","excludedPaths":[{"path":"/a/*"}],"x":1,
          "compositeIndexes":[[{"path":"/a"},{"path":"/b"}]]})");
  const auto copy = IndexingPolicy::parse(&original.stored());
  ASSERT_TRUE(copy.has_value());
  EXPECT_EQ(copy->stored(), original.stored());
  EXPECT_EQ(copy->to_wire(kOld), original.to_wire(kOld));
}

TEST(IndexingPolicyTest, TheLongestPathDecides) {
  const auto rules = policy(
      R"({"includedPaths":[{"path":"/*"},{"path":"/a/b/?"},{"path":"/list/[]/x/?"}],
          "excludedPaths":[{"path":"/a/*"},{"path":"/list/*"},{"path":"/c/?"}]})");
  EXPECT_FALSE(rules.indexes_everything());
  EXPECT_TRUE(rules.indexes({"other"}));
  EXPECT_FALSE(rules.indexes({"a"}));
  EXPECT_FALSE(rules.indexes({"a", "x"}));
  EXPECT_TRUE(rules.indexes({"a", "b"}));
  EXPECT_FALSE(rules.indexes({"a", "b", "c"}));
  EXPECT_FALSE(rules.indexes({"list", "[]"}));
  EXPECT_TRUE(rules.indexes({"list", "[]", "x"}));
  EXPECT_FALSE(rules.indexes({"c"}));
  EXPECT_TRUE(rules.indexes({"c", "d"}));
}

TEST(IndexingPolicyTest, AScalarPathBeatsAWildcardOfTheSameLength) {
  const auto rules = policy(
      R"({"includedPaths":[{"path":"/a/?"}],"excludedPaths":[{"path":"/a/*"},{"path":"/*"}]})");
  EXPECT_TRUE(rules.indexes({"a"}));
  EXPECT_FALSE(rules.indexes({"a", "b"}));
  EXPECT_TRUE(rules.indexes({"id"})) << "always";
  EXPECT_TRUE(rules.indexes({"_ts"})) << "always";
}

TEST(IndexingPolicyTest, EverythingIsIndexedByDefault) {
  EXPECT_TRUE(IndexingPolicy().indexes_everything());
  EXPECT_TRUE(policy(R"({"excludedPaths":[{"path":"/\"_etag\"/?"}]})").indexes_everything());
  EXPECT_FALSE(policy(R"({"excludedPaths":[{"path":"/a/?"}]})").indexes_everything());
}

// ── which indexes it asks for ────────────────────────────────────────────────────────────────────

std::vector<std::string> texts(const std::vector<IndexSpec>& specs) {
  std::vector<std::string> result;
  for (const IndexSpec& spec : specs) result.push_back(spec.text());
  return result;
}

bool allowed(const IndexingPolicy& policy, std::string_view spec) {
  return policy.allows(IndexSpec::parse(spec).value());
}

TEST(IndexingPolicyTest, NamesItsCompositeIndexesAndThePathsWithoutWildcards) {
  const auto named = policy(
      R"({"includedPaths":[{"path":"/*"},{"path":"/a/?"},{"path":"/tags/[]/?"},{"path":"/b-c/d/?"},
                           {"path":"/e/*"},{"path":"/\"f g\"/[]/h/?"},{"path":"/i/[]/{j, k}/?"},
                           {"path":"/\"a\"/?"}],
          "excludedPaths":[{"path":"/x/?"}],
          "compositeIndexes":[[{"path":"/a"},{"path":"/b-c/d","order":"descending"}]]})");
  EXPECT_THAT(texts(named.named_indexes(IndexKind::EarthCells)),
              testing::ElementsAre(R"(/a ASC,/"b-c"/d DESC)", "/a", "/tags/[]", R"(/"b-c"/d)",
                                   R"(/"f g"/[]/h)"));
  EXPECT_TRUE(IndexingPolicy().named_indexes(IndexKind::EarthCells).empty());
}

TEST(IndexingPolicyTest, OrdersOfCompositeIndexesMayBeWrittenInAnyCase) {
  const auto composite = policy(
      R"({"compositeIndexes":[[{"path":"/a","order":"ASCENDING"},{"path":"/b","order":"Descending"}]]})");
  EXPECT_THAT(texts(composite.composite_indexes()), testing::ElementsAre("/a ASC,/b DESC"));
  EXPECT_EQ(composite.to_wire(kNew)["compositeIndexes"].dump(),
            R"([[{"path":"/a","order":"ascending"},{"path":"/b","order":"descending"}]])");
}

TEST(IndexingPolicyTest, NamesNotMoreIndexesThanWritesCanBear) {
  Json json = Json::parse(R"({"includedPaths":[{"path":"/*"}]})");
  for (int i = 0; i < 100; ++i) {
    json["includedPaths"].push_back({{"path", "/a" + std::to_string(i) + "/?"}});
  }
  EXPECT_EQ(policy(json.dump()).named_indexes(IndexKind::EarthCells).size(),
            IndexingPolicy::kNamedIndexesMax);
}

TEST(IndexingPolicyTest, AllowsIndexesOverWhatItIndexes) {
  const auto some = policy(
      R"({"includedPaths":[{"path":"/a/*"},{"path":"/t/[]/?"}],"excludedPaths":[{"path":"/*"}],
          "compositeIndexes":[[{"path":"/x"},{"path":"/y"}]]})");
  EXPECT_TRUE(allowed(some, "/a"));
  EXPECT_TRUE(allowed(some, "/a/b/[]/c"));
  EXPECT_TRUE(allowed(some, "/t/[]"));
  EXPECT_TRUE(allowed(some, "/x ASC,/y ASC"));
  EXPECT_TRUE(allowed(some, "/_ts"));
  EXPECT_FALSE(allowed(some, "/t"));
  EXPECT_FALSE(allowed(some, "/b"));
  EXPECT_FALSE(allowed(some, "/x ASC,/y DESC"));
  EXPECT_FALSE(allowed(some, "/a ASC,/b ASC"));
  EXPECT_TRUE(allowed(IndexingPolicy(), "/whatever/[]"));
  EXPECT_FALSE(allowed(IndexingPolicy(), "/x ASC,/y ASC"));
  const auto none = policy(
      R"({"indexingMode":"none","automatic":false,
          "compositeIndexes":[[{"path":"/x"},{"path":"/y"}]]})");
  EXPECT_FALSE(allowed(none, "/a"));
  EXPECT_FALSE(allowed(none, "/x ASC,/y ASC"));
  EXPECT_TRUE(none.named_indexes(IndexKind::EarthCells).empty());
}

TEST(IndexingPolicyTest, NamesItsSpatialIndexesOverTheirPaths) {
  const auto spatial = policy(
      R"({"includedPaths":[{"path":"/*"},{"path":"/a/?"}],"excludedPaths":[{"path":"/home/*"}],
          "spatialIndexes":[{"path":"/a/*","types":["Point"]},{"path":"/home/?"},
                            {"path":"/trips/[]/\"way to\"/*"},{"path":"/a/?"},{"path":"/*"}]})");
  EXPECT_THAT(
      texts(spatial.named_indexes(IndexKind::EarthCells)),
      testing::ElementsAre("/a SPATIAL", "/home SPATIAL", R"(/trips/[]/"way to" SPATIAL)", "/a"));
  EXPECT_THAT(texts(spatial.named_indexes(IndexKind::PlaneCells)),
              testing::Contains("/home SPATIAL PLANAR"));
}

TEST(IndexingPolicyTest, AllowsSpatialIndexesOverWhatItsOwnCover) {
  const auto some = policy(R"({"spatialIndexes":[{"path":"/a/*"},{"path":"/b/?"}]})");
  EXPECT_TRUE(allowed(some, "/a SPATIAL"));
  EXPECT_TRUE(allowed(some, "/a/x/[] SPATIAL PLANAR"));
  EXPECT_TRUE(allowed(some, "/b SPATIAL"));
  EXPECT_FALSE(allowed(some, "/b/x SPATIAL"));
  EXPECT_FALSE(allowed(some, "/c SPATIAL"));
  EXPECT_TRUE(allowed(policy(R"({"spatialIndexes":[{"path":"/*"}]})"), "/c SPATIAL"));
  EXPECT_FALSE(allowed(IndexingPolicy(), "/a SPATIAL"));
  const auto none =
      policy(R"({"indexingMode":"none","automatic":false,"spatialIndexes":[{"path":"/a/*"}]})");
  EXPECT_FALSE(allowed(none, "/a SPATIAL"));
  EXPECT_TRUE(none.named_indexes(IndexKind::EarthCells).empty());
}

}  // namespace
}  // namespace orrery
