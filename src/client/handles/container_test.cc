#include "orrery/container.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/exchange/test_pipeline.h"
#include "orrery/client.h"

namespace orrery::client {
namespace {

using test::answer_of;
using test::header_of;
using test::TestPipeline;
using ::testing::SizeIs;

class ContainerTest : public ::testing::Test {
 protected:
  std::optional<std::string> sent(std::string_view header) const {
    return header_of(pipeline->last_call(), header);
  }

  std::shared_ptr<TestPipeline> pipeline = std::make_shared<TestPipeline>();
  Container stars{pipeline, "sky", "stars"};
};

TEST_F(ContainerTest, CreateSendsTheTextAsItIs) {
  pipeline->respond = [](const Call& call) {
    return answer_of(201, call.body + " ", {{"etag", "\"e\""}});
  };
  const auto response = stars.create_item(R"({ "id":"deneb", "n":1.0e0 })", "cygnus");
  const Call& call = pipeline->last_call();
  EXPECT_EQ(call.method, "POST");
  EXPECT_EQ(call.type, "docs");
  EXPECT_EQ(call.link, "dbs/sky/colls/stars");
  EXPECT_TRUE(call.list);
  EXPECT_TRUE(call.writes);
  EXPECT_FALSE(call.repeatable);
  EXPECT_EQ(call.container, "dbs/sky/colls/stars");
  EXPECT_EQ(call.body, R"({ "id":"deneb", "n":1.0e0 })");
  EXPECT_EQ(sent("x-ms-documentdb-partitionkey"), R"(["cygnus"])");
  EXPECT_EQ(sent("content-type"), "application/json");
  EXPECT_FALSE(sent("prefer"));
  EXPECT_FALSE(sent("x-ms-documentdb-is-upsert"));
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(response.value, R"({ "id":"deneb", "n":1.0e0 } )");
}

TEST_F(ContainerTest, UpsertMayBeRepeatedUnlessItHasACondition) {
  stars.upsert_item("{}", 1);
  EXPECT_EQ(sent("x-ms-documentdb-is-upsert"), "True");
  EXPECT_TRUE(pipeline->last_call().repeatable);
  ItemOptions options;
  options.if_match = "\"e\"";
  stars.upsert_item("{}", 1, options);
  EXPECT_FALSE(pipeline->last_call().repeatable);
  EXPECT_EQ(sent("if-match"), "\"e\"");
}

TEST_F(ContainerTest, WritesCarryTheirOptions) {
  ItemOptions options;
  options.if_match = "*";
  options.return_content = false;
  options.pre_triggers = {"check", "stamp"};
  options.post_triggers = {"count"};
  stars.replace_item("deneb b", "{}", "cygnus", options);
  EXPECT_EQ(pipeline->last_call().method, "PUT");
  EXPECT_EQ(pipeline->last_call().link, "dbs/sky/colls/stars/docs/deneb b");
  EXPECT_FALSE(pipeline->last_call().list);
  EXPECT_EQ(sent("if-match"), "*");
  EXPECT_EQ(sent("prefer"), "return=minimal");
  EXPECT_EQ(sent("x-ms-documentdb-pre-trigger-include"), "check,stamp");
  EXPECT_EQ(sent("x-ms-documentdb-post-trigger-include"), "count");
}

TEST_F(ContainerTest, ReadThatFindsNothingNewHasNoText) {
  pipeline->respond = [](const Call&) { return answer_of(304, ""); };
  ItemOptions options;
  options.if_none_match = "\"e\"";
  options.return_content = false;  // Of writes only.
  const auto response = stars.read_item("deneb", "cygnus", options);
  EXPECT_EQ(sent("if-none-match"), "\"e\"");
  EXPECT_FALSE(sent("prefer"));
  EXPECT_FALSE(pipeline->last_call().writes);
  EXPECT_EQ(response.status, 304);
  EXPECT_EQ(response.value, "");
}

TEST_F(ContainerTest, PatchAndDelete) {
  stars.patch_item("deneb", {{PatchOperation::remove("/a")}, ""}, true);
  EXPECT_EQ(pipeline->last_call().method, "PATCH");
  EXPECT_EQ(sent("content-type"), "application/json_patch+json");
  EXPECT_EQ(pipeline->last_call().body, R"({"operations":[{"op":"remove","path":"/a"}]})");
  EXPECT_FALSE(pipeline->last_call().repeatable);
  stars.delete_item("deneb", nullptr);
  EXPECT_EQ(pipeline->last_call().method, "DELETE");
  EXPECT_EQ(sent("x-ms-documentdb-partitionkey"), "[null]");
}

TEST_F(ContainerTest, KeyOfDocumentsThatLackItDependsOnTheContainer) {
  stars.read_item("deneb", PartitionKey::none());
  EXPECT_EQ(sent("x-ms-documentdb-partitionkey"), "[{}]");
  pipeline->map = test::routing_of({}, {{{"_partitionKey"}}, KeyKind::Hash, 1, true});
  stars.read_item("deneb", PartitionKey::none());
  EXPECT_EQ(sent("x-ms-documentdb-partitionkey"), "[]");
  EXPECT_EQ(stars.feed_range_of(PartitionKey::none()), FeedRange{});
  const int asked = pipeline->routing_count;
  stars.read_item("deneb", "cygnus");
  EXPECT_EQ(pipeline->routing_count, asked) << "nobody else need know of the ranges";
}

TEST_F(ContainerTest, NamesThatWouldAddressSomethingElseAreRefused) {
  const CosmosClient client("http://localhost:1/", "YSBrZXkgb2YgdHdlbnR5IGJ5dGVz");
  const auto refused = [](auto call) {
    try {
      call();
    } catch (const CosmosException& failure) {
      return failure.failure() == Failure::Argument;
    }
    return false;
  };
  EXPECT_TRUE(refused([&] { client.database(""); }));
  EXPECT_TRUE(refused([&] { client.database("a/b"); }));
  EXPECT_TRUE(refused([&] { client.database("a").container(""); }));
  EXPECT_TRUE(refused([&] { client.database("a").container("b/docs/c"); }));
  EXPECT_TRUE(refused([&] { client.create_database(""); }));
  EXPECT_TRUE(refused([&] { stars.delete_item("", "cygnus"); }));
  EXPECT_TRUE(refused([&] { stars.read_item("a/b", "cygnus"); }));
  EXPECT_THAT(pipeline->calls, SizeIs(0));
}

TEST_F(ContainerTest, RangesAreThoseOfNow) {
  pipeline->next_map = test::routing_of({"1F"}, {{{"pk"}}, KeyKind::Hash, 2}, 1);
  EXPECT_THAT(stars.feed_ranges(),
              ::testing::ElementsAre(FeedRange{"", "1F"}, FeedRange{"1F", "FF"}));
  EXPECT_EQ(pipeline->routing_count, 1) << "what is not known yet need not be forgotten";
  EXPECT_EQ(stars.partition_key_ranges()[0].id, "1");
  EXPECT_EQ(stars.feed_range_of("a").min, "3A5381E1114EB8D3FCC90795045B49B7");
}

TEST_F(ContainerTest, TimeOfACallIsForAllItsRequests) {
  RequestOptions options;
  options.timeout = std::chrono::seconds(5);
  pipeline->respond = [](const Call& call) {
    return call.type == "colls"
               ? answer_of(200, R"({"id":"stars","_rid":"KxEAAJE-AgA="})")
               : answer_of(200, R"({"Offers":[{"id":"o","content":{"offerThroughput":400}}]})");
  };
  EXPECT_EQ(stars.read_throughput(options).value.manual, 400);
  ASSERT_THAT(pipeline->call_options, SizeIs(2));
  EXPECT_LE(*pipeline->call_options[1].timeout, *pipeline->call_options[0].timeout);
  EXPECT_GT(pipeline->call_options[1].timeout->count(), 0);

  options.timeout = std::chrono::milliseconds(0);
  try {
    stars.read_throughput(options);
    ADD_FAILURE() << "there was no time";
  } catch (const CosmosException& failure) {
    EXPECT_EQ(failure.failure(), Failure::Timeout);
  }
}

TEST(ConnectionStringTest, HasEndpointAndKey) {
  const auto client = CosmosClient::from_connection_string(
      "AccountEndpoint=http://localhost:8081/;AccountKey=YSBrZXkgb2YgdHdlbnR5IGJ5dGVz;");
  EXPECT_TRUE(client.endpoint().starts_with("http://localhost:8081"));
  for (const char* text :
       {"", "AccountEndpoint=http://localhost:8081/", "AccountKey=YSBrZXkgb2YgdHdlbnR5IGJ5dGVz",
        "AccountEndpoint=;AccountKey=;", "nonsense"}) {
    EXPECT_THROW(CosmosClient::from_connection_string(text), CosmosException) << text;
  }
}

TEST_F(ContainerTest, WithoutAKeyItIsTheOneInTheDocument) {
  pipeline->map = test::routing_of({}, {{{"orbit", "of"}}, KeyKind::Hash, 2});
  stars.create_item(R"({"id":"io","orbit":{"of":"jupiter"}})");
  EXPECT_EQ(sent("x-ms-documentdb-partitionkey"), R"(["jupiter"])");
  EXPECT_FALSE(sent("x-ms-documentdb-is-upsert"));
  stars.upsert_item(R"({"id":"io","orbit":{"of":5}})", {.if_match = "\"e\""});
  EXPECT_EQ(sent("x-ms-documentdb-partitionkey"), "[5]");
  EXPECT_EQ(sent("if-match"), "\"e\"");
  stars.replace_item("io", R"({"id":"io"})");
  EXPECT_EQ(sent("x-ms-documentdb-partitionkey"), "[{}]") << "the property is missing";
  EXPECT_EQ(pipeline->last_call().link, "dbs/sky/colls/stars/docs/io");
  pipeline->map = test::routing_of({}, {{{"a"}, {"b"}}, KeyKind::MultiHash, 2});
  stars.create_item(R"({"id":"io","b":true})");
  EXPECT_EQ(sent("x-ms-documentdb-partitionkey"), "[{},true]");
  pipeline->map = test::routing_of({}, {});
  stars.create_item(R"({"id":"io","b":true})");
  EXPECT_EQ(sent("x-ms-documentdb-partitionkey"), "[]") << "the container has no key";

  const auto calls = pipeline->calls.size();
  for (const char* text : {"", "[1]", "{"}) {
    EXPECT_THROW(stars.create_item(text), CosmosException) << text;
  }
  EXPECT_EQ(pipeline->calls.size(), calls) << "nothing was sent";
}

TEST_F(ContainerTest, AKeyThatAnotherContainerOfTheNameHasIsLookedForAnew) {
  pipeline->map = test::routing_of({}, {{{"old"}}, KeyKind::Hash, 2});
  pipeline->next_map = test::routing_of({}, {{{"new"}}, KeyKind::Hash, 2});
  pipeline->respond = [&](const Call& call) -> Answer {
    if (header_of(call, "x-ms-documentdb-partitionkey") != R"(["b"])")
      throw test::refusal(400, 1001);
    return answer_of(201, "{}");
  };
  EXPECT_EQ(stars.create_item(R"({"id":"1","old":"a","new":"b"})").status, 201);
  EXPECT_THAT(pipeline->calls, SizeIs(2));
  EXPECT_THROW(stars.create_item(R"({"id":"1","old":"a","new":"c"})"), CosmosException);
  EXPECT_THAT(pipeline->calls, SizeIs(4)) << "once, and then it is told";
}

/// As much of a JSON library as a document needs.
struct OwnJson {
  std::string text;
  std::string dump() const { return text; }
};

TEST_F(ContainerTest, ValuesThatWriteThemselvesAreTakenWhereverTextIs) {
  const OwnJson value{R"({"id":"io","pk":"a"})"};
  stars.create_item(value);
  EXPECT_EQ(pipeline->last_call().body, value.text);
  stars.upsert_item(value, "a");
  EXPECT_EQ(pipeline->last_call().body, value.text);
  stars.replace_item("io", value);
  EXPECT_EQ(pipeline->last_call().body, value.text);
  EXPECT_EQ(ItemOperation::create(value).json, value.text);
  EXPECT_EQ(ItemOperation::replace("io", value).json, value.text);
  EXPECT_EQ(PatchOperation::set("/a", OwnJson{"1"}).json, "1");
  EXPECT_EQ(QueryParameter("@a", OwnJson{"1"}).json, "1");
  const std::string text = "kept";
  EXPECT_EQ(ItemOperation::upsert(text).json, "kept");
  EXPECT_EQ(text, "kept");
}

}  // namespace
}  // namespace orrery::client
