#include "api/feed/feed_filter.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/test_request.h"
#include "protocol/wire/headers.h"

namespace orrery::api {
namespace {

using testing::HasSubstr;
using Decision = feed::ItemFilter::Decision;

class FeedFilterTest : public testing::Test {
 protected:
  std::unique_ptr<const feed::ItemFilter> filter(feed::Mode mode = feed::Mode::Latest) {
    auto made = feed_filter(request.context(container), mode);
    EXPECT_TRUE(made) << made.error().message();
    return made ? std::move(*made) : nullptr;
  }
  std::string refusal(feed::Mode mode = feed::Mode::Latest) {
    const auto made = feed_filter(request.context(container), mode);
    EXPECT_FALSE(made);
    if (made) return "";
    EXPECT_EQ(made.error().code(), ErrorCode::BadRequest);
    return made.error().message();
  }
  /// The shown form of an item: "" nothing, "whole", or the text that replaces it.
  static std::string shown(const feed::ItemFilter& filter, std::string_view current,
                           std::string_view previous = "") {
    std::string instead;
    WorkBudget work;
    const auto decision = filter.decide(current, previous, instead, work);
    if (!decision) return decision.error().message();
    switch (*decision) {
      case Decision::Skip:
        return "";
      case Decision::Keep:
        return "whole";
      case Decision::Replace:
        return instead;
    }
    return "?";
  }

  TestRequest request{"GET", "/dbs/d/colls/c/docs"};
  std::shared_ptr<const catalog::Container> container = test_container(kHashKey);
};

TEST_F(FeedFilterTest, WithoutHeadersThereIsNone) { EXPECT_EQ(filter(), nullptr); }

TEST_F(FeedFilterTest, AFilterSkipsWhatIsNotTrue) {
  request.header(headers::kFeedFilter, "c.city%20%3D%20'Gr%C3%A4z'%20AND%20c.n%20%3E%201");
  const auto made = filter();
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(shown(*made, R"({"city":"Gräz","n":2})"), "whole");
  EXPECT_EQ(shown(*made, R"({"city":"Gr\u00e4z","n":2})"), "whole");
  EXPECT_EQ(shown(*made, R"({"city":"Gräz","n":1})"), "");
  EXPECT_EQ(shown(*made, R"({"city":"Gräz"})"), "");
}

TEST_F(FeedFilterTest, ASelectShowsAPart) {
  request.header(headers::kFeedSelect, "c.id,%20c.n%20*%202%20AS%20twice");
  const auto made = filter();
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(shown(*made, R"({"id":"1","n":2,"x":3})"), R"({"id":"1","twice":4})");
  EXPECT_EQ(shown(*made, R"({"x":3})"), "{}");
}

TEST_F(FeedFilterTest, BothTogether) {
  request.header(headers::kFeedFilter, "c.n=1").header(headers::kFeedSelect, "c.id");
  const auto made = filter();
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(shown(*made, R"({"id":"1","n":1})"), R"({"id":"1"})");
  EXPECT_EQ(shown(*made, R"({"id":"1","n":2})"), "");
}

TEST_F(FeedFilterTest, AStarShowsAll) {
  request.header(headers::kFeedSelect, "*");
  EXPECT_EQ(shown(*filter(), R"({"id":"1"})"), "whole");
}

TEST_F(FeedFilterTest, APartThatWouldBeLargerThanAPageIsTheWholeItem) {
  std::string list = "[c";
  for (int i = 0; i < 100; ++i) list += ",c";
  request.header(headers::kFeedSelect, list + "] AS all_of_it");
  EXPECT_EQ(shown(*filter(), R"({"id":")" + std::string(100'000, 'x') + R"("})"), "whole");
}

TEST_F(FeedFilterTest, WhatAVersionWasIsOnlyKnownInAllVersions) {
  request.header(headers::kFeedFilter, "c.n!=p.n");
  const auto made = filter(feed::Mode::AllVersions);
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(shown(*made, R"({"n":2})", R"({"n":1})"), "whole");
  EXPECT_EQ(shown(*made, R"({"n":2})", R"({"n":2})"), "");
  EXPECT_EQ(shown(*made, R"({"n":2})"), "");
  EXPECT_EQ(shown(*made, "", R"({"n":2})"), "");
  EXPECT_THAT(refusal(), HasSubstr("Identifier 'p' could not be resolved."));
}

TEST_F(FeedFilterTest, ItObeysTheContainersDefinition) {
  container = test_container(
      kHashKey +
      R"(,"computedProperties":[{"name":"low","query":"SELECT VALUE LOWER(c.name) FROM c"}])"
      R"(,"geospatialConfig":{"type":"Geometry"})");
  request
      .header(headers::kFeedFilter,
              "c.low = 'sun' AND ST_DISTANCE(c.p, {'type':'Point','coordinates':[1,0]}) < 1.5")
      .header(headers::kFeedSelect, "c.low");
  const auto made = filter();
  ASSERT_NE(made, nullptr);
  const auto at = [](std::string_view name, std::string_view x) {
    return fmt::format(R"({{"name":"{}","p":{{"type":"Point","coordinates":[{},0]}}}})", name, x);
  };
  EXPECT_EQ(shown(*made, at("SUN", "0")), R"({"low":"sun"})");
  EXPECT_EQ(shown(*made, at("SUN", "3")), "");
  EXPECT_EQ(shown(*made, at("MOON", "0")), "");
}

TEST_F(FeedFilterTest, WhatCannotBeShownIsAnError) {
  request.header(headers::kFeedFilter, "c.n > 0").header(headers::kFeedSelect, "1 / c.z AS x");
  const auto made = filter();
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(shown(*made, R"({"n":1,"z":1})"), R"({"x":1})");
  EXPECT_THAT(shown(*made, R"({"n":1,"z":0})"), HasSubstr("cannot be represented in JSON"));
  EXPECT_EQ(shown(*made, R"({"n":0,"z":0})"), "");
}

TEST_F(FeedFilterTest, ATextThatDoesNotParseIsRefusedWithItsPlace) {
  request.header(headers::kFeedFilter, "c.a%20%3D%3D%201");
  EXPECT_THAT(refusal(), HasSubstr(R"("location":{"start":5,"end":6},"code":"SC1001")"));
}

TEST_F(FeedFilterTest, AnEmptyTextIsNoExpression) {
  request.header(headers::kFeedFilter, "");
  EXPECT_THAT(refusal(), HasSubstr("SC1002"));
}

TEST_F(FeedFilterTest, WhatIsMoreThanAnExpressionIsRefused) {
  request.header(headers::kFeedFilter, "COUNT(c.tags)%20%3E%201");
  EXPECT_THAT(refusal(), HasSubstr("SC2101"));
}

TEST_F(FeedFilterTest, ASubqueryOfNothingKnownIsRefused) {
  request.header(headers::kFeedFilter, "EXISTS(SELECT VALUE 1 FROM nobody)");
  EXPECT_THAT(refusal(), HasSubstr("SC2001"));
}

TEST_F(FeedFilterTest, HeadersThatAreNotPercentEncodedUtf8AreRefused) {
  request.header(headers::kFeedFilter, "c.a%20%3D%20'%FF'");
  EXPECT_THAT(refusal(), HasSubstr("percent-encoded UTF-8"));
}

TEST_F(FeedFilterTest, TheFeedsOwnMemberCannotBeSelected) {
  request.header(headers::kFeedSelect, "c.id, 1 AS _lsn");
  EXPECT_THAT(refusal(), HasSubstr("SC2022"));
}

}  // namespace
}  // namespace orrery::api
