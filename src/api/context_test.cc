#include "api/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/reply.h"
#include "api/test_request.h"
#include "protocol/wire/headers.h"

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

/// One for whose answers there is memory up to a size.
class FrugalClient final : public http::Client {
 public:
  void when_gone(std::move_only_function<void()>) override {}
  Result<> hold_answer(std::size_t bytes) override {
    if (bytes <= 1'000) return {};
    return Error(ErrorCode::TooManyRequests, "no memory");
  }
  std::string address() const override { return "client"; }
};

TEST(HoldAnswerTest, ARefusedOneTellsItsClientWhenToComeBack) {
  FrugalClient client;
  TestRequest request;
  request.request().client = &client;
  auto context = request.context();
  EXPECT_TRUE(hold_answer(context, 1'000));
  EXPECT_FALSE(
      error_reply(context, Error(ErrorCode::NotFound, "")).header_lines().contains("retry"));
  const auto held = hold_answer(context, 1'001);
  ASSERT_FALSE(held);
  const auto reply = error_reply(context, held.error());
  EXPECT_EQ(reply.status, 429);
  EXPECT_THAT(std::string(reply.header_lines()), HasSubstr("x-ms-retry-after-ms: 500\r\n"));
}

TEST(HoldAnswerTest, WithoutAConnectionNothingCounts) {
  TestRequest request;
  auto context = request.context();
  EXPECT_TRUE(hold_answer(context, std::size_t{1} << 40));
}

}  // namespace
}  // namespace orrery::api
