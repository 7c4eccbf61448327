#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/container.h"
#include "orrery/exception.h"

namespace orrery::client {
namespace {

using ::testing::ElementsAre;

TEST(ContainerPropertiesTest, NewOneHasAModernKey) {
  ContainerProperties properties;
  properties.id = "stars";
  properties.partition_key_paths = {"/constellation"};
  EXPECT_EQ(properties.to_json(),
            R"({"id":"stars",)"
            R"("partitionKey":{"paths":["/constellation"],"kind":"Hash","version":2}})");
  properties.partition_key_paths = {"/a", "/b"};
  properties.default_ttl = -1;
  properties.change_feed_policy = R"({"retentionDuration": 60})";
  EXPECT_EQ(properties.to_json(),
            R"({"id":"stars","partitionKey":{"paths":["/a","/b"],"kind":"MultiHash","version":2},)"
            R"("defaultTtl":-1,"changeFeedPolicy":{"retentionDuration": 60}})");
}

TEST(ContainerPropertiesTest, WhatIsUnknownGoesBackAsItCame) {
  const std::string text =
      R"({"id":"stars","computedProperties":[ {"name":"a"} ],)"
      R"("partitionKey":{"paths":["/pk"],"kind":"Hash"},"defaultTtl":60,)"
      R"("indexingPolicy":{"indexingMode":"none"},"_rid":"KxEAAJE-AgA=","_etag":"\"e\""})";
  auto properties = ContainerProperties::from_json(text);
  EXPECT_EQ(properties.id, "stars");
  EXPECT_THAT(properties.partition_key_paths, ElementsAre("/pk"));
  EXPECT_EQ(properties.default_ttl, 60);
  EXPECT_EQ(properties.indexing_policy, R"({"indexingMode":"none"})");
  EXPECT_EQ(properties.rid, "KxEAAJE-AgA=");
  EXPECT_EQ(properties.etag, "\"e\"");
  EXPECT_EQ(properties.to_json(), text);

  properties.default_ttl.reset();
  properties.indexing_policy.clear();
  EXPECT_EQ(properties.to_json(), R"({"id":"stars","computedProperties":[ {"name":"a"} ],)"
                                  R"("partitionKey":{"paths":["/pk"],"kind":"Hash"},)"
                                  R"("_rid":"KxEAAJE-AgA=","_etag":"\"e\""})");
}

TEST(ContainerPropertiesTest, WhatIsNoJsonIsRefused) {
  EXPECT_THROW(ContainerProperties::from_json("[]"), CosmosException);
  EXPECT_THROW(ContainerProperties::from_json("{"), CosmosException);
  ContainerProperties properties;
  properties.id = "stars";
  properties.indexing_policy = "{]";
  EXPECT_THROW(properties.to_json(), CosmosException);
}

}  // namespace
}  // namespace orrery::client
