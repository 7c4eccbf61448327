// Where hosts begin, when they write how far they are, and what a reset does; against a real
// server.
#include <atomic>
#include <thread>

#include "processor_test.h"

namespace orrery::test {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class PositionsTest : public ProcessorTest {
 protected:
  /// The position of the only lease.
  std::string position() { return positions().begin()->second; }
  /// The LSN that the server gave a document of the monitored container.
  static std::string position_of(const std::string& document) {
    return "\"" + member(document, "_lsn") + "\"";
  }
  std::vector<std::string> last_of_batches() {
    std::vector<std::string> found;
    for (const auto& batch : record_.batches()) {
      found.push_back(position_of(batch.documents.back()));
    }
    return found;
  }
};

TEST_F(PositionsTest, EveryBatchIsWrittenBeforeTheNextOneComes) {
  prepare(1);
  write(30);
  from_beginning_.max_item_count = 10;
  std::vector<std::string> written;
  auto one = host("host-1", fast(), [&](ObserverContext& context, const Documents&) -> Outcome {
    written.push_back(position());
    EXPECT_EQ(context.from(), written.back());
    return Outcome::done();
  });
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 30; }));
  one->unregister_observers();
  const auto last = last_of_batches();
  EXPECT_EQ(written, (std::vector<std::string>{"\"0\"", last[0], last[1]}));
  EXPECT_EQ(position(), last[2]);
}

TEST_F(PositionsTest, ByCountOnlyEveryHundredDocumentsAreWritten) {
  prepare(1);
  write(250);
  from_beginning_.max_item_count = 50;
  ChangeFeedHostOptions options = fast();
  options.checkpoint_frequency.processed_document_count = 100;
  std::vector<std::string> before;
  auto one = host("host-1", options, [&](ObserverContext&, const Documents&) -> Outcome {
    before.push_back(position());
    return Outcome::done();
  });
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 250; }));
  const auto last = last_of_batches();
  ASSERT_EQ(last.size(), 5u);
  EXPECT_EQ(before, (std::vector<std::string>{"\"0\"", "\"0\"", last[1], last[1], last[3]}));
  // The last position is written all the same when the host stops.
  EXPECT_EQ(position(), last[3]);
  one->unregister_observers();
  EXPECT_EQ(position(), last[4]);
}

TEST_F(PositionsTest, ByTimeNothingIsWrittenBeforeTheTimeIsOver) {
  prepare(1);
  ChangeFeedHostOptions options = fast();
  options.checkpoint_frequency.time_interval = 1h;
  {
    auto one = host("host-1", options);
    write(40);
    ASSERT_TRUE(wait_until([&] { return record_.distinct() == 40; }));
    EXPECT_EQ(position(), "\"0\"");
  }
  options.checkpoint_frequency.time_interval = 500ms;
  write(20, "more");
  auto two = host("host-2", options);
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 60; }));
  EXPECT_TRUE(wait_until([&] { return position() == last_of_batches().back(); }));
}

TEST_F(PositionsTest, ExplicitlyOnlyTheObserverWrites) {
  prepare(1);
  write(40);
  from_beginning_.max_item_count = 10;
  ChangeFeedHostOptions options = fast();
  options.checkpoint_frequency.explicit_checkpoint = true;
  {
    std::atomic<int> batches = 0;
    auto one = host("host-1", options, [&](ObserverContext& context, const Documents&) -> Outcome {
      if (++batches == 2) context.checkpoint();
      return Outcome::done();
    });
    ASSERT_TRUE(wait_until([&] { return record_.distinct() == 40; }));
  }
  EXPECT_EQ(position(), last_of_batches()[1]);
  // Changes after the checkpoint come again, and nothing else.
  auto two = host("host-2", options);
  ASSERT_TRUE(wait_until([&] { return record_.counts()["d39"] == 2; }));
  for (const auto& [id, count] : record_.counts()) {
    EXPECT_EQ(count, std::stoi(id.substr(1)) < 20 ? 1 : 2) << id;
  }
}

