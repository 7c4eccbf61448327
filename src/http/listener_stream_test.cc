// Responses that are made while they are sent, handlers that wait, and clients that leave
// meanwhile.
#include <gtest/gtest.h>

#include <sys/socket.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "http/test_client.h"
#include "http/test_server.h"
#include "http/test_tls_client.h"

namespace orrery::http {
namespace {

using std::chrono::milliseconds;

std::string read_chunks(TestClient& client) {
  std::string all;
  for (auto chunk = client.read_chunk(); !chunk.empty(); chunk = client.read_chunk()) all += chunk;
  return all;
}

/// Everything here holds for http and for https.
class StreamTest : public testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<TestClient> connect() {
    if (GetParam()) return std::make_unique<TlsClient>(server.port());
    return std::make_unique<TestClient>(server.port());
  }
  /// A client that waits for what comes out of /pushed; its head has come.
  std::unique_ptr<TestClient> follow() {
    auto follower = connect();
    follower->send("GET /pushed HTTP/1.1\r\n\r\n");
    const auto head = follower->read_answer();
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.headers.at("transfer-encoding"), "chunked");
    EXPECT_TRUE(eventually([&] { return server.outbox.waiting > 0; }));
    return follower;
  }

  TestServer server{secure()};
  std::unique_ptr<TestClient> client = connect();
};

INSTANTIATE_TEST_SUITE_P(Http, StreamTest, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Https, StreamTest, testing::Values(true));

