#include "partition/copy/copy.h"

#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_seed.h"
#include "partition/partition.h"
#include "partition/test_audit.h"
#include "partition/test_environment.h"

namespace orrery::partition {
namespace {

using namespace std::chrono_literals;
using storage::Family;
using storage::HistoryPart;
using storage::LogPosition;
using testing::ElementsAre;

using Fault = FaultyCommitLog::Fault;
using Kind = Write::Kind;
using Outcome = std::future<Result<Committed>>;

constexpr PartitionNumber kLeft{1};
constexpr PartitionNumber kRight{2};
constexpr PartitionNumber kFirst{11};
constexpr PartitionNumber kSecond{12};

Epk boundary() { return Epk{"epk-m"}; }
EpkRange below() { return {Epk::min(), boundary()}; }
EpkRange above() { return {boundary(), Epk::max()}; }

/// All that a partition holds, with positions as they would be after a shift.
struct Contents {
  std::map<LogPosition, std::string> log;
  std::map<std::string, std::string> ids, uniques;
  std::map<std::uint64_t, LogPosition> rids;
  std::map<LogPosition, std::string> history;
  std::set<storage::ExpiryEntry> expiry;
  bool operator==(const Contents&) const = default;
};

class CopyTest : public testing::Test {
 protected:
  void SetUp() override { home.committer().start(); }
  void TearDown() override { home.log().release(); }

  std::shared_ptr<Partition> make_partition(PartitionNumber number, RangeId range = RangeId{0}) {
    const storage::Head head;
    storage::Batch batch;
    batch.put(Family::Heads, storage::partition_prefix(number), head.make());
    EXPECT_TRUE(home.committer().commit(std::move(batch), home.committer().generation()));
    return std::make_shared<Partition>(home.environment(), number, range,
                                       Rid::container({0, 0, 0, 1}, {0x80, 0, 0, 1}), head);
  }
  Outcome submit(const std::shared_ptr<Partition>& partition, std::vector<WriteOf> writes) {
    return loop.submit(partition, transaction_of(std::move(writes), rules_with_unique_keys(100)));
  }
  void keep_everything(const std::shared_ptr<Partition>& partition) {
    const storage::RetentionSettings all{storage::RetentionSettings::History::All,
                                         storage::RetentionSettings::PreviousImage::All,
                                         storage::RetentionSettings::Expiry::Building};
    ASSERT_TRUE(loop.submit(partition, {.work = RetentionChange{all}}).get());
  }
  /// With indexes that are complete at once, since nothing is there yet.
  void add_indexes(const std::shared_ptr<Partition>& partition, std::vector<std::string> specs) {
    change_indexes(partition, {std::move(specs), {}});
  }
  void change_indexes(const std::shared_ptr<Partition>& partition, IndexChange change) {
    ASSERT_TRUE(loop.submit(partition, {.work = std::move(change)}).get());
  }
  static CopyPlan split_plan(std::vector<CopiedIndex> indexes = {}) {
    return {{{kFirst, below(), 0}, {kSecond, above(), 0}},
            std::make_shared<const UniqueValuesOf>(unique_values_in),
            std::move(indexes)};
  }
  static std::vector<CopiedIndex> common_to(std::vector<std::shared_ptr<Partition>> parents) {
    std::vector<storage::IndexRecords> indexes;
    for (const auto& parent : parents) indexes.push_back(parent->indexes());
    return common_indexes(indexes);
  }
  /// "/a 1 complete, /b 65 building"
  static std::string indexes_of(const storage::Head& head) {
    std::string text;
    if (!head.indexes) return text;
    for (const auto& index : *head.indexes) {
      text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", index.spec, index.id,
                          index.is_complete() ? "complete" : "building");
    }
    return text;
  }
  Result<> copy_all(const std::shared_ptr<Partition>& partition) {
    for (bool more = true; more;) {
      ORRERY_TRY(more, partition->copy_step());
    }
    return {};
  }
  void store_head(PartitionNumber number, const storage::Head& head) {
    storage::Batch batch;
    batch.put(Family::Heads, storage::partition_prefix(number), head.make());
    ASSERT_TRUE(home.committer().commit(std::move(batch), home.committer().generation()));
  }

