#include "protocol/wire/batch.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

using testing::HasSubstr;

std::string batch_refusal(std::string_view body) {
  const auto read = read_json_batch(body);
  EXPECT_FALSE(read) << body;
  if (read) return {};
  EXPECT_EQ(read.error().code(), ErrorCode::BadRequest);
  return read.error().message();
}

std::vector<BatchOperation> operations(std::string_view body) {
  auto read = read_json_batch(body);
  EXPECT_TRUE(read) << read.error().message();
  return read ? std::move(*read) : std::vector<BatchOperation>();
}

TEST(JsonBatch, EachOperationHasItsMembers) {
  const auto read = operations(R"( [
    {"operationType":"Create","resourceBody":{"id":"o1","a":[1,{"b":"]}\""}]}},
    {"operationType":"Read","id":"o3","ifNoneMatch":"\"00-e9\""},
    {"operationType":"rePLACE","id":"o\u00344","resourceBody": {"id" : "o4"} ,"ifMatch":"\"00-e2\"",
     "indexingDirective":"Exclude","minimalReturnPreference":true},
    {"operationType":"Patch","id":"o5","resourceBody":[{"op":"incr","path":"/n","value":1}]},
    {"operationType":"Delete","id":"o6","partitionKey":"[\"eu-1\"]","binaryId":null,"other":[{}]},
    {"operationType":"Upsert","partitionKey":["a",1]}
  ] )");
  ASSERT_EQ(read.size(), 6u);
  EXPECT_EQ(read[0].type, BatchOperationType::Create);
  EXPECT_EQ(read[0].resource_body, R"({"id":"o1","a":[1,{"b":"]}\""}]})");
  EXPECT_EQ(read[0].id, std::nullopt);
  EXPECT_EQ(read[1].type, BatchOperationType::Read);
  EXPECT_EQ(read[1].id, "o3");
  EXPECT_EQ(read[1].if_none_match, "\"00-e9\"");
  EXPECT_EQ(read[2].type, BatchOperationType::Replace);
  EXPECT_EQ(read[2].id, "o44");
  EXPECT_EQ(read[2].resource_body, R"({"id" : "o4"})") << "its bytes are kept";
  EXPECT_EQ(read[2].if_match, "\"00-e2\"");
  EXPECT_EQ(read[2].indexing_directive, "Exclude");
  EXPECT_TRUE(read[2].minimal_return);
  EXPECT_EQ(read[3].type, BatchOperationType::Patch);
  EXPECT_EQ(read[3].resource_body, R"([{"op":"incr","path":"/n","value":1}])");
  EXPECT_EQ(read[4].type, BatchOperationType::Delete);
  EXPECT_EQ(read[4].partition_key, R"(["eu-1"])");
  EXPECT_EQ(read[5].type, BatchOperationType::Upsert);
  EXPECT_EQ(read[5].partition_key, R"(["a",1])");
}

TEST(JsonBatch, ABodyThatIsNoArrayOfOperationsIsRefused) {
  for (const auto* body : {"",
                           "  ",
                           "{}",
                           "null",
                           "[",
                           "[1]",
                           "[{}",
                           "[{]",
                           R"([{"operationType")",
                           R"([{"operationType":)",
                           R"([{"operationType":"Read")",
                           R"([{"operationType":"Read"})",
                           R"([{"operationType":"Read"},])",
                           R"([{"operationType":"Read"}{"operationType":"Read"}])",
                           R"([{"operationType":"Read"}] x)",
                           R"([{operationType:"Read"}])",
                           R"([{"operationType":"Read",}])",
                           R"([{"operationType":"Read)",
                           R"([{"operationType":"Read\)",
                           "[\"\xff\"]",
                           R"([{"operationType":"Read" "id":"a"}])",
                           R"([{"operationType":"Read","x":{"a":]})",
                           R"([{"operationType":"Read","x":tru}])"}) {
    EXPECT_THAT(batch_refusal(body), HasSubstr("batch request")) << body;
  }
}

TEST(JsonBatch, WhatIsWrongIsSaidWithTheNumberOfTheOperation) {
  const std::string good = R"({"operationType":"Read","id":"a"})";
  EXPECT_THAT(
      batch_refusal("[" + good + R"(,{"id":"a"}])"),
      HasSubstr("Operation 2 of the batch request is malformed: it lacks its 'operationType'"));
  EXPECT_THAT(batch_refusal("[" + good + R"(,{"operationType":"Query"}])"), HasSubstr("\"Query\""));
  EXPECT_THAT(batch_refusal(R"([{"operationType":2}])"), HasSubstr("not 2"));
  EXPECT_THAT(batch_refusal(R"([{"operationType":"Read","id":7}])"),
              HasSubstr("'id' must be a string"));
  EXPECT_THAT(batch_refusal(R"([{"operationType":"Read","ifMatch":7}])"), HasSubstr("'ifMatch'"));
  EXPECT_THAT(batch_refusal(R"([{"operationType":"Read","partitionKey":7}])"),
              HasSubstr("'partitionKey'"));
  EXPECT_THAT(batch_refusal(R"([{"operationType":"Read","minimalReturnPreference":"x"}])"),
              HasSubstr("'minimalReturnPreference'"));
}

TEST(JsonBatch, ABatchHasOneToAHundredOperations) {
  EXPECT_EQ(batch_refusal("[]"), "Batch request has no operations.");
  std::string many;
  for (int i = 0; i < 100; ++i) many += R"({"operationType":"Read","id":"a"},)";
  many.pop_back();
  EXPECT_EQ(operations("[" + many + "]").size(), 100u);
  EXPECT_EQ(batch_refusal("[" + many + R"(,{"operationType":"Read","id":"a"}])"),
            "Batch request has more operations than what is supported.");
}

TEST(JsonBatch, ResultsSayWhatThereIsToSay) {
  std::vector<BatchResult> results(4);
  results[0].status = 201;
  results[0].etag = "\"e1\"";
  results[0].resource_body = R"({"id":"x"})";
  results[0].charge_hundredths = 571;
  results[1].status = 424;
  results[2].status = 409;
  results[2].message = "\"taken\"";
  results[2].charge_hundredths = 124;
  results[3].status = 429;
  results[3].substatus = 3092;
  results[3].retry_after_ms = 20;
  results[3].charge_hundredths = 100;
  EXPECT_EQ(
      write_json_batch(results),
      R"([{"statusCode":201,"requestCharge":5.71,"eTag":"\"e1\"","resourceBody":{"id":"x"}},)"
      R"({"statusCode":424,"requestCharge":0},)"
      R"({"statusCode":409,"requestCharge":1.24,"message":"\"taken\""},)"
      R"({"statusCode":429,"subStatusCode":3092,"requestCharge":1,"retryAfterMilliseconds":20}])");
}

}  // namespace
}  // namespace orrery
