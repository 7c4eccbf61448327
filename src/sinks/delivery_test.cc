#include "sinks/delivery.h"

#include <deque>
#include <set>

#include <gtest/gtest.h>

#include "json/lines.h"
#include "sinks/test_observer_context.h"

namespace orrery::sinks {
namespace {

using processor::Outcome;

/// Says what it was told to say, one thing after the other, and then that all is done.
class ScriptedHandler final : public BatchHandler {
 public:
  struct Script {
    std::deque<Handling> answers;
    std::vector<std::vector<std::string>> calls;
    bool closed = false;
  };
  explicit ScriptedHandler(std::shared_ptr<Script> script) : script_(std::move(script)) {}

  Handling handle(processor::ObserverContext&, Changes changes) override {
    script_->calls.emplace_back(changes.begin(), changes.end());
    if (script_->answers.empty()) return Handling::done();
    Handling answer = std::move(script_->answers.front());
    script_->answers.pop_front();
    return answer;
  }
  void close() override { script_->closed = true; }

 private:
  std::shared_ptr<Script> script_;
};

class HandlingTest : public testing::Test {
 protected:
  Outcome process(std::deque<Handling> answers, std::vector<std::string_view> documents) {
    script->answers = std::move(answers);
    HandlingObserver observer(
        std::make_unique<ScriptedHandler>(script), policy, tally,
        [this](const std::string&, const std::string& problem) { problems.push_back(problem); });
    return observer.process(context, page_of(std::move(documents)));
  }

