// One bound for the memory of all requests and answers, and for the number of connections: which of
// them are evicted or refused when there is not enough.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "http/test_client.h"
#include "http/test_server.h"
#include "http/test_tls_client.h"

namespace orrery::http {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kNotYet{600'000};
constexpr std::size_t kMiB = 1 << 20;
constexpr std::size_t kSharedBytes = 16'000'000;

/// A budget of 4 MiB, and no limit that is reached by accident.
Limits limits_of_4_mib() {
  return {.memory_bytes_max = 4 * kMiB,
          .memory_time_max = milliseconds(50),
          .request_time_max = kNotYet,
          .idle_time_max = kNotYet,
          .send_time_max = kNotYet,
          .send_time_max_when_short = kNotYet};
}

ListenerOptions with_memory(Limits limits) { return {.limits = limits}; }

std::string head_of_post(std::size_t body_bytes, const std::string& more = {}) {
  return fmt::format("POST /a HTTP/1.1\r\ncontent-length: {}\r\n{}\r\n", body_bytes, more);
}

TEST(MemoryBudget, CountsWhatIsHeldAndNothingMore) {
  MemoryBudget budget(1'000);
  {
    MemoryHold first(budget);
    MemoryHold second(budget);
    EXPECT_TRUE(first.try_hold(600, 1'000));
    EXPECT_FALSE(second.try_hold(500, 1'000));
    EXPECT_EQ(second.bytes(), 0u);
    EXPECT_FALSE(second.try_hold(300, 800));
    EXPECT_TRUE(second.try_hold(400, 1'000));
    EXPECT_TRUE(budget.is_short());
    EXPECT_TRUE(first.try_hold(100, 0));
    EXPECT_EQ(budget.used(), 500u);
    second.hold(5'000);
    EXPECT_EQ(budget.used(), 5'100u);
  }
  EXPECT_EQ(budget.used(), 0u);
}

TEST(ListenerMemory, SmallRequestsAndAnswersTakeNothingOfIt) {
  TestServer server(with_memory(limits_of_4_mib()));
  TestClient client(server.port());
  client.send(head_of_post(5'000));
  EXPECT_TRUE(eventually([&] { return server.admissions == 1; }));
  EXPECT_EQ(server.listener().memory().used(), 0u);
  client.send(std::string(5'000, 'x'));
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_EQ(client.ask("GET /bytes/20000 HTTP/1.1\r\n\r\n").status, 200);
  EXPECT_EQ(server.listener().memory().used(), 0u);
}

TEST(ListenerMemory, AnAnnouncedBodyIsHeldFromItsHeadToItsAnswer) {
  TestServer server(with_memory(limits_of_4_mib()));
  TestClient client(server.port());
  client.send(head_of_post(2'000'000));
  EXPECT_TRUE(eventually([&] { return server.listener().memory().used() >= 2'000'000; }));
  client.send(std::string(2'000'000, 'x'));
  EXPECT_EQ(client.read_answer().body.size(), 2'000'008u);
  EXPECT_TRUE(eventually([&] { return server.listener().memory().used() == 0; }));
}

TEST(ListenerMemory, AnIdleConnectionKeepsNothingOfALargeRequest) {
  TestServer server(with_memory(limits_of_4_mib()));
  TestClient client(server.port());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client.ask(head_of_post(1'500'000) + std::string(1'500'000, 'x')).status, 200);
    EXPECT_TRUE(eventually([&] { return server.listener().memory().used() == 0; }));
  }
}

TEST(ListenerMemory, ABodyThatWasAdmittedIsNotRefusedLater) {
  TestServer server(with_memory(limits_of_4_mib()));
  TestClient first(server.port());
  TestClient second(server.port());
  for (auto* client : {&first, &second}) client->send(head_of_post(2'060'000));
  ASSERT_TRUE(eventually([&] { return server.listener().memory().used() >= 4'120'000; }));
  for (auto* client : {&first, &second}) {
    client->send(std::string(2'060'000, 'x'));
    EXPECT_EQ(client->read_answer().status, 200);
  }
  EXPECT_EQ(server.stats().memory_refusals, 0u);
}

TEST(ListenerMemory, ABodyThatDoesNotFitIs429AndIsNotInvited) {
  TestServer server(with_memory(limits_of_4_mib()));
  TestClient first(server.port());
  TestClient second(server.port());
  first.send(head_of_post(2'000'000));
  second.send(head_of_post(2'000'000));
  ASSERT_TRUE(eventually([&] { return server.listener().memory().used() >= 4'000'000; }));
  {
    TestClient third(server.port());
    third.send(head_of_post(2'000'000, "expect: 100-continue\r\n"));
    const auto answer = third.read_answer();
    EXPECT_EQ(answer.status, 429);
    EXPECT_EQ(answer.headers.at("x-retry-after-ms"), "500");
    EXPECT_EQ(answer.headers.at("connection"), "close");
  }
  EXPECT_EQ(server.stats().memory_refusals, 1u);
  // Small requests go on.
  EXPECT_EQ(TestClient(server.port()).ask("GET /a HTTP/1.1\r\n\r\n").status, 200);
  first.send(std::string(2'000'000, 'x'));
  EXPECT_EQ(first.read_answer().status, 200);
}

TEST(ListenerMemory, ABodyThatDoesNotFitWaitsForRoom) {
  auto limits = limits_of_4_mib();
  limits.memory_time_max = kNotYet;
  TestServer server(with_memory(limits));
  auto first = std::make_unique<TestClient>(server.port());
  TestClient second(server.port());
  first->send(head_of_post(2'000'000));
  second.send(head_of_post(2'000'000));
  ASSERT_TRUE(eventually([&] { return server.listener().memory().used() >= 4'000'000; }));
  TestClient third(server.port());
  third.send(head_of_post(2'000'000));
  ASSERT_TRUE(eventually([&] { return server.admissions == 3; }));
  first.reset();
  third.send(std::string(2'000'000, 'x'));
  EXPECT_EQ(third.read_answer().status, 200);
  EXPECT_EQ(server.stats().memory_refusals, 0u);
}

TEST(ListenerMemory, AChunkedBodyIsHeldAsItGrows) {
  TestServer server(with_memory(limits_of_4_mib()));
  TestClient first(server.port());
  first.send(head_of_post(2'000'000));
  TestClient second(server.port());
  second.send("POST /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n");
  const std::string chunk = "10000\r\n" + std::string(0x10000, 'x') + "\r\n";
  for (int i = 0; i < 16; ++i) second.send(chunk);
  EXPECT_TRUE(eventually([&] { return server.listener().memory().used() >= 3'000'000; }));
  second.send("0\r\n\r\n");
  EXPECT_EQ(second.read_answer().status, 200);
  // One that has to grow beyond what is left.
  second.send(head_of_post(1'500'000));
  EXPECT_TRUE(eventually([&] { return server.listener().memory().used() >= 3'500'000; }));
  TestClient third(server.port());
  third.send("POST /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n");
  for (int i = 0; i < 30; ++i) third.send(chunk);
  EXPECT_EQ(third.read_answer().status, 429);
}

TEST(ListenerMemory, HeadsLeaveHalfOfItToThoseWhoAreKnown) {
  TestServer server(with_memory(limits_of_4_mib()));
  std::vector<std::unique_ptr<TestClient>> clients;
  const std::string half_a_head = "GET /a HTTP/1.1\r\nx: " + std::string(100'000, 'x');
  while (server.stats().memory_refusals == 0) {
    clients.push_back(std::make_unique<TestClient>(server.port()));
    clients.back()->send(half_a_head);
    ASSERT_LT(clients.size(), 100u);
    ASSERT_TRUE(eventually([&] {
      return server.listener().memory().used() >= clients.size() * 100'000 ||
             server.stats().memory_refusals > 0;
    }));
  }
  EXPECT_LE(server.listener().memory().used(), 2 * kMiB);
  EXPECT_EQ(clients.back()->read_answer().status, 429);
  TestClient client(server.port());
  EXPECT_EQ(client.ask(head_of_post(1'900'000) + std::string(1'900'000, 'x')).status, 200);
}

TEST(ListenerMemory, AStrangersBodyIsNotRead) {
  TestServer server(with_memory(limits_of_4_mib()));
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<TestClient>(server.port()));
    EXPECT_TRUE(clients.back()->send(head_of_post(2'000'000, "x-stranger: yes\r\n") +
                                     std::string(1'990'000, 'x')));
  }
  for (const auto& client : clients) {
    const auto answer = client->read_answer();
    EXPECT_EQ(answer.status, 401);
    EXPECT_EQ(answer.headers.at("connection"), "close");
  }
  EXPECT_EQ(server.listener().memory().used(), 0u);
  EXPECT_EQ(server.stats().requests, 0u);
}

TEST(ListenerMemory, AStrangerIsRefusedBeforeItsBodyIsInvited) {
  TestServer server(with_memory(limits_of_4_mib()));
  TestClient client(server.port());
  client.send(head_of_post(100, "x-stranger: yes\r\nexpect: 100-continue\r\n"));
  EXPECT_EQ(client.read_answer().status, 401);
}

TEST(ListenerMemory, UnreadAnswersCountAndOthersHearOfIt) {
  TestServer server(with_memory(limits_of_4_mib()));
  TestClient unread(server.port(), "127.0.0.1", 4096);
  unread.send("GET /bytes/3900000 HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return server.listener().memory().used() >= 3'900'000; }));
  TestClient second(server.port());
  const auto refused = second.ask("GET /bytes/3900000 HTTP/1.1\r\n\r\n");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.at("x-retry-after-ms"), "500");
  // The connection is as good as before.
  EXPECT_EQ(second.ask("GET /a HTTP/1.1\r\n\r\n").status, 200);
  // An answer that tells what was written is sent however little is left.
  EXPECT_EQ(second.ask("POST /bytes/3900000 HTTP/1.1\r\ncontent-length: 0\r\n\r\n").status, 200);
  EXPECT_EQ(unread.read_answer().body.size(), 3'900'000u);
  EXPECT_TRUE(eventually([&] { return server.listener().memory().used() == 0; }));
}

TEST(ListenerMemory, AnAnswerCountsFromWhenItWasReadWhereverThatIs) {
  TestServer server(with_memory(limits_of_4_mib()));
  TestClient first(server.port());
  first.send("GET /read/3900000 HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(server.entered.pass());
  // Its event loop has not heard of it yet.
  EXPECT_EQ(server.listener().memory().used(), 3'900'000u);
  TestClient second(server.port());
  EXPECT_EQ(second.ask("GET /read/3900000 HTTP/1.1\r\n\r\n").status, 429);
  EXPECT_EQ(server.stats().memory_refusals, 1u);
  EXPECT_EQ(server.listener().memory().used(), 3'900'000u);
  server.release.open();
  EXPECT_EQ(first.read_answer().body.size(), 3'900'000u);
  EXPECT_TRUE(eventually([&] { return server.listener().memory().used() == 0; }));
  EXPECT_EQ(second.ask("GET /read/3900000 HTTP/1.1\r\n\r\n").status, 200);
}

TEST(ListenerMemory, ReadersThatDoNotReadAreDroppedWhenItIsShort) {
  auto limits = limits_of_4_mib();
  limits.send_time_max_when_short = milliseconds(50);
  TestServer server(with_memory(limits));
  // A receive buffer this small leaves most of an answer with the server.
  TestClient unread(server.port(), "127.0.0.1", 4096);
  unread.send("GET /bytes/3900000 HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return server.stats().slow_readers_dropped == 1; }));
  EXPECT_TRUE(eventually([&] { return server.listener().memory().used() == 0; }));
  EXPECT_EQ(TestClient(server.port()).ask("GET /bytes/3900000 HTTP/1.1\r\n\r\n").status, 200);
}

TEST(ListenerMemory, APieceOfAStreamThatIsNotReadCounts) {
  TestServer server(with_memory(limits_of_4_mib()));
  TestClient client(server.port(), "127.0.0.1", 4096);
  client.send("GET /pieces/3/3900000 HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return server.listener().memory().used() >= 3'900'000; }));
  EXPECT_EQ(client.read_answer().status, 200);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.read_chunk().size(), 3'900'000u);
  EXPECT_TRUE(client.read_chunk().empty());
  EXPECT_TRUE(eventually([&] { return server.listener().memory().used() == 0; }));
}

TEST(ListenerMemory, ATextThatManySendIsCountedByItsShare) {
  auto limits = limits_of_4_mib();
  limits.memory_bytes_max = 3 * kSharedBytes;
  TestServer server(with_memory(limits));
  std::vector<std::unique_ptr<TestClient>> clients;
  for (std::size_t i = 0; i < 12; ++i) {
    clients.push_back(std::make_unique<TestClient>(server.port(), "127.0.0.1", 4096));
    clients.back()->send("GET /shared HTTP/1.1\r\n\r\n");
  }
  for (const auto& client : clients) {
    EXPECT_EQ(client->read_answer().body.size(), kSharedBytes);
  }
  EXPECT_EQ(server.stats().memory_refusals, 0u);
}

TEST(ListenerMemory, WhatTlsHoldsOfAnAnswerCounts) {
  TestServer server(secure(/*legacy=*/false, limits_of_4_mib()));
  TlsClient client(server.port());
  // More than the sockets take.
  for (int i = 0; i < 5; ++i) client.send("GET /bytes/3900000 HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return server.listener().memory().used() > 3'950'000; }));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(client.read_answer().body.size(), 3'900'000u);
  EXPECT_TRUE(eventually([&] { return server.listener().memory().used() == 0; }));
}

// ── Connections ──

TEST(ListenerRoom, IdleStrangersMakeRoomForOthers) {
  auto limits = limits_of_4_mib();
  limits.connections_max = 16;
  TestServer server(with_memory(limits));
  TestClient known(server.port());
  EXPECT_EQ(known.ask("GET /a HTTP/1.1\r\n\r\n").status, 200);
  std::vector<std::unique_ptr<TestClient>> strangers;
  for (int i = 0; i < 100; ++i) {
    strangers.push_back(std::make_unique<TestClient>(server.port()));
    // Each is there before the next comes, so that none is refused for being too fast.
    ASSERT_TRUE(eventually([&] {
      return server.stats().connections_accepted == strangers.size() + 1 &&
             server.stats().connections_open <= 14;
    }));
  }
  EXPECT_EQ(server.stats().connections_refused, 0u);
  EXPECT_GE(server.stats().strangers_closed, 86u);
  EXPECT_TRUE(strangers.front()->closed_silently());
  EXPECT_EQ(strangers.back()->ask("GET /a HTTP/1.1\r\n\r\n").status, 200);
  EXPECT_EQ(known.ask("GET /a HTTP/1.1\r\n\r\n").status, 200);
}

TEST(ListenerRoom, WhoIsKnownIsNotClosedForOthers) {
  auto limits = limits_of_4_mib();
  limits.connections_max = 8;
  TestServer server(with_memory(limits));
  std::vector<std::unique_ptr<TestClient>> known;
  for (int i = 0; i < 8; ++i) {
    known.push_back(std::make_unique<TestClient>(server.port()));
    EXPECT_EQ(known.back()->ask("GET /a HTTP/1.1\r\n\r\n").status, 200);
  }
  EXPECT_EQ(TestClient(server.port()).ask("GET /a HTTP/1.1\r\n\r\n").status, 503);
  for (const auto& client : known) {
    EXPECT_EQ(client->ask("GET /a HTTP/1.1\r\n\r\n").status, 200);
  }
  EXPECT_EQ(server.stats().strangers_closed, 0u);
}

}  // namespace
}  // namespace orrery::http
