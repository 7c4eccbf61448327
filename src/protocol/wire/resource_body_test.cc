#include "protocol/wire/resource_body.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

using testing::HasSubstr;

std::string body_refusal(std::string_view body) {
  const auto result = parse_resource_body(body);
  if (result) return "accepted";
  EXPECT_EQ(result.error().code(), ErrorCode::BadRequest);
  return result.error().message();
}

std::string id_refusal(const Json& id) {
  const auto result = parse_resource_id(Json{{"id", id}});
  return result ? "accepted" : result.error().message();
}

TEST(ResourceBodyTest, MembersKeepTheirOrder) {
  const auto body = parse_resource_body(R"({"z":1,"a":{"y":2,"b":3}})");
  ASSERT_TRUE(body.has_value());
  EXPECT_EQ(body->dump(), R"({"z":1,"a":{"y":2,"b":3}})");
}

TEST(ResourceBodyTest, BrokenBodiesAreRefusedWithAReason) {
  EXPECT_THAT(body_refusal(""), HasSubstr("not valid JSON"));
  EXPECT_THAT(body_refusal(R"({"a":)"), HasSubstr("not valid JSON"));
  EXPECT_THAT(body_refusal(R"({"a":1} x)"), HasSubstr("not valid JSON"));
  EXPECT_THAT(body_refusal("{\"a\":\"\xFF\"}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(body_refusal("[1]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(body_refusal("null"), HasSubstr("not a JSON object"));
  EXPECT_THAT(body_refusal("\xEF\xBB\xBF{}"), HasSubstr("byte order mark"));
}

TEST(ResourceBodyTest, NestingOf128IsTheMost) {
  const auto nested = [](int levels) {
    return R"({"a":)" + std::string(static_cast<std::size_t>(levels - 1), '[') +
           std::string(static_cast<std::size_t>(levels - 1), ']') + "}";
  };
  EXPECT_EQ(body_refusal(nested(128)), "accepted");
  EXPECT_THAT(body_refusal(nested(129)), HasSubstr("deeper than 128"));
  EXPECT_THAT(body_refusal(nested(100'000)), HasSubstr("deeper than 128"));
}

TEST(ResourceBodyTest, ManyMembersAreRefusedBeforeTheyCostMuch) {
  std::string body = "{";
  for (int i = 0; i < 200'000; ++i) body += "\"" + std::to_string(i) + "\":0,";
  body += "\"end\":0}";
  EXPECT_THAT(body_refusal(body), HasSubstr("1000 in one object"));
}

TEST(ResourceIdTest, OrdinaryIdsAreAccepted) {
  for (const char* id : {"a", "sample container", "中文", "a.b-c_d", "%20", " leading"}) {
    EXPECT_EQ(id_refusal(id), "accepted") << id;
  }
}

TEST(ResourceIdTest, EveryRuleIsNamed) {
  EXPECT_THAT(parse_resource_id(Json::object()).error().message(),
              HasSubstr("the required properties - 'id; ' - are missing"));
  EXPECT_THAT(id_refusal(nullptr), HasSubstr("must be a string"));
  EXPECT_THAT(id_refusal(5), HasSubstr("must be a string"));
  EXPECT_THAT(id_refusal(""), HasSubstr("empty"));
  for (const char* id : {"a/b", "a\\b", "a?", "#"})
    EXPECT_THAT(id_refusal(id), HasSubstr("contain"));
  EXPECT_THAT(id_refusal("a\tb"), HasSubstr("control"));
  EXPECT_THAT(id_refusal("a\x7F"), HasSubstr("control"));
  EXPECT_THAT(id_refusal("a "), HasSubstr("end with a space"));
}

TEST(ResourceIdTest, LengthIsCountedInCodePoints) {
  std::string id;
  for (int i = 0; i < 255; ++i) id += "\xF0\x9F\x98\x80";
  EXPECT_EQ(id_refusal(id), "accepted");
  EXPECT_THAT(id_refusal(id + "a"), HasSubstr("255"));
}

TEST(IntegerTest, AnIntegerIsOneHoweverItIsWritten) {
  EXPECT_EQ(integer_in(Json(5), 0, 10), 5);
  EXPECT_EQ(integer_in(Json(5.0), 0, 10), 5);
  EXPECT_EQ(integer_in(Json(-1), -1, 10), -1);
  EXPECT_EQ(integer_in(Json(5.5), 0, 10), std::nullopt);
  EXPECT_EQ(integer_in(Json(11), 0, 10), std::nullopt);
  EXPECT_EQ(integer_in(Json(UINT64_MAX), 0, INT64_MAX), std::nullopt);
  EXPECT_EQ(integer_in(Json(1e300), 0, INT64_MAX), std::nullopt);
  EXPECT_EQ(integer_in(Json("5"), 0, 10), std::nullopt);
  EXPECT_EQ(integer_in(Json(true), 0, 10), std::nullopt);
}

}  // namespace
}  // namespace orrery
