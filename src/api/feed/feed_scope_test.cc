#include "api/feed/feed_scope.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/test_request.h"
#include "protocol/wire/headers.h"

namespace orrery::api {
namespace {

using testing::ElementsAre;

std::vector<std::uint32_t> ids(const executor::ContainerScope& scope) {
  std::vector<std::uint32_t> found;
  for (const auto* range : scope.ranges) found.push_back(range->id.value);
  return found;
}

class FeedScopeTest : public testing::Test {
 protected:
  executor::ContainerScope scope() {
    auto context = request.context(container);
    auto made = feed_scope(context, *container);
    EXPECT_TRUE(made) << made.error().message();
    return made ? std::move(*made) : executor::ContainerScope{};
  }
  ErrorCode refusal() {
    auto context = request.context(container);
    const auto made = feed_scope(context, *container);
    EXPECT_FALSE(made);
    return made ? ErrorCode::Internal : made.error().code();
  }

  std::shared_ptr<const catalog::Container> container = test_container(kHashKey, 4);
  TestRequest request{"GET", "/dbs/d/colls/c/docs"};
};

TEST_F(FeedScopeTest, WithoutAnyHeaderItIsTheWholeContainer) {
  const auto made = scope();
  EXPECT_THAT(ids(made), ElementsAre(0, 1, 2, 3));
  EXPECT_FALSE(made.epks);
  EXPECT_FALSE(made.partition_key);
}

TEST_F(FeedScopeTest, AFullKeyIsOneRangeAndOneKey) {
  request.header(headers::kPartitionKey, R"(["x"])");
  auto context = request.context(container);
  const auto made = feed_scope(context, *container);
  ASSERT_TRUE(made);
  const auto key = PartitionKey::parse(R"(["x"])").value();
  const auto place = place_of(container->definition, key);
  ASSERT_EQ(made->ranges.size(), 1u);
  EXPECT_EQ(made->ranges[0], &container->ranges.owner_of(place.epk));
  EXPECT_EQ(context.target.range, made->ranges[0]);
  EXPECT_EQ(made->partition_key, place.canonical);
  ASSERT_TRUE(made->epks);
  EXPECT_TRUE(made->epks->contains(place.epk));
}

TEST_F(FeedScopeTest, AFullKeyDecidesAloneWhateverRangeIsNamed) {
  request.header(headers::kPartitionKey, R"(["x"])").header(headers::kPartitionKeyRangeId, "99");
  EXPECT_EQ(scope().ranges.size(), 1u);
}

TEST_F(FeedScopeTest, ANamedRangeIsThatRange) {
  request.header(headers::kPartitionKeyRangeId, "2");
  const auto made = scope();
  EXPECT_THAT(ids(made), ElementsAre(2));
  EXPECT_FALSE(made.epks);
}

TEST_F(FeedScopeTest, ARangeMayBeNamedWithItsContainer) {
  request.header(headers::kPartitionKeyRangeId, container->rid_text + ",1");
  EXPECT_THAT(ids(scope()), ElementsAre(1));
  request = TestRequest();
  request.header(headers::kPartitionKeyRangeId, "AAAAAYAAAAI=,1");
  EXPECT_EQ(refusal(), ErrorCode::NameCacheStale);
}

TEST_F(FeedScopeTest, ARangeThatIsNotThereIsGone) {
  for (const auto* id : {"4", "99999999999", "x", "1x", "-1", "M"}) {
    request = TestRequest();
    request.header(headers::kPartitionKeyRangeId, id);
    EXPECT_EQ(refusal(), ErrorCode::RangeGone) << id;
  }
}

TEST_F(FeedScopeTest, EpkBoundsChooseTheRangesThatOverlap) {
  const auto& second = container->ranges.all()[1].epks;
  request.header(headers::kStartEpk, second.min.hex()).header(headers::kEndEpk, second.max.hex());
  auto made = scope();
  EXPECT_THAT(ids(made), ElementsAre(1));
  EXPECT_EQ(made.epks, second);

  request = TestRequest();
  request.header(headers::kStartEpk, "").header(headers::kEndEpk, "FF");
  EXPECT_THAT(ids(scope()), ElementsAre(0, 1, 2, 3));

  request = TestRequest();
  request.header(headers::kStartEpk, second.min.hex())
      .header(headers::kEndEpk, second.max.hex())
      .header(headers::kPartitionKeyRangeId, "1");
  made = scope();
  EXPECT_THAT(ids(made), ElementsAre(1));
  EXPECT_TRUE(made.epks);
}

TEST_F(FeedScopeTest, BrokenEpkBoundsAreRefused) {
  const auto with = [&](const char* start, const char* end) {
    request = TestRequest();
    request.header(headers::kStartEpk, start).header(headers::kEndEpk, end);
    return refusal();
  };
  EXPECT_EQ(with("20", ""), ErrorCode::BadRequest);
  EXPECT_EQ(with("20", "20"), ErrorCode::BadRequest);
  EXPECT_EQ(with("30", "20"), ErrorCode::BadRequest);
  EXPECT_EQ(with("xy", "20"), ErrorCode::BadRequest);
  EXPECT_EQ(with("", std::string(2000, 'A').c_str()), ErrorCode::BadRequest);
}

TEST_F(FeedScopeTest, ABoundMayHaveAnOddNumberOfDigits) {
  // "3" lies between "2FFF…" and "30": for EPKs of whole bytes that is where "30" does.
  request.header(headers::kStartEpk, "1").header(headers::kEndEpk, "3");
  const auto made = scope();
  ASSERT_TRUE(made.epks);
  EXPECT_EQ(made.epks->min.hex(), "10");
  EXPECT_EQ(made.epks->max.hex(), "30");
}

TEST_F(FeedScopeTest, ARangeIsNamedExactlyAsItWasGivenOut) {
  for (const char* id : {"00", "01", "99", "-1", "4294967296"}) {
    request = TestRequest();
    request.header(headers::kPartitionKeyRangeId, id);
    EXPECT_EQ(refusal(), ErrorCode::RangeGone) << id;
  }
}

TEST_F(FeedScopeTest, ABrokenKeyIsRefused) {
  request.header(headers::kPartitionKey, "[");
  EXPECT_EQ(refusal(), ErrorCode::BadRequest);
  request = TestRequest();
  request.header(headers::kPartitionKey, R"(["a","b"])");
  EXPECT_EQ(refusal(), ErrorCode::PartitionKeyMismatch);
}

TEST_F(FeedScopeTest, APrefixOfAHierarchicalKeyIsAllThatBeginsWithIt) {
  container = test_container(kMultiHashKey, 4);
  request.header(headers::kPartitionKey, R"(["x"])");
  const auto made = scope();
  ASSERT_TRUE(made.epks);
  EXPECT_FALSE(made.partition_key);
  EXPECT_EQ(made.ranges.size(), 1u);
  const auto whole = PartitionKey::parse(R"(["x","y"])").value();
  EXPECT_TRUE(
      made.epks->contains(effective_partition_key(container->definition.partition_key(), whole)));
  const auto other = PartitionKey::parse(R"(["z","y"])").value();
  EXPECT_FALSE(
      made.epks->contains(effective_partition_key(container->definition.partition_key(), other)));
}

TEST_F(FeedScopeTest, APrefixAndEpkBoundsTogetherAreWhatBothAdmit) {
  container = test_container(kMultiHashKey, 4);
  const auto prefix = effective_key_range(container->definition.partition_key(),
                                          PartitionKey::parse(R"(["x"])").value());
  request.header(headers::kPartitionKey, R"(["x"])")
      .header(headers::kStartEpk, "")
      .header(headers::kEndEpk, prefix.min.hex() + "80");
  const auto made = scope();
  ASSERT_TRUE(made.epks);
  EXPECT_EQ(made.epks->min, prefix.min);
  EXPECT_EQ(made.epks->max.hex(), prefix.min.hex() + "80");
}

TEST_F(FeedScopeTest, OnAContainerWithoutAKeyTheEmptyKeyIsEverything) {
  auto plain = ContainerDefinition::create(Json::parse(R"({"id":"c"})"), "2015-12-16").value();
  auto made_container = std::make_shared<catalog::Container>(*test_container(kHashKey));
  made_container->definition = plain;
  container = made_container;
  for (const auto* key : {"[]", "[{}]"}) {
    request = TestRequest();
    request.header(headers::kPartitionKey, key);
    const auto made = scope();
    EXPECT_THAT(ids(made), ElementsAre(0)) << key;
    EXPECT_FALSE(made.partition_key) << key;
    EXPECT_FALSE(made.epks) << key;
  }
  request = TestRequest();
  request.header(headers::kPartitionKey, R"(["x"])");
  EXPECT_EQ(refusal(), ErrorCode::PartitionKeyMismatch);
}

}  // namespace
}  // namespace orrery::api
