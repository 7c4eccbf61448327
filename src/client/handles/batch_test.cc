#include "client/handles/batch.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/exchange/test_pipeline.h"
#include "orrery/container.h"
#include "protocol/wire/batch.h"

namespace orrery::client {
namespace {

using test::answer_of;
using test::header_of;
using test::TestPipeline;
using ::testing::ElementsAre;
using ::testing::SizeIs;

class BatchTest : public ::testing::Test {
 protected:
  std::shared_ptr<TestPipeline> pipeline = std::make_shared<TestPipeline>();
  Container stars{pipeline, "sky", "stars"};
};

TEST(PatchTest, EveryStepHasItsFormOnTheWire) {
  const Patch patch{
      {PatchOperation::add("/tags/-", R"("bright")"), PatchOperation::set("/name", R"("Deneb")"),
       PatchOperation::replace("/magnitude", "1.25"), PatchOperation::remove("/old"),
       PatchOperation::increment("/seen", std::int64_t{9'007'199'254'740'993}),
       PatchOperation::increment("/mass", 0.5), PatchOperation::move("/a", "/b")},
      ""};
  EXPECT_EQ(patch.to_json(), R"({"operations":[{"op":"add","path":"/tags/-","value":"bright"},)"
                             R"({"op":"set","path":"/name","value":"Deneb"},)"
                             R"({"op":"replace","path":"/magnitude","value":1.25},)"
                             R"({"op":"remove","path":"/old"},)"
                             R"({"op":"incr","path":"/seen","value":9007199254740993},)"
                             R"({"op":"incr","path":"/mass","value":0.5},)"
                             R"({"op":"move","path":"/b","from":"/a"}]})");
}

TEST(PatchTest, ConditionIsEscaped) {
  const Patch patch{{PatchOperation::set("/\"odd\"", "1")}, "from c where c.name = \"x\""};
  EXPECT_EQ(patch.to_json(), R"({"condition":"from c where c.name = \"x\"",)"
                             R"("operations":[{"op":"set","path":"/\"odd\"","value":1}]})");
}

TEST(PatchTest, IncrementByWhatIsNoNumberIsRefused) {
  EXPECT_THROW(PatchOperation::increment("/a", std::numeric_limits<double>::quiet_NaN()),
               CosmosException);
  EXPECT_THROW(PatchOperation::increment("/a", std::numeric_limits<double>::infinity()),
               CosmosException);
}

TEST_F(BatchTest, ServerReadsWhatIsSent) {
  pipeline->respond = [](const Call&) {
    return answer_of(200, R"([{"statusCode":201,"requestCharge":1},)"
                          R"({"statusCode":201,"requestCharge":1},)"
                          R"({"statusCode":200,"requestCharge":1},)"
                          R"({"statusCode":200,"requestCharge":1},)"
                          R"({"statusCode":204,"requestCharge":1},)"
                          R"({"statusCode":200,"requestCharge":1}])");
  };
  const Patch patch{{PatchOperation::set("/a", "1")}, ""};
  auto conditional = ItemOperation::replace("é\"", R"({"id":"é\""})");
  conditional.with_if_match("\"etag\"");
  stars.execute_batch({ItemOperation::create(R"({"id": "1"})"),
                       ItemOperation::upsert(R"({"id":"2"})"), ItemOperation::read("3"),
                       conditional, ItemOperation::remove("5"), ItemOperation::patch("6", patch)},
                      "cygnus");

  const Call& call = pipeline->last_call();
  EXPECT_EQ(call.method, "POST");
  EXPECT_EQ(call.type, "docs");
  EXPECT_EQ(call.link, "dbs/sky/colls/stars");
  EXPECT_TRUE(call.list);
  EXPECT_TRUE(call.writes);
  EXPECT_EQ(call.container, "dbs/sky/colls/stars");
  EXPECT_EQ(header_of(call, "x-ms-cosmos-is-batch-request"), "True");
  EXPECT_EQ(header_of(call, "x-ms-cosmos-batch-atomic"), "True");
  EXPECT_EQ(header_of(call, "x-ms-documentdb-partitionkey"), R"(["cygnus"])");
  EXPECT_EQ(header_of(call, "content-type"), "application/json");

  const auto read = read_json_batch(call.body);
  ASSERT_TRUE(read) << read.error().message();
  ASSERT_THAT(*read, SizeIs(6));
  EXPECT_EQ((*read)[0].type, BatchOperationType::Create);
  EXPECT_EQ((*read)[0].resource_body, R"({"id": "1"})") << "a document keeps its spaces";
  EXPECT_EQ((*read)[1].type, BatchOperationType::Upsert);
  EXPECT_EQ((*read)[2].type, BatchOperationType::Read);
  EXPECT_EQ((*read)[2].id, "3");
  EXPECT_EQ((*read)[3].type, BatchOperationType::Replace);
  EXPECT_EQ((*read)[3].id, "é\"");
  EXPECT_EQ((*read)[3].if_match, "\"etag\"");
  EXPECT_EQ((*read)[4].type, BatchOperationType::Delete);
  EXPECT_EQ((*read)[5].type, BatchOperationType::Patch);
  EXPECT_EQ((*read)[5].resource_body, patch.to_json());
}

