// How a pipeline ends: with calls under way, by its own callbacks, at the same time as others, and
// together with the process.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_seed.h"
#include "client/exchange/pipeline.h"
#include "client/transport/async_transport.h"
#include "client/transport/test_http_server.h"
#include "protocol/auth/well_known_key.h"

namespace orrery::client {
namespace {

using namespace std::chrono_literals;
using test::account_of;
using test::http_response;
using test::SeenRequest;
using test::TestHttpServer;

Credential well_known_key() { return Credential::key(std::string(kWellKnownKey)); }

TEST(PipelineLifetime, CallsUnderWayAreCancelledWhenTheClientIsDropped) {
  test::Gate gate;
  TestHttpServer server([&](const SeenRequest&) {
    gate.pass();
    return http_response(200, "{}");
  });
  for (const bool discover : {false, true}) {
    ClientOptions options;
    options.discover_endpoints = discover;
    auto pipeline = Pipeline::make(server.url(), well_known_key(), options);
    std::atomic<int> cancelled{0};
    const auto before = server.request_count();
    for (int i = 0; i < 3; ++i) {
      pipeline->send_async({.type = "dbs", .link = "dbs/sky"}, {},
                           [&](Answer, std::exception_ptr failure) {
                             try {
                               std::rethrow_exception(failure);
                             } catch (const CosmosException& thrown) {
                               cancelled += thrown.failure() == Failure::Cancelled ? 1 : 0;
                             }
                           });
    }
    EXPECT_TRUE(test::eventually([&] { return server.request_count() > before; }));
    pipeline.reset();
    EXPECT_EQ(cancelled, 3);
  }
  gate.open();
}

TEST(PipelineLifetime, MayBeDroppedByACallback) {
  TestHttpServer server([](const SeenRequest& request) {
    return http_response(200, request.target == "/" ? "nonsense" : "{}");
  });
  auto pipeline = Pipeline::make(server.url(), well_known_key(), {});
  std::atomic<int> told{0};
  Pipeline& reference = *pipeline;
  reference.send_async({.type = "dbs", .link = "dbs/a"}, {},
                       [&told, keep = std::move(pipeline)](Answer, std::exception_ptr) mutable {
                         keep.reset();
                         ++told;
                       });
  EXPECT_TRUE(test::eventually([&] { return told == 1; }));
}

/// An address where connections are begun and never accepted.
class DeafListener {
 public:
  DeafListener() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const where = reinterpret_cast<sockaddr*>(&address);
    sockets_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(sockets_.front(), where, size), 0);
    EXPECT_EQ(::listen(sockets_.front(), 0), 0);
    EXPECT_EQ(::getsockname(sockets_.front(), where, &size), 0);
    port_ = ntohs(address.sin_port);
    // The queue of those who wait to be accepted must be full.
    for (int i = 0; i < 4; ++i) {
      sockets_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      ::connect(sockets_.back(), where, size);
    }
  }
  ~DeafListener() {
    for (const int socket : sockets_) ::close(socket);
  }
  DeafListener(const DeafListener&) = delete;
  DeafListener& operator=(const DeafListener&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  std::vector<int> sockets_;
  int port_ = 0;
};

TEST(PipelineLifetime, EndsWhileConnectionsAreBeingMade) {
  const DeafListener nobody;
  ClientOptions options;
  options.discover_endpoints = false;
  auto pipeline = Pipeline::make(nobody.url(), well_known_key(), options);
  std::atomic<int> told{0};
  for (int i = 0; i < 10; ++i) {
    pipeline->send_async({.type = "dbs", .link = "dbs/sky"}, {},
                         [&](Answer, std::exception_ptr) { ++told; });
  }
  const auto begun = std::chrono::steady_clock::now();
  pipeline.reset();
  EXPECT_EQ(told, 10);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, options.connect_timeout);
}

/// Clients that come and go on many threads, with requests, long polls, attempts to connect and
/// waits between attempts under way, and requests to stop that come in between.
class Crowd {
 public:
  explicit Crowd(unsigned seed) : seed_(seed) {}

  void run(int threads, int rounds) {
    {
      std::vector<std::jthread> crowd;
      for (int i = 0; i < threads; ++i) {
        crowd.emplace_back([this, i, rounds] {
          std::mt19937 random(seed_ + static_cast<unsigned>(i));
          for (int round = 0; round < rounds; ++round) live_and_end(random);
        });
      }
    }
    // Those that ended themselves may still be at it.
    EXPECT_TRUE(test::eventually([this] { return told_ == begun_; }));
    EXPECT_GT(begun_, threads * rounds);
  }

