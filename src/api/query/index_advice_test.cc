#include "api/query/index_advice.h"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/query/query_reports.h"
#include "protocol/wire/resource_path.h"
#include "query/plan/prepared.h"

namespace orrery::api {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Advice = decltype(helpful_indexes);

std::vector<std::string> advice(Advice& about, const std::string& text, std::string_view policy) {
  const auto definition = ContainerDefinition::create(
      Json::parse(R"({"id":"c","partitionKey":{"paths":["/p"]},"indexingPolicy":)" +
                  std::string(policy) + "}"),
      "2018-12-31");
  const auto query = query::PreparedQuery::prepare(text, {}, {});
  EXPECT_TRUE(definition);
  EXPECT_TRUE(query);
  std::vector<std::string> texts;
  for (const IndexSpec& spec : about(query::access_of(**query), *definition)) {
    texts.push_back(spec.text());
  }
  return texts;
}

std::vector<std::string> helpful(const std::string& text, std::string_view policy = "{}") {
  return advice(helpful_indexes, text, policy);
}
std::vector<std::string> potential(const std::string& text, std::string_view policy = "{}") {
  return advice(potential_indexes, text, policy);
}

TEST(HelpfulIndexesTest, PathsOfConditionsAndOfTheOrder) {
  EXPECT_THAT(helpful("SELECT * FROM c WHERE c.a > 1 AND c.b.d = 2 ORDER BY c.e"),
              ElementsAre("/b/d", "/a", "/e"));
  EXPECT_THAT(helpful("SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, 'x')"),
              ElementsAre("/tags/[]"));
  EXPECT_THAT(helpful("SELECT * FROM c WHERE c.a = 1 OR c.b = 2"), ElementsAre("/a", "/b"));
  EXPECT_THAT(helpful("SELECT * FROM c WHERE IS_DEFINED(c.a)"), ElementsAre("/a"));
}

TEST(HelpfulIndexesTest, SpatialOnesThatThePolicyLists) {
  constexpr std::string_view kPolicy = R"({"spatialIndexes":[{"path":"/at/*"}]})";
  constexpr std::string_view kPlace = "{'type':'Point','coordinates':[20,30]}";
  const std::string near =
      "SELECT * FROM c WHERE ST_DISTANCE(c.at, " + std::string(kPlace) + ") < 10";
  const std::string elsewhere =
      "SELECT * FROM c WHERE ST_WITHIN(c.there, " + std::string(kPlace) + ")";
  EXPECT_THAT(helpful(near, kPolicy), ElementsAre("/at SPATIAL"));
  EXPECT_THAT(helpful(near), IsEmpty());
  EXPECT_THAT(helpful(elsewhere, kPolicy), IsEmpty());
}

TEST(HelpfulIndexesTest, NoneWhereAnIndexCouldNotTell) {
  EXPECT_THAT(helpful("SELECT * FROM c"), IsEmpty());
  EXPECT_THAT(helpful("SELECT * FROM c WHERE c.a != 1"), IsEmpty());
  EXPECT_THAT(helpful("SELECT * FROM c WHERE CONTAINS(c.a, 'x')"), IsEmpty());
  EXPECT_THAT(helpful("SELECT * FROM c WHERE c.a = 1 OR CONTAINS(c.a, 'x')"), IsEmpty());
}

TEST(HelpfulIndexesTest, OnlyWhatThePolicyAllows) {
  constexpr std::string_view kPolicy = R"({"includedPaths":[{"path":"/*"}],
      "excludedPaths":[{"path":"/secret/*"}],
      "compositeIndexes":[[{"path":"/a"},{"path":"/b","order":"descending"}]]})";
  EXPECT_THAT(helpful("SELECT * FROM c WHERE c.secret = 1 AND c.a = 1", kPolicy),
              ElementsAre("/a"));
  EXPECT_THAT(helpful("SELECT * FROM c WHERE c.secret = 1 OR c.a = 1", kPolicy), IsEmpty());
  EXPECT_THAT(helpful("SELECT * FROM c ORDER BY c.a DESC, c.b", kPolicy),
              ElementsAre("/a ASC,/b DESC"));
  EXPECT_THAT(helpful("SELECT * FROM c ORDER BY c.a, c.b", kPolicy), IsEmpty());
  EXPECT_THAT(helpful("SELECT * FROM c WHERE c.a = 1 ORDER BY c.b", kPolicy),
              ElementsAre("/a ASC,/b DESC", "/a", "/b"));
  EXPECT_THAT(helpful("SELECT * FROM c WHERE c.a = 1 AND c.b > 1", kPolicy),
              ElementsAre("/a ASC,/b DESC", "/a", "/b"));
}

TEST(HelpfulIndexesTest, NotOverThePathsOfAKeyWhereThereIsOnlyOne) {
  PartitionKeyDefinition key;
  key.paths = {{"a", "b c"}, {"d"}};
  std::vector<IndexSpec> all;
  for (const char* text : {R"(/a/"b c")", "/n", "/d", "/d ASC,/n ASC", "/d SPATIAL"}) {
    all.push_back(IndexSpec::parse(text).value());
  }
  std::vector<std::string> left;
  for (const IndexSpec& spec : helpful_within_key(all, key)) left.push_back(spec.text());
  EXPECT_THAT(left, ElementsAre("/n", "/d ASC,/n ASC", "/d SPATIAL"));
}

TEST(PotentialIndexesTest, PathsThatThePolicyExcludes) {
  constexpr std::string_view kPolicy =
      R"({"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/secret/*"}]})";
  EXPECT_THAT(potential("SELECT * FROM c WHERE c.secret = 1", kPolicy), ElementsAre("/secret"));
  EXPECT_THAT(potential("SELECT * FROM c WHERE c.secret = 1 OR c.a = 1", kPolicy),
              ElementsAre("/secret"));
  EXPECT_THAT(potential("SELECT * FROM c WHERE c.a = 1", kPolicy), IsEmpty());
  EXPECT_THAT(potential("SELECT * FROM c WHERE CONTAINS(c.secret, 'x')", kPolicy), IsEmpty());
}

TEST(PotentialIndexesTest, ACompositeOneForSeveralConditionsOrAnOrder) {
  EXPECT_THAT(potential("SELECT * FROM c WHERE c.a = 1 AND c.b > 2 AND c.d = 3"),
              ElementsAre("/a ASC,/d ASC,/b ASC"));
  EXPECT_THAT(potential("SELECT * FROM c WHERE c.a = 1 ORDER BY c.b DESC"),
              ElementsAre("/a ASC,/b DESC"));
  EXPECT_THAT(potential("SELECT * FROM c WHERE c.a > 1 AND c.b > 2"), IsEmpty())
      << "of two ranges it would serve one";
  EXPECT_THAT(potential("SELECT * FROM c WHERE c.a = 1 ORDER BY c.a"), IsEmpty());
  EXPECT_THAT(potential("SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, 1) AND c.a > 2"), IsEmpty());
}

TEST(PotentialIndexesTest, NoneWhereThePolicyListsOne) {
  constexpr std::string_view kPolicy =
      R"({"compositeIndexes":[[{"path":"/a"},{"path":"/b","order":"descending"}]]})";
  EXPECT_THAT(potential("SELECT * FROM c WHERE c.a = 1 ORDER BY c.b DESC", kPolicy), IsEmpty());
  EXPECT_THAT(potential("SELECT * FROM c WHERE c.a = 1 AND c.b > 2", kPolicy), IsEmpty());
}

// ── what is told of them ─────────────────────────────────────────────────────────────────────────

std::vector<IndexSpec> many_indexes() {
  std::vector<IndexSpec> specs;
  for (int i = 0; i < 2000; ++i) {
    specs.push_back(IndexSpec::parse("/property" + std::to_string(i)).value());
  }
  return specs;
}

Json explained(const executor::QueryPage& page, const std::vector<IndexSpec>& helpful) {
  const auto query = query::PreparedQuery::prepare("SELECT * FROM c", {}, {});
  EXPECT_TRUE(query);
  const std::string header = explanation(page, **query, helpful, {}, {});
  EXPECT_LE(header.size(), kReportBytesMax);
  return Json::parse(percent_decode(header).value());
}

executor::RangeReport found_by(std::uint32_t range, std::vector<std::string> indexes) {
  executor::RangeReport report{.range = RangeId{range}, .source = {}, .rows = 1};
  report.source.way =
      indexes.empty() ? executor::SourceReport::Way::Scan : executor::SourceReport::Way::Index;
  report.source.indexes = std::move(indexes);
  return report;
}

TEST(IndexReportsTest, FitIntoAHeader) {
  for (const IndexUse& use : {IndexUse{many_indexes(), {}}, IndexUse{{}, many_indexes()}}) {
    EXPECT_LE(index_metrics_base64(use).size(), kReportBytesMax);
    EXPECT_LE(index_metrics_v2(use).size(), kReportBytesMax);
    EXPECT_GT(index_metrics_v2(use).size(), kReportBytesMax / 4);
  }
  executor::QueryPage page;
  page.ranges.push_back(found_by(0, {}));
  const Json told = explained(page, many_indexes());
  EXPECT_GT(told["helpful"].size(), 10u);
  EXPECT_EQ(told["ranges"].size(), 1u);
  EXPECT_FALSE(told.contains("rangesLeftOut"));
}

TEST(IndexReportsTest, SayOfHowManyRangesTheyDoNotTell) {
  executor::QueryPage page;
  for (std::uint32_t i = 0; i < 1000; ++i) page.ranges.push_back(found_by(i, {}));
  const Json told = explained(page, {});
  EXPECT_GT(told["ranges"].size(), 10u);
  EXPECT_EQ(told["ranges"].size() + told["rangesLeftOut"].get<std::size_t>(), 1000u);
}

TEST(IndexReportsTest, ProposeNothingThatHasServed) {
  const auto specs = [](std::initializer_list<const char*> texts) {
    std::vector<IndexSpec> list;
    for (const char* text : texts) list.push_back(IndexSpec::parse(text).value());
    return list;
  };
  executor::QueryPage page;
  page.ranges.push_back(found_by(0, {"/id"}));
  EXPECT_TRUE(explained(page, specs({"/id", "/p"}))["helpful"].empty()) << "found by its name";
  page.ranges[0] = found_by(0, {"/a"});
  EXPECT_EQ(explained(page, specs({"/a", "/b"}))["helpful"], Json::array({"/b"}));
  page.ranges.push_back(found_by(1, {}));
  EXPECT_EQ(explained(page, specs({"/a", "/b"}))["helpful"], Json::array({"/a", "/b"}))
      << "one range had to do without";
}

}  // namespace
}  // namespace orrery::api
