#include "client/feed/change_feed_continuation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/test_seed.h"
#include "orrery/exception.h"

namespace orrery::client {
namespace {

using ::testing::HasSubstr;

FeedContinuation sample() {
  FeedContinuation continuation;
  continuation.container_rid = "AAAAAYAAAAE=";
  continuation.slices = {{.range = {"", "1F"}, .etag = "\"12\""},
                         {.range = {"1F", "3F"}, .etag = "\"4\"", .since = 1'700'000'000},
                         {.range = {"3F", "FF"}}};
  return continuation;
}

std::string refusal_of(const std::string& text) {
  try {
    FeedContinuation::parse(text);
  } catch (const CosmosException& refusal) {
    EXPECT_EQ(refusal.failure(), Failure::Argument);
    return refusal.what();
  }
  return "accepted";
}

TEST(FeedContinuation, IsTheTextThatIsDrawn) {
  EXPECT_EQ(sample().to_text(), R"({"v":1,"rid":"AAAAAYAAAAE=","mode":"latest","slices":[)"
                                R"({"min":"","max":"1F","etag":"\"12\""},)"
                                R"({"min":"1F","max":"3F","etag":"\"4\"","since":1700000000},)"
                                R"({"min":"3F","max":"FF"}]})");
}

TEST(FeedContinuation, ComesBackAsItWas) {
  FeedContinuation continuation = sample();
  EXPECT_EQ(FeedContinuation::parse(continuation.to_text()), continuation);
  continuation.mode = ChangeFeedMode::AllVersionsAndDeletes;
  continuation.key = PartitionKey("o'neill \"é\"").append(4.5).append(nullptr);
  EXPECT_EQ(FeedContinuation::parse(continuation.to_text()), continuation);
  EXPECT_EQ(continuation.range(), FeedRange{});
}

TEST(FeedContinuation, IgnoresWhatItDoesNotKnow) {
  EXPECT_EQ(
      FeedContinuation::parse(
          R"( {"new":[{}],"v":1,"rid":"r","mode":"all","slices":[{"x":1,"min":"","max":"FF"}]} )")
          .mode,
      ChangeFeedMode::AllVersionsAndDeletes);
}

TEST(FeedContinuation, RefusesWhatItDidNotMake) {
  EXPECT_THAT(refusal_of(""), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal_of("\"12\""), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal_of("[1]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal_of("{}"), HasSubstr("no version"));
  EXPECT_THAT(refusal_of(R"({"v":"1"})"), HasSubstr("no version"));
  EXPECT_THAT(refusal_of(R"({"v":2,"rid":"r"})"), HasSubstr("version 2 is not known"));
  // A .NET token is of another kind.
  EXPECT_THAT(refusal_of(R"({"V":2,"Rid":"r","Continuation":[]})"), HasSubstr("no version"));
  EXPECT_THAT(refusal_of(R"({"v":1,"mode":"all"})"), HasSubstr("'rid'"));
  EXPECT_THAT(refusal_of(R"({"v":1,"rid":"","mode":"all"})"), HasSubstr("'rid'"));
  EXPECT_THAT(refusal_of(R"({"v":1,"rid":"r","mode":"some"})"), HasSubstr("mode"));
  EXPECT_THAT(refusal_of(R"({"v":1,"rid":"r","mode":"all"})"), HasSubstr("no slices"));
  EXPECT_THAT(refusal_of(R"({"v":1,"rid":"r","mode":"all","slices":[]})"), HasSubstr("no slices"));
  EXPECT_THAT(refusal_of(R"({"v":1,"rid":"r","mode":"all","key":"ann","slices":[]})"),
              HasSubstr("'key'"));
}

TEST(FeedContinuation, RefusesSlicesThatMakeNoSense) {
  const auto slices = [](const std::string& text) {
    return refusal_of(R"({"v":1,"rid":"r","mode":"latest","slices":)" + text + "}");
  };
  EXPECT_EQ(slices(R"([{"min":"","max":"FF"}])"), "accepted");
  EXPECT_THAT(slices("[4]"), HasSubstr("not an object"));
  EXPECT_THAT(slices(R"([{"min":""}])"), HasSubstr("'max'"));
  EXPECT_THAT(slices(R"([{"min":"","max":"xy"}])"), HasSubstr("no range"));
  EXPECT_THAT(slices(R"([{"min":"","max":"3f"}])"), HasSubstr("bounds"));
  EXPECT_THAT(slices(R"([{"min":"3F","max":"3F"}])"), HasSubstr("no range"));
  EXPECT_THAT(slices(R"([{"min":"","max":"1F"},{"min":"2F","max":"FF"}])"), HasSubstr("follow"));
  EXPECT_THAT(slices(R"([{"min":"","max":"2F"},{"min":"1F","max":"FF"}])"), HasSubstr("follow"));
  EXPECT_THAT(slices(R"([{"min":"","max":"FF","etag":""}])"), HasSubstr("'etag'"));
  EXPECT_THAT(slices(R"([{"min":"","max":"FF","etag":12}])"), HasSubstr("'etag'"));
  EXPECT_THAT(slices(R"([{"min":"","max":"FF","etag":"1\r\nx-ms-evil: 1"}])"),
              HasSubstr("not printable"));
  EXPECT_THAT(slices(R"([{"min":"","max":"FF","since":-1}])"), HasSubstr("not a time"));
  EXPECT_THAT(slices(R"([{"min":"","max":"FF","since":1.5}])"), HasSubstr("not a time"));
  EXPECT_THAT(slices(R"([{"min":"","max":"FF","etag":")" + std::string(5000, '1') + R"("}])"),
              HasSubstr("too long"));
}

/// Whatever becomes of a token on its way: it is refused, or it is one.
TEST(FeedContinuation, SurvivesDamage) {
  const auto seed = static_cast<unsigned>(orrery::test::seed());
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string text = sample().to_text();
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = text;
    for (unsigned count = 1 + random() % 3; count > 0 && !damaged.empty(); --count) {
      const std::size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged.erase(at, 1 + random() % 8);
          break;
        case 2:
          damaged.insert(at, 1, "{}[]\",:\\0F"[random() % 10]);
          break;
        default:
          damaged.resize(at);
          break;
      }
    }
    try {
      const auto parsed = FeedContinuation::parse(damaged);
      ASSERT_EQ(FeedContinuation::parse(parsed.to_text()), parsed) << damaged;
    } catch (const CosmosException& refusal) {
      ASSERT_EQ(refusal.failure(), Failure::Argument) << damaged;
    }
  }
}

TEST(CheckedRange, WritesBoundsAsTheServerDoes) {
  EXPECT_EQ(checked_range({"1f", "ff"}), (FeedRange{"1F", "FF"}));
  EXPECT_THROW(checked_range({"FF", ""}), CosmosException);
  EXPECT_THROW(checked_range({"1", "FF"}), CosmosException);
}

}  // namespace
}  // namespace orrery::client
