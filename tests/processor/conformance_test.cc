// The processor against a real server: what every host of a change feed must do.
#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "orrery/processor.h"
#include "test_account.h"

namespace orrery::test {
namespace {

using namespace std::chrono_literals;
using namespace orrery::processor;
using ::testing::Contains;
using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// The value of a member that is text or a number, in a document of these tests.
std::string member(std::string_view document, const std::string& name) {
  const std::string mark = "\"" + name + "\":";
  std::size_t at = document.find(mark);
  if (at == std::string_view::npos) return {};
  at += mark.size();
  if (document[at] == '"') {
    ++at;
    return std::string(document.substr(at, document.find('"', at) - at));
  }
  return std::string(document.substr(at, document.find_first_of(",}", at) - at));
}

/// What observers of any number of hosts have seen. Thread-safe.
class Record {
 public:
  struct Batch {
    std::string host;
    std::string lease;
    std::uint64_t epoch;
    std::vector<std::string> documents;
  };
  struct Closed {
    std::string host;
    std::string lease;
    CloseReason reason;
  };

  void add(Batch batch) {
    const std::scoped_lock lock(mutex_);
    for (const std::string& document : batch.documents) {
      ++counts_[member(document, "id")];
      order_[member(document, "pk")].push_back(member(document, "id"));
    }
    batches_.push_back(std::move(batch));
  }
  void opened(const std::string& host) {
    const std::scoped_lock lock(mutex_);
    opened_.push_back(host);
  }
  void closed(Closed closed) {
    const std::scoped_lock lock(mutex_);
    closed_.push_back(std::move(closed));
  }

  std::map<std::string, int> counts() const {
    const std::scoped_lock lock(mutex_);
    return counts_;
  }
  std::size_t distinct() const { return counts().size(); }
  std::vector<std::string> order(const std::string& key) const {
    const std::scoped_lock lock(mutex_);
    const auto at = order_.find(key);
    return at == order_.end() ? std::vector<std::string>() : at->second;
  }
  std::vector<Batch> batches() const {
    const std::scoped_lock lock(mutex_);
    return batches_;
  }
  std::vector<Closed> closes() const {
    const std::scoped_lock lock(mutex_);
    return closed_;
  }
  std::vector<std::string> opens() const {
    const std::scoped_lock lock(mutex_);
    return opened_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int> counts_;
  std::map<std::string, std::vector<std::string>> order_;
  std::vector<Batch> batches_;
  std::vector<Closed> closed_;
  std::vector<std::string> opened_;
};

using Behaviour = std::function<Outcome(ObserverContext&, const Documents&)>;

class RecordingObserver final : public ChangeFeedObserver {
 public:
  RecordingObserver(std::string host, Record& record, Behaviour behave)
      : host_(std::move(host)), record_(record), behave_(std::move(behave)) {}

  void open(ObserverContext&) override { record_.opened(host_); }
  Outcome process(ObserverContext& context, const Documents& changes) override {
    Outcome outcome;
    if (behave_) outcome = behave_(context, changes);
    Record::Batch batch{host_, context.lease_token(), context.epoch(), {}};
    for (const std::string_view document : changes) batch.documents.emplace_back(document);
    record_.add(std::move(batch));
    return outcome;
  }
  void close(ObserverContext& context, CloseReason reason) override {
    record_.closed({host_, context.lease_token(), reason});
  }

 private:
  std::string host_;
  Record& record_;
  Behaviour behave_;
};

/// Everything a hundred times as fast as in production.
ChangeFeedHostOptions fast() {
  ChangeFeedHostOptions options;
  options.lease_renew_interval = 200ms;
  options.lease_acquire_interval = 150ms;
  options.lease_expiration_interval = 1000ms;
  options.feed_poll_delay = 50ms;
  options.long_poll_wait = 2s;
  options.shutdown_deadline = 5s;
  return options;
}

class ProcessorTest : public AccountTest {
 protected:
  void SetUp() override {
    AccountTest::SetUp();
    from_beginning_.start_from_beginning = true;
  }

  void prepare(int ranges) {
    monitored_.emplace(make_container("monitored", ranges));
    leases_.emplace(make_container("leases", 1, {"/id"}, -1));
  }

  std::unique_ptr<ChangeFeedProcessorHost> host(const std::string& name,
                                                ChangeFeedHostOptions options = fast(),
                                                const Behaviour& behave = {}) {
    auto made = std::make_unique<ChangeFeedProcessorHost>(name, *monitored_, *leases_,
                                                          from_beginning_, std::move(options));
    made->register_observer_factory([this, name, behave] {
      return std::make_unique<RecordingObserver>(name, record_, behave);
    });
    return made;
  }

  void write(int count, const std::string& prefix = "d") {
    for (int i = 0; i < count; ++i) {
      const std::string key = "k" + std::to_string(i % 20);
      monitored_->upsert_item("{\"id\":\"" + prefix + std::to_string(i) + "\",\"pk\":\"" + key +
                                  "\",\"n\":" + std::to_string(i) + "}",
                              key);
    }
  }

