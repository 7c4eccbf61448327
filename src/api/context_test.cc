#include "api/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/test_request.h"
#include "protocol/headers.h"

namespace orrery::api {
namespace {

using testing::HasSubstr;

TEST(ContextTest, AFlagIsTrueOrFalseInAnyCaseAndFalseWhenAbsent) {
  TestRequest request;
  request.header(headers::kIsUpsert, "True").header(headers::kIsQuery, "FALSE");
  const auto context = request.context();
  EXPECT_TRUE(context.flag(headers::kIsUpsert).value());
  EXPECT_FALSE(context.flag(headers::kIsQuery).value());
  EXPECT_FALSE(context.flag(headers::kIsBatchRequest).value());
}

TEST(ContextTest, AFlagMayBeANumber) {
  TestRequest request;
  request.header(headers::kIsUpsert, "1").header(headers::kIsQuery, "0");
  const auto context = request.context();
  EXPECT_TRUE(context.flag(headers::kIsUpsert).value());
  EXPECT_FALSE(context.flag(headers::kIsQuery).value());
}

TEST(ContextTest, AnythingElseIsRefusedByName) {
  TestRequest request;
  request.header(headers::kIsUpsert, "yes");
  const auto refused = request.context().flag(headers::kIsUpsert);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::BadRequest);
  EXPECT_THAT(refused.error().message(), HasSubstr("x-ms-documentdb-is-upsert"));
}

std::optional<std::uint32_t> size_of(std::string_view header) {
  TestRequest request;
  request.header(headers::kMaxItemCount, header);
  return page_size(request.context(), 100).value();
}

TEST(PageSizeTest, IsWhatIsAskedForOrTheDefault) {
  TestRequest without;
  EXPECT_EQ(page_size(without.context(), 100).value(), 100);
  EXPECT_EQ(size_of("7"), 7);
  EXPECT_EQ(size_of("0"), 100);
  EXPECT_EQ(size_of("2147483647"), 2147483647);
  EXPECT_EQ(size_of("-1"), std::nullopt) << "no bound by count";
}

TEST(PageSizeTest, RefusesWhatIsNoNumberOrTooSmallOrTooLarge) {
  for (const auto* value : {"-2", "x", "1x", "1.5", "2147483648", "99999999999999999999", "+1"}) {
    TestRequest request;
    request.header(headers::kMaxItemCount, value);
    const auto refused = page_size(request.context(), 100);
    ASSERT_FALSE(refused) << value;
    EXPECT_EQ(refused.error().code(), ErrorCode::BadRequest);
  }
}

}  // namespace
}  // namespace orrery::api
