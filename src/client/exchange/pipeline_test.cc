#include "client/exchange/pipeline.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/transport/test_http_server.h"
#include "protocol/auth/well_known_key.h"

namespace orrery::client {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::account_of;
using test::http_response;
using test::SeenRequest;
using test::TestHttpServer;
using ::testing::HasSubstr;

const std::string kStars = "dbs/sky/colls/stars";

/// Both ways of sending, as one.
class PipelineTest : public ::testing::TestWithParam<bool> {
 protected:
  Answer send(const Call& call, const RequestOptions& options = {}) {
    if (!GetParam()) return pipeline->send(call, options);
    // Shared, since the waiting thread may leave first. The failure is moved all the way, so that
    // one thread at a time has it: its reference count is invisible to the thread sanitizer.
    struct Slot {
      std::mutex mutex;
      std::condition_variable changed;
      bool told = false;
      Answer answer;
      std::exception_ptr failure;
    };
    const auto slot = std::make_shared<Slot>();
    pipeline->send_async(call, options, [slot](Answer answer, std::exception_ptr failure) {
      const std::lock_guard lock(slot->mutex);
      slot->answer = std::move(answer);
      slot->failure = std::move(failure);
      slot->told = true;
      slot->changed.notify_all();
    });
    std::unique_lock lock(slot->mutex);
    if (!slot->changed.wait_for(lock, test::kPatience, [&] { return slot->told; })) {
      throw std::runtime_error("no outcome");
    }
    if (slot->failure) std::rethrow_exception(std::move(slot->failure));
    return std::move(slot->answer);
  }
  CosmosException failure_of_send(const Call& call, const RequestOptions& options = {}) {
    try {
      send(call, options);
    } catch (const CosmosException& failure) {
      return failure;
    }
    ADD_FAILURE() << "it did not fail";
    return CosmosException("", {});
  }
  void make(const std::string& url) {
    pipeline = Pipeline::make(url, Credential::key(std::string(kWellKnownKey)), client_options);
  }

  const Call read{.type = "docs", .link = kStars + "/docs/deneb", .container = kStars};
  const Call create{.method = "POST",
                    .type = "docs",
                    .link = kStars,
                    .list = true,
                    .body = R"({"id":"deneb"})",
                    .writes = true,
                    .repeatable = false,
                    .container = kStars};
  ClientOptions client_options;
  std::shared_ptr<Pipeline> pipeline;
};

INSTANTIATE_TEST_SUITE_P(BlockingAndAsync, PipelineTest, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "Async" : "Blocking"; });

TEST_P(PipelineTest, AccountIsAskedOnceAndThenObeyed) {
  TestHttpServer region(
      [](const SeenRequest&) { return http_response(200, "{}", {{"etag", "\"1\""}}); });
  TestHttpServer given(
      [&](const SeenRequest&) { return http_response(200, account_of(region.url())); });
  make(given.url());
  EXPECT_EQ(given.accepted(), 0) << "making one sends nothing";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(send(read).etag, "\"1\"");
  ASSERT_EQ(given.request_count(), 1u);
  EXPECT_EQ(given.requests()[0].target, "/");
  EXPECT_EQ(region.request_count(), 3u);
}

TEST_P(PipelineTest, ManyCallsAskTheAccountOnce) {
  test::Gate gate;
  TestHttpServer server([&](const SeenRequest& request) {
    if (request.target != "/") return http_response(200, "{}");
    gate.pass();
    return http_response(200, account_of("http://" + request.header("host")));
  });
  make(server.url());
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(send(read).status, 200); });
  }
  EXPECT_TRUE(test::eventually([&] { return server.request_count() == 1; }));
  gate.open();
  for (auto& each : threads) each.join();
  EXPECT_EQ(server.request_count(), 9u);
}

TEST_P(PipelineTest, EndpointThatCannotBeReachedGivesWayToTheGivenOne) {
  std::string nowhere;
  {
    TestHttpServer gone([](const SeenRequest&) { return std::string(); });
    nowhere = gone.url();
  }
  TestHttpServer given([&](const SeenRequest& request) {
    return http_response(200, request.target == "/" ? account_of(nowhere) : "{}");
  });
  make(given.url());
  const Answer first = send(create);
  EXPECT_EQ(first.status, 200);
  ASSERT_EQ(first.diagnostics.attempts.size(), 2u);
  EXPECT_EQ(first.diagnostics.attempts[0].endpoint, nowhere);
  EXPECT_EQ(send(create).diagnostics.attempts.size(), 1u) << "remembered";
}

