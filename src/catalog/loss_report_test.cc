#include "catalog/loss_report.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog/entries.h"
#include "storage/keys.h"
#include "storage/records.h"
#include "storage/test_store.h"

namespace orrery::catalog {
namespace {

using storage::Batch;
using storage::Family;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Rid kLostDatabase = Rid::database({0, 0, 0, 5});
const Rid kLostContainer = Rid::container({0, 0, 0, 5}, {0x80, 0, 0, 9});

/// A store with the container shop/orders: range 0 is partition 11 with head 681, range 3 is
/// partition 12 with head 40.
class LossReportTest : public testing::Test {
 protected:
  LossReportTest() {
    const auto definition =
        ContainerDefinition::create(
            Json::parse(
                R"({"id":"orders","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}})"),
            "2020-07-15")
            .value();
    const Epk boundary = Epk::from_hex("40").value();
    StoredContainer container{kLostContainer, definition, Lsn{8}, 0, 1, {}, RangeId{4}};
    container.ranges.push_back({RangeId{0}, PartitionNumber{11}, {Epk::min(), boundary}, {}, 1, 0});
    container.ranges.push_back({RangeId{3}, PartitionNumber{12}, {boundary, Epk::max()}, {}, 1, 0});
    Batch batch;
    batch.put(Family::Catalog, database_key(kLostDatabase),
              make_value(Database{kLostDatabase, "shop", Lsn{7}, 0}));
    batch.put(Family::Catalog, container_key(kLostContainer), make_value(container));
    put_head(batch, PartitionNumber{11}, Lsn{681});
    put_head(batch, PartitionNumber{12}, Lsn{40});
    commit(batch);
  }

  static void put_head(Batch& batch, PartitionNumber partition, Lsn lsn) {
    storage::Head head;
    head.lsn = lsn;
    batch.put(Family::Heads, storage::partition_prefix(partition), head.make());
  }
  void commit(const Batch& batch) { ASSERT_TRUE(storage::commit(*store, batch)); }

  std::vector<std::string> describe(std::map<PartitionNumber, Lsn> heads) {
    storage::Loss loss;
    loss.damage = "a damaged log";
    loss.is_acceptable = true;
    loss.heads = std::move(heads);
    auto lines = describe_loss(*store, loss);
    EXPECT_TRUE(lines) << lines.error().message();
    return lines.value_or(std::vector<std::string>());
  }

  storage::TemporaryDirectory directory;
  std::unique_ptr<storage::Store> store = storage::open_store(directory.path());
};

TEST_F(LossReportTest, ARangeIsNamedWithTheLsnsThatItHasLost) {
  EXPECT_THAT(describe({{PartitionNumber{11}, Lsn{951}}}),
              ElementsAre("shop/orders, range 0: LSNs 682 to 951"));
  EXPECT_THAT(
      describe({{PartitionNumber{11}, Lsn{951}}, {PartitionNumber{12}, Lsn{41}}}),
      ElementsAre("shop/orders, range 0: LSNs 682 to 951", "shop/orders, range 3: LSNs 41 to 41"));
}

TEST_F(LossReportTest, ARangeWhoseHeadRemainsHasLostNothing) {
  EXPECT_THAT(describe({{PartitionNumber{11}, Lsn{681}}, {PartitionNumber{12}, Lsn{39}}}),
              IsEmpty());
}

TEST_F(LossReportTest, EveryRangeMayHaveLostWritesWhenNothingOfThemCanBeRead) {
  EXPECT_THAT(describe({}), ElementsAre("shop/orders, range 0: what was written after LSN 681",
                                        "shop/orders, range 3: what was written after LSN 40"));
}

TEST_F(LossReportTest, ARangeThatIsNotInTheRemainingCatalogIsNamedByItsPartition) {
  EXPECT_THAT(describe({{PartitionNumber{13}, Lsn{9}}}),
              ElementsAre("a range that was made after the damage (partition 13): LSNs up to 9"));
}

TEST_F(LossReportTest, APartitionWithoutAContainerIsNotARange) {
  Batch batch;
  put_head(batch, PartitionNumber{10}, Lsn{70});
  commit(batch);
  EXPECT_THAT(describe({}), testing::SizeIs(2)) << "garbage, which loses nothing";
}

TEST_F(LossReportTest, ACatalogThatCannotBeReadIsAnError) {
  Batch batch;
  batch.put(Family::Catalog, container_key(kLostContainer), "\x01{}");
  commit(batch);
  storage::Loss loss;
  loss.damage = "a damaged log";
  const auto lines = describe_loss(*store, loss);
  ASSERT_FALSE(lines);
  EXPECT_EQ(lines.error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(lines.error().message(), HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace orrery::catalog
