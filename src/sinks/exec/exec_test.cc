#include "sinks/exec/exec.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>

#include <gtest/gtest.h>

#include "sinks/test_observer_context.h"

namespace orrery::sinks {
namespace {

using processor::Outcome;
using std::chrono::milliseconds;

/// Waits for the end of a process that is no child of ours; a zombie has ended.
bool ends_within(pid_t pid, milliseconds time) {
  const FileDescriptor watch(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!watch.is_open()) return errno == ESRCH;
  pollfd wait{watch.number(), POLLIN, 0};
  return ::poll(&wait, 1, static_cast<int>(time.count())) == 1;
}

class ExecTest : public testing::Test {
 protected:
  ExecTest() { std::signal(SIGPIPE, SIG_IGN); }

  ExecOptions options(std::string command) {
    ExecOptions options;
    options.command = std::move(command);
    options.groups = std::make_shared<ProcessGroups>();
    options.print = [this](std::string_view lines) { printed += lines; };
    return options;
  }
  Delivery run(const std::string& command, const std::vector<std::string_view>& documents) {
    return ExecSink(options(command)).deliver(context, documents);
  }

  TestObserverContext context{3, "\"10\"", "\"20\""};
  std::string printed;
};

TEST_F(ExecTest, ExitCodesAreOutcomes) {
  EXPECT_TRUE(run("cat >/dev/null", {"1"}).is_done());
  EXPECT_EQ(run("exit 75", {"1"}).kind, Delivery::Kind::Later);
  EXPECT_EQ(run("exit 1", {"1"}).kind, Delivery::Kind::Failed);
  EXPECT_EQ(run("kill -9 $$", {"1"}).kind, Delivery::Kind::Failed);
  // A typing error in the command must not turn every document into a dead letter.
  EXPECT_EQ(run("no-such-command-anywhere 2>/dev/null", {"1"}).kind, Delivery::Kind::Later);
}

TEST_F(ExecTest, DocumentsAndFactsArrive) {
  EXPECT_TRUE(run("cat; echo $ORRERY_LEASE $ORRERY_RANGE $ORRERY_EPOCH $ORRERY_FROM $ORRERY_TO "
                  "$ORRERY_COUNT",
                  {"{\"id\":1}", "{\"id\":2}"})
                  .is_done());
  EXPECT_EQ(printed, "{\"id\":1}\n{\"id\":2}\n7 7 3 10 20 2\n");
}

TEST_F(ExecTest, TheLastLineMayBeAReply) {
  const auto until = run("echo some words; echo '{\"done_until\":1}'", {"1", "2"});
  EXPECT_EQ(until.outcome.kind, Outcome::Kind::DoneUntil);
  EXPECT_EQ(printed, "some words\n");
  // It says more than an exit code, unless the two contradict each other.
  EXPECT_EQ(run("echo '{\"reject\":[0]}'; exit 1", {"1"}).outcome.kind, Outcome::Kind::Reject);
  EXPECT_EQ(run("echo '{\"done\":true}'; exit 1", {"1"}).kind, Delivery::Kind::Failed);
  EXPECT_EQ(run("echo '{\"retry_after_ms\":1}'; kill -9 $$", {"1"}).kind, Delivery::Kind::Failed);
}

TEST_F(ExecTest, LargeBatchesDoNotWaitForEachOther) {
  const std::string document(1 << 20, 'x');
  const std::vector<std::string_view> documents(8, document);
  EXPECT_TRUE(run("cat", documents).is_done());
  EXPECT_EQ(printed.size(), 8 * (document.size() + 1));
}

TEST_F(ExecTest, ACommandNeedNotReadItsInput) {
  const std::string document(1 << 20, 'x');
  EXPECT_TRUE(run("true", {document}).is_done());
  EXPECT_TRUE(run("exec <&-; true", {document}).is_done());
}

TEST_F(ExecTest, ABackgroundProcessIsNotWaitedFor) {
  // It holds standard output open.
  EXPECT_TRUE(run("cat >/dev/null; sleep 1000 2>/dev/null & echo $!", {"1"}).is_done());
  const pid_t left = static_cast<pid_t>(std::stol(printed));
  EXPECT_EQ(::kill(left, SIGKILL), 0);
}

TEST_F(ExecTest, ATimeoutKillsTheWholeProcessGroup) {
  ExecOptions slow = options("sleep 1000 & echo $!; wait");
  slow.batch_time = milliseconds(200);
  const auto delivery = ExecSink(slow).deliver(context, std::vector<std::string_view>{"1"});
  EXPECT_EQ(delivery.kind, Delivery::Kind::Failed);
  const pid_t started = static_cast<pid_t>(std::stol(printed));
  EXPECT_TRUE(ends_within(started, milliseconds(30'000)));
}

TEST_F(ExecTest, AnEndLeavesTimeToFinish) {
  context.request_stop();
  EXPECT_TRUE(run("cat >/dev/null", {"1"}).is_done());
  ExecOptions slow = options("sleep 1000");
  slow.grace = milliseconds(50);
  EXPECT_EQ(ExecSink(slow).deliver(context, std::vector<std::string_view>{"1"}).kind,
            Delivery::Kind::Failed);
}

TEST_F(ExecTest, AStreamKeepsItsProcess) {
  ExecStreamSink sink(
      options("while read -r line; do echo \"{\\\"reject\\\":[],\\\"reason\\\":\\\"$$\\\"}\"; "
              "done"));
  const std::vector<std::string_view> documents = {"1"};
  EXPECT_TRUE(sink.deliver(context, documents).is_done());
  EXPECT_TRUE(sink.deliver(context, documents).is_done());
  sink.close();
}

TEST_F(ExecTest, AStreamThatDiesIsStartedAgain) {
  ExecStreamSink sink(options("read -r line; echo '{}'; read -r line; exit 3"));
  const std::vector<std::string_view> documents = {"1"};
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(sink.deliver(context, documents).is_done());
    const auto died = sink.deliver(context, documents);
    EXPECT_EQ(died.kind, Delivery::Kind::Failed);
    EXPECT_NE(died.reason.find("exit code 3"), std::string::npos) << died.reason;
  }
}

TEST_F(ExecTest, AStreamThatAnswersNonsenseHasFailed) {
  const std::vector<std::string_view> documents = {"1"};
  ExecStreamSink words(options("while read -r line; do echo all is well; done"));
  EXPECT_EQ(words.deliver(context, documents).kind, Delivery::Kind::Failed);
  // Nobody knows which batch the second answer is about.
  ExecStreamSink twice(options("while read -r line; do printf '{}\\n{}\\n'; done"));
  EXPECT_EQ(twice.deliver(context, documents).kind, Delivery::Kind::Failed);
  EXPECT_EQ(twice.deliver(context, documents).kind, Delivery::Kind::Failed);
}

TEST(LastLine, HoldsBackOnlyTheLast) {
  std::string passed;
  LastLine lines([&passed](std::string_view text) { passed += text; });
  lines.add("one\ntw");
  EXPECT_EQ(passed, "one\n");
  lines.add("o\n");
  EXPECT_EQ(passed, "one\n");
  EXPECT_EQ(lines.text(), "two\n");
  lines.add("three");
  EXPECT_EQ(passed, "one\ntwo\n");
  lines.pass_on_rest();
  EXPECT_EQ(passed, "one\ntwo\nthree");
}

}  // namespace
}  // namespace orrery::sinks
