#include "sinks/webhook.h"

#include <gtest/gtest.h>

namespace orrery::sinks {
namespace {

using processor::Outcome;

client::Reply answer(int status, std::string body = {}, client::HeaderList headers = {}) {
  return {status, std::move(headers), std::move(body)};
}

TEST(Webhook, UrlsAreTakenApart) {
  const auto parts = [](std::string_view url) {
    WebhookOptions options;
    EXPECT_TRUE(options.set_url(url)) << url;
    return std::pair(options.endpoint, options.path);
  };
  using Parts = std::pair<std::string, std::string>;
  EXPECT_EQ(parts("http://h"), Parts("http://h", "/"));
  EXPECT_EQ(parts("https://h:8443/a/b/?c=d#e"), Parts("https://h:8443", "/a/b/?c=d"));
  EXPECT_EQ(parts("http://h?x=http://y"), Parts("http://h", "/?x=http://y"));
  for (const char* url : {"", "h/a", "ftp://h/", "http://", "http:///a"}) {
    EXPECT_FALSE(WebhookOptions().set_url(url)) << url;
  }
}

TEST(Webhook, StatusesAreOutcomes) {
  EXPECT_TRUE(judge_answer(answer(200), 2, 0).is_done());
  EXPECT_TRUE(judge_answer(answer(204), 2, 0).is_done());
  EXPECT_TRUE(judge_answer(answer(201, R"({"ok":true})"), 2, 0).is_done());
  EXPECT_EQ(judge_answer(answer(200, R"({"done_until":1})"), 2, 0).outcome.kind,
            Outcome::Kind::DoneUntil);
  for (const int status : {408, 429, 502, 503, 504}) {
    EXPECT_EQ(judge_answer(answer(status), 2, 0).kind, Delivery::Kind::Later) << status;
  }
  for (const int status : {400, 401, 404, 422}) {
    EXPECT_EQ(judge_answer(answer(status), 2, 0).kind, Delivery::Kind::Refused) << status;
  }
  for (const int status : {301, 500, 501}) {
    EXPECT_EQ(judge_answer(answer(status), 2, 0).kind, Delivery::Kind::Failed) << status;
  }
  EXPECT_EQ(judge_answer(answer(422, "no\nsuch star"), 2, 0).reason,
            "the webhook answered 422: no such star");
}

TEST(Webhook, SaysHowLongToWait) {
  const auto wait = [](const char* text) {
    return judge_answer(answer(503, {}, {{"Retry-After", text}}), 2, 784111700).after.count();
  };
  EXPECT_EQ(wait("3"), 3000);
  EXPECT_EQ(wait("Sun, 06 Nov 1994 08:49:37 GMT"), 77'000);
  EXPECT_EQ(wait("soon"), 0);
  EXPECT_EQ(wait("-5"), 0);
  EXPECT_EQ(wait("999999999"), 3'600'000);
}

}  // namespace
}  // namespace orrery::sinks
