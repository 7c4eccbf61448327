// The behaviour of a host, scene by scene, in virtual time.
#include "processor/hosting/controller.h"

#include <gmock/gmock.h>

#include "processor/group/group_operations.h"
#include "processor/simulation/test_group.h"
#include "processor/simulation/test_ledger.h"

namespace orrery::processor::simulation {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ControllerTest : public GroupTest {};

// ── observers ────────────────────────────────────────────────────────────────────────────────────

TEST_F(ControllerTest, AnObserverIsOpenedServedAndClosed) {
  for (int i = 0; i < 20; ++i) feed_.write(1, 1);
  Host& host = start("a");
  ASSERT_TRUE(within(10s, [&] { return processed_ids().size() == 20; }));
  stop(host);
  EXPECT_EQ(seen_.front().what, "open");
  EXPECT_EQ(seen_.back().what, "close");
  EXPECT_EQ(seen_.back().reason, CloseReason::Shutdown);
  EXPECT_THAT(seen("open"), SizeIs(1));
  EXPECT_THAT(seen("close"), SizeIs(1));
  ASSERT_THAT(leases(), SizeIs(1));
  EXPECT_EQ(leases()[0].owner, "");
  EXPECT_EQ(leases()[0].position, "\"20\"");
}

TEST_F(ControllerTest, ASecondLifeGoesOnWhereTheFirstEnded) {
  feed_.write(1, 1);
  stop(start("a"));
  feed_.write(1, 1);
  start("a");
  ASSERT_TRUE(within(20s, [&] { return processed_ids().size() >= 2; }));
  EXPECT_THAT(processed_ids(), ElementsAre("1-1", "1-2"));
  EXPECT_GT(seen("open")[1].epoch, seen("open")[0].epoch);
}

TEST_F(ControllerTest, WhatThrowsIsClosedReleasedAndComesAgain) {
  int attempts = 0;
  behave_ = [&](ObserverContext&, const Documents&) -> Outcome {
    if (++attempts <= 2) throw std::runtime_error("no");
    return Outcome::done();
  };
  feed_.write(1, 1);
  start("a");
  ASSERT_TRUE(within(60s, [&] { return attempts == 3; }));
  EXPECT_THAT(processed_ids(), ElementsAre("1-1", "1-1", "1-1"));
  ASSERT_THAT(seen("close"), SizeIs(2));
  EXPECT_EQ(seen("close")[0].reason, CloseReason::ObserverError);
  EXPECT_GE(seen("process")[1].at - seen("process")[0].at, 10s);  // At the next acquire interval.
}

TEST_F(ControllerTest, AnObserverThatDoesNotOpenIsNotClosedEither) {
  int opened = 0;
  class Refusing : public ChangeFeedObserver {
   public:
    explicit Refusing(int& opened) : opened_(opened) {}
    void open(ObserverContext&) override {
      ++opened_;
      throw std::runtime_error("no");
    }
    void close(ObserverContext&, CloseReason) override { ADD_FAILURE() << "closed"; }

   private:
    int& opened_;
  };
  Host host;
  host.runtime = std::make_shared<SimulatedRuntime>(world_, Duration(0));
  host.store = std::make_unique<StoreClient>(world_, store_, host.runtime, host.network);
  host.feed = std::make_unique<FeedClient>(world_, feed_, host.runtime, host.network);
  host.controller = std::make_unique<Controller>(Controller::Setup{
      *host.runtime,
      *host.store,
      *host.feed,
      [&](std::function<void()> work) {
        world_.after(1ms,
                     [runtime = host.runtime, work = std::move(work)] { runtime->deliver(work); });
      },
      "a",
      feed_options_,
      options_,
      [&] { return std::make_unique<Refusing>(opened); },
      {},
      host.stats,
      {}});
  bool done = false;
  asio::co_spawn(host.runtime->executor(), host.controller->start(),
                 [&](const std::exception_ptr&, const Result<>&) { done = true; });
  host.runtime->post([] {});
  ASSERT_TRUE(within(60s, [&] { return opened == 2; }));
  EXPECT_TRUE(done);
  host.runtime->kill();
}

TEST_F(ControllerTest, TheIdleCallbackTellsWhereTheFeedEnds) {
  for (int i = 0; i < 3; ++i) feed_.write(1, 1);
  start("a");
  ASSERT_TRUE(within(10s, [&] { return !seen("idle").empty(); }));
  EXPECT_EQ(seen("idle")[0].to, "\"3\"");
}

// ── checkpoints ──────────────────────────────────────────────────────────────────────────────────

TEST_F(ControllerTest, PositionsAreWrittenByCount) {
  options_.checkpoint_frequency.processed_document_count = 10;
  feed_options_.max_item_count = 4;
  std::vector<std::string> positions;
  store_.on_write = [&](const StoredDocument& document) {
    const auto lease = parse_lease(document);
    if (lease && lease->position && (positions.empty() || positions.back() != *lease->position)) {
      positions.push_back(*lease->position);
    }
  };
  for (int i = 0; i < 30; ++i) feed_.write(1, 1);
  start("a");
  ASSERT_TRUE(within(60s, [&] { return processed_ids().size() == 30; }));
  pass(60s);
  // Every third batch of four; the last two batches (6 documents) wait for more.
  EXPECT_THAT(positions, ElementsAre("\"0\"", "\"12\"", "\"24\""));
}

TEST_F(ControllerTest, PositionsAreWrittenByTime) {
  options_.checkpoint_frequency.time_interval = 5s;
  std::vector<Duration> times;
  std::string last = "\"0\"";
  store_.on_write = [&](const StoredDocument& document) {
    const auto lease = parse_lease(document);
    if (!lease || !lease->position || *lease->position == last) return;
    last = *lease->position;
    times.push_back(world_.now());
  };
  start("a");
  for (int i = 0; i < 40; ++i) {
    feed_.write(1, 1);
    pass(1s);
  }
  ASSERT_GE(times.size(), 3u);
  for (std::size_t i = 1; i < times.size(); ++i) EXPECT_GE(times[i] - times[i - 1], 5s);
}

TEST_F(ControllerTest, AnIdleLeaseGetsItsPositionWithTheRenewalAndNoWriteMore) {
  start("a");
  ASSERT_TRUE(within(60s, [&] { return leases().size() == 1; }));
  feed_.split(0);  // Both children end at a position that no change has.
  ASSERT_TRUE(within(120s, [&] { return leases().size() == 2; }));
  pass(60s);
  for (const Lease& lease : leases()) EXPECT_EQ(lease.position, "\"1\"") << lease.token;
  const std::uint64_t before = store_.writes();
  pass(170s);
  EXPECT_LE(store_.writes() - before, 2u * 170 / 17 + 2);
}

TEST_F(ControllerTest, NothingUnfinishedIsCheckpointedAtTheEnd) {
  options_.shutdown_deadline = 10s;
  feed_.write(1, 1);
  Host& host = start("a");
  ASSERT_TRUE(within(10s, [&] { return !seen("open").empty(); }));
  host.hold_calls = true;
  feed_.write(1, 1);
  ASSERT_TRUE(within(20s, [&] { return !host.held.empty(); }));
  const auto position = leases()[0].position;
  const Duration before = world_.now();
  stop(host);
  EXPECT_GE(world_.now() - before, 10s);
  EXPECT_FALSE(host.stopped_in_time);
  EXPECT_EQ(leases()[0].owner, "");
  EXPECT_EQ(leases()[0].position, position);
  release_held(host);
  pass(5s);
  EXPECT_EQ(leases()[0].position, position);
}

// ── losing leases ────────────────────────────────────────────────────────────────────────────────

TEST_F(ControllerTest, AStolenLeaseIsClosedOnceAndNotReleased) {
  start("a");
  ASSERT_TRUE(within(20s, [&] { return owned_by("a") == 1 && !seen("idle").empty(); }));
  rewrite_lease("0", [](Lease& lease) { lease.owner = "thief"; });
  ASSERT_TRUE(within(20s, [&] { return !seen("close").empty(); }));
  EXPECT_EQ(seen("close")[0].reason, CloseReason::LeaseLost);
  EXPECT_EQ(leases()[0].owner, "thief");
  pass(20s);
  EXPECT_THAT(seen("close"), SizeIs(1));
}

TEST_F(ControllerTest, ADeletedLeaseIsNoticedAtTheNextRenewal) {
  start("a");
  ASSERT_TRUE(within(20s, [&] { return !seen("idle").empty(); }));
  ASSERT_TRUE(store_.remove(leases()[0].id, ""));
  ASSERT_TRUE(within(18s, [&] { return !seen("close").empty(); }));
  EXPECT_EQ(seen("close")[0].reason, CloseReason::LeaseLost);
}

TEST_F(ControllerTest, AHostThatSleptFindsItsLeaseTaken) {
  Host& a = start("a");
  ASSERT_TRUE(within(20s, [&] { return !seen("idle", "a").empty(); }));
  feed_.write(1, 1);
  a.runtime->pause();
  start("b");
  ASSERT_TRUE(within(120s, [&] { return !seen("process", "b").empty(); }));
  const std::uint64_t epoch_b = seen("open", "b")[0].epoch;
  EXPECT_GT(epoch_b, seen("open", "a")[0].epoch);
  ASSERT_TRUE(within(60s, [&] { return leases()[0].position == "\"1\""; }));
  a.runtime->go_on();
  ASSERT_TRUE(within(30s, [&] { return !seen("close", "a").empty(); }));
  EXPECT_EQ(seen("close", "a")[0].reason, CloseReason::LeaseLost);
  EXPECT_EQ(leases()[0].owner, "b");
}

TEST_F(ControllerTest, ACrashedHostsLeaseIsTakenWithinExpirationAndAcquire) {
  start("a");
  ASSERT_TRUE(within(20s, [&] { return !seen("idle", "a").empty(); }));
  start("b");
  pass(20s);
  EXPECT_THAT(seen("open", "b"), IsEmpty());  // More hosts than leases: it stands by.
  hosts_["a"]->runtime->kill();
  EXPECT_TRUE(within(60s + 13s + 1s, [&] { return !seen("open", "b").empty(); }));
}

TEST_F(ControllerTest, WheneverAHostCrashesItsLeaseIsTakenInTime) {
  start("a");
  start("b");
  std::string owner = "a";
  for (int crash = 0; crash < 12; ++crash) {
    pass(20s + crash * 1700ms);
    const std::size_t opened = seen("open").size();
    hosts_[owner]->runtime->kill();
    ASSERT_TRUE(within(60s + 13s + 500ms, [&] { return seen("open").size() > opened; }))
        << "crash " << crash;
    start(owner);  // As the one that stands by.
    owner = seen("open").back().host;
  }
}

TEST_F(ControllerTest, WrongClocksStealNothingFromTheLiving) {
  start("a", 10min);
  start("b", -10min);
  start("c");
  pass(300s);
  EXPECT_THAT(seen("open"), SizeIs(1));
  hosts_[seen("open")[0].host]->runtime->kill();
  EXPECT_TRUE(within(75s, [&] { return seen("open").size() == 2; }));
}

TEST_F(ControllerTest, AHostTakesItsOwnLeaseBackWithoutWaiting) {
  start("a");
  ASSERT_TRUE(within(20s, [&] { return !seen("idle").empty(); }));
  hosts_["a"]->runtime->kill();
  const Duration before = world_.now();
  start("a");
  ASSERT_TRUE(within(5s, [&] { return seen("open").size() == 2; }));
  EXPECT_LT(world_.now() - before, 5s);
}

TEST_F(ControllerTest, AHostThatCannotRenewGivesUpBeforeOthersTakeOver) {
  Host& a = start("a");
  ASSERT_TRUE(within(20s, [&] { return !seen("idle", "a").empty(); }));
  a.network.cut = true;
  ASSERT_TRUE(within(90s, [&] { return !seen("close", "a").empty(); }));
  EXPECT_EQ(seen("close", "a")[0].reason, CloseReason::LeaseLost);
  a.network.cut = false;
  EXPECT_TRUE(within(60s, [&] { return seen("open", "a").size() == 2; }));
}

// ── what the feed answers ────────────────────────────────────────────────────────────────────────

TEST_F(ControllerTest, AThrottledReadWaitsAndAsksForTheSame) {
  std::vector<std::pair<Duration, std::string>> asked;
  int refusals = 0;
  feed_.intercept = [&](const FeedRequest& request) -> std::optional<FeedAnswer> {
    asked.emplace_back(world_.now(), request.after);
    if (++refusals > 3) return std::nullopt;
    FeedAnswer answer;
    answer.kind = FeedAnswer::Kind::Throttled;
    answer.status = 429;
    answer.retry_after = 700ms;
    return answer;
  };
  feed_.write(1, 1);
  start("a");
  asked.clear();
  refusals = 0;
  ASSERT_TRUE(within(30s, [&] { return !processed_ids().empty(); }));
  ASSERT_GE(asked.size(), 4u);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(asked[i].second, asked[0].second);
    EXPECT_GE(asked[i].first - asked[i - 1].first, 700ms);
  }
}

