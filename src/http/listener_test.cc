// A listener as clients see it: requests, responses, connections, start and stop.
#include "http/listener.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>

#include "http/test_client.h"
#include "http/test_server.h"

namespace orrery::http {
namespace {

using std::chrono::milliseconds;

TEST(Response, DropsWhatWouldEndAHeader) {
  Response response;
  response.add("a", std::string_view("b\r\nc: d\n\0e", 10));
  response.add("n", 18446744073709551615u);
  response.add("empty", "");
  EXPECT_EQ(response.header_lines(), "a: bc: de\r\nn: 18446744073709551615\r\nempty: \r\n");
}

class ListenerTest : public testing::Test {
 protected:
  TestServer server;
  TestClient client{server.port()};
};

TEST_F(ListenerTest, AnswersOneRequestAfterTheOther) {
  for (int i = 0; i < 3; ++i) {
    const auto answer = client.ask("GET /a HTTP/1.1\r\nX-See: me\r\n\r\n");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "GET /a ");
    EXPECT_EQ(answer.headers.at("x-seen"), "me");
    EXPECT_EQ(answer.headers.at("x-secure"), "no");
    EXPECT_EQ(answer.headers.at("x-loopback"), "yes");
    EXPECT_TRUE(answer.headers.at("date").ends_with(" GMT"));
    EXPECT_FALSE(answer.headers.contains("connection"));
  }
  EXPECT_EQ(server.stats().requests, 3u);
  EXPECT_EQ(server.stats().connections_accepted, 1u);
}

TEST_F(ListenerTest, TakesARequestByteByByte) {
  const std::string request = "POST /b HTTP/1.1\r\ncontent-length: 4\r\n\r\nbody";
  for (const char c : request) client.send(std::string_view(&c, 1));
  EXPECT_EQ(client.read_answer().body, "POST /b body");
}

TEST_F(ListenerTest, AnswersPipelinedRequestsInOrder) {
  client.send(
      "GET /1 HTTP/1.1\r\n\r\nPOST /2 HTTP/1.1\r\ncontent-length: 1\r\n\r\nxGET /3 "
      "HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.read_answer().body, "GET /1 ");
  EXPECT_EQ(client.read_answer().body, "POST /2 x");
  EXPECT_EQ(client.read_answer().body, "GET /3 ");
}

TEST_F(ListenerTest, TakesAChunkedBody) {
  const auto answer = client.ask(
      "POST /c HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_EQ(answer.body, "POST /c abcde");
  EXPECT_EQ(client.ask("GET /d HTTP/1.1\r\n\r\n").body, "GET /d ");
}

TEST_F(ListenerTest, TakesALargeBody) {
  const std::string body(1'500'000, 'x');
  const auto answer = client.ask("POST /l HTTP/1.1\r\ncontent-length: 1500000\r\n\r\n" + body);
  EXPECT_TRUE(answer.body == "POST /l " + body);
  EXPECT_EQ(client.ask("GET /d HTTP/1.1\r\n\r\n").body, "GET /d ");
}

TEST_F(ListenerTest, SendsALargeBody) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(client.ask("GET /big HTTP/1.1\r\n\r\n").body == std::string(4'000'000, 'b'));
  }
}

TEST_F(ListenerTest, InvitesAClientThatAsksBeforeItSends) {
  client.send("POST /e HTTP/1.1\r\ncontent-length: 4\r\nexpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_answer().status, 100);
  const auto answer = client.ask("body");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "POST /e body");
}

TEST_F(ListenerTest, DoesNotInviteABodyThatIsThereAlready) {
  const auto answer =
      client.ask("POST /e HTTP/1.1\r\ncontent-length: 4\r\nexpect: 100-continue\r\n\r\nbody");
  EXPECT_EQ(answer.status, 200);
}

TEST_F(ListenerTest, ClosesWhenTheClientSaysSo) {
  const auto answer = client.ask("GET /a HTTP/1.1\r\nconnection: close\r\n\r\n");
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_TRUE(client.closed_silently());
}

TEST_F(ListenerTest, ClosesWhenTheHandlerSaysSo) {
  EXPECT_EQ(client.ask("GET /close HTTP/1.1\r\n\r\n").headers.at("connection"), "close");
  EXPECT_TRUE(client.closed_silently());
}

TEST_F(ListenerTest, ClosesAfterHttp10UnlessItWantsToStay) {
  auto answer = client.ask("GET /a HTTP/1.0\r\nconnection: keep-alive\r\n\r\n");
  EXPECT_EQ(answer.headers.at("connection"), "keep-alive");
  answer = client.ask("GET /a HTTP/1.0\r\n\r\n");
  EXPECT_EQ(answer.headers.at("connection"), "close");
  EXPECT_TRUE(client.closed_silently());
}

TEST_F(ListenerTest, AnswersAClientThatHasFinishedSending) {
  client.send("GET /a HTTP/1.1\r\n\r\n");
  client.finish_sending();
  EXPECT_EQ(client.read_answer().body, "GET /a ");
  EXPECT_TRUE(client.closed_silently());
}

TEST_F(ListenerTest, FramesResponsesWithoutBody) {
  for (const char* status : {"204", "304"}) {
    const auto answer = client.ask("GET /status/" + std::string(status) + " HTTP/1.1\r\n\r\n");
    EXPECT_EQ(answer.status, std::stoi(status));
    EXPECT_FALSE(answer.headers.contains("content-length"));
    EXPECT_EQ(client.ask("GET /next HTTP/1.1\r\n\r\n").body, "GET /next ");
  }
}

TEST_F(ListenerTest, AnswersHeadWithTheLengthOnly) {
  client.send("HEAD /a HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.read_answer(true).headers.at("content-length"), "8");
  EXPECT_EQ(client.ask("GET /next HTTP/1.1\r\n\r\n").body, "GET /next ");
}

TEST_F(ListenerTest, KnowsNoReasonForEveryStatus) {
  EXPECT_EQ(client.ask("GET /status/299 HTTP/1.1\r\n\r\n").status, 299);
  EXPECT_TRUE(client.ask("GET /status/449 HTTP/1.1\r\n\r\n")
                  .head.starts_with("HTTP/1.1 449 Retry With\r\n"));
}

TEST_F(ListenerTest, LetsNoHeaderSplitTheResponse) {
  const auto answer = client.ask("GET /split HTTP/1.1\r\n\r\n");
  EXPECT_EQ(answer.headers.at("x-first"), "ax-second: b<html>");
  EXPECT_FALSE(answer.headers.contains("x-second"));
}

TEST_F(ListenerTest, AnswersWhenTheHandlerThrows) {
  EXPECT_EQ(client.ask("GET /throw HTTP/1.1\r\n\r\n").status, 500);
  EXPECT_EQ(client.ask("GET /a HTTP/1.1\r\n\r\n").status, 200);
}

TEST_F(ListenerTest, WaitsForAHandlerThatWorksElsewhere) {
  server.release.open();
  EXPECT_EQ(client.ask("GET /wait HTTP/1.1\r\n\r\n").body, "waited");
}

TEST_F(ListenerTest, BringsAHandlerHomeThatCameBackOnAnotherThread) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(client.ask("GET /stray HTTP/1.1\r\n\r\n").body, "strayed");
  }
}

