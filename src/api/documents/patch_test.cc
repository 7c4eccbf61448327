#include "api/documents/patch.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/test_request.h"

namespace orrery::api {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class DocumentPatchTest : public testing::Test {
 protected:
  Result<partition::NewVersion> apply(std::string_view body) {
    auto change = read_patch(container, body);
    if (!change) return change.error();
    return (*change)(stored);
  }
  /// The open text after the patch, or the message of the refusal.
  std::string patched(std::string_view body) {
    const auto version = apply(body);
    return version ? version->open_text : version.error().message();
  }
  ErrorCode refusal(std::string_view body) {
    const auto version = apply(body);
    EXPECT_FALSE(version) << body;
    if (!version) message = version.error().message();
    return version ? ErrorCode::Internal : version.error().code();
  }

  std::shared_ptr<const catalog::Container> container = test_container(kHashKey);
  std::string stored =
      R"({"id":"x","pk":"a","n":1,"_rid":"r","_self":"s","_etag":"e","_attachments":"a","_ts":7})";
  std::string message;
};

constexpr auto kIncrement = R"([{"op":"incr","path":"/n","value":1}])";

TEST_F(DocumentPatchTest, MakesANewVersionWithoutSystemProperties) {
  const auto version = apply(kIncrement);
  ASSERT_TRUE(version) << version.error().message();
  EXPECT_EQ(version->open_text, R"({"id":"x","pk":"a","n":2)");
  EXPECT_EQ(version->new_id, "x");
  EXPECT_EQ(version->indexed_leaves, 3u);
  EXPECT_EQ(version->own_ttl, partition::kTtlAbsent);
}

TEST_F(DocumentPatchTest, TheBodyIsAnObjectOrTheBareArray) {
  EXPECT_EQ(patched(R"({"operations":[{"op":"set","path":"/n","value":5}],"condition":null})"),
            R"({"id":"x","pk":"a","n":5)");
  for (const auto* body :
       {"", "{", "7", "null", "{}", R"({"operations":{}})", R"({"operations":[]})",
        R"({"operations":[{"op":"remove","path":"/n"}],"condition":7})"}) {
    EXPECT_EQ(refusal(body), ErrorCode::BadRequest) << body;
  }
}

TEST_F(DocumentPatchTest, DependsOnNothingThatTheRequestHad) {
  auto body =
      std::make_unique<std::string>(R"([{"op":"set","path":"/s","value":"kept for later"}])");
  const auto change = read_patch(container, *body);
  ASSERT_TRUE(change);
  body->assign(body->size(), 'x');
  body.reset();
  EXPECT_EQ((*change)(stored)->open_text, R"({"id":"x","pk":"a","n":1,"s":"kept for later")");
}

TEST_F(DocumentPatchTest, TheConditionIsAboutTheStoredDocument) {
  const auto with = [](std::string_view condition) {
    return R"({"operations":[{"op":"incr","path":"/n","value":1}],"condition":")" +
           std::string(condition) + "\"}";
  };
  EXPECT_THAT(patched(with("from c where c.n = 1")), HasSubstr("\"n\":2"));
  EXPECT_EQ(refusal(with("from c where c.n = 2")), ErrorCode::PreconditionFailed);
  EXPECT_THAT(message, HasSubstr("One of the specified pre-condition is not met"));
  EXPECT_EQ(refusal(with("from c where c.missing = 2")), ErrorCode::PreconditionFailed);
  EXPECT_EQ(refusal(with("c.n = 1")), ErrorCode::BadRequest);
  EXPECT_EQ(
      refusal(R"({"operations":[{"op":"remove","path":"/z"}],"condition":"from c where false"})"),
      ErrorCode::PreconditionFailed)
      << "before the operations are judged";
}

TEST_F(DocumentPatchTest, IdSystemPropertiesAndTheKeyStayAsTheyAre) {
  for (const auto* path : {"/id", "/id/x", "/_rid", "/_self", "/_etag", "/_ts", "/_attachments",
                           "/_lsn", "/_ts/x", "/pk", "/pk/x"}) {
    const std::string quoted = "\"" + std::string(path) + "\"";
    EXPECT_EQ(refusal(R"([{"op":"set","value":1,"path":)" + quoted + "}]"), ErrorCode::BadRequest);
    EXPECT_THAT(message, StartsWith("For Operation(1): "));
    EXPECT_EQ(refusal(R"([{"op":"move","path":"/z","from":)" + quoted + "}]"),
              ErrorCode::BadRequest);
  }
  EXPECT_THAT(
      patched(R"([{"op":"set","path":"/ttl","value":9},{"op":"set","path":"/_x","value":1}])"),
      HasSubstr(R"("ttl":9,"_x":1)"));
}

TEST_F(DocumentPatchTest, WhatIsAboveOrBelowAKeyPathStaysToo) {
  container =
      test_container(R"(,"partitionKey":{"paths":["/a/b","/t"],"kind":"MultiHash","version":2})");
  stored = R"({"id":"x","a":{"b":"1"},"t":"2"})";
  const auto set = [](std::string_view path) {
    return R"([{"op":"set","value":1,"path":")" + std::string(path) + "\"}]";
  };
  for (const auto* path : {"/a", "/a/b", "/a/b/c", "/t"}) {
    EXPECT_EQ(refusal(set(path)), ErrorCode::BadRequest) << path;
  }
  EXPECT_EQ(patched(set("/a/c")), R"({"id":"x","a":{"b":"1","c":1},"t":"2")");
  EXPECT_EQ(patched(set("/b")), R"({"id":"x","a":{"b":"1"},"t":"2","b":1)");
}

TEST_F(DocumentPatchTest, LimitsHoldAfterThePatch) {
  const std::string half(1 << 20, 'x');
  stored = R"({"id":"x","pk":"a","s":")" + half + "\"}";
  EXPECT_EQ(refusal(R"([{"op":"set","path":"/t","value":")" + half + "\"}]"),
            ErrorCode::RequestTooLarge);
  // {"id":"x","pk":"a","s":"…","t":"…"} has 33 bytes besides.
  const std::string rest((1 << 20) - 33, 'x');
  EXPECT_TRUE(apply(R"([{"op":"set","path":"/t","value":")" + rest + "\"}]"));
  EXPECT_EQ(refusal(R"([{"op":"set","path":"/t","value":"y)" + rest + "\"}]"),
            ErrorCode::RequestTooLarge);
  std::string path = "/l";
  stored = R"({"id":"x","pk":"a","l":)" + std::string(127, '[') + std::string(127, ']') + "}";
  for (int i = 0; i < 126; ++i) path += "/0";
  EXPECT_EQ(refusal(R"([{"op":"add","value":[],"path":")" + path + "/0\"}]"),
            ErrorCode::BadRequest);
  EXPECT_THAT(message, HasSubstr("nested"));
  EXPECT_TRUE(apply(R"([{"op":"add","value":1,"path":")" + path + "/0\"}]"));
}

TEST_F(DocumentPatchTest, RulesOfTheContainerHoldAfterThePatch) {
  container = test_container(
      kHashKey + R"(,"defaultTtl":-1,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/u"]}]})");
  EXPECT_EQ(refusal(R"([{"op":"set","path":"/ttl","value":0}])"), ErrorCode::BadRequest);
  const auto version =
      apply(R"([{"op":"set","path":"/ttl","value":60},{"op":"set","path":"/u","value":1}])");
  ASSERT_TRUE(version);
  EXPECT_EQ(version->own_ttl, 60);
  EXPECT_EQ(version->unique_values.size(), 1u);
}

}  // namespace
}  // namespace orrery::api