TEST_F(ControllerTest, PagesAreHalvedUntilTheyFitAndThenAreWholeAgain) {
  std::vector<std::optional<std::uint32_t>> sizes;
  for (int i = 0; i < 20; ++i) feed_.write(1, 1);
  feed_.intercept = [&](const FeedRequest& request) -> std::optional<FeedAnswer> {
    if (request.after == "*" || request.page_size == 1u) return std::nullopt;
    sizes.push_back(request.page_size);
    if (request.page_size.value_or(100) <= 25 || sizes.size() > 3) return std::nullopt;
    FeedAnswer answer;
    answer.kind = FeedAnswer::Kind::PageTooLarge;
    answer.status = 400;
    return answer;
  };
  start("a");
  ASSERT_TRUE(within(30s, [&] { return processed_ids().size() == 20 && sizes.size() >= 4; }));
  sizes.resize(4);
  EXPECT_THAT(sizes, ElementsAre(std::nullopt, 50u, 25u, std::nullopt));
}

TEST_F(ControllerTest, AContainerThatIsGoneClosesItsObservers) {
  start("a");
  ASSERT_TRUE(within(20s, [&] { return !seen("idle").empty(); }));
  feed_.intercept = [](const FeedRequest&) {
    FeedAnswer answer;
    answer.kind = FeedAnswer::Kind::NotFound;
    return std::optional(answer);
  };
  ASSERT_TRUE(within(20s, [&] { return !seen("close").empty(); }));
  EXPECT_EQ(seen("close")[0].reason, CloseReason::ResourceGone);
}

