#include "orrery/partition_key.h"

#include <cmath>

#include <gtest/gtest.h>

#include "orrery/exception.h"
#include "orrery/options.h"

namespace orrery::client {
namespace {

TEST(PartitionKey, IsWhatGoesOverTheWire) {
  EXPECT_EQ(PartitionKey("tycho").json(), R"(["tycho"])");
  EXPECT_EQ(PartitionKey("q\"\\\n").json(), R"(["q\"\\\u000a"])");
  EXPECT_EQ(PartitionKey(std::string("é")).json(), R"(["\u00e9"])") << "headers are ASCII";
  EXPECT_EQ(PartitionKey(4).json(), "[4]");
  EXPECT_EQ(PartitionKey(0.5).json(), "[0.5]");
  EXPECT_EQ(PartitionKey(std::int64_t{1} << 40).json(), "[1099511627776]");
  EXPECT_EQ(PartitionKey(true).json(), "[true]");
  EXPECT_EQ(PartitionKey(nullptr).json(), "[null]");
  EXPECT_EQ(PartitionKey::none().json(), "[{}]");
  EXPECT_EQ(PartitionKey(std::nan("")).json(), "[{}]");
  EXPECT_EQ(PartitionKey().json(), "[]");
}

TEST(PartitionKey, GrowsByComponents) {
  PartitionKey key;
  key.append("a").append(1.0).append(false).append(nullptr).append_undefined();
  EXPECT_EQ(key.json(), R"(["a",1,false,null,{}])");
  EXPECT_EQ(PartitionKey::from_json(R"([ "x" ])").append(2.0).json(), R"([ "x" ,2])");
  EXPECT_EQ(PartitionKey::from_json("[ ]").append(2.0).json(), "[ 2]");
}

TEST(FeedRange, IsStoredAsJson) {
  const FeedRange range{.min = "", .max = "1FFF"};
  EXPECT_EQ(range.to_json(), R"({"Range":{"min":"","max":"1FFF"}})");
  EXPECT_EQ(FeedRange::from_json(range.to_json()), range);
  EXPECT_EQ(FeedRange::from_json(R"({"Range":{"max":"ff","min":"0a"}})"), (FeedRange{"0A", "FF"}));
}

TEST(FeedRange, RefusesWhatIsNone) {
  for (const std::string_view json :
       {"", "{}", R"({"Range":7})", R"({"Range":{"min":"1F","max":"1F"}})",
        R"({"Range":{"min":"","max":"XY"}})", R"({"Range":{"min":1,"max":"FF"}})",
        R"({"Range":{"min":""}})"}) {
    try {
      FeedRange::from_json(json);
      FAIL() << json;
    } catch (const CosmosException& failure) {
      EXPECT_EQ(failure.failure(), Failure::Argument);
    }
  }
}

}  // namespace
}  // namespace orrery::client
