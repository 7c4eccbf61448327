#include "sinks/delivery.h"

#include <deque>

#include <gtest/gtest.h>

#include "sinks/test_observer_context.h"

namespace orrery::sinks {
namespace {

using processor::Outcome;

/// Answers as its script says, and then that all is done.
class ScriptedSink final : public BatchSink {
 public:
  struct Script {
    std::deque<Delivery> answers;
    std::vector<std::vector<std::string>> calls;
    bool closed = false;
  };
  explicit ScriptedSink(std::shared_ptr<Script> script) : script_(std::move(script)) {}

  Delivery deliver(processor::ObserverContext&, Changes changes) override {
    script_->calls.emplace_back(changes.begin(), changes.end());
    if (script_->answers.empty()) return Delivery::done();
    Delivery answer = std::move(script_->answers.front());
    script_->answers.pop_front();
    return answer;
  }
  void close() override { script_->closed = true; }

 private:
  std::shared_ptr<Script> script_;
};

class DeliveryTest : public testing::Test {
 protected:
  Outcome process(std::deque<Delivery> answers, std::vector<std::string_view> documents) {
    script->answers = std::move(answers);
    DeliveryObserver observer(
        std::make_unique<ScriptedSink>(script), policy, stats,
        [this](const std::string&, const std::string& problem) { problems.push_back(problem); });
    return observer.process(context, page_of(std::move(documents)));
  }

  std::shared_ptr<ScriptedSink::Script> script = std::make_shared<ScriptedSink::Script>();
  std::shared_ptr<SinkStats> stats = std::make_shared<SinkStats>();
  DeliveryPolicy policy{.backoff_min = std::chrono::milliseconds(1)};
  TestObserverContext context{3, "\"10\"", "\"20\""};
  std::vector<std::string> problems;
};

TEST_F(DeliveryTest, ADestinationThatIsAwayCostsNoAttempt) {
  const auto outcome = process({Delivery::later("away"), Delivery::later("away")}, {"1", "2"});
  EXPECT_EQ(outcome.kind, Outcome::Kind::Done);
  EXPECT_EQ(script->calls.size(), 3u);
  EXPECT_EQ(problems.size(), 2u);
  EXPECT_EQ(stats->documents, 2u);
}

TEST_F(DeliveryTest, AFailureIsForTheRetryPolicy) {
  const auto outcome = process({Delivery::failed("broken")}, {"1", "2"});
  EXPECT_EQ(outcome.kind, Outcome::Kind::Retry);
  EXPECT_EQ(outcome.reason, "broken");
  EXPECT_EQ(stats->documents, 0u);
}

TEST_F(DeliveryTest, ARefusalIsCutDownAndThenADeadLetterAtOnce) {
  policy.dead_letters = true;
  EXPECT_EQ(process({Delivery::refused("no")}, {"1", "2"}).kind, Outcome::Kind::Retry);
  const auto alone = process({Delivery::refused("no")}, {"1"});
  EXPECT_EQ(alone.kind, Outcome::Kind::Reject);
  EXPECT_EQ(alone.rejected, std::vector<std::size_t>{0});
  policy.dead_letters = false;
  EXPECT_EQ(process({Delivery::refused("no")}, {"1"}).kind, Outcome::Kind::Retry);
}

TEST_F(DeliveryTest, AnEndIsNeitherWaitedOutNorTakenForAFailure) {
  policy.backoff_min = std::chrono::hours(1);
  context.request_stop();
  EXPECT_EQ(process({Delivery::later("away")}, {"1"}).kind, Outcome::Kind::Stop);
  EXPECT_EQ(process({Delivery::failed("killed")}, {"1"}).kind, Outcome::Kind::Stop);
  EXPECT_EQ(process({}, {"1"}).kind, Outcome::Kind::Done);
}

TEST_F(DeliveryTest, OneByOneEachDocumentHasItsOwnAttempts) {
  policy.per_document = true;
  policy.dead_letters = true;
  policy.attempts_max = 2;
  const auto outcome = process({Delivery::done(), Delivery::refused("no"), Delivery::failed("x"),
                                Delivery::done(), Delivery::failed("y"), Delivery::failed("z")},
                               {"1", "2", "3", "4"});
  EXPECT_EQ(outcome.kind, Outcome::Kind::Reject);
  EXPECT_EQ(outcome.rejected, (std::vector<std::size_t>{1, 3}));
  EXPECT_EQ(outcome.reason, "no; z");
  EXPECT_EQ(script->calls,
            (std::vector<std::vector<std::string>>{{"1"}, {"2"}, {"3"}, {"3"}, {"4"}, {"4"}}));
  EXPECT_EQ(stats->documents, 2u);
}

TEST_F(DeliveryTest, WithRareCheckpointsAnIdleLeaseIsCheckpointed) {
  for (const bool rare : {false, true}) {
    policy.checkpoint_when_idle = rare;
    DeliveryObserver observer(std::make_unique<ScriptedSink>(script), policy, stats,
                              [](const std::string&, const std::string&) {});
    observer.idle(context);
    EXPECT_EQ(context.checkpoints.size(), rare ? 1u : 0u);
  }
}

}  // namespace
}  // namespace orrery::sinks
