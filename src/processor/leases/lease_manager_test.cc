#include "processor/leases/lease_manager.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/detached.hpp>

#include "processor/leases/test_leases.h"

namespace orrery::processor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ChangeKind = LeaseChange::Kind;

class LeaseManagerTest : public LeasesTest {
 protected:
  static constexpr auto kWhole = [] { return client::FeedRange{"", "FF"}; };

  /// A lease of the manager's host.
  Lease acquired(const std::string& position = "\"10\"") {
    return get(manager.acquire(put_lease("0", kWhole(), position))).lease;
  }
  /// Another host, or another life of this one, writes the lease.
  void rewrite(const std::function<void(Lease&)>& change) {
    Lease lease = lease_at("0");
    change(lease);
    put(lease.id, write_lease(lease));
  }
  /// Once, just before the next replace.
  void interfere(std::function<void(Lease&)> change, int times = 1) {
    store.set_before([this, change = std::move(change),
                      left = times](const std::string& call) mutable -> std::optional<Error> {
      if (call.starts_with("replace") && left-- > 0) {
        asio::co_spawn(runtime.executor(), rewritten(&change), asio::detached);
      }
      return std::nullopt;
    });
  }

  /// Writes what an acquisition of this host would write.
  Async<> written_all_the_same() {
    ORRERY_CO_TRY(const auto document, co_await store.memory().read(ids.lease("0")));
    ORRERY_CO_TRY(auto lease, parse_lease(document));
    lease.owner = "host-1";
    lease.properties["orrery.epoch"] = std::to_string(lease.epoch() + 1);
    ORRERY_CO_TRY(co_await store.memory().replace(lease.id, write_lease(lease), lease.etag));
    co_return Result<>{};
  }

 private:
  Async<> rewritten(std::function<void(Lease&)>* change) {
    ORRERY_CO_TRY(const auto document, co_await store.memory().read(ids.lease("0")));
    ORRERY_CO_TRY(auto lease, parse_lease(document));
    (*change)(lease);
    ORRERY_CO_TRY(co_await store.memory().replace(lease.id, write_lease(lease), lease.etag));
    co_return Result<>{};
  }
};

