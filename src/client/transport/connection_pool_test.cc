#include "client/transport/connection_pool.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/transport/test_http_server.h"

namespace orrery::client {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::http_response;
using test::SeenRequest;
using test::TestHttpServer;
using ::testing::HasSubstr;

Outgoing pooled_request(const std::string& url, std::string_view target = "/x",
                        std::string_view body = {}) {
  Outgoing request;
  request.endpoint = *Endpoint::parse(url);
  request.head =
      (body.empty() ? "GET " : "POST ") + std::string(target) + " HTTP/1.1\r\nhost: test\r\n" +
      (body.empty() ? std::string() : "content-length: " + std::to_string(body.size()) + "\r\n") +
      "\r\n";
  request.body = body;
  return request;
}

class ConnectionPoolTest : public ::testing::Test {
 protected:
  Outcome perform(const Outgoing& request, std::chrono::milliseconds time = test::kPatience) {
    return pool.perform(request, steady_clock::now() + time, stop.get_token());
  }

  ConnectionPool pool{{}, 4};
  std::stop_source stop;
};

TEST_F(ConnectionPoolTest, ConnectionIsUsedAgain) {
  TestHttpServer server([](const SeenRequest& request) {
    return http_response(200, request.method + " " + request.target + " " + request.body);
  });
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(perform(pooled_request(server.url())).reply.body, "GET /x ");
  EXPECT_EQ(perform(pooled_request(server.url(), "/y", "hello")).reply.body, "POST /y hello");
  EXPECT_EQ(server.accepted(), 1);
  EXPECT_EQ(pool.stats().opened, 1u);
  EXPECT_EQ(pool.stats().idle, 1u);
}

TEST_F(ConnectionPoolTest, ConnectionThatTheServerEndsIsNotUsedAgain) {
  TestHttpServer server(
      [](const SeenRequest&) { return http_response(200, "bye", {{"connection", "close"}}); });
  EXPECT_EQ(perform(pooled_request(server.url())).reply.body, "bye");
  EXPECT_EQ(perform(pooled_request(server.url())).reply.body, "bye");
  EXPECT_EQ(server.accepted(), 2);
  EXPECT_EQ(pool.stats().idle, 0u);
}

TEST_F(ConnectionPoolTest, ConnectionThatWasClosedWhileIdleIsReplacedUnseen) {
  TestHttpServer server([](const SeenRequest&) { return http_response(200, "ok"); });
  ASSERT_EQ(perform(pooled_request(server.url())).reply.body, "ok");
  server.close_connections();
  ASSERT_TRUE(test::eventually([&] { return server.ended() == 1; }));
  // Nothing of it can have arrived over the old one, so it is no matter what it does.
  const Outcome outcome = perform(pooled_request(server.url(), "/create", "{}"));
  EXPECT_EQ(outcome.no_answer, NoAnswer::None);
  EXPECT_EQ(outcome.reply.body, "ok");
  EXPECT_EQ(server.request_count(), 2u) << "not sent twice";
}

TEST_F(ConnectionPoolTest, ConnectionThatBreaksAfterTheRequestSaysSo) {
  std::atomic<int> count{0};
  TestHttpServer server(
      [&](const SeenRequest&) { return ++count == 1 ? http_response(200, "ok") : std::string(); });
  perform(pooled_request(server.url()));
  const Outcome outcome = perform(pooled_request(server.url(), "/create", "{}"));
  EXPECT_EQ(outcome.no_answer, NoAnswer::Broken);
  EXPECT_TRUE(outcome.sent);
  EXPECT_TRUE(outcome.broke_idle);
  EXPECT_THAT(outcome.words, HasSubstr(server.url()));
  EXPECT_EQ(server.request_count(), 2u) << "it is not for the pool to send again what arrived";
}

TEST_F(ConnectionPoolTest, NobodyThere) {
  std::string url;
  {
    TestHttpServer server([](const SeenRequest&) { return std::string(); });
    url = server.url();
  }
  const Outcome outcome = perform(pooled_request(url));
  EXPECT_EQ(outcome.no_answer, NoAnswer::Unreachable);
  EXPECT_FALSE(outcome.sent);
  EXPECT_THAT(outcome.words, HasSubstr("no connection to " + url));
}

TEST_F(ConnectionPoolTest, HalfAnAnswerIsNone) {
  TestHttpServer server([](const SeenRequest&) {
    return std::string("HTTP/1.1 200 OK\r\ncontent-length: 100\r\nconnection: close\r\n\r\nhalf");
  });
  EXPECT_EQ(perform(pooled_request(server.url())).no_answer, NoAnswer::Broken);
}

TEST_F(ConnectionPoolTest, LargeBodiesGoBothWays) {
  TestHttpServer server(
      [](const SeenRequest& request) { return http_response(200, request.body + request.body); });
  const std::string body(8 << 20, 'b');
  const Outcome outcome = perform(pooled_request(server.url(), "/x", body));
  EXPECT_EQ(outcome.reply.body.size(), body.size() * 2);
}

TEST_F(ConnectionPoolTest, AnswerThatTakesTooLongIsGivenUp) {
  test::Gate gate;
  TestHttpServer server([&](const SeenRequest&) {
    gate.pass();
    return http_response(200);
  });
  const Outcome outcome = perform(pooled_request(server.url()), 30ms);
  EXPECT_EQ(outcome.no_answer, NoAnswer::TimedOut);
  EXPECT_TRUE(outcome.sent);
  EXPECT_EQ(pool.stats().busy, 0u);
  EXPECT_EQ(pool.stats().idle, 0u) << "the answer may still come over that connection";
  gate.open();
}

TEST_F(ConnectionPoolTest, CancellationEndsAWaitForAnAnswerSoon) {
  test::Gate gate;
  TestHttpServer server([&](const SeenRequest&) {
    gate.pass();
    return http_response(200);
  });
  steady_clock::time_point stopped;
  std::thread stopper([&] {
    EXPECT_TRUE(test::eventually([&] { return server.request_count() == 1; }));
    stopped = steady_clock::now();
    stop.request_stop();
  });
  const Outcome outcome = perform(pooled_request(server.url()));
  const auto ended = steady_clock::now();
  stopper.join();
  EXPECT_EQ(outcome.no_answer, NoAnswer::Cancelled);
  EXPECT_LT(ended - stopped, 1s);
  gate.open();
}

TEST_F(ConnectionPoolTest, NoMoreConnectionsThanAllowed) {
  test::Gate gate;
  TestHttpServer server([&](const SeenRequest&) {
    gate.pass();
    return http_response(200, "ok");
  });
  std::vector<std::thread> threads;
  std::atomic<int> answered{0};
  for (int i = 0; i < 10; ++i) {
    threads.emplace_back([&] {
      const Outcome outcome = perform(pooled_request(server.url()));
      answered += outcome.reply.body == "ok" ? 1 : 0;
    });
  }
  EXPECT_TRUE(test::eventually([&] { return server.request_count() == 4; }));
  const Outcome late = perform(pooled_request(server.url()), 20ms);
  EXPECT_EQ(late.no_answer, NoAnswer::TimedOut);
  EXPECT_FALSE(late.sent);
  EXPECT_EQ(server.request_count(), 4u);
  gate.open();
  for (auto& each : threads) each.join();
  EXPECT_EQ(answered, 10);
  EXPECT_LE(server.accepted(), 4);
}

TEST_F(ConnectionPoolTest, IdleConnectionGivesWayToOneElsewhere) {
  const auto ok = [](const SeenRequest&) { return http_response(200, "ok"); };
  TestHttpServer one(ok), two(ok);
  ConnectionPool small({}, 1);
  const auto deadline = steady_clock::now() + test::kPatience;
  EXPECT_EQ(small.perform(pooled_request(one.url()), deadline, {}).reply.body, "ok");
  EXPECT_EQ(small.perform(pooled_request(two.url()), deadline, {}).reply.body, "ok");
  EXPECT_EQ(small.stats().idle, 1u);
  EXPECT_TRUE(test::eventually([&] { return one.ended() == 1; }));
}

}  // namespace
}  // namespace orrery::client
