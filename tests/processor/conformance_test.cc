// The processor against a real server: what every host of a change feed must do.
#include <atomic>
#include <condition_variable>
#include <thread>

#include "processor_test.h"

namespace orrery::test {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(ProcessorTest, OneHostSeesEverythingInTheOrderOfEachKey) {
  prepare(4);
  write(1000);
  auto one = host("host-1");
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 1000; }));
  for (const auto& [id, count] : record_.counts()) EXPECT_EQ(count, 1) << id;
  for (int key = 0; key < 20; ++key) {
    const auto order = record_.order("k" + std::to_string(key));
    ASSERT_EQ(order.size(), 50u);
    for (std::size_t i = 0; i < order.size(); ++i) {
      EXPECT_EQ(order[i], "d" + std::to_string(key + 20 * static_cast<int>(i)));
    }
  }
  EXPECT_THAT(lease_documents(".."), SizeIs(4));
  EXPECT_THAT(lease_documents(".info"), SizeIs(1));
  EXPECT_THAT(lease_documents(".lock"), IsEmpty());
  EXPECT_EQ(one->stats().leases.size(), 4u);

  one->unregister_observers();
  EXPECT_THAT(record_.closes(), SizeIs(4));
  for (const auto& closed : record_.closes()) EXPECT_EQ(closed.reason, CloseReason::Shutdown);
  EXPECT_EQ(owners()["null"], 4);
}

TEST_F(ProcessorTest, AChangeArrivesSoonAfterItsWrite) {
  prepare(1);
  auto one = host("host-1");
  ASSERT_TRUE(wait_until([&] { return record_.opens().size() == 1; }));
  write(1);
  EXPECT_TRUE(wait_until([&] { return record_.distinct() == 1; }, 1s));
}

TEST_F(ProcessorTest, AHostMayBeRegisteredAgain) {
  prepare(2);
  auto one = host("host-1");
  write(50);
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 50; }));
  one->unregister_observers();
  write(50, "later");
  one->register_observer_factory(
      [this] { return std::make_unique<RecordingObserver>("host-1", record_, Behaviour()); });
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 100; }));
  for (const auto& [id, count] : record_.counts()) EXPECT_EQ(count, 1) << id;
}

TEST_F(ProcessorTest, HostsShareTheLeasesEvenlyAndSparesWait) {
  prepare(4);
  std::vector<std::unique_ptr<ChangeFeedProcessorHost>> hosts;
  for (int i = 0; i < 5; ++i) hosts.push_back(host("host-" + std::to_string(i)));
  ASSERT_TRUE(wait_until([&] {
    auto counts = owners();
    return counts.size() == 4 && !counts.contains("null");
  }));
  // The host without a lease takes over when one goes.
  std::string spare;
  auto counts = owners();
  for (int i = 0; i < 5; ++i) {
    if (!counts.contains("host-" + std::to_string(i))) spare = "host-" + std::to_string(i);
  }
  hosts[spare == "host-0" ? 1 : 0]->unregister_observers();
  EXPECT_TRUE(wait_until([&] { return owners().contains(spare); }));
}

TEST_F(ProcessorTest, TwoHostsThatStartAtOnceMakeEachLeaseOnce) {
  prepare(4);
  write(100);
  std::unique_ptr<ChangeFeedProcessorHost> one, two;
  std::thread first([&] { one = host("host-1"); });
  std::thread second([&] { two = host("host-2"); });
  first.join();
  second.join();
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 100; }));
  EXPECT_THAT(lease_documents(".."), SizeIs(4));
  EXPECT_THAT(lease_documents(".info"), SizeIs(1));
  EXPECT_TRUE(wait_until([&] { return lease_documents(".lock").empty(); }));
}

TEST_F(ProcessorTest, AnErrorBringsTheSameBatchAgain) {
  prepare(1);
  write(5);
  std::atomic<int> attempts = 0;
  auto one = host("host-1", fast(), [&](ObserverContext&, const Documents&) -> Outcome {
    if (++attempts <= 2) throw std::runtime_error("not now");
    return Outcome::done();
  });
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 5; }));
  EXPECT_EQ(attempts, 3);
  ASSERT_EQ(record_.closes().size(), 2u);
  EXPECT_EQ(record_.closes()[0].reason, CloseReason::ObserverError);
}

TEST_F(ProcessorTest, APoisonedDocumentGoesToTheDeadLetterContainer) {
  prepare(2);
  const client::Container dead = make_container("dead", 1, {"/range"});
  write(40);
  ChangeFeedHostOptions options = fast();
  options.retry.max_attempts = 2;
  options.retry.first_wait = 10ms;
  options.dead_letter_container = dead;
  auto one = host("host-1", options, [&](ObserverContext&, const Documents& changes) -> Outcome {
    for (const std::string_view document : changes) {
      if (member(document, "id") == "d17") throw std::runtime_error("poison");
    }
    return Outcome::done();
  });
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 39; }));
  std::vector<std::string> letters;
  ASSERT_TRUE(wait_until([&] {
    letters.clear();
    dead.list_items().for_each([&](const client::ItemPage& page) {
      for (const std::string_view letter : page) letters.emplace_back(letter);
    });
    return !letters.empty();
  }));
  ASSERT_THAT(letters, SizeIs(1));
  EXPECT_EQ(member(letters[0], "error"), "poison");
  EXPECT_EQ(member(letters[0], "attempts"), "2");
  EXPECT_EQ(member(letters[0], "host"), "host-1");
  EXPECT_THAT(letters[0], ::testing::HasSubstr("\"id\":\"d17\""));
  EXPECT_THAT(record_.closes(), IsEmpty());
}