 private:
  Pipeline::Done count() {
    ++begun_;
    return [this, already = std::make_shared<std::atomic<bool>>()](Answer, std::exception_ptr) {
      EXPECT_FALSE(already->exchange(true)) << "told twice";
      ++told_;
    };
  }

  void live_and_end(std::mt19937& random) {
    const auto one_of = [&random](unsigned count) { return random() % count; };
    ClientOptions options;
    options.discover_endpoints = one_of(2) == 0;
    options.connections_max = 1 + one_of(3);
    const std::string url = one_of(4) == 0 ? deaf_.url() : server_.url();
    auto pipeline = Pipeline::make(url, well_known_key(), options);

    std::stop_source source;
    RequestOptions stoppable;
    if (one_of(2) == 0) stoppable.stop = source.get_token();
    const Call read{.type = "docs", .link = "dbs/sky/colls/stars/docs/deneb"};
    Call poll = read;
    poll.headers = {{"prefer", "wait=60"}};
    Call busy = read;
    busy.link = "dbs/sky/colls/stars/docs/busy";
    const std::array<const Call*, 3> kinds{&read, &poll, &busy};
    for (unsigned i = one_of(6); i > 0; --i) {
      pipeline->send_async(*kinds[one_of(3)], stoppable, count());
    }
    if (one_of(3) == 0) {
      RequestOptions hurried;
      hurried.timeout = std::chrono::milliseconds(one_of(20));
      EXPECT_NO_THROW(try { pipeline->send(read, hurried); } catch (const CosmosException&){});
    }
    std::jthread stopper;
    if (one_of(2) == 0) stopper = std::jthread([&source] { source.request_stop(); });
    if (one_of(2) == 0) return;
    // The last handle is dropped by a callback, on the thread of the transport; or here, when that
    // was quicker.
    Pipeline& reference = *pipeline;
    RequestOptions hurried;
    hurried.timeout = 1ms * one_of(50);
    reference.send_async(
        read, hurried,
        [keep = std::move(pipeline), told = count()](Answer, std::exception_ptr) mutable {
          keep.reset();
          told({}, nullptr);
        });
  }

  const unsigned seed_;
  std::atomic<int> begun_{0};
  std::atomic<int> told_{0};
  DeafListener deaf_;
  TestHttpServer server_{[this](const SeenRequest& request) {
    if (request.target == "/") return http_response(200, account_of(server_.url()));
    if (request.target.ends_with("busy")) {
      return http_response(429, {}, {{"x-ms-retry-after-ms", "1000"}});
    }
    // A long poll: the rest never comes.
    if (!request.header("prefer").empty()) {
      return std::string("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n");
    }
    return http_response(200, "{}");
  }};
};

TEST(PipelineLifetime, ManyComeAndGoWithCallsUnderWay) {
  const auto seed = static_cast<unsigned>(orrery::test::seed());
  SCOPED_TRACE("seed " + std::to_string(seed));
  Crowd(seed).run(8, 40);
}

/// In a process of its own: a callback drops the last handle while the program comes to its end.
[[noreturn]] void end_right_after_a_callback_dropped_the_client() {
  auto transport = std::make_shared<AsyncTransport>(LinkOptions{}, 4);
  static std::atomic<bool> is_dropping{false};
  AsyncTransport& reference = *transport;
  reference.post([keep = std::move(transport)]() mutable {
    const std::shared_ptr<const void> slow(nullptr, [](const void*) {
      is_dropping = true;
      // Closing many connections takes its time.
      std::this_thread::sleep_for(100ms);
      std::fputs("all is closed\n", stderr);
    });
    const auto last = std::move(keep);
    last->shutdown(slow);
  });
  while (!is_dropping) std::this_thread::yield();
  std::exit(0);
}

TEST(PipelineLifetimeDeathTest, ProcessWaitsForWhatACallbackHasEnded) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(end_right_after_a_callback_dropped_the_client(), ::testing::ExitedWithCode(0),
              "all is closed");
}

/// As a callback may do that finds that there is nothing left to do.
[[noreturn]] void end_the_process_in_a_callback() {
  auto transport = std::make_shared<AsyncTransport>(LinkOptions{}, 4);
  AsyncTransport& reference = *transport;
  reference.post([keep = std::move(transport)]() mutable {
    keep->shutdown(keep);
    std::exit(0);
  });
  for (;;) std::this_thread::yield();
}

TEST(PipelineLifetimeDeathTest, CallbackMayEndTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(end_the_process_in_a_callback(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace orrery::client
