#include "client/exchange/exchange.h"

#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/exchange/test_exchange.h"

namespace orrery::client {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;
using ::testing::StartsWith;

// ── what is sent ─────────────────────────────────────────────────────────────────────────────────

TEST_F(ExchangeTest, RequestIsSignedAndComplete) {
  call = {.type = "dbs", .link = "dbs/ToDo"};
  client_options.user_agent_suffix = "suite/1";
  begin();
  const std::string head = send(answered(200));
  EXPECT_THAT(head, StartsWith("GET /dbs/ToDo HTTP/1.1\r\nhost: given:1\r\n"));
  EXPECT_THAT(head, HasSubstr("x-ms-date: Tue, 01 Apr 2025 12:00:00 GMT\r\n"));
  EXPECT_THAT(head, HasSubstr("authorization: type%3Dmaster%26ver%3D1.0%26sig%3D"
                              "QTK1aHfV%2Fw3c9uwV1ExNzRbmw%2Bm5xnwpz2kAHZPJ4sw%3D\r\n"));
  EXPECT_THAT(head, HasSubstr("x-ms-version: 2020-07-15\r\n"));
  EXPECT_THAT(head, HasSubstr("user-agent: orrery-cpp/"));
  EXPECT_THAT(head, HasSubstr(" suite/1\r\n"));
  EXPECT_THAT(head, HasSubstr("x-ms-activity-id: "));
  EXPECT_THAT(head, EndsWith("\r\n\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("content-length")));
}

TEST_F(ExchangeTest, NamesInThePathAreEscapedAndSignedAsTheyAre) {
  call.link = "dbs/ToDo/colls/Items/docs/Ä b";
  begin();
  const std::string head = send(answered(200));
  EXPECT_THAT(head, StartsWith("GET /dbs/ToDo/colls/Items/docs/%C3%84%20b HTTP/1.1\r\n"));
  EXPECT_THAT(head, HasSubstr("aLduzuC8c0RuNLDwFt9g0v%2FOd%2BkafBMlHCqrtRkjhoE%3D"));
  call.link = "dbs/d/colls/c/docs/a#b%20+=?";
  begin();
  EXPECT_THAT(send(answered(200)), StartsWith("GET /dbs/d/colls/c/docs/a%23b%2520%2B%3D%3F HTTP"));
}

TEST_F(ExchangeTest, ListsOffersAndTheAccountHaveTheirPaths) {
  call = {.method = "POST", .type = "offers", .link = "", .list = true, .body = "{}"};
  begin();
  std::string head = send(answered(200));
  EXPECT_THAT(head, StartsWith("POST /offers HTTP/1.1\r\n"));
  EXPECT_THAT(head, HasSubstr("lmIC1xzHfjRVaHTo9IR7ETZuEMpx5soG2KT5f3DS5xw%3D"));
  EXPECT_THAT(head, HasSubstr("content-type: application/json\r\ncontent-length: 2\r\n"));
  EXPECT_EQ(exchange->outgoing().body, "{}");

  call = {.method = "PUT", .type = "offers", .link = "offers/WLaE", .body = "{}"};
  begin();
  head = send(answered(200));
  EXPECT_THAT(head, StartsWith("PUT /offers/WLaE HTTP/1.1\r\n"));
  EXPECT_THAT(head, HasSubstr("R6InSpS9s7tTSPOcyN%2FZH7ogty1zLgakPFdVclsCEns%3D"));

  call = {.type = "", .link = ""};
  begin();
  head = send(answered(200));
  EXPECT_THAT(head, StartsWith("GET / HTTP/1.1\r\n"));
  EXPECT_THAT(head, HasSubstr("WkFgO9PG0jZ156dFGtn90LdXcD%2BTWa%2B2KcVXY4GjLHs%3D"));

  call = {.type = "docs", .link = kStars, .list = true};
  begin();
  EXPECT_THAT(send(answered(200)), StartsWith("GET /dbs/sky/colls/stars/docs HTTP/1.1\r\n"));
}

TEST_F(ExchangeTest, ResourceTokenIsSentEscaped) {
  credential = Credential::resource_token("type=resource&ver=1&sig=a/b+c==;d;");
  begin();
  EXPECT_THAT(send(answered(200)),
              HasSubstr("authorization: "
                        "type%3Dresource%26ver%3D1%26sig%3Da%2Fb%2Bc%3D%3D%3Bd%3B\r\n"));
}

TEST_F(ExchangeTest, HeadersOfTheCallGoAlongAndOptionsWin) {
  call.headers = {{"x-one", "call"}, {"x-two", "call"}, {"x-ms-version", "2018-12-31"}};
  options.headers = {{"X-Two", "options"}};
  begin();
  const std::string head = send(answered(200));
  EXPECT_THAT(head, HasSubstr("x-one: call\r\n"));
  EXPECT_THAT(head, HasSubstr("X-Two: options\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("x-two: call")));
  EXPECT_THAT(head, HasSubstr("x-ms-version: 2018-12-31\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("x-ms-version: 2020-07-15\r\n")));
}

TEST_F(ExchangeTest, HeaderCannotBecomeTwo) {
  for (const auto& [name, value] :
       HeaderList{{"x-one", "a\r\nx-two: b"}, {"x-one\r\n", "a"}, {"x:y", "z"}, {"", "a"}}) {
    options.headers = {{name, value}};
    begin();
    exchange->prepare(now);
    EXPECT_EQ(failure().failure(), Failure::Argument);
  }
  options.headers.clear();
  options.session_token = "0:1\r\nx-two: b";
  begin();
  exchange->prepare(now);
  EXPECT_EQ(failure().failure(), Failure::Argument);
}

TEST_F(ExchangeTest, EveryAttemptHasItsOwnActivity) {
  begin();
  send(answered(429));
  wait();
  send(answered(200));
  const Answer answer = exchange->take_answer();
  ASSERT_EQ(answer.diagnostics.attempts.size(), 2u);
  EXPECT_NE(answer.diagnostics.attempts[0].activity_id, answer.diagnostics.attempts[1].activity_id);
  EXPECT_EQ(answer.diagnostics.attempts[0].status, 429);
  EXPECT_EQ(answer.diagnostics.attempts[1].status, 200);
  EXPECT_GT(answer.diagnostics.duration, 0ms);
}

TEST_F(ExchangeTest, SameSeedGivesTheSameWaits) {
  std::vector<milliseconds> waits[2];
  for (auto& each : waits) {
    surroundings.reset();
    begin();
    for (int i = 0; i < 3; ++i) {
      send(unreachable());
      each.push_back(wait());
    }
  }
  EXPECT_EQ(waits[0], waits[1]);
}

// ── answers ──────────────────────────────────────────────────────────────────────────────────────

TEST_F(ExchangeTest, AnswerHasWhatTheHeadersSay) {
  begin();
  send(answered(201, 0,
                {{"etag", "\"1\""},
                 {"x-ms-request-charge", "7.43"},
                 {"x-ms-activity-id", "abc"},
                 {"x-ms-session-token", "0:-1#5"}},
                "{}"));
  ASSERT_EQ(exchange->step(), Step::Answered);
  const Answer answer = exchange->take_answer();
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.etag, "\"1\"");
  EXPECT_EQ(answer.request_charge, 7.43);
  EXPECT_EQ(answer.activity_id, "abc");
  EXPECT_EQ(answer.session_token, "0:-1#5");
  EXPECT_EQ(answer.body, "{}");
}

TEST_F(ExchangeTest, NotModifiedAndWhatIsAcceptedAreAnswers) {
  begin();
  send(answered(304));
  EXPECT_EQ(exchange->step(), Step::Answered);
  call.accepted = {404, 207};
  begin();
  send(answered(404));
  EXPECT_EQ(exchange->step(), Step::Answered);
}

TEST_F(ExchangeTest, RefusalsAreThrownAtOnce) {
  for (const auto& [status, sub_status] : std::vector<std::pair<int, int>>{{400, 0},
                                                                           {400, 1001},
                                                                           {401, 0},
                                                                           {403, 0},
                                                                           {404, 0},
                                                                           {404, 1003},
                                                                           {405, 0},
                                                                           {409, 0},
                                                                           {410, 1000},
                                                                           {410, 1002},
                                                                           {410, 1007},
                                                                           {410, 1008},
                                                                           {412, 0},
                                                                           {413, 0},
                                                                           {500, 0},
                                                                           {501, 0}}) {
    begin();
    send(answered(status, sub_status));
    const auto refusal = failure();
    EXPECT_EQ(refusal.failure(), Failure::Response);
    EXPECT_EQ(refusal.status(), status);
    EXPECT_EQ(refusal.sub_status(), sub_status);
    EXPECT_THAT(refusal.diagnostics(), HasSubstr("1 attempt in"));
  }
}

// ── 429 and 449 ──────────────────────────────────────────────────────────────────────────────────

TEST_F(ExchangeTest, ThrottledWaitsAsLongAsTheServerAsks) {
  begin();
  send(answered(429, 3200, {{"x-ms-retry-after-ms", "1000"}}));
  EXPECT_THAT(wait(), AllOf(Ge(1000ms), Le(1100ms)));
  send(answered(200));
  EXPECT_EQ(exchange->step(), Step::Answered);
}

TEST_F(ExchangeTest, ThrottledGivesUpAfterSoManyTimes) {
  client_options.retry.throttled_max = 3;
  begin();
  for (int i = 0; i < 3; ++i) {
    send(answered(429, 3200, {{"x-ms-retry-after-ms", "10"}}));
    wait();
  }
  send(answered(429, 3200, {{"x-ms-retry-after-ms", "10"}}));
  const auto refusal = failure();
  EXPECT_TRUE(refusal.is_too_many_requests());
  EXPECT_EQ(refusal.retry_after(), 10ms);
}

TEST_F(ExchangeTest, ThrottledGivesUpWhenTheWaitsAreTooLong) {
  client_options.retry.throttled_wait_max = 2500ms;
  begin();
  for (int i = 0; i < 2; ++i) {
    send(answered(429, 3200, {{"x-ms-retry-after-ms", "1000"}}));
    wait();
  }
  send(answered(429, 3200, {{"x-ms-retry-after-ms", "1000"}}));
  EXPECT_TRUE(failure().is_too_many_requests());
}

TEST_F(ExchangeTest, ThrottledIsTriedAgainEvenIfNotRepeatable) {
  call.repeatable = false;
  begin();
  send(answered(429));
  EXPECT_EQ(exchange->step(), Step::Wait) << "it was refused, so nothing was done";
}

TEST_F(ExchangeTest, WriteRaceIsTriedAgainForAWhile) {
  client_options.retry.conflict_wait_max = 200ms;
  begin();
  milliseconds total{0};
  int attempts = 0;
  for (;;) {
    send(answered(449));
    ++attempts;
    if (exchange->step() != Step::Wait) break;
    total += wait();
  }
  EXPECT_EQ(failure().status(), 449);
  EXPECT_GE(attempts, 4);
  EXPECT_LE(total, 200ms);
}

// ── loss ─────────────────────────────────────────────────────────────────────────────────────────

TEST_F(ExchangeTest, LossIsTriedAgainWithDoublingWaits) {
  client_options.retry.attempts_max = 4;
  client_options.retry.first_wait = 100ms;
  begin();
  send(lost());
  EXPECT_THAT(wait(), AllOf(Ge(50ms), Le(100ms)));
  send(answered(503));
  EXPECT_THAT(wait(), AllOf(Ge(100ms), Le(200ms)));
  send(answered(408));
  EXPECT_THAT(wait(), AllOf(Ge(200ms), Le(400ms)));
  send(lost());
  const auto thrown = failure();
  EXPECT_EQ(thrown.failure(), Failure::Network);
  EXPECT_EQ(thrown.status(), 0);
  EXPECT_STREQ(thrown.what(), "no answer from x: it broke");
  EXPECT_THAT(thrown.diagnostics(), HasSubstr("4 attempts"));
}

TEST_F(ExchangeTest, WhatIsNotRepeatableIsSentAgainOnlyIfItCannotHaveArrived) {
  call.repeatable = false;
  begin();
  send(unreachable());
  wait();
  send(lost());
  EXPECT_EQ(failure().failure(), Failure::Network);
  for (const int status : {408, 503}) {
    begin();
    send(answered(status));
    EXPECT_EQ(failure().status(), status);
  }
  begin();
  send(Outcome::failed(NoAnswer::TimedOut, "no answer", true));
  EXPECT_EQ(failure().failure(), Failure::Timeout);
  begin();
  send(Outcome::failed(NoAnswer::TimedOut, "no connection", false));
  EXPECT_EQ(exchange->step(), Step::Wait);
}

TEST_F(ExchangeTest, ConnectionThatWasIdleIsReplacedAtOnce) {
  begin();
  send(lost(/*broke_idle=*/true));
  EXPECT_EQ(exchange->step(), Step::Send);
  send(lost(/*broke_idle=*/true));
  EXPECT_EQ(exchange->step(), Step::Wait) << "twice is no coincidence";
}

TEST_F(ExchangeTest, CertificateThatDoesNotHoldIsNotTriedAgain) {
  begin();
  send(Outcome::failed(NoAnswer::Distrusted, "no connection to x: certificate", false));
  EXPECT_EQ(failure().failure(), Failure::Network);
}

// ── time and cancellation ────────────────────────────────────────────────────────────────────────

TEST_F(ExchangeTest, AttemptHasItsTimeAndTheCallHasItsOwn) {
  client_options.request_timeout = 65s;
  options.timeout = 100s;
  begin();
  exchange->prepare(now);
  EXPECT_EQ(exchange->attempt_deadline(), now + 65s);
  const auto begun = now;
  now += 65s;
  exchange->judge(Outcome::failed(NoAnswer::TimedOut, "no answer", true), now);
  wait();
  exchange->prepare(now);
  EXPECT_EQ(exchange->attempt_deadline(), begun + 100s);
  now = begun + 100s;
  exchange->judge(Outcome::failed(NoAnswer::TimedOut, "no answer", true), now);
  EXPECT_EQ(failure().failure(), Failure::Timeout);
}

TEST_F(ExchangeTest, LongPollHasTimeForItsNews) {
  client_options.request_timeout = 10s;
  call.headers = {{"prefer", "return=minimal, wait=30"}};
  begin();
  exchange->prepare(now);
  EXPECT_EQ(exchange->attempt_deadline(), now + 40s);
  EXPECT_TRUE(exchange->outgoing().waits);
}

TEST_F(ExchangeTest, DoesNotWaitForWhatWouldComeTooLate) {
  options.timeout = 500ms;
  begin();
  send(answered(429, 3200, {{"x-ms-retry-after-ms", "1000"}}));
  EXPECT_TRUE(failure().is_too_many_requests());
}

TEST_F(ExchangeTest, NothingIsSentWhenTheTimeIsOver) {
  options.timeout = 0ms;
  begin();
  exchange->prepare(now);
  EXPECT_EQ(failure().failure(), Failure::Timeout);
}

TEST_F(ExchangeTest, CancellationEndsIt) {
  begin();
  send(Outcome::failed(NoAnswer::Cancelled, "cancelled", true));
  EXPECT_EQ(failure().failure(), Failure::Cancelled);
  begin();
  send(answered(429));
  exchange->cancel(now);
  EXPECT_EQ(failure().failure(), Failure::Cancelled);
}

// ── what is told ─────────────────────────────────────────────────────────────────────────────────

TEST_F(ExchangeTest, TheLogHearsOfRequestsThatAreSentAgain) {
  std::vector<std::string> lines;
  client_options.log = [&](LogLevel level, std::string_view line) {
    EXPECT_EQ(level, LogLevel::Debug);
    lines.emplace_back(line);
    throw std::runtime_error("a log that fails harms nobody");
  };
  begin();
  send(answered(503));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0],
              AllOf(HasSubstr("503/0 from http://given:1"), HasSubstr("; sent again in")));
}

}  // namespace
}  // namespace orrery::client
