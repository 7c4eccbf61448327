// Names that take long to look up, and names with several addresses.
#include <dlfcn.h>
#include <netdb.h>

#include <atomic>
#include <memory>
#include <string_view>
#include <thread>

#include <gtest/gtest.h>

#include "client/transport/async_transport.h"
#include "client/transport/connection_pool.h"
#include "client/transport/test_http_server.h"

namespace {

constexpr std::string_view kSlowName = "slow.invalid";
/// At its first address nobody listens.
constexpr std::string_view kTwoAddressesName = "two-addresses.invalid";

using orrery::client::test::Gate;

/// Blocks lookups of the slow name until the test is over. Shared, since they may return when the
/// next test has begun.
std::atomic<std::shared_ptr<Gate>> answer_gate;
std::atomic<int> lookups_begun{0};

}  // namespace

/// In the place of the C library's own: libcurl calls this one.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints,
                           addrinfo** result) {
  if (name != nullptr && name == kSlowName) {
    const std::shared_ptr<Gate> gate = answer_gate.load();
    ++lookups_begun;
    gate->pass();
    return EAI_NONAME;
  }
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  if (name == nullptr || name != kTwoAddressesName) return real(name, service, hints, result);
  addrinfo* second = nullptr;
  if (const int error = real("127.0.0.2", service, hints, result); error != 0) return error;
  if (const int error = real("127.0.0.1", service, hints, &second); error != 0) return error;
  addrinfo* last = *result;
  while (last->ai_next != nullptr) last = last->ai_next;
  last->ai_next = second;
  return 0;
}

namespace orrery::client {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::http_response;
using test::SeenRequest;
using test::TestHttpServer;

Outgoing lookup_request(const std::string& url) {
  Outgoing request;
  request.endpoint = *Endpoint::parse(url);
  request.head = "GET /x HTTP/1.1\r\nhost: test\r\n\r\n";
  return request;
}

const std::string kSlowUrl = "http://" + std::string(kSlowName) + ":1";

class SlowName : public ::testing::Test {
 protected:
  SlowName() {
    lookups_begun = 0;
    answer_gate.store(std::make_shared<Gate>());
  }
  ~SlowName() override { answer_gate.load()->open(); }
};

TEST_F(SlowName, TimeLimitHoldsForAThreadThatWaits) {
  ConnectionPool pool({}, 4);
  const auto begun = steady_clock::now();
  const Outcome outcome = pool.perform(lookup_request(kSlowUrl), begun + 50ms, {});
  EXPECT_EQ(outcome.no_answer, NoAnswer::TimedOut);
  EXPECT_FALSE(outcome.sent);
  EXPECT_EQ(lookups_begun, 1);
  EXPECT_LT(steady_clock::now() - begun, test::kPatience / 2) << "the gate is still closed";
}

TEST_F(SlowName, CancellationHoldsForAThreadThatWaits) {
  ConnectionPool pool({}, 4);
  std::stop_source source;
  const auto begun = steady_clock::now();
  std::jthread stopper([&] {
    test::eventually([] { return lookups_begun == 1; });
    source.request_stop();
  });
  const Outcome outcome =
      pool.perform(lookup_request(kSlowUrl), begun + test::kPatience, source.get_token());
  EXPECT_EQ(outcome.no_answer, NoAnswer::Cancelled);
  EXPECT_LT(steady_clock::now() - begun, test::kPatience / 2);
}

TEST_F(SlowName, OthersGoOnMeanwhileAndTheEndDoesNotWait) {
  TestHttpServer server([](const SeenRequest&) { return http_response(200); });
  const Outgoing slow = lookup_request(kSlowUrl);
  const Outgoing quick = lookup_request(server.url());
  const auto begun = steady_clock::now();
  std::atomic<int> answered{0};
  std::atomic<int> given_up{0};
  {
    AsyncTransport transport({}, 4);
    const auto count = [&](const Outcome& outcome) {
      ++(outcome.no_answer == NoAnswer::None ? answered : given_up);
    };
    transport.post([&] {
      transport.send(slow, steady_clock::now() + 50ms, count);
      transport.send(slow, steady_clock::now() + test::kPatience, count);
    });
    EXPECT_TRUE(test::eventually([&] { return given_up == 1; }));
    transport.post([&] { transport.send(quick, steady_clock::now() + test::kPatience, count); });
    EXPECT_TRUE(test::eventually([&] { return answered == 1; }));
  }
  EXPECT_EQ(given_up, 2);
  EXPECT_LT(steady_clock::now() - begun, test::kPatience / 2);
}

TEST(Names, AddressWhereNobodyListensGivesWayToTheNext) {
  TestHttpServer server(
      [](const SeenRequest&) { return http_response(200, {}, {{"connection", "close"}}); });
  const std::string port = server.url().substr(server.url().rfind(':'));
  const Outgoing request = lookup_request("http://" + std::string(kTwoAddressesName) + port);
  ConnectionPool pool({}, 4);
  AsyncTransport transport({}, 4);
  std::atomic<int> answered{0};
  for (int i = 1; i <= 3; ++i) {
    const auto deadline = steady_clock::now() + test::kPatience;
    EXPECT_EQ(pool.perform(request, deadline, {}).reply.status, 200);
    transport.post([&, deadline] {
      transport.send(request, deadline, [&](const Outcome& outcome) {
        answered += outcome.no_answer == NoAnswer::None ? 1 : 0;
      });
    });
    EXPECT_TRUE(test::eventually([&] { return answered == i; }));
  }
}

}  // namespace
}  // namespace orrery::client
