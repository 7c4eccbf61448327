#include "sinks/container/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::sinks {
namespace {

using ::testing::UnorderedElementsAre;

TEST(Comparison, TellsEveryKindOfDifference) {
  const KeyReader keys({{{"region"}}, KeyKind::Hash, 2, false});
  Comparison comparison(keys);
  comparison.take_destination(R"({"id":"same","region":"eu","_rid":"1"})");
  comparison.take_destination(R"({"id":"changed","region":"eu","n":1.0})");
  comparison.take_destination(R"({"id":"extra","region":7})");
  comparison.take_destination(R"({"id":"double","region":"eu"})");
  comparison.take_destination(
      R"({"id":"orrery.position.g.-FF","region":"eu","orreryPosition":{"group":"g"}})");
  comparison.take_source(R"({"id":"same","region":"eu","_rid":"2","_ts":9})");
  comparison.take_source(R"({"id":"changed","region":"eu","n":1})");
  comparison.take_source(R"({"id":"missing"})");
  comparison.take_source(R"({"id":"double","region":"eu"})");
  comparison.take_source(R"({"id":"double","region":"eu"})");
  const auto report = comparison.report();
  EXPECT_FALSE(report.same());
  EXPECT_EQ(report.compared, 5u);
  EXPECT_THAT(
      report.lines,
      UnorderedElementsAre("different: 'changed', partition key [\"eu\"]",
                           "missing in the destination: 'missing', partition key [{}]",
                           "several documents of the source are one in the destination: 'double', "
                           "partition key [\"eu\"]",
                           "only in the destination: 'extra', partition key [7]"));
}

TEST(Comparison, OfTheSameIsTheSame) {
  const KeyReader keys({{{"region"}}, KeyKind::Hash, 2, false});
  Comparison comparison(keys);
  comparison.take_destination(R"({"id":"same","region":"eu","_rid":"1"})");
  comparison.take_source(R"({"id":"same","region":"eu","_rid":"2"})");
  EXPECT_TRUE(comparison.report().same());
}

}  // namespace
}  // namespace orrery::sinks
