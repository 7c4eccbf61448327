// ExchangeTest: an exchange without network and clock. The test says what comes of each attempt.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "client/exchange/exchange.h"
#include "protocol/auth/well_known_key.h"

namespace orrery::client {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

using Step = Exchange::Step;

inline constexpr UnixSeconds kTime = 1'743'508'800;  // Tue, 01 Apr 2025 12:00:00 GMT
inline const std::string kStars = "dbs/sky/colls/stars";

inline Outcome answered(int status, int sub_status = 0, HeaderList headers = {},
                        std::string body = {}) {
  Outcome outcome;
  outcome.reply.status = status;
  outcome.reply.headers = std::move(headers);
  if (sub_status != 0) {
    outcome.reply.headers.emplace_back("x-ms-substatus", std::to_string(sub_status));
  }
  outcome.reply.body = std::move(body);
  return outcome;
}

inline Outcome lost(bool broke_idle = false) {
  Outcome outcome = Outcome::failed(NoAnswer::Broken, "no answer from x: it broke", true);
  outcome.broke_idle = broke_idle;
  return outcome;
}

inline Outcome unreachable() {
  return Outcome::failed(NoAnswer::Unreachable, "no connection to x: refused", false);
}

class ExchangeTest : public ::testing::Test {
 protected:
  ExchangeTest() { client_options.discover_endpoints = false; }

  void begin() {
    if (!surroundings) {
      surroundings.emplace("http://given:1/", credential, client_options, clock, 7);
    }
    exchange.emplace(*surroundings, call, options, now);
  }
  void begin_with_regions() {
    client_options.discover_endpoints = true;
    surroundings.emplace("http://given:1/", credential, client_options, clock, 7);
    AccountProperties account;
    account.writable_regions = {{"West", "http://west:1/"}};
    account.readable_regions = {{"East", "http://east:1/"}, {"West", "http://west:1/"}};
    surroundings->regions.update(account);
    begin();
  }
  /// Sends the next attempt, and returns what went out.
  std::string send(Outcome outcome) {
    EXPECT_EQ(exchange->step(), Step::Send);
    exchange->prepare(now);
    EXPECT_EQ(exchange->step(), Step::Send);
    sent_to = exchange->outgoing().endpoint->url;
    std::string head = exchange->outgoing().head;
    exchange->judge(std::move(outcome), now);
    return head;
  }
  /// A read with the session of the container "old" was refused wherever it was sent.
  void miss_session() {
    begin();
    surroundings->sessions.remember(kStars, "old", "0:-1#42");
    for (int attempt = 1; attempt <= 2; ++attempt) {
      const std::string head = send(answered(404, 1002));
      EXPECT_NE(head.find("x-ms-session-token: 0:-1#42\r\n"), std::string::npos) << head;
      if (attempt == 1) wait();
    }
  }
  /// Waits as the exchange asks for, and says how long.
  milliseconds wait() {
    EXPECT_EQ(exchange->step(), Step::Wait);
    now += exchange->wait();
    exchange->waited(now);
    return exchange->wait();
  }
  CosmosException failure() {
    EXPECT_EQ(exchange->step(), Step::Failed);
    try {
      std::rethrow_exception(exchange->take_failure());
    } catch (const CosmosException& thrown) {
      return thrown;
    }
  }

  ManualClock clock{kTime};
  Exchange::TimePoint now{1000h};
  Credential credential = Credential::key(std::string(kWellKnownKey));
  ClientOptions client_options;
  Call call{.type = "docs", .link = kStars + "/docs/deneb", .container = kStars};
  RequestOptions options;
  std::optional<Surroundings> surroundings;
  std::optional<Exchange> exchange;
  std::string sent_to;
};

}  // namespace orrery::client