TEST_F(ListenerTest, ForgetsAClientThatLeaves) {
  {
    TestClient leaving(server.port());
    leaving.send("GET /half");
    EXPECT_TRUE(eventually([&] { return server.stats().connections_open == 2; }));
  }
  EXPECT_TRUE(eventually([&] { return server.stats().connections_open == 1; }));
}

TEST_F(ListenerTest, SurvivesAClientThatLeavesDuringItsRequest) {
  {
    TestClient leaving(server.port());
    leaving.send("GET /wait HTTP/1.1\r\n\r\n");
    ASSERT_TRUE(server.entered.pass());
  }
  server.release.open();
  EXPECT_TRUE(eventually([&] { return server.stats().connections_open <= 1; }));
  EXPECT_EQ(client.ask("GET /a HTTP/1.1\r\n\r\n").status, 200);
}

TEST(Listener, SpreadsManyClientsOverItsThreads) {
  TestServer server({.threads = 3});
  std::vector<std::future<int>> clients;
  for (int i = 0; i < 12; ++i) {
    clients.push_back(std::async(std::launch::async, [&] {
      TestClient client(server.port());
      int answered = 0;
      for (int j = 0; j < 200; ++j) {
        answered += client.ask("GET /a HTTP/1.1\r\n\r\n").body == "GET /a ";
      }
      return answered;
    }));
  }
  for (auto& client : clients) EXPECT_EQ(client.get(), 200);
  EXPECT_EQ(server.stats().requests, 2400u);
}

