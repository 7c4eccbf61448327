// Hosts in processes of their own that are killed, and stopped for a while; against a real server.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "processor_test.h"
#include "test_sink.h"

namespace orrery::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// processor_host, and what it says.
class HostProcess {
 public:
  HostProcess(const std::vector<std::string>& arguments) {
    std::vector<std::string> words{PROCESSOR_HOST_PATH};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    int input[2];
    int output[2];
    if (::pipe2(input, O_CLOEXEC) != 0 || ::pipe2(output, O_CLOEXEC) != 0) {
      throw std::runtime_error("pipe failed");
    }
    process_ = ::fork();
    if (process_ < 0) throw std::runtime_error("fork failed");
    if (process_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(input[0], STDIN_FILENO);
      ::dup2(output[1], STDOUT_FILENO);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(input[0]);
    ::close(output[1]);
    input_ = input[1];
    reader_ = std::thread([this, from = output[0]] { read_lines(from); });
  }
  ~HostProcess() { kill(); }
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;

  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
    ::close(input_);
    reader_.join();
  }
  void stop() {
    ::kill(process_, SIGSTOP);
    ::waitpid(process_, nullptr, WUNTRACED);
  }
  void go_on() { ::kill(process_, SIGCONT); }

  std::vector<std::string> said(const std::string& beginning) const {
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> found;
    for (const std::string& line : lines_) {
      if (line.starts_with(beginning)) found.push_back(line);
    }
    return found;
  }
  /// The ids in its batches, in the order in which they came.
  std::vector<std::string> ids() const {
    std::vector<std::string> found;
    for (const std::string& line : said("batch ")) {
      std::istringstream words(line);
      std::string word;
      words >> word >> word >> word;
      while (words >> word) found.push_back(word);
    }
    return found;
  }

 private:
  void read_lines(int from) {
    std::string pending;
    char piece[4096];
    for (ssize_t count = 0; (count = ::read(from, piece, sizeof piece)) > 0;) {
      pending.append(piece, static_cast<std::size_t>(count));
      const std::scoped_lock lock(mutex_);
      for (std::size_t end = 0; (end = pending.find('\n')) != std::string::npos;) {
        lines_.push_back(pending.substr(0, end));
        pending.erase(0, end + 1);
      }
    }
    ::close(from);
  }

  pid_t process_ = -1;
  int input_ = -1;
  mutable std::mutex mutex_;  // Guards lines_.
  std::vector<std::string> lines_;
  std::thread reader_;
};

class ProcessesTest : public ProcessorTest {
 protected:
  void SetUp() override {
    ProcessorTest::SetUp();
    std::string pattern = (std::filesystem::temp_directory_path() / "orrery-host-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    from_beginning_.max_item_count = 10;
  }
  void TearDown() override {
    std::filesystem::remove_all(directory_);
    ProcessorTest::TearDown();
  }

  std::unique_ptr<HostProcess> process(const std::string& name) {
    return std::make_unique<HostProcess>(std::vector<std::string>{
        server().endpoint(), server().key(), database().id(), name, directory_.string()});
  }
  void hold_batches() { std::ofstream(directory_ / "hold") << "\n"; }
  void let_batches_go() { std::filesystem::remove(directory_ / "hold"); }
  int times_seen(const HostProcess& other, const std::string& id) {
    const auto ids = other.ids();
    return static_cast<int>(std::ranges::count(ids, id)) + record_.counts()[id];
  }

  std::filesystem::path directory_;
};

TEST_F(ProcessesTest, WhoIsKilledInMidBatchIsFollowedSoonAndFewChangesComeTwice) {
  prepare(2);
  make_container("sink", 1, {"/id"});
  write(100);
  hold_batches();
  auto victim = process("victim");
  ASSERT_TRUE(wait_until([&] { return victim->said("batch ").size() == 2; }));
  const auto options = fast();
  auto spare = host("spare", options);
  victim->kill();
  const auto killed = std::chrono::steady_clock::now();
  ASSERT_TRUE(wait_until([&] { return owners()["spare"] == 2; }));
  const auto took = std::chrono::steady_clock::now() - killed;
  // Half a second for the machine; a busy one needs more, but never a second expiration.
  EXPECT_LT(took, options.lease_expiration_interval + options.lease_acquire_interval + 1s);
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 100; }));
  int twice = 0;
  for (int i = 0; i < 100; ++i) {
    const int times = times_seen(*victim, "d" + std::to_string(i));
    EXPECT_GE(times, 1);
    EXPECT_LE(times, 2);
    if (times == 2) ++twice;
  }
  EXPECT_LE(twice, 2 * 10) << "one batch of each lease";
}

