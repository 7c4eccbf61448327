#include "catalog/retention.h"
#include "catalog/test_catalog.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

namespace orrery::catalog {
namespace {

using storage::RetentionSettings;

TEST(RetentionTest, FollowsFromTheDefinition) {
  EXPECT_EQ(retention_of(test_definition("c")), RetentionSettings{});
  EXPECT_FALSE(needs_upkeep(test_definition("c")));
  EXPECT_EQ(retention_of(test_definition("c", R"(,"defaultTtl":-1)")),
            (RetentionSettings{{}, {}, RetentionSettings::Expiry::Building}));
  EXPECT_EQ(retention_of(test_definition(
                "c", R"(,"changeFeedPolicy":{"retentionDuration":1,"previousImage":"delete"})")),
            (RetentionSettings{
                RetentionSettings::History::All, RetentionSettings::PreviousImage::Delete, {}}));
  EXPECT_EQ(retention_of(test_definition(
                "c", R"(,"changeFeedPolicy":{"tombstoneDuration":1,"previousImage":"all"})")),
            (RetentionSettings{RetentionSettings::History::Tombstones, {}, {}}));
  EXPECT_TRUE(retains_as_asked({{}, {}, RetentionSettings::Expiry::Complete},
                               {{}, {}, RetentionSettings::Expiry::Building}));
  EXPECT_FALSE(retains_as_asked({}, {{}, {}, RetentionSettings::Expiry::Building}));
}

TEST(RetentionTest, HistoryIsKeptForMinutesAndDeletesAtLeastAsLong) {
  const auto trim = trim_of({10, 0, {}}, 10'000, 5);
  EXPECT_EQ(trim.all_before, 10'000 - 600);
  EXPECT_EQ(trim.tombstones_before, 10'000 - 600);
  EXPECT_EQ(trim.bytes_max, 5u);
  EXPECT_EQ(trim_of({10, 5, {}}, 10'000, 5).tombstones_before, 10'000 - 600);
  EXPECT_EQ(trim_of({10, 20, {}}, 10'000, 5).tombstones_before, 10'000 - 1200);
  EXPECT_EQ(trim_of({10, -1, {}}, 10'000, 5).tombstones_before, 0);
  EXPECT_GT(trim_of({0, 20, {}}, 10'000, 5).all_before, 1ll << 50) << "only tombstones are kept";
  EXPECT_EQ(trim_of({INT32_MAX, 0, {}}, 10'000, 5).all_before, 10'000 - 60ll * INT32_MAX);
}

}  // namespace
}  // namespace orrery::catalog
