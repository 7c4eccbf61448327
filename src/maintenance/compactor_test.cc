#include "maintenance/compactor.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "base/test_wait.h"
#include "storage/keys.h"
#include "storage/test_store.h"

namespace orrery::maintenance {
namespace {

using namespace std::chrono_literals;
using storage::Batch;
using storage::Family;

class CompactorTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kVersions = 2000;

  static std::string key(PartitionNumber partition, std::uint64_t lsn) {
    return storage::log_key(partition, {Lsn{lsn}, 0});
  }
  /// In tables, as what was written long ago.
  void fill(PartitionNumber partition) {
    Batch batch;
    std::string text;
    for (std::uint64_t lsn = 0; lsn < kVersions; ++lsn) {
      // Something that cannot be compressed away.
      for (int i = 0; i < 250; ++i) storage::append_u64(text, lsn * 0x9E3779B97F4A7C15 * (i + 1));
      batch.put(Family::Log, key(partition, lsn), text);
      text.clear();
    }
    ASSERT_TRUE(storage::commit(*store, batch));
    std::atomic<bool> never = false;
    store->compact(Family::Log, storage::partition_prefix(partition),
                   storage::partition_end(partition), never);
  }
  void erase(PartitionNumber partition) {
    Batch batch;
    for (std::uint64_t lsn = 0; lsn < kVersions; ++lsn) {
      batch.erase_single(Family::Log, key(partition, lsn));
    }
    ASSERT_TRUE(storage::commit(*store, batch));
  }

  storage::TemporaryDirectory directory;
  std::unique_ptr<storage::Store> store = storage::open_store(directory.path());
  const PartitionNumber seven{7};
};

TEST_F(CompactorTest, SpaceOfWhatWasErasedComesBackThoughNothingIsWritten) {
  Compactor compactor(*store, {.erasures_min = 1000, .quiet = 0ms});
  fill(seven);
  fill(PartitionNumber{8});
  const auto before = store->stats().live_bytes;
  ASSERT_GT(before, 6u << 20);
  erase(seven);
  compactor.note_erased(seven, kVersions);
  EXPECT_TRUE(compactor.run_once());
  EXPECT_LT(store->stats().live_bytes, before * 6 / 10);
  EXPECT_GT(store->stats().live_bytes, before * 4 / 10) << "the other one is still there";
  EXPECT_EQ(compactor.compactions(), 1u);
  EXPECT_FALSE(compactor.run_once());
}

TEST_F(CompactorTest, FewErasuresAndRestlessPartitionsAreLeftAlone) {
  Compactor few(*store, {.erasures_min = 1000, .quiet = 0ms});
  few.note_erased(seven, 999);
  EXPECT_FALSE(few.run_once());
  few.note_erased(seven, 1);
  EXPECT_TRUE(few.run_once());

  Compactor restless(*store, {.erasures_min = 1, .quiet = 1h});
  restless.note_erased(seven, 10);
  EXPECT_FALSE(restless.run_once());
  Compactor patient(*store, {.erasures_min = 1, .quiet = 1h, .wait_max = 0ms});
  patient.note_erased(seven, 10);
  EXPECT_TRUE(patient.run_once());
}

TEST_F(CompactorTest, ItWorksByItselfAndStops) {
  Compactor compactor(*store, {.erasures_min = 1, .quiet = 0ms});
  compactor.note_erased(seven, 10);
  compactor.start();
  EXPECT_TRUE(test::eventually([&] { return compactor.compactions() > 0; }));
  EXPECT_EQ(compactor.compactions(), 1u);
  compactor.stop();
}

}  // namespace
}  // namespace orrery::maintenance