TEST_F(ControllerTest, ASplitHandsThePositionToTheChildren) {
  for (int key = 0; key < 10; ++key) feed_.write(key, 1);
  start("a");
  ASSERT_TRUE(within(20s, [&] { return processed_ids().size() == 10; }));
  feed_.split(0);
  for (int key = 0; key < 10; ++key) feed_.write(key, 1);
  ASSERT_TRUE(within(20s, [&] { return processed_ids().size() == 20; }));
  ASSERT_FALSE(seen("close").empty());
  EXPECT_EQ(seen("close")[0].reason, CloseReason::LeaseGone);
  EXPECT_THAT(leases(), SizeIs(2));
  EXPECT_EQ(owned_by("a"), 2);
}

TEST_F(ControllerTest, ASplitWithUnconfirmedWorkGoesBackToWhatIsConfirmed) {
  options_.checkpoint_frequency.explicit_checkpoint = true;
  for (int key = 0; key < 10; ++key) feed_.write(key, 1);
  start("a");
  ASSERT_TRUE(within(20s, [&] { return processed_ids().size() == 10; }));
  feed_.split(0);
  ASSERT_TRUE(within(20s, [&] { return leases().size() == 2; }));
  for (const Lease& lease : leases()) EXPECT_EQ(lease.position, "\"0\"") << lease.token;
  EXPECT_TRUE(within(20s, [&] { return processed_ids().size() == 20; }));
}