  Contents read(PartitionNumber number, std::uint32_t shift = 0) {
    Contents found;
    const auto snapshot = home.store().snapshot();
    const auto all = [&](Family family) {
      return contents(*snapshot, family, storage::partition_prefix(number),
                      storage::partition_end(number));
    };
    const auto moved = [shift](LogPosition position) {
      return LogPosition{position.lsn, position.index + shift};
    };
    for (const auto& [key, value] : all(Family::Log)) {
      found.log.emplace(moved(storage::log_position(key)), value);
    }
    for (const auto& [key, value] : all(Family::Ids)) {
      auto entry = *storage::IdEntry::parse(value);
      entry.position = moved(entry.position);
      found.ids.emplace(key.substr(4), entry.make());
    }
    for (const auto& [key, value] : all(Family::Unique)) {
      found.uniques.emplace(key.substr(4), storage::make_position_value(
                                               moved(*storage::parse_position_value(value))));
    }
    for (const auto& [key, value] : all(Family::Rids)) {
      found.rids.emplace(storage::document_number(key).value,
                         moved(*storage::parse_position_value(value)));
    }
    for (const auto& [key, value] : all(Family::History)) {
      found.history.emplace(moved(storage::log_position(key)), value);
    }
    for (const auto& [key, value] : all(Family::Expiry)) {
      auto entry = storage::expiry_entry(key);
      entry.position = moved(entry.position);
      found.expiry.insert(entry);
    }
    return found;
  }
  static Contents joined(Contents one, Contents other) {
    const auto sizes = one.log.size() + other.log.size();
    one.log.merge(other.log);
    EXPECT_EQ(one.log.size(), sizes) << "something is in both";
    one.ids.merge(other.ids);
    one.uniques.merge(other.uniques);
    one.rids.merge(other.rids);
    one.history.merge(other.history);
    one.expiry.merge(other.expiry);
    return one;
  }
  static void expect_same(const Contents& there, const Contents& here) {
    EXPECT_EQ(there.log, here.log);
    EXPECT_EQ(there.ids, here.ids);
    EXPECT_EQ(there.uniques, here.uniques);
    EXPECT_EQ(there.rids, here.rids);
    EXPECT_EQ(there.history, here.history);
    EXPECT_EQ(there.expiry, here.expiry);
  }

  /// Writes at random from threads of its own until it is told to stop.
  class Storm {
   public:
    Storm(CopyTest& test, std::vector<std::shared_ptr<Partition>> partitions, unsigned seed)
        : test_(test), partitions_(std::move(partitions)), random_(seed) {
      thread_ = std::thread([this] { run(); });
    }
    ~Storm() { stop(); }
    void stop() {
      stopping_ = true;
      if (thread_.joinable()) thread_.join();
    }
    std::size_t committed() const { return committed_; }
    std::size_t gone() const { return gone_; }

   private:
    std::size_t below(std::size_t bound) { return random_() % bound; }
    WriteOf random_write(std::size_t partition) {
      WriteOf write;
      write.kind = static_cast<Kind>(below(5));
      // Each partition has the keys of its side when there are two of them.
      const std::size_t first = partitions_.size() == 2 && partition == 1 ? 13 : 0;
      const std::size_t count = partitions_.size() == 2 ? 13 : 26;
      write.partition_key = std::string(1, static_cast<char>('a' + first + below(count)));
      write.id = fmt::format("doc-{}", below(60));
      if (write.kind == Kind::Replace && below(3) == 0) {
        write.new_id = fmt::format("doc-{}", below(60));
      }
      write.padding = below(3000);
      if (below(3) == 0) write.ttl = static_cast<std::int32_t>(1 + below(1000));
      if (write.kind != Kind::Patch) {
        write.unique = {fmt::format("{}", below(200)), fmt::format("{}", below(1000))};
      }
      return write;
    }
    void run() {
      std::vector<Outcome> under_way;
      while (!stopping_ || !under_way.empty()) {
        while (!stopping_ && under_way.size() < 20) {
          const std::size_t partition = below(partitions_.size());
          std::vector<WriteOf> writes{random_write(partition)};
          // All of a transaction lie in one logical partition.
          while (below(3) == 0) {
            writes.push_back(random_write(partition));
            writes.back().partition_key = writes.front().partition_key;
          }
          under_way.push_back(test_.submit(partitions_[partition], std::move(writes)));
        }
        for (auto& each : under_way) {
          const auto outcome = each.get();
          if (outcome) ++committed_;
          if (!outcome && outcome.error().code() == ErrorCode::RangeGone) ++gone_;
        }
        under_way.clear();
      }
    }

