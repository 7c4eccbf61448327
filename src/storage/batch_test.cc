#include "storage/batch.h"

#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::storage {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;
using testing::IsEmpty;

using Operation = std::tuple<Batch::Kind, Family, std::string, std::string>;

std::vector<Operation> operations(const Batch& batch) {
  std::vector<Operation> found;
  batch.for_each([&](Batch::Kind kind, Family family, std::string_view key,
                     std::string_view value) { found.emplace_back(kind, family, key, value); });
  return found;
}

TEST(BatchTest, GivesBackWhatWasPutIntoItInOrder) {
  Batch batch;
  batch.put(Family::Log, "k1", "v1");
  batch.erase(Family::Ids, "k2");
  batch.erase_single(Family::Log, "k3");
  batch.erase_range(Family::Rids, "from", "to");
  batch.put(Family::Catalog, "k1", "v2");
  EXPECT_THAT(operations(batch),
              ElementsAre(FieldsAre(Batch::Kind::Put, Family::Log, "k1", "v1"),
                          FieldsAre(Batch::Kind::Erase, Family::Ids, "k2", ""),
                          FieldsAre(Batch::Kind::EraseSingle, Family::Log, "k3", ""),
                          FieldsAre(Batch::Kind::EraseRange, Family::Rids, "from", "to"),
                          FieldsAre(Batch::Kind::Put, Family::Catalog, "k1", "v2")));
}

TEST(BatchTest, EveryFamilyComesBackAsItself) {
  Batch batch;
  for (std::size_t i = 0; i < kFamilyCount; ++i) batch.put(static_cast<Family>(i), "k", "v");
  std::size_t expected = 0;
  batch.for_each([&](Batch::Kind, Family family, std::string_view, std::string_view) {
    EXPECT_EQ(static_cast<std::size_t>(family), expected++);
  });
  EXPECT_EQ(expected, kFamilyCount);
}

TEST(BatchTest, KeysAndValuesMayBeEmptyAndHoldAnyByte) {
  const std::string bytes("\0\xFF\n\x01", 4);
  const std::string large(300'000, 'x');
  Batch batch;
  batch.put(Family::Heads, "", "");
  batch.put(Family::Heads, bytes, bytes);
  batch.put(Family::Log, "k", large);
  EXPECT_THAT(operations(batch),
              ElementsAre(FieldsAre(Batch::Kind::Put, Family::Heads, "", ""),
                          FieldsAre(Batch::Kind::Put, Family::Heads, bytes, bytes),
                          FieldsAre(Batch::Kind::Put, Family::Log, "k", large)));
}

TEST(BatchTest, AppendingJoinsTwoBatches) {
  Batch first, second;
  first.put(Family::Log, "a", "1");
  second.erase(Family::Log, "a");
  const auto bytes = first.byte_size() + second.byte_size();
  first.append(second);
  EXPECT_EQ(first.byte_size(), bytes);
  EXPECT_THAT(operations(first), ElementsAre(FieldsAre(Batch::Kind::Put, Family::Log, "a", "1"),
                                             FieldsAre(Batch::Kind::Erase, Family::Log, "a", "")));
}

TEST(BatchTest, IsEmptyBeforeTheFirstOperationAndAfterClearing) {
  Batch batch;
  EXPECT_TRUE(batch.empty());
  EXPECT_EQ(batch.byte_size(), 0u);
  EXPECT_THAT(operations(batch), IsEmpty());
  batch.put(Family::Log, "", "");
  EXPECT_FALSE(batch.empty());
  batch.clear();
  EXPECT_TRUE(batch.empty());
}

}  // namespace
}  // namespace orrery::storage