TEST_P(PipelineTest, AccountThatCannotBeReadDoesNotStandInTheWay) {
  TestHttpServer server([](const SeenRequest& request) {
    return request.target == "/" ? http_response(500, "{}") : http_response(200, "{}");
  });
  make(server.url());
  EXPECT_EQ(send(read).status, 200);
}

TEST_P(PipelineTest, WithoutDiscoveryOnlyTheGivenEndpointIsAsked) {
  client_options.discover_endpoints = false;
  TestHttpServer server([](const SeenRequest&) { return http_response(200, "{}"); });
  make(server.url());
  send(read);
  ASSERT_EQ(server.request_count(), 1u);
  EXPECT_EQ(server.requests()[0].target, "/dbs/sky/colls/stars/docs/deneb");
}

TEST_P(PipelineTest, WriteForbiddenMovesToTheRegionThatTakesWritesNow) {
  TestHttpServer east([](const SeenRequest&) { return http_response(201, "{}"); });
  std::atomic<bool> moved{false};
  std::string west_url;
  TestHttpServer west([&](const SeenRequest& request) {
    if (request.target == "/") {
      return http_response(200, account_of(moved ? east.url() : west_url));
    }
    moved = true;
    return http_response(403, "{}", {{"x-ms-substatus", "3"}});
  });
  west_url = west.url();
  make(west.url());
  EXPECT_EQ(send(create).status, 201);
  EXPECT_EQ(east.request_count(), 1u);
}

TEST_P(PipelineTest, ThrottledIsSentAgain) {
  client_options.discover_endpoints = false;
  std::atomic<int> count{0};
  TestHttpServer server([&](const SeenRequest&) {
    return ++count < 3 ? http_response(429, "{}", {{"x-ms-retry-after-ms", "5"}})
                       : http_response(200, "{}");
  });
  make(server.url());
  const auto begun = steady_clock::now();
  EXPECT_EQ(send(create).diagnostics.attempts.size(), 3u);
  EXPECT_GE(steady_clock::now() - begun, 10ms);
}

TEST_P(PipelineTest, RefusalIsThrownWithTheServersWords) {
  client_options.discover_endpoints = false;
  TestHttpServer server([](const SeenRequest&) {
    return http_response(409, R"({"code":"Conflict","message":"It exists.\r\nActivityId: x"})");
  });
  make(server.url());
  const auto failure = failure_of_send(create);
  EXPECT_TRUE(failure.is_conflict());
  EXPECT_STREQ(failure.what(), "It exists.");
  EXPECT_EQ(failure.code(), "Conflict");
}

TEST_P(PipelineTest, ServerThatClosedIdleConnectionsIsNotNoticed) {
  client_options.discover_endpoints = false;
  client_options.retry.attempts_max = 1;
  TestHttpServer server([](const SeenRequest&) { return http_response(201, "{}"); });
  make(server.url());
  for (int i = 1; i <= 5; ++i) {
    EXPECT_EQ(send(create).diagnostics.attempts.size(), 1u);
    server.close_connections();
    ASSERT_TRUE(test::eventually([&] { return server.ended() == i && server.is_end_known(); }));
  }
  EXPECT_EQ(server.request_count(), 5u);
}

TEST_P(PipelineTest, BrokenConnectionIsTriedAgainOnlyIfThatDoesNoHarm) {
  client_options.discover_endpoints = false;
  client_options.retry.first_wait = 1ms;
  std::atomic<int> count{0};
  TestHttpServer server([&](const SeenRequest&) {
    return ++count % 2 == 1 ? std::string() : http_response(200, "{}");
  });
  make(server.url());
  EXPECT_EQ(send(read).diagnostics.attempts.size(), 2u);
  const auto failure = failure_of_send(create);
  EXPECT_EQ(failure.failure(), Failure::Network);
  EXPECT_THAT(failure.what(), HasSubstr(server.url()));
  EXPECT_EQ(server.request_count(), 3u);
}

