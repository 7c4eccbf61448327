#include "processor/group/estimator.h"

#include <gtest/gtest.h>

#include "processor/leases/test_leases.h"

namespace orrery::processor {
namespace {

class EstimatorTest : public LeasesTest {
 protected:
  Lease lease(std::optional<std::string> position = "\"10\"") {
    auto made = *new_lease(ids, LeaseFormat::Net3, "0", client::FeedRange{"", "FF"},
                           std::move(position), client::ChangeFeedMode::LatestVersion, {});
    made.owner = "host-1";
    return made;
  }
  LeaseLag lag(const Lease& of) { return get(lease_lag(feed, of, feed.current)); }
};

TEST(EstimateTest, IsTheSessionMinusTheFirstChange) {
  const std::string_view change = R"({"id":"a","_lsn":11})";
  EXPECT_EQ(estimate_lag("0:-1#15", change), 5U);
  EXPECT_EQ(estimate_lag("0:15", change), 5U);
  EXPECT_EQ(estimate_lag("15", change), 5U);
  EXPECT_EQ(estimate_lag("0:-1#15", std::nullopt), 0U);
  EXPECT_EQ(estimate_lag("0:-1#3", change), 0U);
  EXPECT_EQ(estimate_lag("nonsense", change), 1U);
  EXPECT_EQ(estimate_lag("0:-1#15", R"({"id":"a"})"), 1U);
  EXPECT_EQ(estimate_lag("0:-1#15", R"({"current":{},"metadata":{"lsn":14}})"), 2U);
}

// Deletes are not counted by a server that counts documents.
TEST_F(EstimatorTest, IsExactWhereTheServerCanTell) {
  feed.left = PendingChanges{3, 700, std::chrono::seconds(9)};
  const auto found = lag(lease());
  EXPECT_TRUE(found.exact);
  EXPECT_EQ(found.documents, 3U);
  EXPECT_EQ(found.bytes, 700U);
  EXPECT_EQ(found.age, std::chrono::seconds(9));
  EXPECT_EQ(found.owner, "host-1");
  EXPECT_EQ(found.lease_token, "0");
  EXPECT_EQ(feed.requests[0].after, "\"10\"");
  feed.left = PendingChanges{};
  EXPECT_EQ(lag(lease()).documents, 0U);
}

TEST_F(EstimatorTest, FallsBackToTheFormula) {
  feed.answer = [](const FeedRequest& request) -> std::optional<FeedAnswer> {
    EXPECT_EQ(request.page_size, 1U);
    return page_of({R"({"id":"a","_lsn":11})"}, "\"11\"", "0:-1#15");
  };
  const auto found = lag(lease());
  EXPECT_FALSE(found.exact);
  EXPECT_EQ(found.documents, 5U);
  EXPECT_FALSE(found.bytes.has_value());
  feed.answer = nullptr;
  EXPECT_EQ(lag(lease()).documents, 0U);
}

TEST_F(EstimatorTest, WithoutAPositionSomebodyShouldLook) {
  feed.left = PendingChanges{3, 700, std::chrono::seconds(9)};
  EXPECT_EQ(lag(lease(std::nullopt)).documents, 1U);
}

TEST_F(EstimatorTest, ARangeThatIsGoneWakesSomebodyUp) {
  feed.answer = [](const FeedRequest&) -> std::optional<FeedAnswer> {
    return answer_of(FeedAnswer::Kind::Gone, 410);
  };
  EXPECT_EQ(lag(lease()).documents, 1U);
}

TEST_F(EstimatorTest, ALeaseOfASplitRangeHasWhatItsChildrenHave) {
  feed.current = {{"1", {"", "1F"}, {"0"}}, {"2", {"1F", "FF"}, {"0"}}};
  feed.left = PendingChanges{3, 700, std::chrono::seconds(9)};
  EXPECT_EQ(lag(lease()).documents, 6U);
  EXPECT_EQ(feed.requests[1].range_id, "2");
}

TEST_F(EstimatorTest, APartOfARangeIsAskedForAsSuch) {
  Lease part = *new_lease(ids, LeaseFormat::Net3, "", client::FeedRange{"", "1F"}, "\"10\"",
                          client::ChangeFeedMode::LatestVersion, {});
  feed.left = PendingChanges{};
  lag(part);
  EXPECT_EQ(feed.requests[0].range_id, "0");
  EXPECT_EQ(feed.requests[0].slice, (client::FeedRange{"", "1F"}));
}

}  // namespace
}  // namespace orrery::processor
