#include "partition/read/version_reader.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "partition/test_environment.h"
#include "partition/writer/stage.h"
#include "storage/test_store.h"

namespace orrery::partition {
namespace {

using storage::LogPosition;
using testing::HasSubstr;

constexpr PartitionNumber kReadPartition{7};
constexpr std::size_t kVersions = 100;

class VersionReaderTest : public testing::Test {
 protected:
  VersionReaderTest() {
    for (std::size_t i = 0; i < kVersions; ++i) {
      storage::Batch batch;
      const auto committed = stage_.stage(transaction_of({{.id = std::to_string(i)}}),
                                          clock_.unix_seconds(), batch, storage::Tier::Disk);
      EXPECT_TRUE(storage::commit(*store_, batch));
      positions_.push_back(committed->writes[0].position);
    }
  }
  static std::string start_of(std::size_t version) {
    return R"({"id":")" + std::to_string(version) + "\"";
  }

  storage::TemporaryDirectory directory_;
  std::unique_ptr<storage::Store> store_ = storage::open_store(directory_.path());
  ManualClock clock_{1'743'508'800};
  Stage stage_{*store_, kReadPartition, RangeId{0}, Rid::container({0, 0, 0, 1}, {0x80, 0, 0, 1}),
               storage::Head{}};
  std::vector<LogPosition> positions_;
};

TEST_F(VersionReaderTest, FindsEachVersionWhereverItWasBefore) {
  const auto snapshot = store_->snapshot();
  VersionReader reader(*snapshot, kReadPartition, storage::Snapshot::Access::Point);
  // The next one, a few further on, far ahead, back, and the same one again.
  for (const std::size_t version : {0U, 1U, 9U, 26U, 90U, 3U, 3U, 99U}) {
    const auto record = reader.at(positions_[version]);
    ASSERT_TRUE(record) << version;
    EXPECT_THAT(std::string(record->text), testing::StartsWith(start_of(version)));
  }
}

TEST_F(VersionReaderTest, WhatIsNotInTheLogIsAnError) {
  const auto snapshot = store_->snapshot();
  VersionReader reader(*snapshot, kReadPartition, storage::Snapshot::Access::Point);
  const LogPosition later{Lsn{positions_.back().lsn.value + 1}, 0};
  const LogPosition between{positions_[5].lsn, 7};
  for (const LogPosition position : {later, between}) {
    const auto record = reader.at(position);
    ASSERT_FALSE(record);
    EXPECT_THAT(record.error().message(), HasSubstr("not in the log"));
  }
  EXPECT_TRUE(reader.at(positions_[6]));
}

TEST_F(VersionReaderTest, ABatchIsInTheOrderOfItsPositions) {
  const auto snapshot = store_->snapshot();
  VersionBatch batch(*snapshot, kReadPartition);
  // Some of them come again: those are in memory by then.
  for (const std::vector<std::size_t>& versions :
       {std::vector<std::size_t>{80, 3, 41}, {3, 99, 80, 0}, {}, {41}}) {
    std::vector<LogPosition> positions;
    for (const std::size_t version : versions) positions.push_back(positions_[version]);
    ASSERT_TRUE(batch.read(positions));
    ASSERT_EQ(batch.size(), versions.size());
    for (std::size_t place = 0; place < versions.size(); ++place) {
      EXPECT_THAT(std::string(batch[place].text), testing::StartsWith(start_of(versions[place])));
    }
  }
  EXPECT_FALSE(batch.read(std::vector{positions_[0], LogPosition{Lsn{5000}, 0}}));
}

}  // namespace
}  // namespace orrery::partition