  std::shared_ptr<ScriptedHandler::Script> script = std::make_shared<ScriptedHandler::Script>();
  std::shared_ptr<Tally> tally = std::make_shared<Tally>();
  HandlingPolicy policy{.first_wait = std::chrono::milliseconds(1)};
  TestObserverContext context{3, "\"10\"", "\"20\""};
  std::vector<std::string> problems;
};

TEST(Reply, SaysWhatBecameOfABatch) {
  EXPECT_TRUE(read_reply("{}", 5)->is_done());
  EXPECT_TRUE(read_reply(R"({"done":true})", 5)->is_done());
  EXPECT_TRUE(read_reply(R"({"done_until":5})", 5)->is_done());
  const auto until = read_reply(" {\"done_until\": 3}\n", 5);
  EXPECT_EQ(until->outcome.kind, Outcome::Kind::DoneUntil);
  EXPECT_EQ(until->outcome.count, 3u);
  const auto later = read_reply(R"({"retry_after_ms":500,"reason":"busy"})", 5);
  EXPECT_EQ(later->kind, Handling::Kind::Later);
  EXPECT_EQ(later->after.count(), 500);
  EXPECT_EQ(later->reason, "busy");
  const auto reject = read_reply(R"({"reject":[4,0,4],"reason":"bad"})", 5);
  EXPECT_EQ(reject->outcome.kind, Outcome::Kind::Reject);
  EXPECT_EQ(reject->outcome.rejected, (std::vector<std::size_t>{0, 4}));
  EXPECT_EQ(reject->outcome.reason, "bad");
  EXPECT_TRUE(read_reply(R"({"reject":[]})", 5)->is_done());
  EXPECT_EQ(read_reply(R"({"stop":true})", 5)->outcome.kind, Outcome::Kind::Stop);
  EXPECT_EQ(read_reply(R"({"failed":true})", 5)->kind, Handling::Kind::Failed);
  EXPECT_EQ(read_reply(R"({"done_until":0})", 5)->kind, Handling::Kind::Failed);
}

TEST(Reply, IsNothingElse) {
  EXPECT_FALSE(read_reply("", 5));
  EXPECT_FALSE(read_reply("12", 5));
  EXPECT_FALSE(read_reply("done", 5));
  EXPECT_FALSE(read_reply("[]", 5));
  // A document that a handler prints, even one with a familiar member.
  EXPECT_FALSE(read_reply(R"({"id":"a","done":true})", 5));
}

TEST(Reply, ThatCantBeMeantIsAFailure) {
  for (const char* text :
       {R"({"done_until":6})", R"({"done_until":-1})", R"({"done_until":"3"})", R"({"reject":[5]})",
        R"({"reject":3})", R"({"reject":[1.5]})", R"({"retry_after_ms":"soon"})"}) {
    EXPECT_EQ(read_reply(text, 5)->kind, Handling::Kind::Failed) << text;
  }
}

TEST_F(HandlingTest, WhoeverIsAwayIsWaitedForWithoutAnAttempt) {
  const auto outcome = process({Handling::later("away"), Handling::later("away")}, {"1", "2"});
  EXPECT_EQ(outcome.kind, Outcome::Kind::Done);
  EXPECT_EQ(script->calls.size(), 3u);
  EXPECT_EQ(problems.size(), 2u);
  EXPECT_EQ(tally->documents, 2u);
}

TEST_F(HandlingTest, AFailureIsForTheRetryPolicy) {
  const auto outcome = process({Handling::failed("broken")}, {"1", "2"});
  EXPECT_EQ(outcome.kind, Outcome::Kind::Retry);
  EXPECT_EQ(outcome.reason, "broken");
  EXPECT_EQ(tally->documents, 0u);
}

TEST_F(HandlingTest, ARefusalIsCutDownAndThenADeadLetterAtOnce) {
  policy.dead_letters = true;
  EXPECT_EQ(process({Handling::refused("no")}, {"1", "2"}).kind, Outcome::Kind::Retry);
  const auto alone = process({Handling::refused("no")}, {"1"});
  EXPECT_EQ(alone.kind, Outcome::Kind::Reject);
  EXPECT_EQ(alone.rejected, std::vector<std::size_t>{0});
  policy.dead_letters = false;
  EXPECT_EQ(process({Handling::refused("no")}, {"1"}).kind, Outcome::Kind::Retry);
}

TEST_F(HandlingTest, AnEndIsNeitherWaitedOutNorTakenForAFailure) {
  policy.first_wait = std::chrono::hours(1);
  context.request_stop();
  EXPECT_EQ(process({Handling::later("away")}, {"1"}).kind, Outcome::Kind::Stop);
  EXPECT_EQ(process({Handling::failed("killed")}, {"1"}).kind, Outcome::Kind::Stop);
  EXPECT_EQ(process({}, {"1"}).kind, Outcome::Kind::Done);
}

TEST_F(HandlingTest, OneByOneEachDocumentHasItsOwnAttempts) {
  policy.per_document = true;
  policy.dead_letters = true;
  policy.attempts_max = 2;
  const auto outcome = process({Handling::done(), Handling::refused("no"), Handling::failed("x"),
                                Handling::done(), Handling::failed("y"), Handling::failed("z")},
                               {"1", "2", "3", "4"});
  EXPECT_EQ(outcome.kind, Outcome::Kind::Reject);
  EXPECT_EQ(outcome.rejected, (std::vector<std::size_t>{1, 3}));
  EXPECT_EQ(outcome.reason, "no; z");
  EXPECT_EQ(script->calls,
            (std::vector<std::vector<std::string>>{{"1"}, {"2"}, {"3"}, {"3"}, {"4"}, {"4"}}));
  EXPECT_EQ(tally->documents, 2u);
}

TEST_F(HandlingTest, WithRareCheckpointsWhatIsDoneIsWrittenWhenNothingIsLeft) {
  for (const bool rare : {false, true}) {
    policy.checkpoint_when_idle = rare;
    HandlingObserver observer(std::make_unique<ScriptedHandler>(script), policy, tally,
                              [](const std::string&, const std::string&) {});
    observer.idle(context);
    EXPECT_EQ(context.checkpoints.size(), rare ? 1u : 0u);
  }
}

TEST(BatchText, IsAlwaysOneLinePerDocument) {
  const std::vector<std::string_view> documents = {"{\"id\":\n\"a\"}", "{\r\n\"id\":\"b\\n\"}"};
  EXPECT_EQ(json::lines(documents), "{\"id\": \"a\"}\n{  \"id\":\"b\\n\"}\n");
  const TestObserverContext context(3, "\"10\"", "\"20\"");
  EXPECT_EQ(envelope(context, documents),
            R"({"lease":"7","range":"7","epoch":3,"from":"10","to":"20","documents":)"
            R"([{"id": "a"},{  "id":"b\n"}]})");
}

TEST(BatchText, IdempotencyKeysTellPartsOfABatchApart) {
  const std::vector<std::string_view> documents = {"1", "2", "12"};
  const Changes all(documents);
  const TestObserverContext context(3, "\"10\"", "\"20\"");
  EXPECT_EQ(idempotency_key(context, all), idempotency_key(context, all));
  EXPECT_TRUE(idempotency_key(context, all).starts_with("7/3/20/"));
  std::set<std::string> keys = {idempotency_key(context, all)};
  keys.insert(idempotency_key(context, all.first(1)));
  keys.insert(idempotency_key(context, all.first(2)));
  keys.insert(idempotency_key(context, all.last(1)));
  keys.insert(idempotency_key(TestObserverContext(4, "\"10\"", "\"20\""), all));
  EXPECT_EQ(keys.size(), 5u);
}

}  // namespace
}  // namespace orrery::sinks