TEST_F(ProcessesTest, WhoWasStoppedForLongFindsItsLeaseTakenAndItsEpochOver) {
  prepare(1);
  const client::Container sink = make_container("sink", 1, {"/id"});
  write(10);
  hold_batches();
  auto sleeper = process("sleeper");
  ASSERT_TRUE(wait_until([&] { return sleeper->said("batch ").size() == 1; }));
  sleeper->stop();

  std::atomic<bool> accepted = false;
  auto other = host("other", fast(), [&](ObserverContext& context, const Documents&) -> Outcome {
    accepted = sink_takes(sink, context.lease_token(), context.epoch(), context.to());
    return Outcome::done();
  });
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 10; }));
  EXPECT_TRUE(accepted);
  ASSERT_TRUE(wait_until([&] { return positions().at("0") != "\"0\""; }));
  const std::string position = positions().at("0");

  let_batches_go();
  sleeper->go_on();
  ASSERT_TRUE(wait_until([&] { return !sleeper->said("close ").empty(); }));
  EXPECT_THAT(sleeper->said("sink "), ::testing::ElementsAre("sink refuses"));
  EXPECT_THAT(sleeper->said("close "), ::testing::ElementsAre("close 0 3"));  // LeaseLost.
  EXPECT_THAT(sleeper->said("batch "), SizeIs(1));
  EXPECT_EQ(positions().at("0"), position);
  EXPECT_EQ(owners()["other"], 1);
  EXPECT_EQ(member(sink.read_item("0", "0").value, "epoch"),
            std::to_string(record_.batches()[0].epoch));
}

TEST_F(ProcessesTest, MoreHostsThanLeasesStandByAndTakeOverAfterACrash) {
  prepare(1);
  make_container("sink", 1, {"/id"});
  auto first = process("first");
  ASSERT_TRUE(wait_until([&] { return !first->said("open ").empty(); }));
  auto second = process("second");
  auto third = process("third");
  ASSERT_TRUE(
      wait_until([&] { return !second->said("ready").empty() && !third->said("ready").empty(); }));
  write(30);
  ASSERT_TRUE(wait_until([&] { return first->ids().size() == 30; }));
  EXPECT_TRUE(second->said("open ").empty());
  EXPECT_TRUE(third->said("open ").empty());
  first->kill();
  write(30, "later");
  // The last batch of the one that was killed may come again: its position was perhaps not stored.
  ASSERT_TRUE(wait_until([&] {
    std::set<std::string> seen;
    for (const auto* host : {second.get(), third.get()}) {
      for (const std::string& id : host->ids()) seen.insert(id);
    }
    return std::ranges::count_if(seen, [](const auto& id) { return id.starts_with("later"); }) ==
           30;
  }));
  EXPECT_EQ(second->said("open ").empty() + third->said("open ").empty(), 1);
}

TEST_F(ProcessesTest, AServerThatIsStartedAnewIsWaitedFor) {
  ServerProcess::Options keeping;
  keeping.keeps_data = true;
  ServerProcess own(keeping);
  const client::CosmosClient client(own.endpoint(), own.key());
  client.create_database("db");
  const auto database = client.database("db");
  for (const auto& [id, key] : {std::pair{"monitored", "/pk"}, std::pair{"leases", "/id"}}) {
    client::ContainerProperties properties;
    properties.id = id;
    properties.partition_key_paths = {key};
    database.create_container(properties);
  }
  monitored_.emplace(database.container("monitored"));
  leases_.emplace(database.container("leases"));
  write(20);
  auto one = host("host-1");
  ASSERT_TRUE(wait_until([&] { return record_.distinct() == 20; }));
  own.kill();
  own.start();
  write(20, "later");
  EXPECT_TRUE(wait_until([&] { return record_.distinct() == 40; }, 60s));
  expect_order_of_keys("later", 20);
}

}  // namespace
}  // namespace orrery::test
