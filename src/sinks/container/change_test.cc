#include "sinks/container/change.h"

#include <gtest/gtest.h>

namespace orrery::sinks {
namespace {

TEST(WithoutSystemProperties, KeepsEveryByteOfTheRest) {
  EXPECT_EQ(without_system_properties(
                R"({ "id" : "x", "n":1e400 ,"_rid":"a","_lsn":7, "u":"\u00e9","_ts":1})"),
            R"({ "id" : "x", "n":1e400, "u":"\u00e9"})");
  EXPECT_EQ(without_system_properties(R"({"_rid":"a","id":"x","_self":"s"})"), R"({"id":"x"})");
  EXPECT_EQ(without_system_properties(R"({"_rid":"a"})"), "{}");
  EXPECT_EQ(without_system_properties(R"({"a":{"_rid":1},"b":"},\"_ts\":"})"),
            R"({"a":{"_rid":1},"b":"},\"_ts\":"})");
}

TEST(KeyReader, FindsKeysAsServersDo) {
  const KeyReader keys({{{"a", "b"}, {"c"}}, KeyKind::MultiHash, 2, false});
  EXPECT_EQ(keys.key_of(R"({"a":{"b":1.50},"c":null})").to_json(), "[1.5,null]");
  EXPECT_EQ(keys.key_of(R"({"a":{"b":{}},"c":[]})").to_json(), "[{},{}]");
  EXPECT_EQ(keys.key_of(R"({"a":"b"})").to_json(), "[{},{}]");
  EXPECT_FALSE(keys.has_id());
  EXPECT_TRUE(KeyReader({{{"tenant"}, {"id"}}, KeyKind::MultiHash, 2, false}).has_id());
  EXPECT_FALSE(KeyReader({{{"a", "id"}}, KeyKind::Hash, 2, false}).has_id());
}

TEST(ChangeReader, TellsWhatAChangeIsAndWhereItGoes) {
  const ChangeReader reader({{{"pk"}}, KeyKind::Hash, 2, false},
                            {{{"region"}}, KeyKind::Hash, 2, false});
  const auto change = reader.read(
      R"({"id":"x","pk":"partitionKey","region":"eu","_rid":"R","_etag":"e","_ts":3,"_lsn":17})");
  ASSERT_TRUE(change);
  EXPECT_EQ(change->id, "x");
  EXPECT_EQ(change->rid, "R");
  EXPECT_EQ(change->lsn, 17u);
  EXPECT_EQ(change->key.to_json(), R"(["eu"])");
  EXPECT_EQ(change->source_epk.hex(), "013AEFCF77FA271571CF665A58C933F1");
  EXPECT_EQ(change->text, R"({"id":"x","pk":"partitionKey","region":"eu"})");
  EXPECT_FALSE(reader.read(R"({"id":"x","_rid":"R"})"));
}

}  // namespace
}  // namespace orrery::sinks
