#include "client/handles/offer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/exchange/test_pipeline.h"
#include "orrery/client.h"

namespace orrery::client {
namespace {

using test::answer_of;
using test::header_of;
using test::TestPipeline;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

const char* const kManual =
    R"({"id":"WLaE","_rid":"WLaE","resource":"dbs/KxEAAA==/","odd":1,"content":{"offerThroughput":400}})";
const char* const kAutoscale = R"({"id":"WLaE","_rid":"WLaE","content":{"offerThroughput":400,)"
                               R"("offerAutopilotSettings":{"maxThroughput":4000}}})";

std::string list_of(const std::string& offer) { return R"({"Offers":[)" + offer + "]}"; }

TEST(OfferTest, ThroughputAtACreationIsAHeader) {
  HeaderList headers;
  add_throughput(headers, Throughput::fixed(400));
  EXPECT_THAT(headers, ElementsAre(Pair("x-ms-offer-throughput", "400")));
  headers.clear();
  add_throughput(headers, Throughput::autoscale(4000));
  EXPECT_THAT(headers, ElementsAre(Pair("x-ms-cosmos-offer-autopilot-settings",
                                        R"({"maxThroughput":4000})")));
  EXPECT_THROW(add_throughput(headers, Throughput{}), CosmosException);
  EXPECT_THROW(add_throughput(headers, Throughput{400, 4000}), CosmosException);
}

TEST(OfferTest, ResourceWithoutOneHasNoThroughput) {
  TestPipeline pipeline;
  pipeline.respond = [](const Call&) { return answer_of(200, list_of("")); };
  try {
    read_throughput_of(pipeline, "KxEAAA==", {});
    ADD_FAILURE() << "there is none";
  } catch (const CosmosException& failure) {
    EXPECT_TRUE(failure.is_not_found());
  }
  EXPECT_EQ(header_of(pipeline.last_call(), "x-ms-documentdb-isquery"), "True");
  EXPECT_EQ(header_of(pipeline.last_call(), "content-type"), "application/query+json");
  EXPECT_THAT(pipeline.last_call().body, HasSubstr(R"({"name":"@rid","value":"KxEAAA=="})"));
}

TEST(OfferTest, ReplacementKeepsTheRestOfTheOffer) {
  TestPipeline pipeline;
  pipeline.respond = [](const Call& call) {
    return call.method == "POST" ? answer_of(200, list_of(kManual)) : answer_of(200, call.body);
  };
  const auto replaced = replace_throughput_of(pipeline, "r", Throughput::fixed(900), {});
  EXPECT_EQ(replaced.value.manual, 900);
  EXPECT_EQ(pipeline.last_call().method, "PUT");
  EXPECT_EQ(pipeline.last_call().link, "offers/WLaE");
  EXPECT_EQ(pipeline.last_call().body,
            R"({"id":"WLaE","_rid":"WLaE","resource":"dbs/KxEAAA==/","odd":1,)"
            R"("content":{"offerThroughput":900}})");
  EXPECT_THAT(pipeline.calls, SizeIs(2));
}

TEST(OfferTest, ChangeOfKindIsAStepOfItsOwn) {
  TestPipeline pipeline;
  pipeline.respond = [](const Call& call) {
    if (call.method == "POST") return answer_of(200, list_of(kManual));
    if (header_of(call, "x-ms-cosmos-migrate-offer-to-autopilot")) {
      return answer_of(200, kAutoscale);
    }
    return answer_of(200, call.body);
  };
  EXPECT_EQ(
      replace_throughput_of(pipeline, "r", Throughput::autoscale(7000), {}).value.autoscale_max,
      7000);
  EXPECT_THAT(pipeline.calls, SizeIs(3));
  EXPECT_EQ(
      replace_throughput_of(pipeline, "r", Throughput::autoscale(4000), {}).value.autoscale_max,
      4000);
  EXPECT_THAT(pipeline.calls, SizeIs(5)) << "the server had chosen just that";
}

}  // namespace
}  // namespace orrery::client