    CopyTest& test_;
    std::vector<std::shared_ptr<Partition>> partitions_;
    std::mt19937 random_;
    std::atomic<bool> stopping_{false};
    std::atomic<std::size_t> committed_{0}, gone_{0};
    std::thread thread_;
  };

  TestEnvironment home;
  TestLoop loop{1};
};

// ── splitting ────────────────────────────────────────────────────────────────────────────────────

TEST_F(CopyTest, TheTargetsTogetherHoldWhatThePartitionHoldsWhateverIsWrittenMeanwhile) {
  const auto seed = static_cast<unsigned>(test::seed());
  SCOPED_TRACE(fmt::format("seed {}", seed));
  const auto partition = make_partition(kLeft);
  keep_everything(partition);
  // Not in the order in which the targets number them.
  add_indexes(partition, {"/x", "/p", "/u"});
  change_indexes(partition, {{"/id ASC,/_ts DESC"}, {"/x"}});
  {
    Storm storm(*this, {partition}, seed);
    ASSERT_TRUE(eventually([&] { return storm.committed() > 3000; }));
  }
  Storm storm(*this, {partition}, seed + 1);
  const auto generation = home.committer().generation();
  ASSERT_TRUE(partition->begin_copy(split_plan(common_to({partition})), generation));
  // A slow copy has more written under it.
  for (bool more = true; more;) {
    const auto step = partition->copy_step();
    ASSERT_TRUE(step) << step.error().message();
    more = *step;
    const auto before = storm.committed();
    ASSERT_TRUE(eventually([&] { return storm.committed() > before + 20; }));
  }
  const auto outcome = partition->hold();
  ASSERT_TRUE(outcome);
  ASSERT_EQ(outcome->targets.size(), 2u);
  EXPECT_FALSE(outcome->history_changed);
  store_head(kFirst, head_of_part(*outcome, 0));
  store_head(kSecond, head_of_part(*outcome, 1));
  partition->retire();
  EXPECT_TRUE(eventually([&] { return storm.gone() > 0; })) << "those who wait hear of it";
  storm.stop();

  const auto parent = audit(home.store(), kLeft);
  EXPECT_EQ(parent.head, outcome->head);
  EXPECT_GT(parent.entries.size(), 100u);
  const auto first = audit(home.store(), kFirst);
  const auto second = audit(home.store(), kSecond);
  EXPECT_EQ(first.head.lsn, parent.head.lsn);
  EXPECT_EQ(second.head.lsn, parent.head.lsn);
  EXPECT_EQ(first.head.document_sequence, 0u);
  EXPECT_EQ(first.head.documents + second.head.documents, parent.head.documents);
  EXPECT_EQ(first.head.history_bytes + second.head.history_bytes, parent.head.history_bytes);
  EXPECT_EQ(first.head.retention, parent.head.retention);
  EXPECT_EQ(indexes_of(first.head), "/p 1 complete, /u 2 complete, /id ASC,/_ts DESC 3 complete");
  EXPECT_EQ(indexes_of(second.head), indexes_of(first.head));
  EXPECT_EQ(first.index_entries + second.index_entries, parent.index_entries);
  for (const auto& [name, entry] : first.entries) EXPECT_LT(name, "epk-m");
  for (const auto& [name, entry] : second.entries) EXPECT_GE(name, "epk-m");
  expect_same(joined(read(kFirst), read(kSecond)), read(kLeft));
}

TEST_F(CopyTest, WhatIsStagedButNotCommittedIsNeitherLostNorRevived) {
  const auto partition = make_partition(kLeft);
  for (const auto* id : {"kept", "replaced", "deleted", "renamed"}) {
    ASSERT_TRUE(submit(partition, {{.id = id, .unique = {id}}}).get());
  }
  ASSERT_TRUE(partition->begin_copy(split_plan(), home.committer().generation()));
  home.log().hold();
  std::vector<Outcome> outcomes;
  outcomes.push_back(
      submit(partition, {{.kind = Kind::Replace, .id = "replaced", .unique = {"r"}}}));
  outcomes.push_back(submit(partition, {{.kind = Kind::Delete, .id = "deleted"}}));
  outcomes.push_back(
      submit(partition,
             {{.kind = Kind::Replace, .id = "renamed", .new_id = "new", .unique = {"renamed"}}}));
  outcomes.push_back(submit(partition, {{.id = "created", .unique = {"deleted"}}}));
  loop.settle();
  // The copy sees a store without any of that.
  auto copied = std::async(std::launch::async, [&] { return copy_all(partition); });
  home.log().wait_for_append();
  home.log().release();
  ASSERT_TRUE(copied.get());
  for (auto& each : outcomes) EXPECT_TRUE(each.get());
  const auto outcome = partition->hold();
  ASSERT_TRUE(outcome);
  store_head(kFirst, head_of_part(*outcome, 0));
  store_head(kSecond, head_of_part(*outcome, 1));
  EXPECT_EQ(audit(home.store(), kSecond).entries.size(), 4u);
  EXPECT_EQ(audit(home.store(), kFirst).entries.size(), 0u);
  expect_same(read(kSecond), read(kLeft));
}

TEST_F(CopyTest, WritesWaitWhileThePartitionIsHeldAndGoOnWhenTheCopyIsAbandoned) {
  const auto partition = make_partition(kLeft);
  ASSERT_TRUE(submit(partition, {{.id = "before"}}).get());
  ASSERT_TRUE(partition->begin_copy(split_plan(), home.committer().generation()));
  ASSERT_TRUE(copy_all(partition));
  ASSERT_TRUE(partition->hold());
  auto waiting = submit(partition, {{.id = "during"}});
  loop.settle();
  ASSERT_TRUE(home.committer().probe());
  EXPECT_EQ(waiting.wait_for(0s), std::future_status::timeout);
  EXPECT_EQ(partition->head(), Lsn{2});
  partition->abandon_copy();
  EXPECT_TRUE(waiting.get());
  EXPECT_TRUE(submit(partition, {{.id = "after"}}).get());
  EXPECT_FALSE(partition->retired());
  EXPECT_EQ(audit(home.store(), kLeft).entries.size(), 3u);
  EXPECT_THAT(read(kSecond).ids, testing::SizeIs(1)) << "nothing is mirrored any more";
  // And it can be copied again, elsewhere.
  ASSERT_TRUE(partition->begin_copy(split_plan(), home.committer().generation()));
  partition->abandon_copy();
}

TEST_F(CopyTest, ARetiredPartitionTakesNothingAnyMore) {
  const auto partition = make_partition(kLeft);
  ASSERT_TRUE(partition->begin_copy(split_plan(), home.committer().generation()));
  ASSERT_TRUE(copy_all(partition));
  ASSERT_TRUE(partition->hold());
  auto waiting = submit(partition, {{.id = "during"}});
  loop.settle();
  partition->retire();
  EXPECT_EQ(waiting.get().error().code(), ErrorCode::RangeGone);
  EXPECT_EQ(submit(partition, {{.id = "after"}}).get().error().code(), ErrorCode::RangeGone);
  EXPECT_TRUE(partition->retired());
  EXPECT_EQ(partition->copy_step().error().code(), ErrorCode::RangeGone);
}

TEST_F(CopyTest, OnlyOneCopyAtATime) {
  const auto partition = make_partition(kLeft);
  const auto generation = home.committer().generation();
  ASSERT_TRUE(partition->begin_copy(split_plan(), generation));
  EXPECT_EQ(partition->begin_copy(split_plan(), generation).error().code(), ErrorCode::Conflict);
  partition->abandon_copy();
}

TEST_F(CopyTest, ADiskErrorEndsTheCopyAndThePartitionGoesOn) {
  for (const auto fault : {Fault::BeforeWriting, Fault::AfterWriting}) {
    const PartitionNumber number{fault == Fault::BeforeWriting ? 1u : 2u};
    const auto partition = make_partition(number);
    ASSERT_TRUE(submit(partition, {{.id = "before"}}).get());
    ASSERT_TRUE(partition->begin_copy(split_plan(), home.committer().generation()));
    home.log().fail_next(fault);
    ASSERT_FALSE(submit(partition, {{.id = "failed"}}).get());
    ASSERT_TRUE(home.recovered());
    EXPECT_EQ(copy_all(partition).error().code(), ErrorCode::Unavailable);
    EXPECT_EQ(partition->hold().error().code(), ErrorCode::Unavailable);
    EXPECT_TRUE(submit(partition, {{.id = "after"}}).get()) << "nothing is held";
    audit(home.store(), number);
  }
}

TEST_F(CopyTest, ACopyThatWasNotFinishedIsNotTaken) {
  const auto partition = make_partition(kLeft);
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(submit(partition, {{.id = fmt::format("{}", i), .padding = 3000}}).get());
  }
  ASSERT_TRUE(partition->begin_copy(split_plan(), home.committer().generation()));
  const auto step = partition->copy_step();
  ASSERT_TRUE(step);
  EXPECT_TRUE(*step) << "a piece is small";
  EXPECT_FALSE(partition->hold());
  EXPECT_TRUE(submit(partition, {{.id = "after"}}).get());
}

