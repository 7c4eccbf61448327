#include "storage/recovery/watermark.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/recovery/rocks_log.h"
#include "storage/recovery/watermark_keeper.h"
#include "storage/test_store.h"

namespace orrery::storage {
namespace {

using testing::HasSubstr;

class WatermarkTest : public testing::Test {
 protected:
  void overwrite(std::size_t offset, std::string_view bytes) const {
    const int file = ::open(path.c_str(), O_WRONLY);
    ASSERT_EQ(::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset)),
              static_cast<ssize_t>(bytes.size()));
    ::close(file);
  }
  static SyncedMark some_mark(std::uint64_t operation) {
    SyncedMark mark;
    mark.operation = operation;
    mark.manifest = 12;
    mark.manifest_size = 3456;
    mark.boot = current_boot();
    return mark;
  }

  TemporaryDirectory directory;
  std::filesystem::path path = directory.path() / "watermark";
};

TEST_F(WatermarkTest, HoldsWhatWasWrittenLast) {
  EXPECT_FALSE(Watermark(path).mark());
  EXPECT_FALSE(Watermark(path).is_damaged());
  for (std::uint64_t operation = 1; operation < 6; ++operation) {
    SyncedMark mark = some_mark(operation);
    mark.is_strict = operation % 2 == 0;
    mark.is_loss_pending = operation % 3 == 0;
    ASSERT_TRUE(Watermark(path).write(mark));
    EXPECT_EQ(Watermark(path).mark(), mark);
  }
  EXPECT_EQ(std::filesystem::file_size(path), 8u << 10);
}

TEST_F(WatermarkTest, ASlotThatIsDamagedLeavesTheOneBefore) {
  for (std::size_t bad = 0; bad < 2; ++bad) {
    {
      Watermark watermark(path);
      ASSERT_TRUE(watermark.write(some_mark(7)));
      ASSERT_TRUE(watermark.write(some_mark(8)));
    }
    overwrite(bad * 4096 + 24, "????");
    const Watermark watermark(path);
    ASSERT_TRUE(watermark.mark());
    EXPECT_FALSE(watermark.is_damaged());
    EXPECT_THAT(watermark.mark()->operation, testing::AnyOf(7u, 8u));
  }
}

TEST_F(WatermarkTest, WithoutAValidSlotItIsDamagedAndMadeAnew) {
  ASSERT_TRUE(Watermark(path).write(some_mark(7)));
  overwrite(0, std::string(8192, '\0'));
  EXPECT_FALSE(Watermark(path).mark());
  EXPECT_TRUE(Watermark(path).is_damaged());
  ASSERT_TRUE(Watermark(path).write(some_mark(9)));
  EXPECT_EQ(Watermark(path).mark(), some_mark(9));
  std::filesystem::resize_file(path, 100);
  EXPECT_TRUE(Watermark(path).is_damaged());
}

TEST_F(WatermarkTest, TheMarkBeforeHoldsWhenTheDiskRefuses) {
  Watermark watermark(path);
  const FullDisk full;
  EXPECT_FALSE(watermark.write(some_mark(1)));
  EXPECT_FALSE(watermark.mark());
}

TEST_F(WatermarkTest, AManifestThatIsShorterThanNotedIsRefused) {
  const auto store = directory.path() / "store";
  std::filesystem::create_directory(store);
  std::ofstream(store / "CURRENT") << "MANIFEST-000012\n";
  std::string manifest;
  for (int i = 0; i < 3000; ++i) append_rocks_log(manifest, "an edit of the set of tables");
  std::ofstream(store / "MANIFEST-000012", std::ios::binary) << manifest;
  auto extent = sync_manifest(store, {});
  ASSERT_TRUE(extent);
  EXPECT_EQ(*extent, (ManifestExtent{12, manifest.size()}));

  // The rest of it, and a record that is being written.
  append_rocks_log(manifest, "one more");
  const std::size_t size = manifest.size();
  append_rocks_log(manifest, "half of one");
  manifest.resize(manifest.size() - 3);
  std::ofstream(store / "MANIFEST-000012", std::ios::binary) << manifest;
  extent = sync_manifest(store, *extent);
  ASSERT_TRUE(extent);
  EXPECT_EQ(*extent, (ManifestExtent{12, size}));

  SyncedMark mark;
  mark.manifest = 12;
  mark.manifest_size = size;
  EXPECT_TRUE(check_manifest(store, mark));
  manifest[40'000] = static_cast<char>(manifest[40'000] ^ 1);
  std::ofstream(store / "MANIFEST-000012", std::ios::binary) << manifest;
  const auto refused = check_manifest(store, mark);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(),
              HasSubstr("MANIFEST-000012 is damaged or cut off at byte 39"));

  mark.manifest = 11;
  EXPECT_TRUE(check_manifest(store, mark)) << "a later opening has made another one";
  mark.manifest = 13;
  EXPECT_FALSE(check_manifest(store, mark));
}

TEST_F(WatermarkTest, TheKeeperWritesOnlyWhatIsNew) {
  const auto store = open_store(directory.path());
  Batch batch;
  batch.put(Family::Log, "k", "v");
  ASSERT_TRUE(commit(*store, batch));
  store->flush();
  const auto first = Watermark(path).mark();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->operation, 1u);
  EXPECT_GT(first->manifest, 0u);
  EXPECT_GT(first->manifest_size, 0u);
  EXPECT_FALSE(first->is_strict);
  const auto before = read_bytes(path);
  store->write_watermark();
  EXPECT_EQ(*read_bytes(path), *before);
  ASSERT_TRUE(commit(*store, batch));
  store->write_watermark();
  EXPECT_EQ(*read_bytes(path), *before) << "what is not synced does not count";
  store->flush();
  EXPECT_EQ(Watermark(path).mark()->operation, 2u);
}

}  // namespace
}  // namespace orrery::storage