TEST_F(ControllerTest, AMergeAndASplitAfterwardsLoseNothing) {
  feed_.split(0);
  start("a");
  for (int key = 0; key < 10; ++key) feed_.write(key, 1);
  ASSERT_TRUE(within(20s, [&] { return processed_ids().size() == 10; }));
  feed_.merge(0);
  for (int key = 0; key < 10; ++key) feed_.write(key, 1);
  ASSERT_TRUE(within(60s, [&] { return processed_ids().size() == 20; }));
  for (const Lease& lease : leases()) EXPECT_TRUE(lease.is_epk()) << lease.token;
  feed_.split(0);
  for (int key = 0; key < 10; ++key) feed_.write(key, 1);
  ASSERT_TRUE(within(60s, [&] { return processed_ids().size() == 30; }));
}

// ── retries and dead letters ─────────────────────────────────────────────────────────────────────

TEST_F(ControllerTest, APoisonedDocumentIsFoundAndPutAside) {
  options_.retry.max_attempts = 3;
  behave_ = [](ObserverContext&, const Documents& changes) -> Outcome {
    for (const std::string_view document : changes) {
      if (document.find("\"5-1\"") != std::string_view::npos) throw std::runtime_error("poison");
    }
    return Outcome::done();
  };
  for (int key = 0; key < 10; ++key) feed_.write(key, 1);
  Host& host = start("a");
  ASSERT_TRUE(within(60s, [&] { return leases()[0].position == "\"10\""; }));
  ASSERT_THAT(host.dead_letters, SizeIs(1));
  EXPECT_THAT(host.dead_letters[0].document, ::testing::HasSubstr("\"5-1\""));
  EXPECT_EQ(host.dead_letters[0].attempts, 3);
  EXPECT_EQ(host.dead_letters[0].error, "poison");
  EXPECT_EQ(host.dead_letters[0].host, "a");
  EXPECT_THAT(seen("close"), IsEmpty());
}

