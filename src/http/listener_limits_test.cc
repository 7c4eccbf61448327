// Limits of a listener: clients and requests that are too large, too slow, too many, wrong.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "http/test_client.h"
#include "http/test_server.h"

namespace orrery::http {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShort{60};
constexpr milliseconds kNever{600'000};

/// Limits of which none is reached by accident.
Limits patient() {
  return {.request_time_max = kNever, .idle_time_max = kNever, .send_time_max = kNever};
}

ListenerOptions with(Limits limits) { return {.limits = limits}; }

TEST(ListenerLimits, MalformedRequestIsAnsweredAndTheConnectionClosed) {
  TestServer server(with(patient()));
  for (const char* request :
       {"NONSENSE\r\n\r\n", "GET / HTTP/1.1\r\nbroken header\r\n\r\n",
        "POST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", "\x16\x03\x01\x02"}) {
    TestClient client(server.port());
    const auto answer = client.ask(request);
    EXPECT_EQ(answer.status, 400) << request;
    EXPECT_EQ(answer.headers.at("connection"), "close");
    EXPECT_TRUE(answer.body.starts_with("{\"message\":"));
    EXPECT_TRUE(client.closed_silently());
  }
  EXPECT_EQ(server.stats().requests, 0u);
}

TEST(ListenerLimits, NothingBehindAMalformedRequestIsServed) {
  TestServer server(with(patient()));
  TestClient client(server.port());
  const auto answer = client.ask(
      "POST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n"
      "0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n");
  EXPECT_EQ(answer.status, 400);
  EXPECT_TRUE(client.closed_silently());
  EXPECT_EQ(server.stats().requests, 0u);
}

TEST(ListenerLimits, LargeHeadIs431) {
  auto limits = patient();
  limits.head_bytes_max = 10'000;
  TestServer server(with(limits));
  TestClient client(server.port());
  EXPECT_EQ(client.ask("GET /a HTTP/1.1\r\nx: " + std::string(9'900, 'x') + "\r\n\r\n").status,
            200);
  client.send("GET / HTTP/1.1\r\nx: " + std::string(300'000, 'x') + "\r\n\r\n");
  EXPECT_EQ(client.read_answer().status, 431);
  EXPECT_TRUE(client.closed_silently());
}

TEST(ListenerLimits, DefaultHeadLimitHoldsTheTokensOfRealClients) {
  TestServer server(with(patient()));
  TestClient client(server.port());
  const std::string token(100'000, 't');
  EXPECT_EQ(client.ask("GET /a HTTP/1.1\r\nx-see: " + token + "\r\n\r\n").headers.at("x-seen"),
            token);
  EXPECT_EQ(client.ask("GET /a HTTP/1.1\r\n\r\n").status, 200);
}

TEST(ListenerLimits, LargeBodyIs413AlsoForAClientThatSendsAllBeforeItReads) {
  TestServer server(with(patient()));
  for (int i = 0; i < 5; ++i) {
    TestClient client(server.port());
    EXPECT_TRUE(client.send("POST / HTTP/1.1\r\ncontent-length: 3000000\r\n\r\n" +
                            std::string(3'000'000, 'x')));
    EXPECT_EQ(client.read_answer().status, 413);
    EXPECT_TRUE(client.closed_silently());
  }
}

TEST(ListenerLimits, LargeChunkedBodyIs413) {
  TestServer server(with(patient()));
  TestClient client(server.port());
  client.send("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n");
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(client.send("10000\r\n" + std::string(0x10000, 'x') + "\r\n"));
  }
  client.send("0\r\n\r\n");
  EXPECT_EQ(client.read_answer().status, 413);
  EXPECT_TRUE(client.closed_silently());
}

TEST(ListenerLimits, LargeBodyIsNotInvited) {
  TestServer server(with(patient()));
  TestClient client(server.port());
  client.send("POST / HTTP/1.1\r\ncontent-length: 3000000\r\nexpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_answer().status, 413);
}

TEST(ListenerLimits, SlowHeadIs408) {
  auto limits = patient();
  limits.request_time_max = kShort;
  TestServer server(with(limits));
  TestClient client(server.port());
  EXPECT_EQ(client.ask("GET /a HTTP/1.1\r\n\r\n").status, 200);
  const auto start = std::chrono::steady_clock::now();
  client.send("GET /slow HT");
  EXPECT_EQ(client.read_answer().status, 408);
  EXPECT_GE(std::chrono::steady_clock::now() - start, kShort);
  EXPECT_TRUE(client.closed_silently());
  EXPECT_EQ(server.stats().requests_timed_out, 1u);
}

TEST(ListenerLimits, SlowBodyIs408EvenWhenBytesKeepComing) {
  auto limits = patient();
  limits.request_time_max = kShort;
  TestServer server(with(limits));
  TestClient client(server.port());
  client.send("POST / HTTP/1.1\r\ncontent-length: 1000000\r\n\r\n");
  while (client.nothing_arrived()) client.send("x");
  EXPECT_EQ(client.read_answer().status, 408);
}

TEST(ListenerLimits, ClientThatNeverSpeaksIsClosedWithoutAnAnswer) {
  auto limits = patient();
  limits.request_time_max = kShort;
  TestServer server(with(limits));
  TestClient client(server.port());
  EXPECT_TRUE(client.closed_silently());
  EXPECT_EQ(server.stats().requests_timed_out, 0u);
}

TEST(ListenerLimits, IdleConnectionIsClosedWithoutAnAnswer) {
  auto limits = patient();
  limits.idle_time_max = kShort;
  TestServer server(with(limits));
  TestClient client(server.port());
  EXPECT_EQ(client.ask("GET /a HTTP/1.1\r\n\r\n").status, 200);
  EXPECT_TRUE(client.closed_silently());
  EXPECT_TRUE(eventually([&] { return server.stats().connections_open == 0; }));
}

TEST(ListenerLimits, LongHandlerIsNotTimedOut) {
  Limits limits = patient();
  limits.request_time_max = limits.idle_time_max = limits.send_time_max = milliseconds(20);
  TestServer server(with(limits));
  TestClient client(server.port());
  client.send("GET /wait HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(server.entered.pass());
  // Another connection goes through the same limits meanwhile, and shows that they have passed.
  EXPECT_TRUE(TestClient(server.port()).closed_silently());
  server.release.open();
  EXPECT_EQ(client.read_answer().body, "waited");
}

TEST(ListenerLimits, ClientThatDoesNotReadIsDropped) {
  auto limits = patient();
  limits.send_time_max = kShort;
  TestServer server(with(limits));
  TestClient client(server.port(), "127.0.0.1", 4096);
  for (int i = 0; i < 10; ++i) client.send("GET /big HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return server.stats().requests > 0; }));
  EXPECT_TRUE(eventually([&] { return server.stats().connections_open == 0; }));
}

TEST(ListenerLimits, ClientThatReadsSlowlyButSteadilyIsServed) {
  auto limits = patient();
  limits.send_time_max = milliseconds(2'000);
  TestServer server(with(limits));
  TestClient client(server.port(), "127.0.0.1", 4096);
  EXPECT_EQ(client.ask("GET /big HTTP/1.1\r\n\r\n").body.size(), 4'000'000u);
}

TEST(ListenerLimits, OneConnectionTooManyIs503) {
  auto limits = patient();
  limits.connections_max = 2;
  TestServer server(with(limits));
  auto first = std::make_unique<TestClient>(server.port());
  TestClient second(server.port());
  EXPECT_EQ(first->ask("GET /a HTTP/1.1\r\n\r\n").status, 200);
  EXPECT_EQ(second.ask("GET /a HTTP/1.1\r\n\r\n").status, 200);
  {
    TestClient third(server.port());
    const auto answer = third.ask("GET /a HTTP/1.1\r\n\r\n");
    EXPECT_EQ(answer.status, 503);
    EXPECT_EQ(answer.headers.at("connection"), "close");
    EXPECT_TRUE(third.closed_silently());
  }
  EXPECT_EQ(server.stats().connections_refused, 1u);
  EXPECT_EQ(second.ask("GET /a HTTP/1.1\r\n\r\n").status, 200);
  first.reset();
  EXPECT_TRUE(eventually([&] { return server.stats().connections_open == 1; }));
  EXPECT_EQ(TestClient(server.port()).ask("GET /a HTTP/1.1\r\n\r\n").status, 200);
}

}  // namespace
}  // namespace orrery::http
