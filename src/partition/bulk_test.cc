// Several transactions of one request: submitted together, sharing the room in its answer; and
// writes of a batch that were refused before they came here.
#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>

#include "partition/partition.h"
#include "partition/test_environment.h"
#include "partition/writer/test_stage.h"

namespace orrery::partition {
namespace {

using Kind = Write::Kind;
using Outcomes = std::vector<Result<Committed>>;

// ── submit_all ───────────────────────────────────────────────────────────────────────────────────

class SubmitAllTest : public testing::Test {
 protected:
  void SetUp() override {
    home.committer().start();
    open({});
  }
  void TearDown() override {
    loop.stop();
    partition.reset();
    home.close();
  }
  void open(PartitionLimits limits) {
    partition = std::make_shared<Partition>(home.environment(), PartitionNumber{1}, RangeId{0},
                                            container_rid(), storage::Head{}, limits);
  }

  Outcomes submit_all(const std::vector<WriteOf>& writes) {
    std::vector<Transaction> transactions;
    for (const WriteOf& write : writes) transactions.push_back(transaction_of({write}));
    std::promise<Outcomes> outcome;
    asio::co_spawn(
        loop.context(), partition->submit_all(std::move(transactions)),
        [&](std::exception_ptr, Outcomes outcomes) { outcome.set_value(std::move(outcomes)); });
    return outcome.get_future().get();
  }

  TestEnvironment home;
  std::shared_ptr<Partition> partition;
  TestLoop loop{1};
};

TEST_F(SubmitAllTest, EachHasItsOwnLsnAndOutcomeAndSeesTheOnesBefore) {
  const auto outcomes = submit_all({{.id = "a"},
                                    {.id = "a"},
                                    {.kind = Kind::Replace, .id = "a", .padding = 9},
                                    {.kind = Kind::Read, .id = "a"},
                                    {.kind = Kind::Delete, .id = "nowhere"},
                                    {.id = "b"}});
  ASSERT_EQ(outcomes.size(), 6u);
  EXPECT_EQ(outcomes[0]->lsn, Lsn{2});
  EXPECT_EQ(outcome_of(outcomes[1]), "conflict");
  EXPECT_EQ(outcomes[2]->lsn, Lsn{3});
  EXPECT_EQ(outcomes[3]->writes[0].text, outcomes[2]->writes[0].text);
  EXPECT_EQ(outcome_of(outcomes[4]), "not found");
  EXPECT_EQ(outcomes[5]->lsn, Lsn{4});
  EXPECT_EQ(partition->head(), Lsn{4});
}

TEST_F(SubmitAllTest, NothingIsDoneAtOnce) { EXPECT_TRUE(submit_all({}).empty()); }

TEST_F(SubmitAllTest, ManyAreCommittedTogether) {
  std::vector<WriteOf> writes(500);
  for (std::size_t i = 0; i < writes.size(); ++i) writes[i].id = std::to_string(i);
  const auto outcomes = submit_all(writes);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    ASSERT_TRUE(outcomes[i]);
    EXPECT_EQ(outcomes[i]->lsn, Lsn{i + 2});
  }
}

TEST_F(SubmitAllTest, AClosedPartitionRefusesEach) {
  partition->close();
  for (const auto& outcome : submit_all({{.id = "a"}, {.id = "b"}})) {
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code(), ErrorCode::OwnerNotFound);
  }
}

// ── the room in an answer ────────────────────────────────────────────────────────────────────────

class BatchStageTest : public StageTest {
 protected:
  Transaction sharing(std::vector<WriteOf> writes) {
    auto transaction = transaction_of(std::move(writes), rules);
    writes_of(transaction).text_budget = budget;
    return transaction;
  }

  std::shared_ptr<std::atomic<std::int64_t>> budget =
      std::make_shared<std::atomic<std::int64_t>>(2000);
};

TEST_F(BatchStageTest, TransactionsTakeFromTheirRequestsBudgetWhatTheyBring) {
  const auto first = stage_all(sharing({{.id = "a", .padding = 500}}));
  ASSERT_TRUE(first);
  EXPECT_EQ(*budget, 2000 - static_cast<std::int64_t>(first->writes[0].text.size()));
  const auto read = stage_all(sharing({{.kind = Kind::Read, .id = "a"}}));
  ASSERT_TRUE(read);
  EXPECT_EQ(*budget, 2000 - 2 * static_cast<std::int64_t>(first->writes[0].text.size()));
}

TEST_F(BatchStageTest, AWriteWhoseTextHasNoRoomIsNotDone) {
  ASSERT_TRUE(stage_all(sharing({{.id = "a", .padding = 1000}})));
  const auto before = budget->load();
  const auto refused =
      stage_all(sharing({{.id = "b"}, {.kind = Kind::Patch, .id = "a", .padding = 1}}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::ResponseTooLarge);
  EXPECT_EQ(*budget, before) << "what came to nothing takes nothing";
  EXPECT_EQ(attempt({.kind = Kind::Read, .id = "b"}), "not found");
  EXPECT_TRUE(stage_all(sharing({{.id = "c"}}))) << "what fits is done";
}

TEST_F(BatchStageTest, TextThatIsNotToldTakesNoRoom) {
  auto transaction = sharing({{.id = "a", .padding = 5000}});
  writes_of(transaction).writes[0].tells_text = false;
  EXPECT_TRUE(stage_all(transaction));
  EXPECT_EQ(*budget, 2000);
}

// ── refused beforehand ───────────────────────────────────────────────────────────────────────────

TEST_F(BatchStageTest, AWriteRefusedBeforehandFailsInItsPlace) {
  write({.id = "taken"});
  const auto with_refusal = [&](WriteOf first) {
    auto transaction = transaction_of({std::move(first), {.id = "x"}}, rules);
    writes_of(transaction).tell_failure = true;
    writes_of(transaction).writes[1].refusal = Error(ErrorCode::BadRequest, "no document");
    return stage_all(transaction);
  };
  const auto second = with_refusal({.id = "free"});
  ASSERT_TRUE(second && second->failure);
  EXPECT_EQ(second->failure->index, 1u);
  EXPECT_EQ(second->failure->error, Error(ErrorCode::BadRequest, "no document"));
  const auto first = with_refusal({.id = "taken"});
  ASSERT_TRUE(first && first->failure);
  EXPECT_EQ(first->failure->index, 0u) << "the ones before it are judged first";
  EXPECT_EQ(attempt({.kind = Kind::Read, .id = "free"}), "not found");
}

}  // namespace
}  // namespace orrery::partition