TEST_F(ControllerTest, ACheckpointDoesNotPassOverALetterThatCouldNotBeKept) {
  options_.checkpoint_frequency.explicit_checkpoint = true;
  no_room_for_letters_ = true;
  behave_ = [](ObserverContext& context, const Documents&) {
    context.checkpoint();
    return Outcome::reject({0}, "unwanted");
  };
  feed_.write(1, 1);
  feed_.write(2, 1);
  Host& host = start("a");
  // The lease is given up and taken again, and the batch comes again.
  ASSERT_TRUE(within(120s, [&] { return seen("process").size() == 3; }));
  EXPECT_EQ(leases()[0].position, "\"0\"");
  EXPECT_THAT(host.dead_letters, IsEmpty());
  no_room_for_letters_ = false;
  ASSERT_TRUE(within(60s, [&] { return leases()[0].position == "\"2\""; }));
  EXPECT_THAT(host.dead_letters, SizeIs(1));
  for (const Seen& batch : seen("process")) EXPECT_THAT(batch.ids, SizeIs(2));
}

TEST_F(ControllerTest, ACheckpointOfAPieceDoesNotPassOverTheOthers) {
  options_.checkpoint_frequency.explicit_checkpoint = true;
  behave_ = [this](ObserverContext& context, const Documents& changes) -> Outcome {
    if (changes.size() == 1 && seen("process").size() < 3) throw std::runtime_error("later");
    context.checkpoint();
    return Outcome::done_until(1);
  };
  feed_.write(1, 1);
  feed_.write(2, 1);
  start("a");
  ASSERT_TRUE(within(60s, [&] { return seen("close").size() == 1; }));
  EXPECT_EQ(leases()[0].position, "\"0\"");
  ASSERT_TRUE(within(60s, [&] { return leases()[0].position == "\"2\""; }));
  EXPECT_THAT(processed_ids(), ElementsAre("1-1", "2-1", "2-1", "1-1", "2-1", "2-1"));
}

TEST_F(ControllerTest, WithLanesACheckpointWaitsForTheOtherLanes) {
  options_.lanes = 3;
  options_.checkpoint_frequency.processed_document_count = 1000;
  bool hold = true;
  behave_ = [&](ObserverContext& context, const Documents& changes) {
    if (hold && Ledger::parse(changes[0]).key == 0) return Outcome::retry(100ms);
    context.checkpoint();
    return Outcome::done();
  };
  for (int key = 0; key < 12; ++key) feed_.write(key, 1);
  start("a");
  ASSERT_TRUE(within(60s, [&] { return seen("process").size() > 6; }));
  EXPECT_EQ(leases()[0].position, "\"0\"");
  hold = false;
  EXPECT_TRUE(within(60s, [&] { return leases()[0].position == "\"12\""; }));
}