TEST_F(BatchTest, ResultsTellWhatCameOfEach) {
  pipeline->respond = [](const Call&) {
    return answer_of(207, R"([{"statusCode":424,"requestCharge":0},)"
                          R"({"statusCode":409,"subStatusCode":3,"requestCharge":1.24,)"
                          R"("message":"taken \"twice\""},)"
                          R"({"statusCode":429,"retryAfterMilliseconds":17,"requestCharge":0}])");
  };
  const auto response = stars.execute_batch(
      {ItemOperation::create("{}"), ItemOperation::create("{}"), ItemOperation::create("{}")},
      "cygnus");
  EXPECT_FALSE(response.ok());
  EXPECT_EQ(response.status, 207);
  EXPECT_EQ(response.results[0].status, 424);
  EXPECT_EQ(response.results[1].status, 409);
  EXPECT_EQ(response.results[1].sub_status, 3);
  EXPECT_DOUBLE_EQ(response.results[1].request_charge, 1.24);
  EXPECT_EQ(response.results[1].message, "taken \"twice\"");
  EXPECT_EQ(response.results[2].retry_after, std::chrono::milliseconds(17));
}

TEST_F(BatchTest, DocumentOfAResultKeepsItsBytes) {
  pipeline->respond = [](const Call&) {
    return answer_of(200, R"([{"statusCode":200,"requestCharge":1,"eTag":"\"e\"",)"
                          R"("resourceBody":{ "id":"1", "n":1.50e2 }}])");
  };
  const auto response = stars.execute_batch({ItemOperation::read("1")}, "cygnus");
  EXPECT_TRUE(response.ok());
  EXPECT_EQ(response.results[0].json, R"({ "id":"1", "n":1.50e2 })");
  EXPECT_EQ(response.results[0].etag, "\"e\"");
}

TEST_F(BatchTest, AnswerWithTooFewResultsIsNoAnswer) {
  pipeline->respond = [](const Call&) { return answer_of(200, "[]"); };
  EXPECT_THROW(stars.execute_batch({ItemOperation::read("1")}, "cygnus"), CosmosException);
  pipeline->respond = [](const Call&) { return answer_of(200, "not JSON"); };
  EXPECT_THROW(stars.execute_batch({ItemOperation::read("1")}, "cygnus"), CosmosException);
}

TEST_F(BatchTest, OperationThatLacksSomethingIsNotSent) {
  for (const auto& operation :
       {ItemOperation::read(""), ItemOperation::create(""), ItemOperation::replace("1", "")}) {
    try {
      stars.execute_batch({operation}, "cygnus");
      ADD_FAILURE() << "was sent";
    } catch (const CosmosException& refused) {
      EXPECT_EQ(refused.failure(), Failure::Argument);
    }
  }
  EXPECT_THAT(pipeline->calls, SizeIs(0));
}

TEST_F(BatchTest, OnlyWhatComesToTheSameTwiceMayBeRepeated) {
  pipeline->respond = [](const Call&) {
    return answer_of(200, R"([{"statusCode":200},{"statusCode":200}])");
  };
  const auto is_repeated = [&](ItemOperation second) {
    stars.execute_batch({ItemOperation::upsert("{}"), std::move(second)}, "cygnus");
    return pipeline->last_call().repeatable;
  };
  EXPECT_TRUE(is_repeated(ItemOperation::read("1")));
  EXPECT_TRUE(is_repeated(ItemOperation::remove("1")));
  EXPECT_FALSE(is_repeated(ItemOperation::create("{}")));
  EXPECT_FALSE(is_repeated(ItemOperation::patch("1", {})));
  EXPECT_FALSE(is_repeated(ItemOperation::remove("1").with_if_match("\"e\"")));
}

TEST_F(BatchTest, DocumentsWithoutAKeyAreFoundInBothKindsOfContainers) {
  pipeline->respond = [](const Call&) { return answer_of(200, R"([{"statusCode":200}])"); };
  stars.execute_batch({ItemOperation::read("1")}, PartitionKey::none());
  EXPECT_EQ(header_of(pipeline->last_call(), "x-ms-documentdb-partitionkey"), "[{}]");

  PartitionKeyDefinition system_key{{{"_partitionKey"}}, KeyKind::Hash, 1, true};
  pipeline->map = test::routing_of({}, system_key);
  stars.execute_batch({ItemOperation::read("1")}, PartitionKey::none());
  EXPECT_EQ(header_of(pipeline->last_call(), "x-ms-documentdb-partitionkey"), "[]");
}

}  // namespace
}  // namespace orrery::client