TEST_F(CopyTest, ADeletedContainersCopyEnds) {
  const auto partition = make_partition(kLeft);
  ASSERT_TRUE(partition->begin_copy(split_plan(), home.committer().generation()));
  partition->close();
  EXPECT_EQ(partition->copy_step().error().code(), ErrorCode::OwnerNotFound);
  EXPECT_EQ(partition->hold().error().code(), ErrorCode::OwnerNotFound);
  partition->abandon_copy();
}

TEST_F(CopyTest, HistoryIsNotTrimmedUnderACopy) {
  const auto partition = make_partition(kLeft);
  keep_everything(partition);
  ASSERT_TRUE(submit(partition, {{.id = "a"}}).get());
  const UnixSeconds later = home.clock().unix_seconds() + 1000;
  const Transaction trim{.work = HistoryTrim{.all_before = later, .tombstones_before = later}};
  ASSERT_TRUE(partition->begin_copy(split_plan(), home.committer().generation()));
  ASSERT_TRUE(loop.submit(partition, trim).get());
  EXPECT_THAT(read(kLeft).history, testing::SizeIs(1));
  partition->abandon_copy();
  ASSERT_TRUE(loop.submit(partition, trim).get());
  EXPECT_THAT(read(kLeft).history, testing::SizeIs(0));
}