TEST_F(PositionsTest, ACheckpointDoesNotPassOverWhatIsRejectedAndCouldNotBeKept) {
  prepare(1);
  write(2);
  ChangeFeedHostOptions options = fast();
  options.checkpoint_frequency.explicit_checkpoint = true;
  std::atomic<bool> full = true;
  std::atomic<int> kept = 0;
  options.dead_letter_callback = [&](const DeadLetter&) {
    if (full) throw std::runtime_error("there is no room for letters");
    ++kept;
  };
  auto one = host("host-1", options, [](ObserverContext& context, const Documents&) {
    context.checkpoint();
    return Outcome::reject({0}, "unwanted");
  });
  // The lease is given up, and the batch comes again.
  ASSERT_TRUE(wait_until([&] { return record_.counts()["d0"] >= 2; }));
  EXPECT_EQ(position(), "\"0\"");
  full = false;
  ASSERT_TRUE(wait_until([&] { return position() == last_of_batches().back(); }));
  EXPECT_EQ(kept, 1);
}

TEST_F(PositionsTest, AnOlderPositionIsRefusedAfterANewerOne) {
  prepare(1);
  write(20);
  from_beginning_.max_item_count = 10;
  ChangeFeedHostOptions options = fast();
  options.checkpoint_frequency.explicit_checkpoint = true;
  options.read_ahead = true;
  // The second batch is confirmed while the first one is still kept: by another program, since a
  // context is good for its own call only.
  std::string newer;
  const Behaviour overtaken = [&](ObserverContext& context, const Documents&) -> Outcome {
    if (!newer.empty()) return Outcome::done();
    newer = "\"1000000\"";
    while (!rewrite_lease(lease_id(context.lease_token()), [&](nlohmann::json& lease) {
      lease["ContinuationToken"] = newer;
      return true;
    })) {
    }
    context.checkpoint();
    return Outcome::done();
  };
  std::vector<std::string> complaints;
  ChangeFeedProcessorHost one("host-1", *monitored_, *leases_, from_beginning_, options);
  one.set_health_monitor([&](const HealthEvent& event) {
    if (event.operation == "Checkpoint") complaints.push_back(event.message);
  });
  one.register_observer_factory(
      [&] { return std::make_unique<RecordingObserver>("host-1", record_, overtaken); });
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 20; }));
  one.unregister_observers();
  EXPECT_THAT(complaints,
              ::testing::ElementsAre(::testing::HasSubstr("later batch has been checkpointed")));
  EXPECT_EQ(position(), newer);
}

TEST_F(PositionsTest, AConflictWithARenewalLosesNothing) {
  prepare(1);
  write(1);
  auto one = host("host-1", fast(), [&](ObserverContext& context, const Documents&) -> Outcome {
    // Somebody else writes the lease, as a renewal would, and leaves its owner alone.
    while (!rewrite_lease(lease_id(context.lease_token()), [](nlohmann::json& lease) {
      lease["timestamp"] = "2024-05-03T10:11:12.1234567Z";
      lease["foreign"] = true;
      return lease["Owner"] == "host-1";
    })) {
    }
    return Outcome::done();
  });
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 1; }));
  ASSERT_TRUE(wait_until([&] { return position() == last_of_batches()[0]; }));
  EXPECT_THAT(record_.closes(), IsEmpty());
  EXPECT_THAT(lease_documents("..")[0], ::testing::HasSubstr("\"foreign\":true"));
}

TEST_F(PositionsTest, NowIsTheMomentWhenTheLeasesWereMade) {
  prepare(1);
  write(10, "before");
  from_beginning_.start_from_beginning = false;
  const std::string first_host = "host-1";
  {
    // It fails on what was written before its first page, and goes.
    auto one = host(first_host, fast(), [](ObserverContext&, const Documents&) -> Outcome {
      throw std::runtime_error("not now");
    });
    ASSERT_TRUE(wait_until([&] { return owners()[first_host] == 1; }));
    write(10, "after");
    ASSERT_TRUE(wait_until([&] { return !record_.closes().empty(); }));
  }
  write(10, "later");
  auto two = host("host-2");
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 20; }));
  for (const auto& [id, _] : record_.counts()) EXPECT_NE(id.find("before"), 0u) << id;
  expect_each_once();
}

