#include "api/feed/change_feed.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/test_request.h"
#include "api/test_services.h"
#include "protocol/wire/headers.h"

namespace orrery::api {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class ChangeFeedTest : public testing::Test {
 protected:
  static TestRequest incremental() {
    TestRequest request;
    request.header(headers::kAIm, "Incremental feed");
    return request;
  }
  Result<ChangeFeedRequest> parse(TestRequest& request, const catalog::ContainerPtr& container) {
    Context context = request.context(container);
    return parse_change_feed(*services, context);
  }
  /// The code and message of a refusal.
  std::pair<ErrorCode, std::string> refusal(TestRequest request,
                                            const catalog::ContainerPtr& container = nullptr) {
    const auto made = parse(request, container ? container : single);
    EXPECT_FALSE(made.has_value());
    if (made) return {ErrorCode::Internal, ""};
    return {made.error().code(), made.error().message()};
  }

  TestServices services;
  catalog::ContainerPtr single = services.create_container("single", kHashKey);
  catalog::ContainerPtr several = services.create_container("several", kMultiHashKey, 12'000);
};

TEST_F(ChangeFeedTest, TheModeIsReadInAnyCase) {
  for (const char* mode : {"Incremental feed", "incremental FEED", "Incremental Feed"}) {
    TestRequest request;
    request.header(headers::kAIm, mode);
    EXPECT_EQ(parse(request, single)->page.mode, feed::Mode::Latest);
  }
  TestRequest request;
  request.header(headers::kAIm, "full-fidelity feed");
  EXPECT_EQ(parse(request, single)->page.mode, feed::Mode::AllVersions);
  TestRequest nonsense;
  nonsense.header(headers::kAIm, "nonsense");
  EXPECT_THAT(refusal(std::move(nonsense)).second, HasSubstr("A-IM"));
}

TEST_F(ChangeFeedTest, StartsFollowTheTableOfConditions) {
  constexpr const char* kTime = "Tue, 15 Nov 2016 07:26:51 GMT";
  constexpr UnixSeconds kSeconds = 1479194811;
  {
    TestRequest request = incremental();
    const auto made = parse(request, single);
    EXPECT_EQ(made->start.kind, feed::Start::Kind::Beginning);
    EXPECT_FALSE(made->since);
  }
  {
    TestRequest request = incremental();
    request.header(headers::kIfModifiedSince, kTime);
    EXPECT_EQ(parse(request, single)->since, kSeconds);
  }
  {
    TestRequest request = incremental();
    request.header(headers::kIfModifiedSince, kTime).header(headers::kIfNoneMatch, "*");
    const auto made = parse(request, single);
    EXPECT_EQ(made->start.kind, feed::Start::Kind::Now);
    EXPECT_FALSE(made->since);
  }
  for (const auto& [bits, applies] : std::map<std::string, bool>{
           {"", false}, {"0", false}, {"1", false}, {"2", true}, {"11", true}, {"x", false}}) {
    TestRequest request = incremental();
    request.header(headers::kIfModifiedSince, kTime)
        .header(headers::kIfNoneMatch, "\"12\"")
        .header(headers::kSdkSupportedCapabilities, bits);
    const auto made = parse(request, single);
    EXPECT_EQ(made->page.after, Lsn{12});
    EXPECT_FALSE(made->since);
    EXPECT_EQ(made->page.newer_than.has_value(), applies) << bits;
  }
}

TEST_F(ChangeFeedTest, BrokenStartsAreRefused) {
  TestRequest etag = incremental();
  etag.header(headers::kIfNoneMatch, "\"0000d986-0000-0000-0000-580ac4ea0000\"");
  EXPECT_THAT(refusal(std::move(etag)).second, StartsWith("Change feed token format is invalid"));
  TestRequest empty = incremental();
  empty.header(headers::kIfNoneMatch, "");
  EXPECT_THAT(refusal(std::move(empty)).second, StartsWith("Change feed token format is invalid"));
  TestRequest date = incremental();
  date.header(headers::kIfModifiedSince, "yesterday");
  EXPECT_THAT(refusal(std::move(date)).second, HasSubstr("If-Modified-Since"));
  TestRequest time_of_all;
  time_of_all.header(headers::kAIm, "Full-Fidelity Feed")
      .header(headers::kIfModifiedSince, "Tue, 15 Nov 2016 07:26:51 GMT");
  EXPECT_EQ(refusal(std::move(time_of_all)).first, ErrorCode::BadRequest);
}

TEST_F(ChangeFeedTest, WithoutARangeASingleOneIsMeant) {
  TestRequest request = incremental();
  const auto made = parse(request, single);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->range, &single->ranges.all()[0]);
  EXPECT_TRUE(made->page.scope.whole());
  const auto [code, message] = refusal(incremental(), several);
  EXPECT_EQ(code, ErrorCode::BadRequest);
  EXPECT_THAT(message, HasSubstr("x-ms-documentdb-partitionkeyrangeid"));
  EXPECT_THAT(message, HasSubstr("in x-ms-documentdb-partitionkey."));
}

TEST_F(ChangeFeedTest, AFullKeyDecidesAndAPrefixIsNarrowedToTheRange) {
  TestRequest full = incremental();
  full.header(headers::kPartitionKey, R"(["x","y"])").header(headers::kPartitionKeyRangeId, "99");
  const auto by_key = parse(full, several);
  ASSERT_TRUE(by_key) << by_key.error().message();
  EXPECT_TRUE(by_key->page.scope.partition_key);
  TestRequest prefix = incremental();
  prefix.header(headers::kPartitionKey, R"(["x"])").header(headers::kPartitionKeyRangeId, "1");
  const auto by_prefix = parse(prefix, several);
  ASSERT_TRUE(by_prefix) << by_prefix.error().message();
  EXPECT_EQ(by_prefix->range->id, RangeId{1});
  EXPECT_TRUE(by_prefix->page.scope.epks);
  EXPECT_FALSE(by_prefix->page.scope.partition_key);
  TestRequest none = incremental();
  none.header(headers::kPartitionKey, "[]");
  EXPECT_EQ(refusal(std::move(none), several).first, ErrorCode::BadRequest);
}

TEST_F(ChangeFeedTest, AnEpkFilterMustLieInTheNamedRange) {
  const auto& ranges = several->ranges.all();
  TestRequest inside = incremental();
  inside.header(headers::kPartitionKeyRangeId, "1")
      .header(headers::kStartEpk, ranges[1].epks.min.hex())
      .header(headers::kEndEpk, "2A")
      .header(headers::kReadKeyType, "EffectivePartitionKeyRange");
  ASSERT_TRUE(parse(inside, several));
  TestRequest whole = incremental();
  whole.header(headers::kPartitionKeyRangeId, "1")
      .header(headers::kStartEpk, ranges[1].epks.min.hex())
      .header(headers::kEndEpk, "FF");
  EXPECT_TRUE(parse(whole, several)->page.scope.whole());
  TestRequest across = incremental();
  across.header(headers::kPartitionKeyRangeId, "1")
      .header(headers::kStartEpk, "")
      .header(headers::kEndEpk, "FF");
  EXPECT_EQ(refusal(std::move(across), several).first, ErrorCode::RangeGone);
  TestRequest unknown = incremental();
  unknown.header(headers::kPartitionKeyRangeId, "99");
  EXPECT_EQ(refusal(std::move(unknown), several).first, ErrorCode::RangeGone);
  TestRequest other = incremental();
  other.header(headers::kPartitionKeyRangeId, single->rid_text + ",0");
  EXPECT_EQ(refusal(std::move(other), several).first, ErrorCode::NameCacheStale);
  TestRequest kind = incremental();
  kind.header(headers::kReadKeyType, "ResourceId");
  EXPECT_THAT(refusal(std::move(kind)).second, HasSubstr("x-ms-read-key-type"));
}

TEST_F(ChangeFeedTest, AWholeContainerHasPositionsOfItsOwn) {
  const auto whole = [] {
    TestRequest request = incremental();
    request.header(headers::kFeedScope, "container");
    return request;
  };
  TestRequest beginning = whole();
  const auto made = parse(beginning, several);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->range, nullptr);
  EXPECT_EQ(made->ranges(*several).size(), 2u);
  TestRequest etag = whole();
  etag.header(headers::kIfNoneMatch, "\"c:=12;1F=7\"");
  EXPECT_EQ(parse(etag, several)->container_start.etag(), "\"c:=12;1F=7\"");
  TestRequest number = whole();
  number.header(headers::kIfNoneMatch, "\"12\"");
  EXPECT_EQ(refusal(std::move(number), several).first, ErrorCode::BadRequest);
  TestRequest composite = incremental();
  composite.header(headers::kIfNoneMatch, "\"c:=12\"");
  EXPECT_EQ(refusal(std::move(composite)).first, ErrorCode::BadRequest);
  TestRequest both = whole();
  both.header(headers::kPartitionKeyRangeId, "0");
  EXPECT_THAT(refusal(std::move(both), several).second, HasSubstr("x-orrery-feed-scope"));
  TestRequest unknown = incremental();
  unknown.header(headers::kFeedScope, "galaxy");
  EXPECT_EQ(refusal(std::move(unknown)).first, ErrorCode::BadRequest);
}