TEST_F(CopyTest, TtlSwitchedOnMeanwhileIsBuiltAnewAndAnotherHistoryEndsTheCopy) {
  const auto partition = make_partition(kLeft);
  ASSERT_TRUE(submit(partition, {{.id = "a"}}).get());
  ASSERT_TRUE(partition->begin_copy(split_plan(), home.committer().generation()));
  ASSERT_TRUE(copy_all(partition));
  const storage::RetentionSettings expiry{.expiry = storage::RetentionSettings::Expiry::Building};
  ASSERT_TRUE(loop.submit(partition, {.work = RetentionChange{expiry}}).get());
  ASSERT_TRUE(loop.submit(partition, {.work = ExpiryBuildStep{}}).get());
  auto outcome = partition->hold();
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->head.retention.expiry, storage::RetentionSettings::Expiry::Complete);
  EXPECT_EQ(head_of_part(*outcome, 1).retention.expiry,
            storage::RetentionSettings::Expiry::Building);
  EXPECT_FALSE(outcome->history_changed);
  partition->abandon_copy();

  ASSERT_TRUE(partition->begin_copy(split_plan(), home.committer().generation()));
  keep_everything(partition);
  ASSERT_TRUE(copy_all(partition));
  outcome = partition->hold();
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->history_changed);
  partition->abandon_copy();
}

