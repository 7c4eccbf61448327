#include "api/admin/explorer.h"

#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/test_request.h"
#include "protocol/wire/headers.h"
#include "protocol/wire/resource_path.h"

namespace orrery::api::explorer {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::optional<http::Response> get(std::string_view target, std::string_view if_none_match = {}) {
  TestRequest request("GET", target);
  if (!if_none_match.empty()) request.header(headers::kIfNoneMatch, if_none_match);
  Context context = request.context();
  context.path = parse_resource_path(target).value();
  return serve(context);
}

std::string header(const http::Response& response, const std::string& name) {
  std::smatch match;
  const std::string lines(response.header_lines());
  return std::regex_search(lines, match, std::regex("(^|\n)" + name + ": ([^\r]*)\r\n"))
             ? match[2].str()
             : "";
}

TEST(ExplorerTest, StartPageIsServedAtTheDirectory) {
  for (const char* target :
       {"/_explorer/", "//_explorer/", "/_explorer/?x=1", "/_explorer/index.html"}) {
    const auto response = get(target);
    ASSERT_TRUE(response) << target;
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(header(*response, "content-type"), "text/html; charset=utf-8");
    EXPECT_THAT(response->body, HasSubstr("<title>"));
  }
}

TEST(ExplorerTest, WithoutItsSlashTheBrowserIsSentOn) {
  for (const char* target : {"/_explorer", "/_explorer?x=/"}) {
    const auto response = get(target);
    ASSERT_TRUE(response) << target;
    EXPECT_EQ(response->status, 307);
    EXPECT_EQ(header(*response, "location"), "_explorer/");
  }
}

TEST(ExplorerTest, EveryFileHasItsTypeAndMayRunNothingForeign) {
  ASSERT_GE(files().size(), 3u);
  for (const File& file : files()) {
    const auto response = get("/_explorer/" + std::string(file.name));
    ASSERT_TRUE(response) << file.name;
    EXPECT_EQ(response->body, file.content);
    EXPECT_THAT(header(*response, "content-type"),
                ContainsRegex("^(text/(html|javascript|css); charset=utf-8|image/svg.xml)$"));
    EXPECT_EQ(header(*response, "x-content-type-options"), "nosniff");
    EXPECT_EQ(header(*response, "cache-control"), "no-cache");
    const auto policy = header(*response, "content-security-policy");
    EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
    EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
    EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  }
}

TEST(ExplorerTest, WhatTheBrowserHasIsNotSentAgain) {
  const auto first = get("/_explorer/app.js");
  ASSERT_TRUE(first);
  const auto etag = header(*first, "etag");
  EXPECT_THAT(etag, ContainsRegex("^\"[0-9a-f]+\"$"));
  for (const std::string& condition : {etag, "W/" + etag, "\"other\", " + etag, std::string("*")}) {
    const auto again = get("/_explorer/app.js", condition);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->status, 304) << condition;
    EXPECT_EQ(again->body, "");
    EXPECT_EQ(header(*again, "etag"), etag);
    EXPECT_EQ(header(*again, "content-type"), "");
  }
  EXPECT_EQ(get("/_explorer/app.js", "\"other\"")->status, 200);
}

TEST(ExplorerTest, OtherPathsAreNotItsOwn) {
  for (const char* target : {"/_health", "/_explorer/emulator.pem", "/_explorer/nothing.js",
                             "/_explorer/index.html/x", "/_explorer/README.md"}) {
    EXPECT_FALSE(get(target)) << target;
  }
}

}  // namespace
}  // namespace orrery::api::explorer
