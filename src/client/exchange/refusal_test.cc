#include "client/exchange/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::client {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(Refusal, SaysWhatTheServerSaid) {
  Reply reply;
  reply.status = 404;
  reply.headers = {{"x-ms-substatus", "1003"},
                   {"x-ms-activity-id", "a-b"},
                   {"x-ms-request-charge", "1.5"},
                   {"x-ms-session-token", "0:-1#4"},
                   {"etag", "\"1\""},
                   {"x-ms-retry-after-ms", "250"}};
  reply.body =
      R"({"code":"NotFound","message":"Resource Not Found.\r\nActivityId: a-b, Orrery/1.0"})";
  const CosmosException refusal = refusal_of(reply, {});
  EXPECT_STREQ(refusal.what(), "Resource Not Found.");
  EXPECT_EQ(refusal.failure(), Failure::Response);
  EXPECT_EQ(refusal.status(), 404);
  EXPECT_EQ(refusal.sub_status(), 1003);
  EXPECT_EQ(refusal.code(), "NotFound");
  EXPECT_EQ(refusal.activity_id(), "a-b");
  EXPECT_EQ(refusal.etag(), "\"1\"");
  EXPECT_EQ(refusal.session_token(), "0:-1#4");
  EXPECT_EQ(refusal.request_charge(), 1.5);
  EXPECT_EQ(refusal.retry_after(), 250ms);
}

TEST(Refusal, TakesTheWordsOutOfTheServicesEnvelope) {
  Reply reply;
  reply.status = 409;
  reply.body =
      R"({"code":"Conflict","message":"Message: {\"Errors\":[\"It exists.\"]}\r\nActivityId: x"})";
  EXPECT_EQ(message_of(reply), "It exists.");
}

TEST(Refusal, TellsWhereTheMistakeIsInAQuery) {
  Reply reply;
  reply.status = 400;
  reply.body =
      R"({"code":"BadRequest","message":"Message: {\"errors\":[{\"severity\":\"Error\",)"
      R"(\"location\":{\"start\":7,\"end\":11},\"code\":\"SC1001\",\"message\":\"Syntax error.\"},)"
      R"({\"message\":\"And another.\"}]}\r\nActivityId: x"})";
  const CosmosException refusal = refusal_of(reply, {});
  EXPECT_STREQ(refusal.what(), "Syntax error. And another.");
  EXPECT_EQ(refusal.location(), (TextLocation{7, 11}));
}

TEST(Refusal, NonsenseInAnEnvelopeIsNoLocation) {
  for (const std::string errors : {R"([])", R"([7])", R"([{\"location\":7}])",
                                   R"([{\"location\":{\"start\":-1}}])", R"({})"}) {
    Reply reply;
    reply.status = 400;
    reply.body = R"({"message":"Message: {\"errors\":)" + errors + R"(}"})";
    const CosmosException refusal = refusal_of(reply, {});
    EXPECT_THAT(refusal.what(), HasSubstr("Message: {")) << errors;
    EXPECT_FALSE(refusal.location()) << errors;
  }
}

TEST(Refusal, HasWordsEvenIfTheServerHasNone) {
  Reply reply;
  reply.status = 503;
  for (const std::string body :
       {"", "<html>", "[]", "{}", R"({"message":7})", R"({"message":""})"}) {
    reply.body = body;
    EXPECT_THAT(message_of(reply), HasSubstr("503"));
  }
}

TEST(Refusal, NonsenseInHeadersIsNoNumber) {
  Reply reply;
  reply.headers = {{"x-ms-substatus", "abc"}, {"x-ms-retry-after-ms", "-5"}};
  EXPECT_EQ(sub_status_of(reply), 0);
  EXPECT_FALSE(retry_after_of(reply));
}

TEST(Diagnostics, AreOneLine) {
  Diagnostics diagnostics;
  diagnostics.duration = 1500us;
  diagnostics.attempts = {{"http://a", "id-1", 0, 0, 500us, "no connection"},
                          {"http://b", "id-2", 410, 1002, 1000us, ""}};
  EXPECT_EQ(diagnostics.to_string(),
            "2 attempts in 1.5 ms; http://a no answer (no connection) after 0.5 ms, activity id-1; "
            "http://b 410/1002 after 1.0 ms, activity id-2");
}

TEST(ResponseInfo, FindsHeaders) {
  ResponseInfo info;
  info.headers = {{"a", "1"}, {"b", "2"}};
  EXPECT_EQ(info.header("b"), "2");
  EXPECT_EQ(info.header("c"), "");
}

}  // namespace
}  // namespace orrery::client