TEST_F(CopyTest, IndexesThatAreNotThereAllTheTimeAreBuiltAnew) {
  const auto partition = make_partition(kLeft);
  add_indexes(partition, {"/a", "/dropped", "/remade"});
  for (const auto* key : {"a", "z"}) {
    ASSERT_TRUE(submit(partition, {{.id = "x", .partition_key = key}}).get());
  }
  add_indexes(partition, {"/building"});
  const auto plan = common_to({partition});
  EXPECT_EQ(plan.size(), 3u);
  ASSERT_TRUE(partition->begin_copy(split_plan(plan), home.committer().generation()));
  change_indexes(partition, {{}, {"/dropped", "/remade"}});
  add_indexes(partition, {"/remade", "/added"});
  ASSERT_TRUE(loop.submit(partition, {.work = IndexBuildStep{}}).get());
  EXPECT_EQ(partition->indexes()->size(), 4u);
  ASSERT_TRUE(submit(partition, {{.id = "y", .partition_key = "z"}}).get());
  ASSERT_TRUE(copy_all(partition));
  const auto outcome = partition->hold();
  ASSERT_TRUE(outcome);
  EXPECT_EQ(indexes_of(outcome->head),
            "/a 1 complete, /building 4 complete, /remade 5 complete, /added 6 complete");
  const auto head = head_of_part(*outcome, 1);
  EXPECT_EQ(indexes_of(head),
            "/a 1 complete, /building 65 building, /remade 66 building, "
            "/added 67 building");
  EXPECT_EQ(head.last_index_id, 67u);
  partition->abandon_copy();
}

// ── merging ──────────────────────────────────────────────────────────────────────────────────────

TEST_F(CopyTest, TwoPartitionsBecomeOneWhateverIsWrittenMeanwhile) {
  const auto seed = static_cast<unsigned>(test::seed());
  SCOPED_TRACE(fmt::format("seed {}", seed));
  const auto left = make_partition(kLeft, RangeId{1});
  const auto right = make_partition(kRight, RangeId{2});
  keep_everything(left);
  keep_everything(right);
  add_indexes(left, {"/p", "/only_left", "/u"});
  add_indexes(right, {"/u", "/p", "/only_right"});
  {
    Storm storm(*this, {left, right}, seed);
    ASSERT_TRUE(eventually([&] { return storm.committed() > 2000; }));
  }
  Storm storm(*this, {left, right}, seed + 1);
  const auto generation = home.committer().generation();
  const auto unique = std::make_shared<const UniqueValuesOf>(unique_values_in);
  const auto indexes = common_to({left, right});
  ASSERT_TRUE(left->begin_copy({{{kFirst, EpkRange{}, 0}}, unique, indexes}, generation));
  ASSERT_TRUE(copy_all(left));
  const std::uint32_t shift = left->copied_index_bound().value();
  EXPECT_EQ(shift, storage::kNewIndexBound);
  ASSERT_TRUE(right->begin_copy({{{kFirst, EpkRange{}, shift}}, unique, indexes}, generation));
  ASSERT_TRUE(copy_all(right));
  const auto from_left = left->hold();
  const auto from_right = right->hold();
  ASSERT_TRUE(from_left && from_right);
  const auto head = head_of_merged(*from_left, *from_right, boundary());
  store_head(kFirst, head);
  left->retire();
  right->retire();
  storm.stop();

  EXPECT_EQ(head.lsn, std::max(from_left->head.lsn, from_right->head.lsn));
  EXPECT_EQ(head.merged_at, head.lsn);
  EXPECT_GT(head.index_bound, shift);
  const auto merged = audit(home.store(), kFirst);
  const auto one = audit(home.store(), kLeft);
  const auto other = audit(home.store(), kRight);
  EXPECT_EQ(merged.head.documents, one.head.documents + other.head.documents);
  EXPECT_EQ(indexes_of(merged.head),
            "/p 1 complete, /u 2 complete, /only_left 65 building, /only_right 66 building");
  EXPECT_EQ(merged.index_entries, 2 * merged.head.documents);
  expect_same(read(kFirst), joined(read(kLeft), read(kRight, shift)));
}

// ── heads ────────────────────────────────────────────────────────────────────────────────────────

storage::HistoryParts parts(std::vector<HistoryPart> given) {
  return std::make_shared<const std::vector<HistoryPart>>(std::move(given));
}

