#include "client/transport/async_transport.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
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

Outgoing request_to(const std::string& url, bool waits = false, std::string_view body = {}) {
  Outgoing request;
  request.endpoint = *Endpoint::parse(url);
  request.head =
      "POST /x HTTP/1.1\r\nhost: test\r\ncontent-length: " + std::to_string(body.size()) +
      "\r\n\r\n";
  request.body = body;
  request.waits = waits;
  return request;
}

/// Outcomes as they come.
class Outcomes {
 public:
  AsyncTransport::Done taker() {
    return [this](Outcome outcome) {
      const std::lock_guard lock(mutex_);
      outcomes_.push_back(std::move(outcome));
      changed_.notify_all();
    };
  }
  std::vector<Outcome> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(
        changed_.wait_for(lock, test::kPatience, [&] { return outcomes_.size() >= count; }));
    return outcomes_;
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return outcomes_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Outcome> outcomes_;
};

class AsyncTransportTest : public ::testing::Test {
 protected:
  void send(const Outgoing& request, std::chrono::milliseconds time = test::kPatience) {
    transport.post([this, &request, time] {
      last_ticket = transport.send(request, steady_clock::now() + time, outcomes.taker());
    });
  }

  Outcomes outcomes;
  std::atomic<AsyncTransport::Ticket> last_ticket{0};
  AsyncTransport transport{{}, 4};
};

TEST_F(AsyncTransportTest, ConnectionIsUsedAgain) {
  TestHttpServer server(
      [](const SeenRequest& request) { return http_response(200, request.body); });
  const Outgoing request = request_to(server.url(), false, "hello");
  for (std::size_t i = 1; i <= 5; ++i) {
    send(request);
    EXPECT_EQ(outcomes.wait_for(i).back().reply.body, "hello");
  }
  EXPECT_EQ(server.accepted(), 1);
}

TEST_F(AsyncTransportTest, ConnectionThatWasClosedWhileIdleIsReplacedUnseen) {
  TestHttpServer server([](const SeenRequest&) { return http_response(200, "ok"); });
  const Outgoing request = request_to(server.url());
  send(request);
  outcomes.wait_for(1);
  server.close_connections();
  ASSERT_TRUE(test::eventually([&] { return server.ended() == 1; }));
  send(request);
  EXPECT_EQ(outcomes.wait_for(2).back().reply.body, "ok");
  EXPECT_EQ(server.request_count(), 2u);
}

TEST_F(AsyncTransportTest, SaysWhyThereIsNoAnswer) {
  std::string nowhere;
  {
    TestHttpServer server([](const SeenRequest&) { return std::string(); });
    nowhere = server.url();
  }
  const Outgoing lost_request = request_to(nowhere);
  send(lost_request);
  Outcome outcome = outcomes.wait_for(1).back();
  EXPECT_EQ(outcome.no_answer, NoAnswer::Unreachable);
  EXPECT_FALSE(outcome.sent);
  EXPECT_THAT(outcome.words, HasSubstr("no connection to " + nowhere));

  TestHttpServer server([](const SeenRequest&) { return std::string(); });
  const Outgoing request = request_to(server.url());
  send(request);
  outcome = outcomes.wait_for(2).back();
  EXPECT_EQ(outcome.no_answer, NoAnswer::Broken);
  EXPECT_TRUE(outcome.sent);
  EXPECT_FALSE(outcome.broke_idle);
}

TEST_F(AsyncTransportTest, LargeBodiesGoBothWays) {
  TestHttpServer server(
      [](const SeenRequest& request) { return http_response(200, request.body + request.body); });
  const std::string body(8 << 20, 'b');
  const Outgoing request = request_to(server.url(), false, body);
  send(request);
  EXPECT_EQ(outcomes.wait_for(1).back().reply.body.size(), body.size() * 2);
}

TEST_F(AsyncTransportTest, AnswerThatTakesTooLongIsGivenUp) {
  test::Gate gate;
  TestHttpServer server([&](const SeenRequest&) {
    gate.pass();
    return http_response(200);
  });
  const Outgoing request = request_to(server.url());
  send(request, 30ms);
  const Outcome outcome = outcomes.wait_for(1).back();
  EXPECT_EQ(outcome.no_answer, NoAnswer::TimedOut);
  EXPECT_TRUE(outcome.sent);
  gate.open();
}

