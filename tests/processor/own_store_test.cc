// A lease store of the user's own: hosts share their work by it as by a container. And a host as
// its program sees it: started and stopped, silent unless somebody listens.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "processor_test.h"

namespace orrery::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// A table in memory, as a program might have one elsewhere; and it can be down.
class OwnStore final : public LeaseStore {
 public:
  std::vector<StoredDocument> list(const std::string& prefix) override {
    const auto lock = begin();
    std::vector<StoredDocument> found;
    for (auto row = rows_.lower_bound(prefix); row != rows_.end(); ++row) {
      if (!row->first.starts_with(prefix)) break;
      found.push_back(seen(row->second));
    }
    return found;
  }
  StoredDocument read(const std::string& id) override {
    const auto lock = begin();
    return seen(row_of(id)->second);
  }
  StoredDocument create(const std::string& id, const std::string& text) override {
    const auto lock = begin();
    if (rows_.contains(id)) throw conflict(id);
    return write(id, text);
  }
  StoredDocument replace(const std::string& id, const std::string& text,
                         const std::string& etag) override {
    const auto lock = begin();
    if (row_of(id)->second.etag != etag) throw precondition_failed(id);
    return write(id, text);
  }
  void remove(const std::string& id, const std::string& etag) override {
    const auto lock = begin();
    const auto row = row_of(id);
    if (!etag.empty() && row->second.etag != etag) throw precondition_failed(id);
    rows_.erase(row);
  }

  void set_down(bool down) {
    const std::scoped_lock lock(mutex_);
    down_ = down;
  }
  int failures() {
    const std::scoped_lock lock(mutex_);
    return failures_;
  }

 private:
  using Rows = std::map<std::string, StoredDocument>;

  std::unique_lock<std::mutex> begin() {
    std::unique_lock lock(mutex_);
    if (down_) {
      ++failures_;
      throw std::runtime_error("no connection to the table");
    }
    return lock;
  }
  Rows::iterator row_of(const std::string& id) {
    const auto row = rows_.find(id);
    if (row == rows_.end()) throw not_found(id);
    return row;
  }
  StoredDocument write(const std::string& id, const std::string& text) {
    return rows_[id] = {.id = id, .text = text, .etag = std::to_string(++version_), .ts = now()};
  }
  static StoredDocument seen(StoredDocument row) {
    row.store_now = now();
    return row;
  }
  static std::int64_t now() {
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }

  std::mutex mutex_;
  Rows rows_;
  int version_ = 0;
  bool down_ = false;
  int failures_ = 0;
};

class OwnStoreTest : public ProcessorTest {
 protected:
  std::unique_ptr<ChangeFeedProcessorHost> host_of(const std::string& name,
                                                   ChangeFeedHostOptions options = fast()) {
    auto made = std::make_unique<ChangeFeedProcessorHost>(name, *monitored_, store_,
                                                          from_beginning_, std::move(options));
    made->start(
        [this, name] { return std::make_unique<RecordingObserver>(name, record_, Behaviour()); });
    return made;
  }
  std::map<std::string, int> owners_in_store() {
    std::map<std::string, int> counts;
    for (const auto& lease : LeaseGroup(*monitored_, store_).leases()) ++counts[lease.owner];
    return counts;
  }

  std::shared_ptr<OwnStore> store_ = std::make_shared<OwnStore>();
};

TEST_F(OwnStoreTest, HostsShareTheWorkByIt) {
  prepare(4);
  write(100);
  auto first = host_of("first");
  auto second = host_of("second");
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 100; }));
  ASSERT_TRUE(wait_until([&] {
    return owners_in_store() == std::map<std::string, int>{{"first", 2}, {"second", 2}};
  }));
  first->stop();
  second->stop();
  EXPECT_EQ(owners_in_store(), (std::map<std::string, int>{{"", 4}})) << "they were given back";

  // The positions are there: a host that begins again has nothing to repeat.
  const auto before = record_.counts();
  auto third = host_of("third");
  write(20, "later");
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 120; }));
  for (const auto& [id, count] : before) EXPECT_EQ(record_.counts()[id], count) << id;
}

