#include "processor/group/group_operations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "processor/leases/test_leases.h"

namespace orrery::processor {
namespace {

using client::FeedRange;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Position = LeaseGroup::Position;

class GroupOperationsTest : public LeasesTest {
 protected:
  GroupOperationsTest() { feed.current = {{"0", left, {}}, {"1", right, {}}}; }

  const FeedRange whole{"", "FF"};
  const FeedRange left{"", "1F"};
  const FeedRange right{"1F", "FF"};
  GroupOperations group{store, feed, key(), runtime};

  static LeaseGroupKey key() {
    LeaseGroupKey made;
    made.ids = test_ids();
    made.identity = {"localhost", "qYcAAA==", "qYcAAPEvJBQ=", "sky", "stars"};
    return made;
  }
  void put_both(const std::string& owner = {}) {
    put_lease("0", left, "\"10\"", owner);
    put_lease("1", right, "\"20\"", owner);
    put(ids.marker(), "{}");
  }
  std::vector<std::string> findings(Severity at_least = Severity::Error) {
    std::vector<std::string> found;
    for (const auto& finding : get(group.doctor())) {
      if (finding.severity <= at_least) found.push_back(finding.message);
    }
    return found;
  }
};

// As far as the store is concerned.
TEST_F(GroupOperationsTest, PausingIsWrittenForAllHostsToRead) {
  EXPECT_FALSE(get(group.paused()));
  ASSERT_TRUE(run(group.pause(true)));
  EXPECT_TRUE(get(group.paused()));
  EXPECT_TRUE(get(read_control(store, ids)).paused);
  ASSERT_TRUE(run(group.pause(false)));
  EXPECT_FALSE(get(group.paused()));
}

TEST_F(GroupOperationsTest, ControlKeepsWhatItDoesNotKnow) {
  put(ids.control(), R"({"id":"x","future":[1, 2]})");
  ASSERT_TRUE(run(group.pause(true)));
  EXPECT_THAT(get(store.read(ids.control())).text, HasSubstr("\"future\":[1, 2]"));
}

TEST_F(GroupOperationsTest, ControlIsNotSeenByTheOriginals) {
  ASSERT_TRUE(run(group.pause(true)));
  EXPECT_THAT(tokens(), IsEmpty());
}

TEST_F(GroupOperationsTest, ResetToTheBeginningMovesAllLeases) {
  put_both();
  ASSERT_TRUE(run(group.reset(Position{}, {})));
  EXPECT_EQ(lease_at("0").position, "\"0\"");
  EXPECT_EQ(lease_at("1").position, "\"0\"");
}

TEST_F(GroupOperationsTest, ResetToNowAndToATimeAsksTheFeed) {
  put_both();
  ASSERT_TRUE(run(group.reset(Position{Position::Kind::Now, {}, {}}, "0")));
  EXPECT_EQ(lease_at("0").position, "\"40\"");
  EXPECT_EQ(lease_at("1").position, "\"20\"");
  feed.answer = [](const FeedRequest& request) -> std::optional<FeedAnswer> {
    EXPECT_EQ(request.since, WallTime(std::chrono::seconds(7)));
    return page_of({}, "\"5\"");
  };
  ASSERT_TRUE(
      run(group.reset(Position{Position::Kind::Time, WallTime(std::chrono::seconds(7)), {}}, {})));
  EXPECT_EQ(lease_at("1").position, "\"5\"");
}

TEST_F(GroupOperationsTest, ResetToAnEtagIsTakenAsItIs) {
  put_both();
  ASSERT_TRUE(run(group.reset(Position{Position::Kind::Etag, {}, "\"3\""}, "1")));
  EXPECT_EQ(lease_at("1").position, "\"3\"");
  EXPECT_EQ(run(group.reset(Position{}, "9")).error().code(), ErrorCode::NotFound);
}

TEST_F(GroupOperationsTest, ResetIsRefusedWhileHostsWork) {
  put_both("host-1");
  const auto refused = run(group.reset(Position{}, {}));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), ErrorCode::Conflict);
  EXPECT_EQ(lease_at("0").position, "\"10\"");
}

TEST_F(GroupOperationsTest, ResetOfAPausedGroupTakesLeasesFromTheirOwners) {
  put_both();
  const Lease owned = get(manager.acquire(lease_at("0"))).lease;
  ASSERT_TRUE(run(group.pause(true)));
  ASSERT_TRUE(run(group.reset(Position{}, {})));
  // A batch that was still running does not move it forward again.
  EXPECT_TRUE(get(manager.checkpoint(owned.id, "\"30\"")).lost());
  EXPECT_EQ(lease_at("0").position, "\"0\"");
  EXPECT_EQ(lease_at("0").epoch(), owned.epoch());
}

TEST_F(GroupOperationsTest, NothingIsResetWhenAPositionCannotBeFound) {
  put_both();
  feed.answer = [](const FeedRequest& request) -> std::optional<FeedAnswer> {
    if (request.range_id == "0") return std::nullopt;
    return answer_of(FeedAnswer::Kind::Failed, 500);
  };
  EXPECT_FALSE(run(group.reset(Position{Position::Kind::Now, {}, {}}, {})).has_value());
  EXPECT_EQ(lease_at("0").position, "\"10\"");
}