TEST_F(ControllerTest, ARangeThatIsHaltedStaysWithItsHost) {
  options_.retry.max_attempts = 2;
  options_.retry.then = RetryPolicy::Then::HaltRange;
  behave_ = [](ObserverContext&, const Documents&) -> Outcome { throw std::runtime_error("no"); };
  feed_.write(1, 1);
  Host& host = start("a");
  ASSERT_TRUE(within(60s, [&] { return !seen("close").empty(); }));
  start("b");
  pass(200s);
  EXPECT_EQ(owned_by("a"), 1);
  EXPECT_THAT(seen("process"), SizeIs(2));
  EXPECT_TRUE(std::ranges::any_of(
      host.events, [](const HealthEvent& event) { return event.severity == Severity::Critical; }));
}

TEST_F(ControllerTest, AGroupThatIsHaltedIsPaused) {
  options_.retry.max_attempts = 1;
  options_.retry.then = RetryPolicy::Then::HaltGroup;
  behave_ = [](ObserverContext&, const Documents&) -> Outcome { throw std::runtime_error("no"); };
  feed_.write(1, 1);
  Host& host = start("a");
  ASSERT_TRUE(within(60s, [&] { return host.stats.read().paused; }));
  pass(100s);
  EXPECT_THAT(seen("process"), SizeIs(1));
}

// ── deadlines, pauses, budgets ───────────────────────────────────────────────────────────────────

TEST_F(ControllerTest, ABatchThatLastsTooLongIsReportedAndGivenUp) {
  options_.batch_deadline = 3s;
  options_.close_after_deadline = true;
  Host& host = start("a");
  ASSERT_TRUE(within(20s, [&] { return !seen("idle").empty(); }));
  host.hold_calls = true;
  feed_.write(1, 1);
  ASSERT_TRUE(within(20s, [&] { return leases()[0].owner.empty(); }));
  EXPECT_TRUE(std::ranges::any_of(host.events, [](const HealthEvent& event) {
    return event.message.find("longer than 3000 ms") != std::string::npos;
  }));
  EXPECT_THAT(seen("close"), IsEmpty());
  release_held(host);
  ASSERT_TRUE(within(20s, [&] { return !seen("close").empty(); }));
  EXPECT_EQ(seen("close")[0].reason, CloseReason::ObserverError);
}

asio::awaitable<void> set_paused(AsyncLeaseStore& store, LeaseIds ids, bool paused, bool& done) {
  const auto written = co_await write_control(store, ids, GroupControl{paused, "test"});
  EXPECT_TRUE(written);
  done = true;
}

TEST_F(ControllerTest, NoBatchBeginsWhileTheGroupIsPaused) {
  Host& host = start("a");
  ASSERT_TRUE(within(20s, [&] { return !seen("idle").empty(); }));
  const LeaseIds ids{leases()[0].id.substr(0, leases()[0].id.find(".."))};
  for (const bool paused : {true, false}) {
    bool done = false;
    asio::co_spawn(host.runtime->executor(), set_paused(*host.store, ids, paused, done),
                   asio::detached);
    host.runtime->post([] {});
    ASSERT_TRUE(within(5s, [&] { return done; }));
    if (!paused) break;
    pass(18s);  // One renew interval.
    EXPECT_TRUE(host.stats.read().paused);
    // A host that starts now knows it from the start.
    Host& late = start("b");
    ASSERT_TRUE(within(5s, [&] { return late.started; }));
    EXPECT_TRUE(late.stats.read().paused);
    feed_.write(1, 1);
    pass(60s);
    EXPECT_THAT(processed_ids(), IsEmpty());
  }
  EXPECT_TRUE(within(25s, [&] { return processed_ids().size() == 1; }));
}

