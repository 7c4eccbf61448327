#include "executor/suspended_queries.h"

#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::executor {
namespace {

/// Tells when it is gone.
class Work final : public SuspendedQuery {
 public:
  Work(int& alive, std::size_t memory) : alive_(alive), memory_(memory) { ++alive_; }
  ~Work() override { --alive_; }
  std::size_t memory() const override { return memory_; }

 private:
  int& alive_;
  std::size_t memory_;
};

class SuspendedQueriesTest : public testing::Test {
 protected:
  std::uint64_t keep(std::size_t memory = 1, std::uint64_t client = 0) {
    return queries.keep(std::make_unique<Work>(alive, memory), "orders", client);
  }

  int alive = 0;
  boost::asio::thread_pool pool{1};
  SuspendedQueries queries{pool};
};

TEST_F(SuspendedQueriesTest, WhatWasKeptIsTakenOnce) {
  const auto number = keep();
  EXPECT_NE(number, 0u);
  EXPECT_EQ(queries.take(number, "orders")->memory(), 1u);
  EXPECT_FALSE(queries.take(number, "orders"));
  EXPECT_EQ(alive, 0);
}

TEST_F(SuspendedQueriesTest, WhatWasKeptForSomethingElseStays) {
  const auto number = keep();
  EXPECT_FALSE(queries.take(number, "customers"));
  EXPECT_FALSE(queries.take(number + 1, "orders"));
  EXPECT_TRUE(queries.take(number, "orders"));
}

TEST_F(SuspendedQueriesTest, TheOldestGoWhenThereAreTooMany) {
  std::vector<std::uint64_t> numbers;
  for (std::size_t i = 0; i < SuspendedQueries::kCountMax + 3; ++i) numbers.push_back(keep());
  EXPECT_EQ(alive, static_cast<int>(SuspendedQueries::kCountMax));
  EXPECT_FALSE(queries.take(numbers[2], "orders"));
  EXPECT_TRUE(queries.take(numbers[3], "orders"));
}

TEST_F(SuspendedQueriesTest, TheOldestGoWhenTheyHoldTooMuch) {
  const auto first = keep(SuspendedQueries::kMemoryMax / 2);
  const auto second = keep(SuspendedQueries::kMemoryMax / 2);
  const auto third = keep(SuspendedQueries::kMemoryMax / 2);
  EXPECT_FALSE(queries.take(first, "orders"));
  EXPECT_TRUE(queries.take(second, "orders"));
  EXPECT_TRUE(queries.take(third, "orders"));
}

TEST_F(SuspendedQueriesTest, OneClientDoesNotTakeThePlacesOfOthers) {
  const auto modest = keep(1, 1);
  for (std::size_t i = 0; i < 2 * SuspendedQueries::kCountMax; ++i) keep(1, 2);
  EXPECT_TRUE(queries.take(modest, "orders"));
  const auto small = keep(1, 1);
  for (int i = 0; i < 5; ++i) keep(SuspendedQueries::kMemoryMax / 2, 2);
  EXPECT_TRUE(queries.take(small, "orders"));
}

TEST_F(SuspendedQueriesTest, NothingIsKeptAfterTheEnd) {
  const auto before = keep();
  queries.stop();
  EXPECT_EQ(alive, 0);
  EXPECT_FALSE(queries.take(before, "orders"));
  EXPECT_FALSE(queries.take(keep(), "orders"));
  pool.join();
}

}  // namespace
}  // namespace orrery::executor
