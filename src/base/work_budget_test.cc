#include "base/work_budget.h"

#include <gtest/gtest.h>

#include "base/test_work_clock.h"

namespace orrery {
namespace {

using namespace std::chrono_literals;
using Stop = WorkBudget::Stop;

/// Begins to work on an item, as far as it is seen.
void settle(WorkBudget& budget) {
  budget.begin_item();
  EXPECT_TRUE(budget.look());
  EXPECT_TRUE(budget.look());
}

TEST(WorkBudgetTest, LooksAtTheClockOnceInManySteps) {
  ManualWorkClock clock;
  WorkBudget budget({.deadline = clock.now()}, nullptr, clock);
  clock.work(1ms);
  EXPECT_TRUE(budget.spend());
  EXPECT_FALSE(budget.is_over());
  for (int i = 0; i < 5000; ++i) EXPECT_TRUE(budget.spend());
  EXPECT_TRUE(budget.is_over());
}

TEST(WorkBudgetTest, StepsThatAreManyAtOnceAreLookedAtAtOnce) {
  ManualWorkClock clock;
  WorkBudget budget({.deadline = clock.now()}, nullptr, clock);
  clock.work(1ms);
  EXPECT_TRUE(budget.spend(WorkBudget::steps_of(2 << 20)));
  EXPECT_TRUE(budget.is_over());
}

TEST(WorkBudgetTest, ADeadlineEndsNoItem) {
  ManualWorkClock clock;
  WorkBudget budget({.deadline = clock.now(), .item_time_max = 1s}, nullptr, clock);
  settle(budget);
  clock.work(900ms);
  EXPECT_TRUE(budget.look());
  EXPECT_TRUE(budget.is_over());
  budget.set_deadline(clock.now() + 1ms);
  EXPECT_FALSE(budget.is_over());
  clock.work(2ms);
  EXPECT_TRUE(budget.spend());
  EXPECT_TRUE(budget.is_over()) << "a new deadline is looked at soon";
}

TEST(WorkBudgetTest, OneItemMayTakeItsTimeOfAProcessor) {
  ManualWorkClock clock;
  WorkBudget budget({.item_time_max = 1s}, nullptr, clock);
  for (int item = 0; item < 10; ++item) {
    settle(budget);
    clock.work(900ms);
    EXPECT_TRUE(budget.look());
  }
  settle(budget);
  clock.work(1s);
  EXPECT_FALSE(budget.look());
  EXPECT_EQ(budget.stop(), Stop::ItemTime);
  EXPECT_FALSE(budget.spend()) << "it stays so";
  EXPECT_EQ(interruption(budget).code(), ErrorCode::BadRequest);
  EXPECT_NE(interruption(budget).message().find("1000 ms"), std::string::npos);
}

TEST(WorkBudgetTest, AnItemThatWaitsForAProcessorIsNotToBlame) {
  ManualWorkClock clock;
  WorkBudget budget({.item_time_max = 1s}, nullptr, clock);
  settle(budget);
  clock.wait(1h);
  EXPECT_TRUE(budget.look()) << "a paused machine is no reason to refuse a query";
  clock.work(999ms);
  EXPECT_TRUE(budget.look());
  clock.work(1ms);
  EXPECT_FALSE(budget.look());
  EXPECT_EQ(budget.stop(), Stop::ItemTime);
}

TEST(WorkBudgetTest, AnItemOfSeveralSharesMayTakeLonger) {
  ManualWorkClock clock;
  WorkBudget budget({.item_time_max = 1s}, nullptr, clock);
  budget.begin_item(3);
  EXPECT_TRUE(budget.look());
  EXPECT_TRUE(budget.look());
  clock.work(2900ms);
  EXPECT_TRUE(budget.look());
  clock.work(100ms);
  EXPECT_FALSE(budget.look());
}

TEST(WorkBudgetTest, AllItemsTogetherMayBeBounded) {
  ManualWorkClock clock;
  WorkBudget budget({.total_time_max = 10ms}, nullptr, clock);
  EXPECT_TRUE(budget.look());
  for (int item = 0; item < 9; ++item) {
    budget.begin_item();
    clock.work(1ms);
    EXPECT_TRUE(budget.look());
  }
  clock.wait(1h);
  EXPECT_TRUE(budget.look()) << "waiting for the disk is not work";
  clock.work(1ms);
  EXPECT_FALSE(budget.look());
  EXPECT_EQ(budget.stop(), Stop::TotalTime);
}

TEST(WorkBudgetTest, EndsWhenNobodyWaitsAnyMore) {
  ManualWorkClock clock;
  const auto gone = std::make_shared<std::atomic<bool>>(false);
  WorkBudget budget({}, gone, clock);
  EXPECT_TRUE(budget.look());
  *gone = true;
  EXPECT_FALSE(budget.look());
  EXPECT_EQ(budget.stop(), Stop::Cancelled);
  EXPECT_EQ(interruption(budget).code(), ErrorCode::ClientGone);
}

}  // namespace
}  // namespace orrery