TEST_F(ChangeFeedTest, PageSizesAreBounds) {
  const auto size = [&](const char* given) {
    TestRequest request = incremental();
    request.header(headers::kMaxItemCount, given);
    return parse(request, single)->page.count_max;
  };
  EXPECT_EQ(size(""), 100u);
  EXPECT_EQ(size("0"), 100u);
  EXPECT_EQ(size("7"), 7u);
  EXPECT_EQ(size("-1"), std::nullopt);
  TestRequest request = incremental();
  request.header(headers::kMaxItemCount, "-2");
  EXPECT_EQ(refusal(std::move(request)).first, ErrorCode::BadRequest);
}

TEST_F(ChangeFeedTest, WhoIsUpToDateIsToldByTheStatusWithAllHeaders) {
  TestRequest request = incremental();
  Context context = request.context(single);
  auto parsed = parse_change_feed(*services, context);
  ASSERT_TRUE(parsed);
  WorkBudget work;
  auto answer = read_change_feed(*services, single, *parsed, work);
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_TRUE(answer->not_modified());
  EXPECT_EQ(answer->etag, "\"1\"");
  const auto response = change_feed_reply(*services, context, *parsed, std::move(*answer));
  EXPECT_EQ(response.status, 304);
  EXPECT_EQ(response.body, "");
  const std::string head(response.header_lines());
  for (const char* name : {"etag: \"1\"", "x-ms-item-count: 0", "x-ms-session-token: ",
                           "x-ms-request-charge: 1", "x-ms-documentdb-partitionkeyrangeid: 0",
                           "x-ms-alt-content-path: ", "x-orrery-resolved-ts: "}) {
    EXPECT_THAT(head, HasSubstr(name));
  }
  EXPECT_THAT(head, testing::Not(HasSubstr("x-ms-continuation")));
}

TEST_F(ChangeFeedTest, NowIsAnsweredFromMemory) {
  TestRequest request = incremental();
  request.header(headers::kIfNoneMatch, "*");
  const auto answer = answer_from_memory(*services, *parse(request, single));
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->not_modified());
  EXPECT_EQ(answer->etag, "\"1\"");
}

TEST_F(ChangeFeedTest, PreferencesAreFoundInAList) {
  TestRequest request;
  request.header(headers::kPrefer, "wait=5, Return=Representation; a=b");
  EXPECT_TRUE(prefers(request.context(), "return=representation"));
  EXPECT_FALSE(prefers(request.context(), "return=minimal"));
}

}  // namespace
}  // namespace orrery::api
