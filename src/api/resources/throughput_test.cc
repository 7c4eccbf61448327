#include "api/resources/throughput.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/test_request.h"
#include "protocol/wire/headers.h"

namespace orrery::api {
namespace {

using testing::HasSubstr;

catalog::Throughput manual(std::int64_t units) {
  catalog::Throughput throughput;
  throughput.manual = units;
  return throughput;
}

Result<std::optional<catalog::Throughput>> requested(HeaderName name, std::string_view value) {
  TestRequest request("POST");
  request.header(name, value);
  return requested_throughput(request.context());
}

std::string refusal(const auto& result) {
  if (result) return "accepted";
  EXPECT_EQ(result.error().code(), ErrorCode::BadRequest);
  return result.error().message();
}

// ── on creation ──────────────────────────────────────────────────────────────────────────────────

TEST(RequestedThroughputTest, IsNothingWhenNothingIsAsked) {
  TestRequest request("POST");
  EXPECT_EQ(requested_throughput(request.context()).value(), std::nullopt);
  EXPECT_EQ(requested(headers::kOfferType, "Invalid").value(), std::nullopt);
}

TEST(RequestedThroughputTest, ManualIsFrom400InHundreds) {
  for (const auto* value : {"400", "500", "10000", "1000000"}) {
    EXPECT_EQ(requested(headers::kOfferThroughput, value).value(), manual(std::stoll(value)));
  }
  for (const auto* value : {"0", "399", "300", "450", "1000100", "-400"}) {
    EXPECT_THAT(refusal(requested(headers::kOfferThroughput, value)), HasSubstr("400")) << value;
  }
  for (const auto* value : {"x", "400x", "4e2", "400.0", "99999999999999999999"}) {
    EXPECT_THAT(refusal(requested(headers::kOfferThroughput, value)), HasSubstr("whole number"))
        << value;
  }
}

TEST(RequestedThroughputTest, AutoscaleIsFrom1000InThousands) {
  const auto asked = requested(headers::kAutopilotSettings, R"({"maxThroughput":4000})").value();
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->autoscale_max, 4000);
  EXPECT_EQ(asked->manual, std::nullopt);
  EXPECT_EQ(asked->request_units(), 4000);
  for (const auto* value : {R"({"maxThroughput":999})", R"({"maxThroughput":1500})",
                            R"({"maxThroughput":1001000})", R"({"maxThroughput":"4000"})",
                            R"({"maxThroughput":4000.5})", R"({})", R"([])", "4000", "{"}) {
    EXPECT_NE(refusal(requested(headers::kAutopilotSettings, value)), "accepted") << value;
  }
}

TEST(RequestedThroughputTest, AutoscaleMayUpgradeItself) {
  const auto settings = [](std::string_view percent) {
    return R"({"maxThroughput":4000,"autoUpgradePolicy":{"throughputPolicy":{"incrementPercent":)" +
           std::string(percent) + "}}}";
  };
  EXPECT_EQ(requested(headers::kAutopilotSettings, settings("10")).value()->increment_percent, 10);
  EXPECT_EQ(requested(headers::kAutopilotSettings, settings("0")).value()->increment_percent, 0);
  EXPECT_THAT(refusal(requested(headers::kAutopilotSettings, settings("101"))),
              HasSubstr("incrementPercent"));
  EXPECT_THAT(refusal(requested(headers::kAutopilotSettings,
                                R"({"maxThroughput":4000,"autoUpgradePolicy":{}})")),
              HasSubstr("incrementPercent"));
}

TEST(RequestedThroughputTest, TheOldLevelsAreKnown) {
  EXPECT_EQ(requested(headers::kOfferType, "S2").value()->legacy_type, "S2");
  EXPECT_THAT(refusal(requested(headers::kOfferType, "S4")), HasSubstr("S1, S2 or S3"));
}

TEST(RequestedThroughputTest, ManualAndAutoscaleExcludeEachOther) {
  TestRequest request("POST");
  request.header(headers::kOfferThroughput, "400")
      .header(headers::kAutopilotSettings, R"({"maxThroughput":4000})");
  EXPECT_THAT(refusal(requested_throughput(request.context())), HasSubstr("exclude each other"));
}

// ── on replacement ───────────────────────────────────────────────────────────────────────────────

catalog::Offer offer(const catalog::Throughput& throughput, std::int64_t highest) {
  catalog::Offer made;
  made.throughput = throughput;
  made.highest_ever = highest;
  return made;
}

Result<catalog::Throughput> replaced(const catalog::Offer& current, std::string_view body) {
  TestRequest request("PUT");
  return replaced_throughput(request.context(), current, Json::parse(body));
}

TEST(ReplacedThroughputTest, IsWhatTheContentSays) {
  const auto current = offer(manual(400), 400);
  EXPECT_EQ(replaced(current, R"({"content":{"offerThroughput":600}})").value(), manual(600));
  EXPECT_EQ(replaced(current, R"({"content":{"offerAutopilotSettings":{"maxThroughput":2000}}})")
                .value()
                .autoscale_max,
            2000);
  EXPECT_EQ(replaced(current, R"({"offerVersion":"V1","offerType":"S1"})").value().legacy_type,
            "S1");
  for (const auto* body :
       {R"({})", R"({"content":{}})", R"({"content":{"offerThroughput":"600"}})",
        R"({"content":{"offerThroughput":600.5}})", R"({"content":{"offerThroughput":650}})",
        R"({"content":{"offerThroughput":300}})", R"({"offerVersion":"V1","offerType":"S9"})"}) {
    EXPECT_NE(refusal(replaced(current, body)), "accepted") << body;
  }
}

TEST(ReplacedThroughputTest, CannotGoBelowAHundredthOfTheHighestEver) {
  EXPECT_EQ(minimum_throughput(offer(manual(400), 400)), 400);
  EXPECT_EQ(minimum_throughput(offer(manual(400), 40'000)), 400);
  EXPECT_EQ(minimum_throughput(offer(manual(400), 100'000)), 1000);
  EXPECT_EQ(minimum_throughput(offer(manual(400), 100'100)), 1100) << "in hundreds, upwards";
  const auto current = offer(manual(100'000), 100'000);
  EXPECT_THAT(refusal(replaced(current, R"({"content":{"offerThroughput":900}})")),
              HasSubstr("1000"));
  EXPECT_EQ(replaced(current, R"({"content":{"offerThroughput":1000}})").value(), manual(1000));
}

}  // namespace
}  // namespace orrery::api
