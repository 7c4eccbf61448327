// Session consistency of an exchange: a client reads its own writes.
#include "client/exchange/exchange.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/exchange/test_exchange.h"

namespace orrery::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(ExchangeTest, SessionIsRememberedAndSentWithReads) {
  call.method = "POST";
  call.writes = true;
  begin();
  EXPECT_THAT(
      send(answered(201, 0, {{"x-ms-session-token", "0:-1#42"}, {"x-ms-content-path", "rid"}})),
      Not(HasSubstr("x-ms-session-token")));
  call.method = "GET";
  call.writes = false;
  begin();
  EXPECT_THAT(send(answered(200)), HasSubstr("x-ms-session-token: 0:-1#42\r\n"));
  call.headers = {{"x-ms-documentdb-partitionkeyrangeid", "0"}};
  begin();
  EXPECT_THAT(send(answered(200)), HasSubstr("x-ms-session-token: 0:-1#42\r\n"));
  call.writes = true;
  begin();
  EXPECT_THAT(send(answered(200)), Not(HasSubstr("x-ms-session-token")))
      << "writes go to where everything is";
}

TEST_F(ExchangeTest, RefusalsTellOfTheSessionToo) {
  begin();
  send(answered(404, 0, {{"x-ms-session-token", "0:-1#9"}}));
  begin();
  EXPECT_THAT(send(answered(200)), HasSubstr("x-ms-session-token: 0:-1#9\r\n"));
}

TEST_F(ExchangeTest, ExplicitSessionTokenWins) {
  begin();
  surroundings->sessions.remember(kStars, "", "0:-1#42");
  options.session_token = "0:-1#7";
  begin();
  EXPECT_THAT(send(answered(200)), HasSubstr("x-ms-session-token: 0:-1#7\r\n"));
  options.session_token = "";
  begin();
  EXPECT_THAT(send(answered(200)), Not(HasSubstr("x-ms-session-token")));
}

TEST_F(ExchangeTest, OtherConsistencyNeedsNoSession) {
  begin();
  surroundings->sessions.remember(kStars, "", "0:-1#42");
  options.consistency = ConsistencyLevel::Eventual;
  begin();
  const std::string head = send(answered(200));
  EXPECT_THAT(head, HasSubstr("x-ms-consistency-level: Eventual\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("x-ms-session-token")));
}

TEST_F(ExchangeTest, SessionThatIsNotAvailableIsLookedForInTheWriteRegion) {
  begin_with_regions();
  surroundings->sessions.remember(kStars, "", "0:-1#42");
  send(answered(404, 1002));
  EXPECT_EQ(sent_to, "http://east:1");
  EXPECT_THAT(send(answered(404, 1002)), HasSubstr("x-ms-session-token: 0:-1#42"));
  EXPECT_EQ(sent_to, "http://west:1");
  wait();
  EXPECT_THAT(send(answered(200)), HasSubstr("x-ms-session-token: 0:-1#42"));
  EXPECT_EQ(sent_to, "http://west:1");
  EXPECT_EQ(exchange->step(), Step::Answered);
}

TEST_F(ExchangeTest, SessionIsNotGivenUpWhileTheContainerIsTheSame) {
  miss_session();
  const std::string head = send(answered(200, 0, {}, R"({"id":"stars","_rid":"old"})"));
  EXPECT_THAT(head, StartsWith("GET /dbs/sky/colls/stars HTTP/1.1\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("x-ms-session-token")));
  const CosmosException thrown = failure();
  EXPECT_EQ(thrown.status(), 404);
  EXPECT_EQ(thrown.sub_status(), 1002);
  EXPECT_FALSE(thrown.is_not_found()) << "the document may well be there";
  EXPECT_THAT(thrown.what(), HasSubstr("a new client begins a new session"));
  EXPECT_THAT(surroundings->sessions.token(kStars, ""), "0:-1#42") << "it still holds";
}

TEST_F(ExchangeTest, SessionOfAContainerThatIsGoneIsGivenUp) {
  miss_session();
  send(answered(200, 0, {{"x-ms-content-path", "rid of the database"}}, R"({"_rid":"new"})"));
  EXPECT_THAT(
      send(answered(200, 0, {{"x-ms-session-token", "0:-1#1"}, {"x-ms-content-path", "new"}})),
      AllOf(StartsWith("GET /dbs/sky/colls/stars/docs/deneb HTTP/1.1\r\n"),
            Not(HasSubstr("x-ms-session-token"))));
  EXPECT_EQ(exchange->step(), Step::Answered);
  EXPECT_EQ(surroundings->sessions.token(kStars, ""), "0:-1#1");
}

TEST_F(ExchangeTest, SessionOfTheNewContainerThatAnotherThreadLearnedIsKept) {
  miss_session();
  surroundings->sessions.remember(kStars, "new", "0:-1#5");
  send(answered(200, 0, {}, R"({"_rid":"new"})"));
  EXPECT_THAT(send(answered(404, 1002)), HasSubstr("x-ms-session-token: 0:-1#5\r\n"));
  EXPECT_EQ(failure().sub_status(), 1002) << "asked once, and not in circles";
}

TEST_F(ExchangeTest, ContainerThatIsGoneIsNotFound) {
  miss_session();
  send(answered(404, 1003));
  EXPECT_EQ(failure().sub_status(), 1003);
}

TEST_F(ExchangeTest, LookingAtTheContainerIsRepeatedAsAnythingElse) {
  miss_session();
  send(answered(429, 3200, {{"x-ms-retry-after-ms", "10"}}));
  wait();
  send(lost());
  wait();
  EXPECT_THAT(send(answered(403)), StartsWith("GET /dbs/sky/colls/stars HTTP/1.1\r\n"));
  EXPECT_EQ(failure().sub_status(), 1002) << "whoever may not look at it hears what became of it";
}

TEST_F(ExchangeTest, SessionOfAContainerWhoseRidIsNotKnownIsNotGivenUp) {
  begin();
  surroundings->sessions.remember(kStars, "", "0:-1#42");
  send(answered(404, 1002));
  wait();
  send(answered(404, 1002));
  EXPECT_EQ(failure().sub_status(), 1002);
}

TEST_F(ExchangeTest, ExplicitSessionThatIsNotAvailableIsThrown) {
  options.session_token = "0:-1#99";
  begin();
  send(answered(404, 1002));
  wait();
  EXPECT_THAT(send(answered(404, 1002)), HasSubstr("x-ms-session-token: 0:-1#99"));
  EXPECT_EQ(failure().sub_status(), 1002);
}

}  // namespace
}  // namespace orrery::client