TEST_F(AsyncTransportTest, CancellationEndsARequestAndAWait) {
  test::Gate gate;
  TestHttpServer server([&](const SeenRequest&) {
    gate.pass();
    return http_response(200);
  });
  const Outgoing request = request_to(server.url());
  send(request);
  ASSERT_TRUE(test::eventually([&] { return server.request_count() == 1; }));
  transport.post([&] { transport.cancel(last_ticket); });
  EXPECT_EQ(outcomes.wait_for(1).back().no_answer, NoAnswer::Cancelled);
  EXPECT_TRUE(test::eventually([&] {
    gate.open();
    return server.ended() == 1;
  })) << "the connection is closed, since the answer may still come over it";

  std::atomic<int> elapsed{0};
  transport.post([&] {
    const auto ticket = transport.wait_until(steady_clock::now() + 1h,
                                             [&](bool cancelled) { elapsed = cancelled ? 1 : 2; });
    transport.cancel(ticket);
    transport.cancel(ticket);
  });
  EXPECT_TRUE(test::eventually([&] { return elapsed == 1; }));
}

TEST_F(AsyncTransportTest, TimersElapseInOrder) {
  std::mutex mutex;
  std::vector<int> order;
  const auto note = [&](int which) {
    return [&, which](bool cancelled) {
      const std::lock_guard lock(mutex);
      if (!cancelled) order.push_back(which);
    };
  };
  transport.post([&] {
    const auto now = steady_clock::now();
    transport.wait_until(now + 20ms, note(2));
    transport.wait_until(now + 10ms, note(1));
    transport.wait_until(now, note(0));
  });
  ASSERT_TRUE(test::eventually([&] {
    const std::lock_guard lock(mutex);
    return order.size() == 3;
  }));
  EXPECT_THAT(order, ::testing::ElementsAre(0, 1, 2));
}

TEST_F(AsyncTransportTest, BusyRequestsAreBoundedButLongPollsAreNot) {
  test::Gate gate;
  TestHttpServer server([&](const SeenRequest&) {
    gate.pass();
    return http_response(200);
  });
  const Outgoing busy = request_to(server.url());
  const Outgoing poll = request_to(server.url(), /*waits=*/true);
  for (int i = 0; i < 6; ++i) send(poll);
  for (int i = 0; i < 6; ++i) send(busy);
  EXPECT_TRUE(test::eventually([&] { return server.request_count() == 10; }));
  // Whatever was begun is with the server by now: the wake comes back after it.
  std::atomic<bool> turned{false};
  transport.post([&] { turned = true; });
  EXPECT_TRUE(test::eventually([&] { return turned.load(); }));
  EXPECT_EQ(server.request_count(), 10u);
  gate.open();
  outcomes.wait_for(12);
  EXPECT_EQ(server.request_count(), 12u);
}

TEST_F(AsyncTransportTest, ThousandLongPollsAtOnce) {
  constexpr std::size_t kCount = 1000;
  test::Gate gate;
  TestHttpServer server([&](const SeenRequest& request) {
    gate.pass();
    return http_response(200, request.body);
  });
  const Outgoing poll = request_to(server.url(), /*waits=*/true, "news");
  for (std::size_t i = 0; i < kCount; ++i) send(poll);
  ASSERT_TRUE(test::eventually([&] { return server.request_count() == kCount; }));
  EXPECT_EQ(outcomes.size(), 0u);
  gate.open();
  for (const Outcome& outcome : outcomes.wait_for(kCount)) {
    EXPECT_EQ(outcome.no_answer, NoAnswer::None) << outcome.words;
    EXPECT_EQ(outcome.reply.body, "news");
  }
  // The next round needs no new connections.
  for (std::size_t i = 0; i < kCount; ++i) send(poll);
  outcomes.wait_for(2 * kCount);
  EXPECT_EQ(server.accepted(), static_cast<int>(kCount));
}

TEST_F(AsyncTransportTest, ShutdownEndsEverything) {
  test::Gate gate;
  TestHttpServer server([&](const SeenRequest&) {
    gate.pass();
    return http_response(200);
  });
  const Outgoing request = request_to(server.url());
  std::atomic<int> elapsed{0};
  for (int i = 0; i < 6; ++i) send(request);
  transport.post([&] {
    transport.wait_until(steady_clock::now() + 1h, [&](bool cancelled) { elapsed = cancelled; });
  });
  ASSERT_TRUE(test::eventually([&] { return server.request_count() == 4; }));
  transport.shutdown();
  EXPECT_EQ(outcomes.size(), 6u);
  EXPECT_EQ(elapsed, 1);
  EXPECT_FALSE(transport.post([] {}));
  gate.open();
}

TEST(AsyncTransport, MayBeDroppedByItsOwnCallback) {
  auto transport = std::make_shared<AsyncTransport>(LinkOptions{}, 4);
  std::atomic<bool> waited{false};
  AsyncTransport& reference = *transport;
  reference.post([&waited, keep = transport]() mutable {
    keep->wait_until(steady_clock::now() + 1h, [&](bool) { waited = true; });
    const auto last = std::move(keep);
    last->shutdown(last);
  });
  transport.reset();
  EXPECT_TRUE(test::eventually([&] { return waited.load(); }));
}

}  // namespace
}  // namespace orrery::client
