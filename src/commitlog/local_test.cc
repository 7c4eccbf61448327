#include "commitlog/local.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "storage/test_store.h"

namespace orrery::commitlog {
namespace {

using storage::Batch;
using storage::Family;

class LocalCommitLogTest : public testing::Test {
 protected:
  std::optional<std::string> get(const std::string& key) const {
    std::string value;
    const auto lookup = store_->get(Family::Heads, key, value, storage::Tier::Disk);
    return lookup == storage::Lookup::Found ? std::optional(value) : std::nullopt;
  }
  void reopen() {
    store_.reset();
    store_ = std::move(storage::Store::open({.directory = home_.path() / "store"}).value());
  }
  static Batch batch_of(const std::string& key, const std::string& value) {
    Batch batch;
    batch.put(Family::Heads, key, value);
    return batch;
  }
  /// More than a disk takes that is full at a megabyte.
  static Batch large_batch() {
    Batch batch = batch_of("large", "1");
    for (int i = 0; i < 4; ++i) {
      batch.put(Family::Log, std::to_string(i), std::string(kFileBytesMax, 'x'));
    }
    return batch;
  }

  static constexpr std::size_t kFileBytesMax = 1 << 20;
  storage::TemporaryDirectory home_;
  std::unique_ptr<storage::Store> store_ =
      std::move(storage::Store::open({.directory = home_.path() / "store"}).value());
};

TEST_F(LocalCommitLogTest, AnAppendIsDurableAndItsBatchesTakeEffectInOrder) {
  const Batch first = batch_of("a", "1");
  const Batch second = batch_of("a", "2");
  const Batch third = batch_of("b", "3");
  const std::vector<const Batch*> group = {&first, &second, &third};
  ASSERT_TRUE(LocalCommitLog(*store_).append(group));
  reopen();
  EXPECT_EQ(get("a"), "2");
  EXPECT_EQ(get("b"), "3");
}

TEST_F(LocalCommitLogTest, AfterAFailedAppendEveryAppendFailsUntilRecovery) {
  LocalCommitLog log(*store_);
  const Batch large = large_batch();
  const Batch small = batch_of("a", "1");
  {
    const storage::FullDisk full(kFileBytesMax);
    const std::vector<const Batch*> group = {&small, &large};
    ASSERT_FALSE(log.append(group));
    EXPECT_FALSE(log.recover()) << "the disk is still full";
  }
  const std::vector<const Batch*> alone = {&small};
  const auto refused = log.append(alone);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Unavailable);
  ASSERT_TRUE(log.recover());
  EXPECT_EQ(get("a").has_value(), get("large").has_value()) << "all of a group or nothing";
  ASSERT_TRUE(log.append(alone));
  EXPECT_EQ(get("a"), "1");
}

}  // namespace
}  // namespace orrery::commitlog