TEST_F(ProcessorTest, ALeaseThatWasDeletedIsNoticed) {
  prepare(1);
  auto one = host("host-1");
  ASSERT_TRUE(wait_until([&] { return owners()["host-1"] == 1; }));
  const std::string id = member(lease_documents("..")[0], "id");
  leases_->delete_item(id, id);
  ASSERT_TRUE(wait_until([&] { return !record_.closes().empty(); }));
  EXPECT_EQ(record_.closes()[0].reason, CloseReason::LeaseLost);
}

TEST_F(ProcessorTest, AStopWaitsForTheBatchThatRuns) {
  prepare(1);
  write(1);
  std::mutex mutex;
  std::condition_variable changed;
  bool entered = false, may_go = false;
  auto one = host("host-1", fast(), [&](ObserverContext& context, const Documents&) -> Outcome {
    std::unique_lock lock(mutex);
    entered = true;
    changed.notify_all();
    // Asked to stop, it still finishes what it has begun.
    const std::stop_callback asked(context.stop(), [&] {
      std::thread([&] {
        const std::scoped_lock inner(mutex);
        may_go = true;
        changed.notify_all();
      }).detach();
    });
    changed.wait(lock, [&] { return may_go; });
    return Outcome::done();
  });
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, 10s, [&] { return entered; }));
  }
  one->unregister_observers();
  EXPECT_EQ(record_.distinct(), 1u);
  EXPECT_EQ(owners()["null"], 1);
  auto two = host("host-2");
  write(1, "next");
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 2; }));
  EXPECT_EQ(record_.counts()["d0"], 1);
}

TEST_F(ProcessorTest, AStopGivesLeasesBackAtItsDeadline) {
  prepare(1);
  write(1);
  ChangeFeedHostOptions options = fast();
  options.shutdown_deadline = 300ms;
  // Outlives the host: the batch returns only at the end of the test.
  auto may_go = std::make_shared<std::atomic<bool>>(false);
  auto gone = std::make_shared<std::atomic<bool>>(false);
  auto entered = std::make_shared<std::atomic<bool>>(false);
  {
    ChangeFeedProcessorHost one("host-1", *monitored_, *leases_, from_beginning_, options);
    one.register_handler([=](ObserverContext&, const Documents&) {
      *entered = true;
      entered->notify_all();
      may_go->wait(false);
      *gone = true;
      return Outcome::done();
    });
    ASSERT_TRUE(wait_until([&] { return entered->load(); }));
    one.unregister_observers();
    EXPECT_EQ(owners()["null"], 1);
  }
  *may_go = true;
  may_go->notify_all();
  ASSERT_TRUE(wait_until([&] { return gone->load(); }));
  auto two = host("host-2");
  EXPECT_TRUE(wait_until([&] { return record_.distinct() == 1; }));
}

TEST_F(ProcessorTest, LanesAndReadAheadKeepTheOrderOfEachKey) {
  prepare(2);
  write(500);
  ChangeFeedHostOptions options = fast();
  options.lanes = 4;
  from_beginning_.max_item_count = 20;
  auto one = host("host-1", options);
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 500; }));
  for (int key = 0; key < 20; ++key) {
    const auto order = record_.order("k" + std::to_string(key));
    for (std::size_t i = 0; i < order.size(); ++i) {
      EXPECT_EQ(order[i], "d" + std::to_string(key + 20 * static_cast<int>(i)));
    }
  }
}

TEST_F(ProcessorTest, AMemoryStoreIsEnoughForOneProcess) {
  prepare(2);
  write(30);
  const auto store = memory_lease_store();
  ChangeFeedProcessorHost one("host-1", *monitored_, store, from_beginning_, fast());
  one.register_handler([this](ObserverContext& context, const Documents& changes) {
    Record::Batch batch{"host-1", context.lease_token(), context.epoch(), {}};
    for (const std::string_view document : changes) batch.documents.emplace_back(document);
    record_.add(std::move(batch));
    return Outcome::done();
  });
  EXPECT_TRUE(wait_until([&] { return record_.distinct() == 30; }));
}

TEST_F(ProcessorTest, OptionsThatContradictEachOtherAreRefused) {
  prepare(1);
  ChangeFeedHostOptions options = fast();
  options.lease_renew_interval = 900ms;
  try {
    ChangeFeedProcessorHost one("host-1", *monitored_, *leases_, {}, options);
    FAIL();
  } catch (const client::CosmosException& exception) {
    EXPECT_EQ(exception.failure(), client::Failure::Argument);
  }
}

TEST_F(ProcessorTest, AContainerThatDoesNotExistIsToldAtOnce) {
  prepare(1);
  ChangeFeedProcessorHost one("host-1", database().container("nowhere"), *leases_, from_beginning_,
                              fast());
  try {
    one.register_handler([](ObserverContext&, const Documents&) { return Outcome::done(); });
    FAIL();
  } catch (const client::CosmosException& exception) {
    EXPECT_EQ(exception.status(), 404);
  }
}

}  // namespace
}  // namespace orrery::test
