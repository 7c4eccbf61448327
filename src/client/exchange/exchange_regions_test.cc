// Where an exchange sends: which region, and what it asks the account.
#include "client/exchange/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/exchange/test_exchange.h"

namespace orrery::client {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Le;

TEST_F(ExchangeTest, LossMovesToTheNextRegionAtOnce) {
  begin_with_regions();
  send(answered(503));
  EXPECT_EQ(sent_to, "http://east:1");
  send(lost());
  EXPECT_EQ(sent_to, "http://west:1");
  send(unreachable());
  EXPECT_EQ(sent_to, "http://given:1");
  EXPECT_EQ(exchange->step(), Step::Wait) << "all were tried";
  wait();
  send(answered(200));
  EXPECT_EQ(sent_to, "http://east:1");
}

TEST_F(ExchangeTest, UnreachableEndpointOfTheAccountFallsBackToTheGivenOne) {
  begin_with_regions();
  call.writes = true;
  call.repeatable = false;
  begin();
  send(unreachable());
  EXPECT_EQ(sent_to, "http://west:1");
  send(answered(200));
  EXPECT_EQ(sent_to, "http://given:1");
  begin();
  send(answered(200));
  EXPECT_EQ(sent_to, "http://given:1") << "remembered";
}

TEST_F(ExchangeTest, AccountIsAskedBeforeTheFirstRequest) {
  client_options.discover_endpoints = true;
  begin();
  EXPECT_EQ(exchange->step(), Step::Discover);
  EXPECT_FALSE(exchange->must_rediscover());
  exchange->discovered(now);
  send(answered(200));
  EXPECT_EQ(sent_to, "http://given:1") << "the account did not answer";
}

TEST_F(ExchangeTest, WriteForbiddenAsksTheAccountAgain) {
  begin_with_regions();
  call.writes = true;
  begin();
  send(answered(403, 3));
  EXPECT_EQ(sent_to, "http://west:1");
  ASSERT_EQ(exchange->step(), Step::Discover);
  EXPECT_TRUE(exchange->must_rediscover());
  AccountProperties moved;
  moved.writable_regions = {{"East", "http://east:1/"}};
  moved.readable_regions = {{"East", "http://east:1/"}, {"West", "http://west:1/"}};
  surroundings->regions.update(moved);
  exchange->discovered(now);
  send(answered(201));
  EXPECT_EQ(sent_to, "http://east:1");
  EXPECT_EQ(exchange->step(), Step::Answered);
}

TEST_F(ExchangeTest, FailoverThatTakesLongIsWaitedFor) {
  begin_with_regions();
  call.writes = true;
  begin();
  send(answered(403, 3));
  exchange->discovered(now);
  int attempts = 1;
  for (; exchange->step() != Step::Failed; ++attempts) {
    send(answered(403, 3));
    if (exchange->step() == Step::Failed) break;
    exchange->discovered(now);
    EXPECT_THAT(wait(), AllOf(Ge(500ms), Le(1000ms)));
  }
  EXPECT_EQ(failure().status(), 403);
  EXPECT_EQ(attempts, 30);
}

TEST_F(ExchangeTest, RegionThatIsGoneIsLeft) {
  begin_with_regions();
  send(answered(403, 1008));
  EXPECT_EQ(sent_to, "http://east:1");
  ASSERT_EQ(exchange->step(), Step::Discover);
  exchange->discovered(now);
  send(answered(200));
  EXPECT_EQ(sent_to, "http://west:1");
}

TEST_F(ExchangeTest, WithoutDiscoveryWriteForbiddenIsThrown) {
  begin();
  send(answered(403, 3));
  EXPECT_EQ(failure().sub_status(), 3);
}

}  // namespace
}  // namespace orrery::client