TEST(CopyHeadsTest, WhereHistoryBeginsIsRememberedForEachFormerRange) {
  CopyOutcome left, right;
  left.head.history = parts({{"", Lsn{5}, Lsn{3}}});
  right.head.history = parts({{"", Lsn{70}, Lsn{60}}});
  left.targets.resize(1);
  right.targets.resize(1);
  const auto merged = head_of_merged(left, right, Epk{"m"});
  EXPECT_THAT(*merged.history,
              ElementsAre(HistoryPart{"", Lsn{5}, Lsn{3}}, HistoryPart{"m", Lsn{70}, Lsn{60}}));

  CopyOutcome parent;
  parent.head = merged;
  parent.targets.resize(3);
  parent.targets[0].target.epks = {Epk::min(), Epk{"c"}};
  parent.targets[1].target.epks = {Epk{"c"}, Epk{"p"}};
  parent.targets[2].target.epks = {Epk{"p"}, Epk::max()};
  EXPECT_THAT(*head_of_part(parent, 0).history, ElementsAre(HistoryPart{"", Lsn{5}, Lsn{3}}));
  EXPECT_THAT(*head_of_part(parent, 1).history,
              ElementsAre(HistoryPart{"c", Lsn{5}, Lsn{3}}, HistoryPart{"m", Lsn{70}, Lsn{60}}));
  EXPECT_THAT(*head_of_part(parent, 2).history, ElementsAre(HistoryPart{"p", Lsn{70}, Lsn{60}}));
}

TEST(CopyHeadsTest, PartsThatSayTheSameAreOne) {
  CopyOutcome left, right;
  left.targets.resize(1);
  right.targets.resize(1);
  left.head.history = parts({{"", Lsn{5}, Lsn{3}}});
  right.head.history = parts({{"m", Lsn{5}, Lsn{3}}, {"q", Lsn{6}, Lsn{3}}});
  EXPECT_THAT(*head_of_merged(left, right, Epk{"m"}).history,
              ElementsAre(HistoryPart{"", Lsn{5}, Lsn{3}}, HistoryPart{"q", Lsn{6}, Lsn{3}}));
  left.head.history = right.head.history = nullptr;
  EXPECT_EQ(head_of_merged(left, right, Epk{"m"}).history, nullptr);
}

TEST(CopyHeadsTest, GapsGoOnToThePartsAndToAMergedRange) {
  CopyOutcome left, right;
  left.targets.resize(1);
  right.targets.resize(1);
  left.head.lsn = Lsn{10};
  right.head.lsn = Lsn{20};
  for (storage::Head* head : {&left.head, &right.head}) {
    head->resume_at(Lsn{1'000});
    head->lsn = Lsn{head == &left.head ? 1'007u : 1'002u};
    head->resume_at(Lsn{5'000});
  }
  const auto merged = head_of_merged(left, right, Epk{"m"});
  using storage::LsnGap;
  EXPECT_THAT(*merged.gaps,
              ElementsAre(LsnGap{Lsn{10}, Lsn{1'000}}, LsnGap{Lsn{1'002}, Lsn{5'000}}));
  CopyOutcome parent;
  parent.head = merged;
  parent.targets.resize(1);
  EXPECT_EQ(*head_of_part(parent, 0).gaps, *merged.gaps);
  left.head.gaps = nullptr;
  EXPECT_EQ(*head_of_merged(left, right, Epk{"m"}).gaps, *right.head.gaps);
}

TEST(CopyHeadsTest, AMergedHeadIsTheHigherOfTheTwo) {
  CopyOutcome left, right;
  left.targets.resize(1);
  right.targets.resize(1);
  left.head.lsn = Lsn{10};
  left.head.ts = 500;
  left.head.document_sequence = 77;
  right.head.lsn = Lsn{20};
  right.head.ts = 400;
  const auto merged = head_of_merged(left, right, Epk{"m"});
  EXPECT_EQ(merged.lsn, Lsn{20});
  EXPECT_EQ(merged.merged_at, Lsn{20});
  EXPECT_EQ(merged.ts, 500) << "new documents must not be older than what is there";
  EXPECT_EQ(merged.document_sequence, 0u) << "a new range counts anew";
  EXPECT_EQ(merged.index_bound, 65'536u);
}

}  // namespace
}  // namespace orrery::partition