TEST_P(PipelineTest, NobodyThereIsToldInWords) {
  std::string nowhere;
  {
    TestHttpServer gone([](const SeenRequest&) { return std::string(); });
    nowhere = gone.url();
  }
  client_options.retry.first_wait = 1ms;
  make(nowhere);
  const auto failure = failure_of_send(read);
  EXPECT_EQ(failure.failure(), Failure::Network);
  EXPECT_EQ(failure.status(), 0);
  EXPECT_THAT(failure.what(), HasSubstr("no connection to " + nowhere));
  EXPECT_THAT(failure.diagnostics(), HasSubstr("4 attempts"));
}

TEST_P(PipelineTest, CallHasItsTime) {
  client_options.discover_endpoints = false;
  test::Gate gate;
  TestHttpServer server([&](const SeenRequest&) {
    gate.pass();
    return http_response(200, "{}");
  });
  make(server.url());
  RequestOptions options;
  options.timeout = 50ms;
  const auto begun = steady_clock::now();
  EXPECT_EQ(failure_of_send(read, options).failure(), Failure::Timeout);
  const auto spent = steady_clock::now() - begun;
  EXPECT_GE(spent, 50ms);
  EXPECT_LT(spent, 5s);
  gate.open();
}

TEST_P(PipelineTest, AccountThatDoesNotAnswerDoesNotOutlastTheCall) {
  test::Gate gate;
  TestHttpServer server([&](const SeenRequest&) {
    gate.pass();
    return http_response(200, "{}");
  });
  make(server.url());
  RequestOptions options;
  options.timeout = 50ms;
  EXPECT_EQ(failure_of_send(read, options).failure(), Failure::Timeout);
  gate.open();
}

TEST_P(PipelineTest, CancellationEndsALongPollSoon) {
  client_options.discover_endpoints = false;
  test::Gate gate;
  TestHttpServer server([&](const SeenRequest&) {
    gate.pass();
    return http_response(200, "{}");
  });
  make(server.url());
  std::stop_source stop;
  RequestOptions options;
  options.stop = stop.get_token();
  options.headers = {{"prefer", "wait=60"}};
  steady_clock::time_point stopped;
  std::thread stopper([&] {
    EXPECT_TRUE(test::eventually([&] { return server.request_count() == 1; }));
    stopped = steady_clock::now();
    stop.request_stop();
  });
  EXPECT_EQ(failure_of_send(read, options).failure(), Failure::Cancelled);
  const auto ended = steady_clock::now();
  stopper.join();
  EXPECT_LT(ended - stopped, 1s);
  gate.open();
}

TEST_P(PipelineTest, CancellationEndsAWaitBetweenAttempts) {
  client_options.discover_endpoints = false;
  TestHttpServer server([](const SeenRequest&) {
    return http_response(429, "{}", {{"x-ms-retry-after-ms", "20000"}});
  });
  make(server.url());
  std::stop_source stop;
  RequestOptions options;
  options.stop = stop.get_token();
  std::thread stopper([&] {
    EXPECT_TRUE(test::eventually([&] { return server.request_count() == 1; }));
    stop.request_stop();
  });
  const auto begun = steady_clock::now();
  EXPECT_EQ(failure_of_send(read, options).failure(), Failure::Cancelled);
  stopper.join();
  EXPECT_LT(steady_clock::now() - begun, 10s);
}

TEST_P(PipelineTest, CancellationEndsAWaitForTheAccount) {
  test::Gate gate;
  TestHttpServer server([&](const SeenRequest&) {
    gate.pass();
    return http_response(200, "{}");
  });
  make(server.url());
  std::stop_source stop;
  RequestOptions options;
  options.stop = stop.get_token();
  std::thread stopper([&] {
    EXPECT_TRUE(test::eventually([&] { return server.request_count() == 1; }));
    stop.request_stop();
  });
  EXPECT_EQ(failure_of_send(read, options).failure(), Failure::Cancelled);
  stopper.join();
  gate.open();
}