TEST_F(LeaseManagerTest, AcquireSetsOwnerTimestampAndARisenEpoch) {
  const Lease seen =
      put_lease("0", std::nullopt, "\"10\"", "", LeaseFormat::Net3,
                {{"orrery.epoch", "9000000000"}, {"orrery.wanted-by", "host-1"}, {"x", "y"}});
  Lease wanted = seen;
  wanted.range = kWhole();
  const auto change = get(manager.acquire(wanted));
  ASSERT_EQ(change.kind, ChangeKind::Done);
  const Lease there = lease_at("0");
  EXPECT_EQ(there.owner, "host-1");
  EXPECT_EQ(there.epoch(), 9'000'000'001U);
  EXPECT_EQ(there.timestamp, runtime.wall_now());
  EXPECT_EQ(there.position, "\"10\"");
  EXPECT_EQ(there.properties.at("x"), "y");
  EXPECT_EQ(there.wanted_by(), "");
  EXPECT_EQ(there.range, kWhole());
  EXPECT_EQ(manager.owned(seen.id)->etag, there.etag);
}

TEST_F(LeaseManagerTest, AnAcquireIsNeverRetried) {
  const Lease seen = put_lease("0", kWhole(), "\"10\"", "host-2");
  rewrite([](Lease& lease) { lease.timestamp = WallTime(std::chrono::seconds(5)); });
  const auto change = get(manager.acquire(seen));
  EXPECT_EQ(change.kind, ChangeKind::Lost);
  EXPECT_EQ(lease_at("0").owner, "host-2");
  EXPECT_EQ(store.count("replace " + seen.id), 1U);
  EXPECT_EQ(manager.owned(seen.id), nullptr);
}

TEST_F(LeaseManagerTest, AnAcquireOfADeletedLeaseFindsItGone) {
  const Lease seen = put_lease("0", kWhole(), "\"10\"");
  ASSERT_TRUE(run(store.memory().remove(seen.id, {})));
  EXPECT_EQ(get(manager.acquire(seen)).kind, ChangeKind::Gone);
}

TEST_F(LeaseManagerTest, AnAcquireWhoseAnswerWasLostIsFoundDone) {
  const Lease seen =
      put_lease("0", kWhole(), "\"10\"", "", LeaseFormat::Net3, {{"orrery.epoch", "9000000000"}});
  store.set_before([this](const std::string& call) -> std::optional<Error> {
    if (!call.starts_with("replace")) return std::nullopt;
    runtime.begin(written_all_the_same());
    return Error(ErrorCode::Unavailable, "made up");
  });
  const auto change = get(manager.acquire(seen));
  ASSERT_EQ(change.kind, ChangeKind::Done);
  EXPECT_EQ(manager.owned(seen.id)->owner, "host-1");
  store.set_before({});
  EXPECT_EQ(get(manager.checkpoint(seen.id, "\"20\"")).kind, ChangeKind::Done);
}

TEST_F(LeaseManagerTest, AnAcquireThatDidNotArriveIsAnError) {
  const Lease seen = put_lease("0", kWhole(), "\"10\"", "host-1");
  store.set_before([](const std::string& call) -> std::optional<Error> {
    if (!call.starts_with("replace")) return std::nullopt;
    return Error(ErrorCode::Unavailable, "made up");
  });
  EXPECT_EQ(run(manager.acquire(seen)).error().code(), ErrorCode::Unavailable);
  EXPECT_EQ(manager.owned(seen.id), nullptr);
}

TEST_F(LeaseManagerTest, ALeaseOfThisVeryHostIsAdoptedWithANewEpoch) {
  const Lease seen =
      put_lease("0", kWhole(), "\"10\"", "host-1", LeaseFormat::Net3, {{"orrery.epoch", "3"}});
  EXPECT_GT(get(manager.acquire(seen)).lease.epoch(), 3U);
}

// Somebody who planned it before it was there the first time, and was held up.
TEST_F(LeaseManagerTest, ALeaseThatIsMadeAgainGivesNoEpochTwice) {
  const std::map<std::string, std::string> planned{{"orrery.epoch", "3"}};
  put_lease("0", kWhole(), "\"10\"", "", LeaseFormat::Net3, planned);
  const auto first = get(manager.acquire(lease_at("0")));
  get(manager.release(first.lease.id));
  const auto second = get(manager.acquire(lease_at("0")));
  EXPECT_GT(second.lease.epoch(), first.lease.epoch());
  ASSERT_TRUE(run(manager.remove(first.lease.id)));
  runtime.advance(std::chrono::seconds(10));
  put_lease("0", kWhole(), "\"10\"", "", LeaseFormat::Net3, planned);
  EXPECT_GT(get(manager.acquire(lease_at("0"))).lease.epoch(), second.lease.epoch());
}

TEST_F(LeaseManagerTest, ACheckpointWritesThePositionAndRenews) {
  const Lease lease = acquired();
  runtime.advance(std::chrono::seconds(5));
  const auto change = get(manager.checkpoint(lease.id, "\"20\""));
  ASSERT_EQ(change.kind, ChangeKind::Done);
  EXPECT_EQ(lease_at("0").position, "\"20\"");
  EXPECT_EQ(lease_at("0").timestamp, runtime.wall_now());
  EXPECT_EQ(store.count("read " + lease.id), 0U) << "its etag is known";
}

TEST_F(LeaseManagerTest, AnOlderCheckpointIsRefused) {
  const Lease lease = acquired();
  EXPECT_EQ(get(manager.checkpoint(lease.id, "\"20\"")).kind, ChangeKind::Done);
  const auto change = get(manager.checkpoint(lease.id, "\"19\""));
  EXPECT_EQ(change.kind, ChangeKind::Older);
  EXPECT_THAT(change.reason, HasSubstr("further"));
  EXPECT_EQ(lease_at("0").position, "\"20\"");
  EXPECT_NE(manager.owned(lease.id), nullptr);
}

TEST_F(LeaseManagerTest, TheSameCheckpointIsNotWrittenAgain) {
  const Lease lease = acquired();
  EXPECT_EQ(get(manager.checkpoint(lease.id, "\"10\"")).kind, ChangeKind::Done);
  EXPECT_EQ(store.count("replace " + lease.id), 1U) << "that of the acquisition";
}

TEST_F(LeaseManagerTest, AConflictAloneDoesNotLoseTheLease) {
  const Lease lease = acquired();
  rewrite([](Lease& each) { each.properties["orrery.wanted-by"] = "host-2"; });
  const auto change = get(manager.checkpoint(lease.id, "\"20\""));
  ASSERT_EQ(change.kind, ChangeKind::Done);
  EXPECT_EQ(lease_at("0").position, "\"20\"");
  EXPECT_EQ(lease_at("0").wanted_by(), "host-2") << "what the other has written is kept";
  EXPECT_EQ(manager.stats().conflicts, 1U);
}

TEST_F(LeaseManagerTest, AnotherOwnerMeansLost) {
  const Lease lease = acquired();
  rewrite([](Lease& each) { each.owner = "host-2"; });
  const auto change = get(manager.renew(lease.id));
  EXPECT_EQ(change.kind, ChangeKind::Lost);
  EXPECT_EQ(change.lease.owner, "host-2");
  EXPECT_EQ(manager.owned(lease.id), nullptr);
  EXPECT_EQ(get(manager.checkpoint(lease.id, "\"20\"")).kind, ChangeKind::Lost);
  EXPECT_EQ(lease_at("0").position, "\"10\"");
}

TEST_F(LeaseManagerTest, NoOwnerIsNotMe) {
  const Lease lease = acquired();
  rewrite([](Lease& each) { each.owner.clear(); });
  EXPECT_EQ(get(manager.checkpoint(lease.id, "\"20\"")).kind, ChangeKind::Lost);
  EXPECT_EQ(lease_at("0").owner, "");
}

TEST_F(LeaseManagerTest, AnotherLifeOfThisHostTakesTheLeaseFromTheEarlierOne) {
  const Lease lease = acquired();
  LeaseManager later(store, ids, "host-1", runtime);
  ASSERT_EQ(get(later.acquire(lease_at("0"))).kind, ChangeKind::Done);
  EXPECT_EQ(get(manager.checkpoint(lease.id, "\"20\"")).kind, ChangeKind::Lost);
  EXPECT_EQ(get(later.checkpoint(lease.id, "\"30\"")).kind, ChangeKind::Done);
}

TEST_F(LeaseManagerTest, ADeletedLeaseIsNoticedByTheRenewal) {
  const Lease lease = acquired();
  ASSERT_TRUE(run(store.memory().remove(lease.id, {})));
  const auto change = get(manager.renew(lease.id));
  EXPECT_EQ(change.kind, ChangeKind::Gone);
  EXPECT_TRUE(change.lost());
  EXPECT_EQ(manager.owned(lease.id), nullptr);
}

TEST_F(LeaseManagerTest, UpdatesOfOneLeaseNeverConflictWithEachOther) {
  const Lease lease = acquired();
  std::vector<std::shared_ptr<std::optional<Result<LeaseChange>>>> outcomes;
  for (int step = 1; step <= 20; ++step) {
    outcomes.push_back(runtime.begin(manager.renew(lease.id)));
    outcomes.push_back(
        runtime.begin(manager.checkpoint(lease.id, fmt::format("\"{}\"", 10 + step))));
  }
  runtime.run_until([&] { return outcomes.back()->has_value(); });
  for (const auto& outcome : outcomes) EXPECT_EQ((**outcome)->kind, ChangeKind::Done);
  EXPECT_EQ(lease_at("0").position, "\"30\"");
  EXPECT_EQ(manager.stats().conflicts, 0U);
}

TEST_F(LeaseManagerTest, ARenewalThatWaitedForACheckpointNeedsNoWriteOfItsOwn) {
  const Lease lease = acquired();
  const auto checkpoint = runtime.begin(manager.checkpoint(lease.id, "\"20\""));
  const auto renewal = runtime.begin(manager.renew(lease.id));
  runtime.run_until([&] { return renewal->has_value(); });
  EXPECT_EQ((**renewal)->kind, ChangeKind::Done);
  EXPECT_EQ(store.count("replace " + lease.id), 2U) << "the acquisition and the checkpoint";
}

TEST_F(LeaseManagerTest, RenewalAndPositionAreOneWrite) {
  const Lease lease = acquired();
  runtime.advance(std::chrono::seconds(17));
  EXPECT_EQ(get(manager.renew(lease.id, "\"15\"")).kind, ChangeKind::Done);
  EXPECT_EQ(lease_at("0").position, "\"15\"");
  EXPECT_EQ(lease_at("0").timestamp, runtime.wall_now());
  EXPECT_EQ(store.count("replace " + lease.id), 2U);
  // An older one is passed over; the renewal counts.
  EXPECT_EQ(get(manager.renew(lease.id, "\"12\"")).kind, ChangeKind::Done);
  EXPECT_EQ(lease_at("0").position, "\"15\"");
  EXPECT_EQ(store.count("replace " + lease.id), 3U);
}

TEST_F(LeaseManagerTest, AnUpdateGivesUpAfterSixAttempts) {
  const Lease lease = acquired();
  int turn = 0;
  interfere([&turn](Lease& each) { each.properties["x"] = std::to_string(++turn); }, 100);
  EXPECT_EQ(get(manager.checkpoint(lease.id, "\"20\"")).kind, ChangeKind::Lost);
  EXPECT_EQ(store.count("replace " + lease.id), 1U + 6U);
}

TEST_F(LeaseManagerTest, AnUpdateSurvivesFiveConflicts) {
  const Lease lease = acquired();
  int turn = 0;
  interfere([&turn](Lease& each) { each.properties["x"] = std::to_string(++turn); }, 5);
  EXPECT_EQ(get(manager.checkpoint(lease.id, "\"20\"")).kind, ChangeKind::Done);
  EXPECT_EQ(lease_at("0").position, "\"20\"");
}

TEST_F(LeaseManagerTest, AStoreThatDoesNotAnswerIsAnErrorAndTheLeaseIsKept) {
  const Lease lease = acquired();
  store.set_before([](const std::string&) { return Error(ErrorCode::Unavailable, "made up"); });
  const auto renewed = run(manager.renew(lease.id));
  ASSERT_FALSE(renewed.has_value());
  EXPECT_EQ(renewed.error().code(), ErrorCode::Unavailable);
  ASSERT_NE(manager.owned(lease.id), nullptr);
  store.set_before({});
  EXPECT_EQ(get(manager.renew(lease.id)).kind, ChangeKind::Done);
}

TEST_F(LeaseManagerTest, ACheckpointWhoseAnswerWasLostIsFoundWritten) {
  const Lease lease = acquired();
  rewrite([](Lease& each) { each.position = "\"20\""; });  // It was carried out.
  EXPECT_EQ(get(manager.checkpoint(lease.id, "\"20\"")).kind, ChangeKind::Done);
  EXPECT_EQ(lease_at("0").position, "\"20\"");
}

TEST_F(LeaseManagerTest, ReleaseLeavesThePositionAndNoOwner) {
  const Lease lease = acquired();
  EXPECT_EQ(get(manager.checkpoint(lease.id, "\"20\"")).kind, ChangeKind::Done);
  EXPECT_EQ(get(manager.release(lease.id)).kind, ChangeKind::Done);
  EXPECT_EQ(lease_at("0").owner, "");
  EXPECT_THAT(text_at("0"), HasSubstr("\"Owner\":null"));
  EXPECT_EQ(lease_at("0").position, "\"20\"");
  EXPECT_EQ(manager.owned(lease.id), nullptr);
}

TEST_F(LeaseManagerTest, ReleaseLeavesALeaseOfOthersAlone) {
  const Lease lease = acquired();
  rewrite([](Lease& each) { each.owner = "host-2"; });
  EXPECT_EQ(get(manager.release(lease.id)).kind, ChangeKind::Done);
  EXPECT_EQ(lease_at("0").owner, "host-2");
}

TEST_F(LeaseManagerTest, ALeaseIsHandedOverToWhoAskedForIt) {
  const Lease lease = acquired();
  LeaseManager taker(store, ids, "host-2", runtime);
  const auto timestamp = lease_at("0").timestamp;
  runtime.advance(std::chrono::seconds(3));
  ASSERT_EQ(get(taker.ask_for(lease_at("0"))).kind, ChangeKind::Done);
  EXPECT_EQ(lease_at("0").owner, "host-1");
  EXPECT_EQ(lease_at("0").timestamp, timestamp) << "its owner has not spoken";
  const auto renewed = get(manager.renew(lease.id));
  ASSERT_EQ(renewed.lease.wanted_by(), "host-2");
  ASSERT_EQ(get(manager.release(lease.id, "host-2")).kind, ChangeKind::Done);
  EXPECT_EQ(lease_at("0").owner, "host-2");
  const auto taken = get(taker.acquire(lease_at("0")));
  ASSERT_EQ(taken.kind, ChangeKind::Done);
  EXPECT_EQ(taken.lease.wanted_by(), "");
  EXPECT_GT(taken.lease.epoch(), lease.epoch());
}

TEST_F(LeaseManagerTest, WhoHasTakenItsRequestBackGetsNothing) {
  const Lease lease = acquired();
  LeaseManager taker(store, ids, "host-2", runtime);
  ASSERT_EQ(get(taker.ask_for(lease_at("0"))).kind, ChangeKind::Done);
  ASSERT_EQ(get(manager.renew(lease.id)).lease.wanted_by(), "host-2");
  ASSERT_EQ(get(taker.withdraw(lease_at("0"))).kind, ChangeKind::Done);
  EXPECT_EQ(lease_at("0").owner, "host-1");
  // The owner has not seen that yet.
  ASSERT_EQ(get(manager.release(lease.id, "host-2")).kind, ChangeKind::Done);
  EXPECT_EQ(lease_at("0").owner, "");
}

TEST_F(LeaseManagerTest, WhatWasHandedOverIsGivenBackUnlessItHasChanged) {
  put_lease("0", std::nullopt, "\"1\"", "host-1");
  const Lease seen = lease_at("0");
  ASSERT_EQ(get(manager.withdraw(seen)).kind, ChangeKind::Done);
  EXPECT_EQ(lease_at("0").owner, "");
  EXPECT_EQ(get(manager.withdraw(seen)).kind, ChangeKind::Lost);
}

TEST_F(LeaseManagerTest, PropertiesAreChangedOneByOne) {
  const Lease lease = acquired();
  rewrite([](Lease& each) {
    each.properties["theirs"] = "1";
    each.properties["old"] = "2";
  });
  EXPECT_EQ(get(manager.update_properties(lease.id, {{"orrery.cost", "0.5"}, {"old", {}}})).kind,
            ChangeKind::Done);
  const Lease there = lease_at("0");
  EXPECT_EQ(there.properties.at("theirs"), "1");
  EXPECT_EQ(there.properties.at("orrery.cost"), "0.5");
  EXPECT_FALSE(there.properties.contains("old"));
}

TEST_F(LeaseManagerTest, ALeaseThatIsThereAlreadyIsNotOverwritten) {
  put_lease("1", client::FeedRange{"", "1F"}, "\"50\"", "host-2");
  auto lease =
      *new_lease(ids, LeaseFormat::Net3, "1", client::FeedRange{"", "1F"}, "\"10\"", {}, {});
  const auto change = get(manager.create(std::move(lease)));
  EXPECT_EQ(change.kind, ChangeKind::Done);
  EXPECT_EQ(change.lease.position, "\"50\"");
  EXPECT_EQ(change.lease.owner, "host-2");
}

TEST_F(LeaseManagerTest, ACreatedLeaseIsAcquiredUnderTheEtagOfItsCreation) {
  auto lease =
      *new_lease(ids, LeaseFormat::Net3, "1", client::FeedRange{"", "1F"}, "\"10\"", {}, {});
  const auto created = get(manager.create(std::move(lease)));
  EXPECT_FALSE(created.lease.etag.empty());
  EXPECT_EQ(get(manager.acquire(created.lease)).kind, ChangeKind::Done);
}

TEST_F(LeaseManagerTest, RemovingWhatIsGoneIsFine) {
  const Lease lease = acquired();
  EXPECT_TRUE(run(manager.remove(lease.id)));
  EXPECT_FALSE(exists(lease.id));
  EXPECT_TRUE(run(manager.remove(lease.id)));
  EXPECT_EQ(manager.owned(lease.id), nullptr);
}

TEST_F(LeaseManagerTest, ListsLeasesOnlyAndRefusesMixedOnes) {
  put_lease("0", kWhole(), "\"1\"");
  put(ids.marker(), "{}");
  put(ids.lock(), "{}");
  put("another..0", "{}");
  const auto leases = get(manager.list());
  ASSERT_EQ(leases.size(), 1U);
  EXPECT_EQ(leases[0].token, "0");
  put_lease("1", client::FeedRange{"", "1F"}, std::nullopt, "", LeaseFormat::JavaEpk);
  const auto mixed = run(manager.list());
  ASSERT_FALSE(mixed.has_value());
  EXPECT_EQ(mixed.error().code(), ErrorCode::BadRequest);
}

TEST_F(LeaseManagerTest, TheFirstPositionOfAJavaLeaseTellsModeAndContainer) {
  manager.set_feed(client::ChangeFeedMode::AllVersionsAndDeletes, "ridOfContainer");
  const Lease seen =
      put_lease("-FF", client::FeedRange{"", "FF"}, std::nullopt, "", LeaseFormat::JavaEpk);
  ASSERT_EQ(seen.mode, std::nullopt);
  ASSERT_EQ(get(manager.acquire(seen)).kind, ChangeKind::Done);
  ASSERT_EQ(get(manager.checkpoint(seen.id, "\"5\"")).kind, ChangeKind::Done);
  const Lease there = lease_at("-FF");
  EXPECT_EQ(there.mode, client::ChangeFeedMode::AllVersionsAndDeletes);
  EXPECT_EQ(there.container_rid, "ridOfContainer");
  EXPECT_EQ(there.position, "\"5\"");
}

// Documents as other libraries write them are joined as they are.
TEST_F(LeaseManagerTest, ForeignLeasesKeepTheirFormat) {
  const std::vector<std::pair<std::string, std::string>> documents{
      {R"({"id":"x","PartitionId":"0","Owner":null,"ContinuationToken":"\"5\"","properties":{},"timestamp":"2018-05-03T10:11:12.1234567Z","future":[1]})",
       R"({"id":"x","PartitionId":"0","Owner":"host-1","ContinuationToken":"\"6\"","properties":{"orrery.epoch":")"},
      {R"({"id":"x","LeaseToken":"0","ContinuationToken":"\"5\"","timestamp":null,"Owner":null,"future":[1]})",
       R"({"id":"x","LeaseToken":"0","ContinuationToken":"\"6\"","timestamp":")"}};
  for (const auto& [before, after] : documents) {
    put(ids.lease("0"), before);
    const Lease lease = lease_at("0");
    ASSERT_EQ(get(manager.acquire(lease)).kind, ChangeKind::Done);
    ASSERT_EQ(get(manager.checkpoint(lease.id, "\"6\"")).kind, ChangeKind::Done);
    EXPECT_THAT(text_at("0"), ::testing::StartsWith(after));
    EXPECT_THAT(text_at("0"), HasSubstr("\"future\":[1]"));
    EXPECT_EQ(lease_at("0").format, lease.format);
  }
}

}  // namespace
}  // namespace orrery::processor