TEST_F(GroupOperationsTest, ASnapshotIsRestored) {
  put_both();
  const std::string snapshot = get(group.snapshot());
  const auto json = nlohmann::json::parse(snapshot);
  EXPECT_EQ(json["leases"][1]["position"], "\"20\"");
  EXPECT_EQ(json["leases"][1]["min"], "1F");
  ASSERT_TRUE(run(group.reset(Position{}, {})));
  ASSERT_TRUE(run(group.restore(snapshot)));
  EXPECT_EQ(lease_at("0").position, "\"10\"");
  EXPECT_EQ(lease_at("1").position, "\"20\"");
}

TEST_F(GroupOperationsTest, ASnapshotIsRestoredAfterASplitAndAMerge) {
  put_both();
  const std::string snapshot = get(group.snapshot());
  for (const auto* token : {"0", "1"}) {
    ASSERT_TRUE(run(store.memory().remove(ids.lease(token), {})));
  }
  feed.current = {{"2", {"", "0F"}, {"0"}}, {"4", {"0F", "FF"}, {"0", "1", "3"}}};
  put_lease("2", FeedRange{"", "0F"}, "\"90\"");
  put_lease("4", FeedRange{"0F", "FF"}, "\"90\"");
  ASSERT_TRUE(run(group.restore(snapshot)));
  EXPECT_EQ(lease_at("2").position, "\"10\"");
  EXPECT_EQ(lease_at("4").position, "\"10\"") << "the lower of the two that it overlaps";
}

TEST_F(GroupOperationsTest, OtherTextsAndOtherContainersAreNotRestored) {
  put_both();
  EXPECT_EQ(run(group.restore("nonsense")).error().code(), ErrorCode::BadRequest);
  EXPECT_EQ(run(group.restore(R"({"container":"other","leases":[]})")).error().code(),
            ErrorCode::BadRequest);
  const auto half = run(group.restore(
      R"({"container":"qYcAAPEvJBQ=","leases":[{"token":"0","min":"","max":"1F","position":"\"1\""}]})"));
  ASSERT_FALSE(half.has_value());
  EXPECT_THAT(half.error().message(), HasSubstr("'1'"));
  EXPECT_EQ(lease_at("0").position, "\"10\"");
}

TEST_F(GroupOperationsTest, LeasesOfAHostThatIsGoneAreReleased) {
  put_lease("0", left, "\"10\"", "Host-7");
  put_lease("1", right, "\"20\"", "host-2");
  EXPECT_EQ(get(group.release("host-7")), 1U);
  EXPECT_EQ(lease_at("0").owner, "");
  EXPECT_EQ(lease_at("0").position, "\"10\"");
  EXPECT_EQ(lease_at("1").owner, "host-2");
}

TEST_F(GroupOperationsTest, LagIsToldForEachLease) {
  put_both();
  feed.left = PendingChanges{2, 10, std::chrono::seconds(1)};
  const auto lags = get(group.lag());
  ASSERT_EQ(lags.size(), 2U);
  EXPECT_EQ(lags[1].lease_token, "1");
  EXPECT_EQ(lags[1].documents, 2U);
}

TEST_F(GroupOperationsTest, TheDoctorFindsNothingWrongWithAHealthyGroup) {
  put_both("host-1");
  EXPECT_THAT(findings(Severity::Informational), IsEmpty());
}

TEST_F(GroupOperationsTest, TheDoctorFindsGaps) {
  put_lease("0", left, "\"10\"", "host-1");
  put(ids.marker(), "{}");
  EXPECT_THAT(findings(), ElementsAre(HasSubstr("no lease covers the keys from '1F' to 'FF'")));
}

TEST_F(GroupOperationsTest, TheDoctorFindsOverlaps) {
  put_both("host-1");
  put_lease("", FeedRange{"0A", "1A"}, "\"1\"", "host-1");
  EXPECT_THAT(findings(), ElementsAre(HasSubstr("cover the same keys")));
}

TEST_F(GroupOperationsTest, TheDoctorFindsDeadOwnersAndOrphans) {
  put_lease("0", left, "\"10\"", "host-9");
  put_lease("1", right, "\"20\"");
  put(ids.marker(), "{}");
  EXPECT_THAT(findings(), IsEmpty());
  runtime.advance(std::chrono::seconds(200));
  EXPECT_THAT(findings(), ElementsAre(HasSubstr("host 'host-9'"), HasSubstr("nobody owns")));
}

TEST_F(GroupOperationsTest, TheDoctorFindsALockThatStayedAndAMissingMarker) {
  put_lease("0", left, "\"10\"", "host-1");
  put_lease("1", right, "\"10\"", "host-1");
  put(ids.lock(), R"({"ttl":30})");
  runtime.advance(std::chrono::seconds(40));
  EXPECT_THAT(findings(), ElementsAre(HasSubstr("no marker"), HasSubstr("40 seconds old")));
}

TEST_F(GroupOperationsTest, TheDoctorFindsBrokenAndMixedLeases) {
  put_both("host-1");
  put(ids.lease("7"), "[]");
  put_lease("", right, std::nullopt, "host-1", LeaseFormat::JavaEpk);
  const auto found = findings();
  EXPECT_THAT(found, Contains(HasSubstr("no JSON object")));
  EXPECT_THAT(found, Contains(HasSubstr("mixed")));
}

TEST_F(GroupOperationsTest, TheDoctorKnowsThatSplitsAreFollowed) {
  put_both("host-1");
  feed.current = {{"2", {"", "0F"}, {"0"}}, {"3", {"0F", "1F"}, {"0"}}, {"1", right, {}}};
  EXPECT_THAT(findings(), IsEmpty());
  EXPECT_THAT(findings(Severity::Informational), ElementsAre(HasSubstr("split or merged")));
}

}  // namespace
}  // namespace orrery::processor