TEST_P(PipelineTest, WhatIsCancelledBeforehandIsNotSent) {
  TestHttpServer server([](const SeenRequest&) { return http_response(200, "{}"); });
  make(server.url());
  std::stop_source stop;
  stop.request_stop();
  RequestOptions options;
  options.stop = stop.get_token();
  EXPECT_EQ(failure_of_send(read, options).failure(), Failure::Cancelled);
  EXPECT_EQ(server.request_count(), 0u);
}

TEST_P(PipelineTest, RepliesTeachTheSession) {
  client_options.discover_endpoints = false;
  TestHttpServer server([](const SeenRequest&) {
    return http_response(200, "{}", {{"X-Ms-Session-Token", "0:-1#7"}});
  });
  make(server.url());
  send(read);
  send(read);
  EXPECT_EQ(server.requests()[0].header("x-ms-session-token"), "");
  EXPECT_EQ(server.requests()[1].header("x-ms-session-token"), "0:-1#7");
}

TEST_P(PipelineTest, HeadHasNoBody) {
  client_options.discover_endpoints = false;
  TestHttpServer server([](const SeenRequest&) {
    return std::string("HTTP/1.1 200 OK\r\ncontent-length: 12\r\nx-lag: 3\r\n\r\n");
  });
  make(server.url());
  const Answer answer = send({.method = "HEAD", .type = "docs", .link = kStars, .list = true});
  EXPECT_EQ(answer.header("x-lag"), "3");
  EXPECT_EQ(answer.body, "");
}

TEST(Pipeline, RefusesWhatCannotBeMeant) {
  const auto refused = [](std::string url, const Credential& credential) {
    try {
      Pipeline::make(std::move(url), credential, {});
      return false;
    } catch (const CosmosException& failure) {
      return failure.failure() == Failure::Argument;
    }
  };
  const auto key = Credential::key(std::string(kWellKnownKey));
  EXPECT_TRUE(refused("localhost:8081", key));
  EXPECT_TRUE(refused("http://localhost", Credential::key("not base64")));
  EXPECT_TRUE(refused("http://localhost", Credential::resource_token("")));
}

TEST(Pipeline, ThousandLongPollsAtOnce) {
  constexpr int kCount = 1000;
  test::Gate gate;
  TestHttpServer server([&](const SeenRequest&) {
    gate.pass();
    return http_response(200, "{}");
  });
  ClientOptions options;
  options.discover_endpoints = false;
  const auto pipeline =
      Pipeline::make(server.url(), Credential::key(std::string(kWellKnownKey)), options);
  const Call poll{.type = "docs",
                  .link = kStars,
                  .list = true,
                  .headers = {{"prefer", "wait=60"}},
                  .container = kStars};
  std::atomic<int> answered{0};
  std::atomic<int> failed{0};
  for (int i = 0; i < kCount; ++i) {
    pipeline->send_async(
        poll, {}, [&](Answer, std::exception_ptr failure) { ++(failure ? failed : answered); });
  }
  EXPECT_TRUE(test::eventually([&] { return server.request_count() == kCount; }));
  gate.open();
  EXPECT_TRUE(test::eventually([&] { return answered == kCount; }));
  EXPECT_EQ(failed, 0);
}

TEST(Pipeline, RoutingIsFetchedOverIt) {
  TestHttpServer server([](const SeenRequest& request) {
    if (request.target == "/" + kStars) {
      return http_response(200, R"({"_rid":"r","partitionKey":{"paths":["/pk"],"version":2}})");
    }
    if (!request.header("if-none-match").empty()) return http_response(304);
    return http_response(200,
                         R"({"PartitionKeyRanges":[{"id":"0","minInclusive":"",)"
                         R"("maxExclusive":"FF","parents":[]}]})",
                         {{"etag", "\"1\""}});
  });
  ClientOptions options;
  options.discover_endpoints = false;
  const auto pipeline =
      Pipeline::make(server.url(), Credential::key(std::string(kWellKnownKey)), options);
  const auto map = pipeline->routing(kStars, {});
  EXPECT_EQ(map->ranges().size(), 1u);
  EXPECT_EQ(pipeline->routing(kStars, {}), map);
  EXPECT_EQ(server.request_count(), 3u);
  pipeline->forget_routing(kStars, map);
  EXPECT_NE(pipeline->routing(kStars, {}), map);
}

}  // namespace
}  // namespace orrery::client
