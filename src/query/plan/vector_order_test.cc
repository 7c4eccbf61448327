#include "query/plan/vector_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::query {
namespace {

using testing::ElementsAre;

std::optional<VectorOrder> order_of(const std::string& text, Parameters parameters = {}) {
  Settings settings;
  settings.vectors = {{{"v"}, "cosine", "float32"}, {{"a", "w"}, "euclidean", "int8"}};
  const auto query = PreparedQuery::prepare(text, std::move(parameters), settings);
  EXPECT_TRUE(query) << text;
  return query ? vector_order_of(**query) : std::nullopt;
}

TEST(VectorOrderTest, SaysWhichVectorsAreWanted) {
  const auto order = order_of("SELECT TOP 7 c.id FROM c ORDER BY VectorDistance(c.v, [1, -2.5])");
  ASSERT_TRUE(order);
  EXPECT_THAT(order->path, ElementsAre("v"));
  EXPECT_THAT(order->vector, ElementsAre(1, -2.5F));
  EXPECT_EQ(order->options.function, DistanceFunction::Cosine);
  EXPECT_EQ(order->options.search_list_multiplier, VectorOptions::kMultiplierDefault);
  EXPECT_EQ(order->skip, 0U);
  EXPECT_EQ(order->take, 7U);
}

TEST(VectorOrderTest, TheVectorMayStandFirstAndBeAParameter) {
  Parameters parameters;
  parameters.set("@v", json::Value::of_checked("[3,4]"));
  const auto order = order_of(
      "SELECT VALUE c FROM c WHERE c.x > 1 ORDER BY VectorDistance(@v, c.a.w) OFFSET 2 LIMIT 5",
      std::move(parameters));
  ASSERT_TRUE(order);
  EXPECT_THAT(order->path, ElementsAre("a", "w"));
  EXPECT_THAT(order->vector, ElementsAre(3, 4));
  EXPECT_EQ(order->options.function, DistanceFunction::Euclidean);
  EXPECT_EQ(order->options.type, VectorDataType::Int8);
  EXPECT_EQ(order->skip, 2U);
  EXPECT_EQ(order->take, 5U);
}

TEST(VectorOrderTest, OptionsOfTheCallCountBeforeThePolicy) {
  const auto order = order_of(
      "SELECT TOP 1 * FROM c ORDER BY VectorDistance(c.v, [1], false, "
      "{'distanceFunction': 'dotproduct', 'searchListSizeMultiplier': 20, "
      "'quantizedVectorListMultiplier': 9})");
  ASSERT_TRUE(order);
  EXPECT_EQ(order->options.function, DistanceFunction::DotProduct);
  EXPECT_EQ(order->options.search_list_multiplier, 20U);
  EXPECT_EQ(order->options.quantized_list_multiplier, 9U);
}

TEST(VectorOrderTest, AComponentOfARankingIsOneToo) {
  EXPECT_TRUE(order_of("SELECT TOP 9 c._rid FROM c ORDER BY _VectorScore(c.v, [1])"));
  EXPECT_FALSE(order_of("SELECT TOP 9 c._rid FROM c ORDER BY _VectorScore(c.v, [1]) ASC"))
      << "the least similar ones";
}

TEST(VectorOrderTest, NothingWhereAnIndexCannotTell) {
  for (const char* text : {
           "SELECT c.id FROM c ORDER BY VectorDistance(c.v, [1])",              // all of them
           "SELECT TOP 1 * FROM c ORDER BY VectorDistance(c.v, [1], true)",     // brute force
           "SELECT TOP 1 * FROM c ORDER BY VectorDistance(c.v, [1], c.exact)",  // perhaps
           "SELECT TOP 1 * FROM c ORDER BY VectorDistance(c.v, [1], false, {'unknown': 1})",
           "SELECT TOP 1 * FROM c ORDER BY VectorDistance(c.other, [1])",  // no policy
           "SELECT TOP 1 * FROM c ORDER BY VectorDistance(c.v, c.a.w)",
           "SELECT TOP 1 * FROM c ORDER BY VectorDistance(c.v, [1, 'a'])",
           "SELECT DISTINCT TOP 1 c.id FROM c ORDER BY VectorDistance(c.v, [1])",
           "SELECT TOP 1 * FROM c ORDER BY c.v",
           "SELECT TOP 1 VectorDistance(c.v, [1]) FROM c",
       }) {
    EXPECT_FALSE(order_of(text)) << text;
  }
}

TEST(VectorOrderTest, NumbersOfHalfPrecisionAreReadLikeOthers) {
  EXPECT_EQ(find_vector_data_type("float16"), VectorDataType::Float32);
}

}  // namespace
}  // namespace orrery::query