TEST(Listener, ListensOnEveryKindOfAddress) {
  for (const char* address : {"0.0.0.0", "::1", "::", "localhost"}) {
    SCOPED_TRACE(address);
    std::unique_ptr<TestServer> server;
    try {
      server = std::make_unique<TestServer>(ListenerOptions{.address = address});
    } catch (const std::exception& exception) {
      if (std::string(address).find(':') == std::string::npos) FAIL() << exception.what();
      continue;  // a machine without IPv6
    }
    const bool v6_only = std::string(address) == "::1";
    TestClient client(server->port(), v6_only ? "::1" : "127.0.0.1");
    const auto answer = client.ask("GET /a HTTP/1.1\r\n\r\n");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.headers.at("x-loopback"), "yes");
  }
}

Result<std::unique_ptr<Listener>> open_with(ListenerOptions options) {
  return Listener::open(
      std::move(options), [](Request&) -> asio::awaitable<Response> { co_return Response(); },
      TestServer::refusal);
}

TEST(Listener, SaysWhyItCannotListen) {
  TestServer server;
  const auto second = open_with({.port = server.port()});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::Unavailable);
  EXPECT_EQ(second.error().message(),
            fmt::format("cannot listen on 127.0.0.1:{}: Address already in use. Is another server "
                        "running? Choose another with --listen",
                        server.port()));
  const auto nowhere = open_with({.address = "no.such.host.invalid"});
  ASSERT_FALSE(nowhere);
  EXPECT_TRUE(
      nowhere.error().message().starts_with("cannot listen on no.such.host.invalid:8081: "));
}

TEST(Listener, MayBeClosedWithoutHavingStarted) {
  const auto listener = open_with({.port = 0});
  ASSERT_TRUE(listener);
  EXPECT_NE((*listener)->port(), 0);
}

TEST(ListenerStop, ClosesIdleConnectionsAtOnce) {
  TestServer server;
  TestClient fresh(server.port());
  TestClient idle(server.port());
  EXPECT_EQ(idle.ask("GET /a HTTP/1.1\r\n\r\n").status, 200);
  EXPECT_TRUE(eventually([&] { return server.stats().connections_open == 2; }));
  const auto start = std::chrono::steady_clock::now();
  server.listener().stop(milliseconds(60'000));
  EXPECT_LT(std::chrono::steady_clock::now() - start, TestClient::kPatience);
  EXPECT_TRUE(fresh.closed_silently());
  EXPECT_TRUE(idle.closed_silently());
  EXPECT_THROW(TestClient(server.port()), std::runtime_error);
  server.listener().stop(milliseconds(0));
}

TEST(ListenerStop, LetsRunningRequestsFinish) {
  TestServer server;
  TestClient client(server.port());
  client.send("GET /wait HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(server.entered.pass());
  auto stopped =
      std::async(std::launch::async, [&] { server.listener().stop(milliseconds(60'000)); });
  server.release.open();
  const auto answer = client.read_answer();
  EXPECT_EQ(answer.body, "waited");
  stopped.get();
  EXPECT_TRUE(client.closed_silently());
}

TEST(ListenerStop, TellsTheClientThatItCloses) {
  TestServer server;
  TestClient bystander(server.port());
  TestClient client(server.port());
  client.send("GET /wait HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(server.entered.pass());
  ASSERT_TRUE(eventually([&] { return server.stats().connections_open == 2; }));
  auto stopped =
      std::async(std::launch::async, [&] { server.listener().stop(milliseconds(60'000)); });
  // The bystander is idle: that it is closed shows that stopping has begun.
  EXPECT_TRUE(bystander.closed_silently());
  server.release.open();
  EXPECT_EQ(client.read_answer().headers.at("connection"), "close");
  stopped.get();
}

TEST(ListenerStop, CutsOffRequestsWhenTheGraceIsOver) {
  TestServer server;
  TestClient client(server.port());
  client.send("GET /wait HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(server.entered.pass());
  auto stopped = std::async(std::launch::async, [&] { server.listener().stop(milliseconds(10)); });
  EXPECT_TRUE(client.closed_silently());
  server.release.open();
  stopped.get();
}

TEST(ListenerStop, DoesNotWaitForeverForAHandler) {
  TestServer server;
  TestClient client(server.port());
  client.send("GET /wait HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(server.entered.pass());
  server.listener().stop(milliseconds(0));
  EXPECT_TRUE(client.closed_silently());
  server.release.open();  // comes back to a loop that has ended, which must do no harm
}

}  // namespace
}  // namespace orrery::http