TEST_F(OwnStoreTest, AStoreThatWasDownForAWhileCostsNothingButTime) {
  prepare(2);
  write(20);
  auto host = host_of("host");
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 20; }));
  store_->set_down(true);
  ASSERT_TRUE(wait_until([&] { return store_->failures() > 3; }));
  write(20, "meanwhile");
  store_->set_down(false);
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 40; }));
  ASSERT_TRUE(wait_until([&] {
    std::uint64_t left = 0;
    for (const auto& lag : LeaseGroup(*monitored_, store_).lag()) left += lag.documents;
    return left == 0;
  }));
}

TEST_F(OwnStoreTest, AHostCanBeStoppedAndStartedAgain) {
  prepare(1);
  write(5);
  ChangeFeedProcessorHost host("host", *monitored_, store_, from_beginning_, fast());
  std::atomic<int> seen = 0;
  const Handler count = [&](ObserverContext&, const Documents& changes) {
    seen += static_cast<int>(changes.size());
    return Outcome::done();
  };
  host.start(count);
  EXPECT_THROW(host.start(count), client::CosmosException) << "it runs already";
  ASSERT_TRUE(wait_until([&] { return seen == 5; }));
  host.stop();
  host.stop();
  write(5, "again");
  host.register_handler(count);
  ASSERT_TRUE(wait_until([&] { return seen == 10; }));
  host.unregister_observers();
}

TEST_F(OwnStoreTest, AProgramHearsNothingUnlessItListens) {
  prepare(1);
  std::mutex mutex;
  std::vector<std::string> lines;
  const client::Log log = [&](client::LogLevel, std::string_view line) {
    const std::scoped_lock lock(mutex);
    lines.emplace_back(line);
  };
  const auto lines_now = [&] {
    const std::scoped_lock lock(mutex);
    return lines;
  };
  ChangeFeedHostOptions unwise = fast();
  unwise.lease_renew_interval = unwise.lease_expiration_interval / 2;
  const auto trouble = [&](ChangeFeedHostOptions options, const client::Container& monitored) {
    ChangeFeedProcessorHost host("host", monitored, memory_lease_store(), from_beginning_,
                                 std::move(options));
    std::atomic<int> calls = 0;
    host.start([&](ObserverContext&, const Documents&) -> Outcome {
      ++calls;
      throw std::runtime_error("the observer does not like it");
    });
    EXPECT_TRUE(wait_until([&] { return calls > 0; }));
    host.stop();
  };
  write(1);
  ::testing::internal::CaptureStderr();
  trouble(unwise, *monitored_);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(lines_now(), SizeIs(0));

  ChangeFeedHostOptions told = unwise;
  told.log = log;
  trouble(told, *monitored_);
  EXPECT_THAT(lines_now(),
              AllOf(Contains(HasSubstr("processor host: lease_renew_interval is above a third")),
                    Contains(HasSubstr("the observer does not like it"))));

  // The log of the client serves those of its hosts that have none of their own.
  lines.clear();
  const client::CosmosClient listening(server().endpoint(), server().key(), {.log = log});
  trouble(unwise, listening.database(database().id()).container("monitored"));
  EXPECT_THAT(lines_now(), Contains(HasSubstr("the observer does not like it")));
}

/// run_until_signal in a process of its own that gets a signal as soon as it has seen a change.
TEST_F(OwnStoreTest, RunsUntilASignal) {
  prepare(1);
  write(1);
  for (const int signal : {SIGINT, SIGTERM, 0}) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::alarm(60);
      const client::CosmosClient own(server().endpoint(), server().key());
      const auto monitored = own.database(database().id()).container("monitored");
      ChangeFeedProcessorHost host("host", monitored, memory_lease_store(), from_beginning_,
                                   fast());
      std::atomic<bool> seen = false;
      const int received = run_until_signal(
          host,
          [&](ObserverContext&, const Documents&) {
            seen = true;
            (void)!::write(ready[1], "x", 1);
            return Outcome::done();
          },
          [&] { return signal == 0 && seen; });
      ::_exit(received == signal && seen && host.stats().leases.empty() ? 0 : 1);
    }
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1) << "it has seen the change";
    if (signal != 0) ::kill(child, signal);
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << signal << ": " << status;
    ::close(ready[0]);
  }
}

}  // namespace
}  // namespace orrery::test