TEST_P(StreamTest, PiecesOfEverySizeArriveWhole) {
  for (const std::size_t size : {1, 15, 16, 4090, 4096, 5000, 16384, 16390, 300'000, 1'000'000}) {
    client->send(fmt::format("GET /pieces/3/{} HTTP/1.1\r\n\r\n", size));
    const auto answer = client->read_answer();
    EXPECT_EQ(answer.headers.at("transfer-encoding"), "chunked");
    EXPECT_FALSE(answer.headers.contains("content-length"));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(client->read_chunk(), std::string(size, 'p'));
    EXPECT_EQ(client->read_chunk(), "");
  }
  EXPECT_EQ(server.streams_open, 0);
}

TEST_P(StreamTest, TheHeadAndEachPieceLeaveAtOnce) {
  const auto follower = follow();
  for (const char* piece : {"one", "two", "three"}) {
    server.outbox.put(piece);
    EXPECT_EQ(follower->read_chunk(), piece);
  }
  server.outbox.put_end();
  EXPECT_EQ(follower->read_chunk(), "");
}

TEST_P(StreamTest, TheConnectionServesOnAfterAStream) {
  for (int i = 0; i < 3; ++i) {
    client->send("GET /pieces/2/10 HTTP/1.1\r\n\r\nGET /behind HTTP/1.1\r\n\r\n");
    EXPECT_EQ(client->read_answer().status, 200);
    EXPECT_EQ(read_chunks(*client).size(), 20u);
    EXPECT_EQ(client->read_answer().body, "GET /behind ");
  }
  EXPECT_EQ(server.stats().connections_accepted, 1u);
}

TEST_P(StreamTest, AStreamWithoutPiecesIsAnEmptyBody) {
  client->send("GET /pieces/0/0 HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client->read_answer().status, 200);
  EXPECT_EQ(client->read_chunk(), "");
}

TEST_P(StreamTest, AnEmptyPieceIsNotTheEnd) {
  const auto follower = follow();
  server.outbox.put("");
  server.outbox.put("more");
  EXPECT_EQ(follower->read_chunk(), "more");
}

TEST_P(StreamTest, HeadGetsTheHeadersAndNoStream) {
  client->send("HEAD /pieces/2/10 HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client->read_answer(true).headers.at("transfer-encoding"), "chunked");
  EXPECT_EQ(client->ask("GET /a HTTP/1.1\r\n\r\n").body, "GET /a ");
  EXPECT_EQ(server.pieces_made, 0);
  EXPECT_EQ(server.streams_open, 0);
}

TEST_P(StreamTest, BeforeHttp11TheEndOfTheConnectionIsTheEnd) {
  client->send("GET /pieces/3/5000 HTTP/1.0\r\nconnection: keep-alive\r\n\r\n");
  const auto answer = client->read_answer();
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_FALSE(answer.headers.contains("transfer-encoding"));
  EXPECT_EQ(client->read_to_end(), std::string(15'000, 'p'));
}

TEST_P(StreamTest, AStreamThatFailsBreaksOff) {
  const auto follower = follow();
  server.outbox.put("one");
  EXPECT_EQ(follower->read_chunk(), "one");
  server.outbox.put("throw");
  EXPECT_THROW(follower->read_chunk(), std::runtime_error);
  EXPECT_EQ(client->ask("GET /a HTTP/1.1\r\n\r\n").status, 200);
}

TEST_P(StreamTest, AStreamEndsSoonAfterItsClientHasLeft) {
  auto follower = follow();
  follower.reset();
  EXPECT_TRUE(eventually([&] { return server.outbox.left == 1; }));
  EXPECT_TRUE(eventually([&] { return server.streams_open == 0; }));
  EXPECT_TRUE(eventually([&] { return server.stats().connections_open == 1; }));
}

TEST_P(StreamTest, AStreamEndsWhenItsClientIsReset) {
  auto follower = follow();
  const linger hard{1, 0};
  ::setsockopt(follower->fd(), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  follower.reset();
  EXPECT_TRUE(eventually([&] { return server.outbox.left == 1; }));
}

TEST_P(StreamTest, AClientThatSendsItsNextRequestEarlyIsStillNoticedWhenItLeaves) {
  auto follower = follow();
  follower->send("GET /behind HTTP/1.1\r\n\r\n");
  server.outbox.put("one");
  EXPECT_EQ(follower->read_chunk(), "one");
  EXPECT_EQ(server.outbox.left, 0);
  follower.reset();
  EXPECT_TRUE(eventually([&] { return server.outbox.left == 1; }));
}

TEST_P(StreamTest, AClientThatSendsItsNextRequestEarlyGetsBothAnswers) {
  const auto follower = follow();
  follower->send("GET /behind HTTP/1.1\r\n\r\n");
  server.outbox.put("one");
  EXPECT_EQ(follower->read_chunk(), "one");
  server.outbox.put_end();
  EXPECT_EQ(follower->read_chunk(), "");
  EXPECT_EQ(follower->read_answer().body, "GET /behind ");
}

TEST_P(StreamTest, AWaitingHandlerIsToldThatItsClientLeft) {
  auto waiting = connect();
  waiting->send("GET /poll HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return server.outbox.waiting == 1; }));
  waiting.reset();
  EXPECT_TRUE(eventually([&] { return server.outbox.left == 1; }));
}

TEST_P(StreamTest, LongPollsMayFollowOneAnotherOnAConnection) {
  for (int i = 0; i < 5; ++i) {
    client->send("GET /poll HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(eventually([&] { return server.outbox.waiting == 1; }));
    server.outbox.put(std::to_string(i));
    EXPECT_EQ(client->read_answer().body, std::to_string(i));
    EXPECT_EQ(client->ask("GET /a HTTP/1.1\r\n\r\n").body, "GET /a ");
  }
  EXPECT_EQ(server.outbox.left, 0);
}

TEST_P(StreamTest, StoppingEndsStreamsAndLongPollsProperly) {
  const auto follower = follow();
  client->send("GET /poll HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return server.outbox.waiting == 2; }));
  const auto start = std::chrono::steady_clock::now();
  auto stopped =
      std::async(std::launch::async, [&] { server.listener().stop(milliseconds(60'000)); });
  EXPECT_EQ(follower->read_chunk(), "");
  const auto answer = client->read_answer();
  EXPECT_EQ(answer.body, "nothing");
  EXPECT_EQ(answer.headers.at("connection"), "close");
  stopped.get();
  EXPECT_LT(std::chrono::steady_clock::now() - start, TestClient::kPatience);
}

TEST(Stream, AHalfClosedClientIsAnsweredAtOnce) {
  TestServer server;
  TestClient client(server.port());
  client.send("GET /poll HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return server.outbox.waiting == 1; }));
  client.finish_sending();
  EXPECT_EQ(client.read_answer().body, "nothing");
  EXPECT_TRUE(client.closed_silently());
}

TEST(Stream, ASlowReaderHoldsTheStreamBack) {
  TestServer server;
  TestClient client(server.port(), "127.0.0.1", 4096);
  client.send("GET /pieces/1000/100000 HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.read_answer().status, 200);
  ASSERT_TRUE(eventually([&] { return server.pieces_made > 0; }));
  // The kernel's buffers hold a small part of it; then there is back-pressure.
  int made = 0;
  while (made != server.pieces_made) {
    made = server.pieces_made;
    TestClient other(server.port());
    for (int i = 0; i < 50; ++i) EXPECT_EQ(other.ask("GET /a HTTP/1.1\r\n\r\n").status, 200);
  }
  EXPECT_LT(made, 500);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(client.read_chunk().size(), 100'000u);
  EXPECT_EQ(client.read_chunk(), "");
}

TEST(Stream, AClientThatDoesNotReadItsStreamIsDropped) {
  ListenerOptions options;
  options.limits.send_time_max = milliseconds(60);
  TestServer server(options);
  TestClient client(server.port(), "127.0.0.1", 4096);
  client.send("GET /pieces/1000/100000 HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return server.streams_open == 1; }));
  EXPECT_TRUE(eventually([&] { return server.streams_open == 0; }));
  EXPECT_TRUE(eventually([&] { return server.stats().connections_open == 0; }));
}

TEST(Stream, AQuietStreamIsNotTimedOut) {
  ListenerOptions options;
  options.limits.request_time_max = options.limits.idle_time_max = options.limits.send_time_max =
      milliseconds(20);
  TestServer server(options);
  TestClient client(server.port());
  client.send("GET /pushed HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.read_answer().status, 200);
  // Another connection goes through the same limits meanwhile, and shows that they have passed.
  EXPECT_TRUE(TestClient(server.port()).closed_silently());
  server.outbox.put("late");
  EXPECT_EQ(client.read_chunk(), "late");
}

TEST(SharedBody, IsSentByManyWithoutBeingCopied) {
  TestServer server(secure());
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<TestClient>(server.port(), "127.0.0.1", 4096));
    clients.back()->send("GET /shared HTTP/1.1\r\n\r\n");
  }
  // All of them hold the one text, and none has room for all of it.
  EXPECT_TRUE(eventually([&] { return server.shared.use_count() == 5; }));
  for (auto& client : clients) EXPECT_EQ(client->read_answer().body, *server.shared);
  EXPECT_TRUE(eventually([&] { return server.shared.use_count() == 1; }));
  EXPECT_EQ(TlsClient(server.port()).ask("GET /shared HTTP/1.1\r\n\r\n").body, *server.shared);
  TestClient head(server.port());
  head.send("HEAD /shared HTTP/1.1\r\n\r\n");
  EXPECT_EQ(head.read_answer(true).headers.at("content-length"), "16000000");
}

}  // namespace
}  // namespace orrery::http
