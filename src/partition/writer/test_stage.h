// For tests: a stage over a store of its own, and what the committer would do with it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "partition/test_audit.h"
#include "partition/test_environment.h"
#include "partition/writer/stage.h"
#include "storage/keys.h"
#include "storage/test_store.h"

namespace orrery::partition {

inline constexpr PartitionNumber kPartition{7};
inline constexpr RangeId kRange{3};

inline Rid container_rid() { return Rid::container({0, 0, 0, 1}, {0x80, 0, 0, 1}); }

/// "ok", or the name of the error.
inline std::string outcome_of(const Result<Committed>& result) {
  if (result) return "ok";
  switch (result.error().code()) {
    case ErrorCode::Conflict:
      return "conflict";
    case ErrorCode::NotFound:
      return "not found";
    case ErrorCode::PreconditionFailed:
      return "precondition failed";
    default:
      return "? " + result.error().message();
  }
}

class StageTest : public testing::Test {
 protected:
  void TearDown() override {
    commit();
    EXPECT_EQ(audit(*store, kPartition).stale_expiry_entries, 0u);
  }

  Result<Committed> stage_all(const Transaction& transaction) {
    return stage.stage(transaction, clock.unix_seconds(), batch, storage::Tier::Disk);
  }
  Result<Committed> stage_writes(std::vector<WriteOf> writes) {
    return stage_all(transaction_of(std::move(writes), rules));
  }
  /// Stages one write and says what came of it.
  std::string attempt(WriteOf write) { return outcome_of(stage_writes({std::move(write)})); }
  /// Stages one write that must succeed.
  Written write(WriteOf one) {
    auto committed = stage_writes({std::move(one)});
    EXPECT_TRUE(committed) << committed.error().message();
    return committed ? committed->writes.at(0) : Written{};
  }
  Result<Committed> delete_all(std::string_view partition_key) {
    return stage_all({.rules = rules, .work = DeleteByKey{key_of(partition_key, "")}});
  }

  /// Commits what is staged, as the committer does.
  void commit() {
    store_staged();
    stage.forget_committed(stage.head().lsn);
  }
  /// The same before the writer has heard of it.
  void store_staged() {
    batch.put(storage::Family::Heads, storage::partition_prefix(kPartition), stage.head().make());
    ASSERT_TRUE(storage::commit(*store, batch));
    batch.clear();
    (void)stage.take_records();
  }
  /// The staged transactions never become durable, and the writer hears of it.
  void fail_commit() {
    batch.clear();
    stage.reset(stored_head());
  }
  /// The server starts again on what is stored.
  void restart() {
    const auto head = stored_head();
    std::destroy_at(&stage);
    store.reset();
    store = storage::open_store(directory.path());
    std::construct_at(&stage, *store, kPartition, kRange, container_rid(), head);
  }
  storage::Head stored_head() {
    std::string value;
    const auto found = store->get(storage::Family::Heads, storage::partition_prefix(kPartition),
                                  value, storage::Tier::Disk);
    return found == storage::Lookup::Found ? storage::Head::parse(value).value() : storage::Head{};
  }

  /// Changes what is kept.
  Result<Committed> keep(storage::RetentionSettings retention) {
    return stage_all({.work = RetentionChange{retention}});
  }
  void keep_history(storage::RetentionSettings::History history,
                    storage::RetentionSettings::PreviousImage previous = {}) {
    storage::RetentionSettings retention = stage.head().retention;
    retention.history = history;
    retention.previous_image = previous;
    ASSERT_TRUE(keep(retention));
  }
  void keep_expiry(bool on) {
    storage::RetentionSettings retention = stage.head().retention;
    retention.expiry =
        on ? storage::RetentionSettings::Expiry::Building : storage::RetentionSettings::Expiry::Off;
    ASSERT_TRUE(keep(retention));
  }

  Result<Committed> change_indexes(std::vector<std::string> add,
                                   std::vector<std::string> drop = {}) {
    return stage_all({.work = IndexChange{std::move(add), std::move(drop)}});
  }
  Result<Committed> build_indexes() { return stage_all({.work = IndexBuildStep{}}); }

  /// The ids that are stored under one key.
  std::vector<std::string> stored_ids(std::string_view partition_key = "p") {
    std::vector<std::string> ids;
    const std::string prefix = key_of(partition_key, "").bytes();
    for (const auto& [name, entry] : audit(*store, kPartition).entries) {
      if (name.starts_with(prefix)) ids.push_back(name.substr(prefix.size()));
    }
    return ids;
  }
  std::string stored_text(std::string_view id, std::string_view partition_key = "p") {
    return audit(*store, kPartition).texts[key_of(partition_key, id).bytes()];
  }

  storage::TemporaryDirectory directory;
  std::unique_ptr<storage::Store> store = storage::open_store(directory.path());
  ManualClock clock{1'743'508'800};
  Rules rules;
  Stage stage{*store, kPartition, kRange, container_rid(), storage::Head{}};
  storage::Batch batch;
};

}  // namespace orrery::partition