TEST_F(ControllerTest, ABudgetOfDocumentsIsKept) {
  options_.limits.documents = 10;
  feed_options_.max_item_count = 10;
  for (int i = 0; i < 100; ++i) feed_.write(1, 1);
  start("a");
  const Duration before = world_.now();
  ASSERT_TRUE(within(60s, [&] { return processed_ids().size() == 100; }));
  EXPECT_GE(world_.now() - before, 7s);
  EXPECT_LE(world_.now() - before, 12s);
}

TEST_F(ControllerTest, LanesKeepTheOrderOfEachKey) {
  options_.lanes = 4;
  for (int i = 0; i < 50; ++i) {
    for (int key = 0; key < 5; ++key) feed_.write(key, 1);
  }
  start("a");
  ASSERT_TRUE(within(60s, [&] { return leases()[0].position == "\"250\""; }));
  std::map<std::string, int> last;
  for (const std::string& id : processed_ids()) {
    const std::string key = id.substr(0, id.find('-'));
    const int version = std::stoi(id.substr(id.find('-') + 1));
    EXPECT_EQ(version, last[key] + 1);
    last[key] = version;
  }
  EXPECT_EQ(last.size(), 5u);
}

// ── many ─────────────────────────────────────────────────────────────────────────────────────────

TEST_F(ControllerTest, WhoFindsAnotherHostMakingTheLeasesBeginsSoonAfterIt) {
  stop(start("a"));
  const std::string group = leases()[0].id.substr(0, leases()[0].id.find(".."));
  ASSERT_TRUE(store_.remove(group + ".info", {}));
  ASSERT_TRUE(store_.create(group + ".lock", R"({"ttl":30})"));
  world_.after(200ms, [&] { EXPECT_TRUE(store_.remove(group + ".lock", {})); });
  const Duration begin = world_.now();
  start("b");
  EXPECT_LT(world_.now() - begin, 3s);
}

class ManyRanges : public GroupTest {
 protected:
  ManyRanges() : GroupTest(12) {}
};

TEST_F(ManyRanges, AreSharedEvenlyByTheHosts) {
  start("a");
  ASSERT_TRUE(within(20s, [&] { return owned_by("a") == 12; }));
  start("b");
  start("c");
  ASSERT_TRUE(
      within(200s, [&] { return owned_by("a") == 4 && owned_by("b") == 4 && owned_by("c") == 4; }));
  pass(100s);
  EXPECT_EQ(owned_by("a"), 4);
}

TEST_F(ManyRanges, AreHandedOverAtOnceWhenHostsShareByWeight) {
  options_.balancing = Balancing::Weighted;
  start("a");
  ASSERT_TRUE(within(20s, [&] { return owned_by("a") == 12; }));
  start("b");
  ASSERT_TRUE(within(60s, [&] { return owned_by("a") == 6 && owned_by("b") == 6; }));
  // Nobody lost one against its will: they were closed before they were opened elsewhere.
  std::map<std::string, int> open;
  for (const Seen& each : seen_) {
    if (each.what == "open") EXPECT_EQ(++open[each.lease], 1) << each.lease;
    if (each.what == "close") --open[each.lease];
  }
}

class AThousandRanges : public GroupTest {
 protected:
  AThousandRanges() : GroupTest(1000) { feed_.long_poll = true; }
};

TEST_F(AThousandRanges, OfAnIdleHostAreWrittenOncePerIntervalAndEvenly) {
  options_.long_poll_wait = 120s;
  start("a");
  ASSERT_TRUE(within(120s, [&] { return owned_by("a") == 1000; }));
  pass(2 * 17s);
  std::vector<Duration> writes;
  std::map<std::string, int> by_lease;
  store_.on_write = [&](const StoredDocument& document) {
    writes.push_back(world_.now());
    ++by_lease[document.id];
  };
  pass(3 * 17s);
  EXPECT_LE(writes.size(), 3 * 1000u + 50);
  EXPECT_EQ(by_lease.size(), 1000u);
  const double mean_per_second = 1000.0 / 17;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const auto end = std::ranges::upper_bound(writes, writes[i] + 1s);
    EXPECT_LE(static_cast<double>(end - writes.begin()) - static_cast<double>(i),
              2 * mean_per_second);
  }
}

}  // namespace
}  // namespace orrery::processor::simulation
