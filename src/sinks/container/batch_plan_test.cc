#include "sinks/container/batch_plan.h"

#include <gtest/gtest.h>

namespace orrery::sinks {
namespace {

SourceChange change(std::uint64_t lsn, std::string rid, std::size_t bytes = 10) {
  SourceChange made;
  made.lsn = lsn;
  made.rid = std::move(rid);
  made.text = std::string(bytes, 'x');
  return made;
}

std::vector<const SourceChange*> pointers(const std::vector<SourceChange>& changes) {
  std::vector<const SourceChange*> all;
  for (const SourceChange& each : changes) all.push_back(&each);
  return all;
}

TEST(PlanBatch, KeepsTransactionsTogetherAsLongAsTheyFit) {
  const std::vector<SourceChange> changes{change(1, "a"), change(2, "d"), change(2, "c"),
                                          change(3, "e")};
  const auto all = plan_batch(pointers(changes), {10, 10'000});
  EXPECT_EQ(all.changes.size(), 4u);
  EXPECT_EQ(all.applied, (AppliedUpTo{3, ""}));

  const auto two = plan_batch(pointers(changes), {2, 10'000});
  EXPECT_EQ(two.changes.size(), 1u);
  EXPECT_EQ(two.applied, (AppliedUpTo{1, ""}));

  const auto by_bytes = plan_batch(pointers(changes), {10, 3 * operation_bytes(10)});
  EXPECT_EQ(by_bytes.changes.size(), 3u);
  EXPECT_EQ(by_bytes.applied, (AppliedUpTo{2, ""}));
}

TEST(PlanBatch, CutsATransactionInTheOrderOfRids) {
  const std::vector<SourceChange> changes{change(2, "d"), change(2, "b"), change(2, "c"),
                                          change(3, "a")};
  const auto first = plan_batch(pointers(changes), {2, 10'000});
  ASSERT_EQ(first.changes.size(), 2u);
  EXPECT_EQ(first.changes[0]->rid, "b");
  EXPECT_EQ(first.applied, (AppliedUpTo{2, "c"}));

  std::vector<const SourceChange*> left;
  for (const SourceChange& each : changes) {
    if (!first.applied.includes(each)) left.push_back(&each);
  }
  const auto second = plan_batch(left, {1, 10'000});
  ASSERT_EQ(second.changes.size(), 1u);
  EXPECT_EQ(second.changes[0]->rid, "d");
  EXPECT_EQ(second.applied, (AppliedUpTo{2, ""}));
}

TEST(PlanBatch, TellsOfOneThatIsTooLarge) {
  const std::vector<SourceChange> changes{change(2, "b", 5000), change(2, "a", 5000),
                                          change(3, "c")};
  const auto plan = plan_batch(pointers(changes), {10, 1000});
  EXPECT_TRUE(plan.too_large);
  ASSERT_EQ(plan.changes.size(), 1u);
  EXPECT_EQ(plan.changes[0]->rid, "a");
  EXPECT_EQ(plan.applied, (AppliedUpTo{2, "a"}));
}

}  // namespace
}  // namespace orrery::sinks