  /// The documents of the lease container whose id has `part` in it.
  std::vector<std::string> lease_documents(const std::string& part) {
    std::vector<std::string> found;
    leases_->list_items().for_each([&](const client::ItemPage& page) {
      for (const std::string_view document : page) {
        if (member(document, "id").find(part) != std::string::npos) found.emplace_back(document);
      }
    });
    return found;
  }
  std::map<std::string, int> owners() {
    std::map<std::string, int> counts;
    for (const std::string& lease : lease_documents("..")) ++counts[member(lease, "Owner")];
    return counts;
  }

  std::optional<client::Container> monitored_;
  std::optional<client::Container> leases_;
  ChangeFeedOptions from_beginning_;
  Record record_;
};

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
  // Whoever is left out takes over when one goes.
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

TEST_F(ProcessorTest, AnOlderPositionIsRefusedAfterANewerOne) {
  prepare(1);
  write(20);
  from_beginning_.max_item_count = 5;
  ChangeFeedHostOptions options = fast();
  options.checkpoint_frequency.explicit_checkpoint = true;
  // The context of a call is for its thread and its time: this one holds its call open.
  std::atomic<int> batches = 0;
  auto one = host("host-1", options, [&](ObserverContext& context, const Documents&) -> Outcome {
    if (++batches == 4) context.checkpoint();
    return Outcome::done();
  });
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 20; }));
  ASSERT_TRUE(wait_until([&] {
    return member(lease_documents("..")[0], "ContinuationToken").find("0") == std::string::npos ||
           batches >= 4;
  }));
  one->unregister_observers();
  // All were seen before the checkpoint: none comes again.
  auto two = host("host-2", options);
  write(1, "last");
  ASSERT_TRUE(wait_until([&] { return record_.counts().contains("last0"); }));
  for (const auto& [id, count] : record_.counts()) EXPECT_EQ(count, 1) << id;
}

TEST_F(ProcessorTest, WithoutAnExplicitCheckpointEverythingComesAgain) {
  prepare(1);
  write(10);
  ChangeFeedHostOptions options = fast();
  options.checkpoint_frequency.explicit_checkpoint = true;
  host("host-1", options);
  {
    auto one = host("host-1", options);
    ASSERT_TRUE(wait_until([&] { return record_.distinct() == 10; }));
  }
  auto two = host("host-1", options);
  ASSERT_TRUE(wait_until([&] {
    for (const auto& [_, count] : record_.counts()) {
      if (count < 2) return false;
    }
    return true;
  }));
}

TEST_F(ProcessorTest, ALeaseThatSomebodyTookIsClosedAndLeftAlone) {
  prepare(1);
  auto one = host("host-1");
  ASSERT_TRUE(wait_until([&] { return owners()["host-1"] == 1; }));
  ASSERT_TRUE(wait_until([&] {
    const std::string lease = lease_documents("..")[0];
    const std::string id = member(lease, "id");
    std::string changed = lease;
    const std::size_t owner = changed.find("\"Owner\":\"host-1\"");
    if (owner == std::string::npos) return false;
    changed.replace(owner, 16, "\"Owner\":\"thief\"");
    client::ItemOptions if_unchanged;
    if_unchanged.if_match = leases_->read_item(id, id).etag;
    try {
      leases_->replace_item(id, changed, id, if_unchanged);
      return true;
    } catch (const client::CosmosException&) {
      return false;  // It was renewed in between.
    }
  }));
  ASSERT_TRUE(wait_until([&] { return !record_.closes().empty(); }));
  EXPECT_EQ(record_.closes()[0].reason, CloseReason::LeaseLost);
  // The thief does not renew: after a while it is taken for dead.
  EXPECT_TRUE(wait_until([&] { return owners()["host-1"] == 1; }));
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

TEST_F(ProcessorTest, ASplitWhileRunningLosesNothing) {
  prepare(1);
  write(100);
  auto one = host("host-1");
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 100; }));
  split(*monitored_, monitored_->partition_key_ranges()[0].id);
  write(100, "after");
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 200; }));
  EXPECT_TRUE(wait_until([&] { return lease_documents("..").size() == 2; }));
  ASSERT_FALSE(record_.closes().empty());
  EXPECT_EQ(record_.closes()[0].reason, CloseReason::LeaseGone);
  for (const auto& [id, count] : record_.counts()) EXPECT_EQ(count, 1) << id;
}

TEST_F(ProcessorTest, ASplitWhileNobodyRunsLosesNothing) {
  prepare(1);
  write(50);
  host("host-1");  // Makes the leases, perhaps reads something, and goes.
  split(*monitored_, monitored_->partition_key_ranges()[0].id);
  write(50, "after");
  auto two = host("host-2");
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 100; }));
  for (const auto& [id, count] : record_.counts()) EXPECT_EQ(count, 1) << id;
}

TEST_F(ProcessorTest, NowIsTheMomentWhenTheLeasesWereMade) {
  prepare(1);
  write(10, "before");
  from_beginning_.start_from_beginning = false;
  host("host-1");  // Sees nothing, and goes.
  write(10, "after");
  auto two = host("host-2");
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 10; }));
  for (const auto& [id, _] : record_.counts()) EXPECT_EQ(id.find("after"), 0u) << id;
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