class TimeTest : public PositionsTest {
 protected:
  /// Writes until the server's clock, which counts in seconds, has moved on; the seconds that each
  /// document was written in.
  std::map<std::string, std::int64_t> write_over_seconds() {
    std::map<std::string, std::int64_t> seconds;
    for (int i = 0; i < 100'000; ++i) {
      const std::string id = "t" + std::to_string(i);
      const auto written =
          monitored_->upsert_item("{\"id\":\"" + id + "\",\"pk\":\"k\"}", "k").value;
      seconds[id] = std::stoll(member(written, "_ts"));
      if (seconds[id] >= seconds["t0"] + 3) break;
      std::this_thread::sleep_for(20ms);  // So that there are dozens and not thousands.
    }
    return seconds;
  }
  static std::set<std::string> after(const std::map<std::string, std::int64_t>& seconds,
                                     std::int64_t second) {
    std::set<std::string> ids;
    for (const auto& [id, written] : seconds) {
      if (written > second) ids.insert(id);
    }
    return ids;
  }
  std::set<std::string> seen_ids() {
    std::set<std::string> ids;
    for (const auto& [id, _] : record_.counts()) ids.insert(id);
    return ids;
  }
  static std::chrono::system_clock::time_point time_of(std::int64_t second) {
    return std::chrono::system_clock::time_point(std::chrono::seconds(second));
  }
};

TEST_F(TimeTest, AStartTimeLeavesItsOwnSecondOut) {
  prepare(1);
  const auto seconds = write_over_seconds();
  const std::int64_t start = seconds.at("t0") + 1;
  const auto expected = after(seconds, start);
  from_beginning_.start_from_beginning = false;
  from_beginning_.start_time = time_of(start);
  auto one = host("host-1");
  write(1, "last");
  ASSERT_TRUE(wait_until([&] { return record_.counts().contains("last0"); }));
  auto seen = seen_ids();
  seen.erase("last0");
  EXPECT_EQ(seen, expected);
  EXPECT_LT(expected.size(), seconds.size());
}

TEST_F(TimeTest, AResetToATimeBringsAgainWhatAStartThereWouldBring) {
  prepare(1);
  const auto seconds = write_over_seconds();
  const std::int64_t start = seconds.at("t0") + 1;
  {
    auto one = host("host-1");
    ASSERT_TRUE(wait_until([&] { return record_.distinct() == seconds.size(); }));
  }
  LeaseGroup::Position to;
  to.kind = LeaseGroup::Position::Kind::Time;
  to.time = time_of(start);
  group().reset(to);
  auto two = host("host-2");
  const auto expected = after(seconds, start);
  ASSERT_TRUE(wait_until([&] { return record_.counts()[*expected.rbegin()] == 2; }));
  two->unregister_observers();
  for (const auto& [id, count] : record_.counts()) {
    EXPECT_EQ(count, expected.contains(id) ? 2 : 1) << id;
  }
}

TEST_F(PositionsTest, AContinuationIsWhereAllBegins) {
  prepare(1);
  write(10);
  std::string middle;
  {
    auto one = host("host-1");
    ASSERT_TRUE(wait_until([&] { return record_.distinct() == 10; }));
  }
  for (const auto& batch : record_.batches()) {
    for (const auto& document : batch.documents) {
      if (member(document, "id") == "d4") middle = position_of(document);
    }
  }
  MonitoredFeedOptions from_middle;
  from_middle.start_continuation = middle;
  ChangeFeedHostOptions options = fast();
  options.lease_prefix = "second.";
  Record second;
  ChangeFeedProcessorHost two("host-2", *monitored_, *leases_, from_middle, options);
  two.register_observer_factory(
      [&] { return std::make_unique<RecordingObserver>("host-2", second, Behaviour()); });
  ASSERT_TRUE(wait_until([&] { return second.counts().contains("d9"); }));
  two.unregister_observers();
  EXPECT_EQ(second.distinct(), 5u);
  // Each prefix has leases of its own.
  EXPECT_EQ(lease_documents("..").size(), 2u);
}

}  // namespace
}  // namespace orrery::test
