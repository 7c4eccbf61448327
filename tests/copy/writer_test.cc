// Writes of hosts that do not know yet that they have lost their lease: the writers of
// `orrery copy` themselves, in the order of events that no test from outside can bring about.
#include "sinks/container/lease_writer.h"

#include <gtest/gtest.h>

#include "sinks/container/copy_failure.h"
#include "test_account.h"

namespace orrery::sinks {
namespace {

const client::FeedRange kAll{"", "FF"};
const client::FeedRange kLeft{"", "80"};

class WriterTest : public test::AccountTest {
 protected:
  /// The destination of a test, with a key that has room for positions or one that has not.
  CopyTarget& make_target(const std::string& key_path = "/region") {
    client::ContainerProperties properties;
    properties.id = "dst";
    properties.partition_key_paths = {key_path};
    properties.change_feed_policy = R"({"retentionDuration":60})";
    database().create_container(properties);
    target_ = std::make_unique<CopyTarget>(database().container("dst"), "dst", "g", "source");
    ledger_ = std::make_unique<LedgerStore>(*target_);
    return *target_;
  }

  LeaseWriter writer(const client::FeedRange& area, std::uint64_t epoch) {
    auto registration = ledger_->register_owner(area, epoch);
    EXPECT_FALSE(registration.superseded);
    return LeaseWriter(*target_, *ledger_, area, epoch, std::move(registration));
  }

  /// Of a place in the left half of the source.
  SourceChange change(std::uint64_t lsn, std::string id = "a", std::string region = "eu") {
    SourceChange made;
    made.text =
        R"({"id":")" + id + R"(","region":")" + region + R"(","n":)" + std::to_string(lsn) + "}";
    made.id = std::move(id);
    made.rid = "rid";
    made.lsn = lsn;
    made.key = target_->keys.key_of(made.text);
    made.source_epk = *Epk::from_hex("11");
    return made;
  }

  WriteOutcome write(LeaseWriter& writer, const SourceChange& change) {
    return target_->keys.has_id() ? writer.write_compared({&change}, {})
                                  : writer.write_key({&change}, {});
  }

  std::string stored(const SourceChange& change) const {
    return without_system_properties(
        target_->container.read_item(change.id, client_key(change.key)).value);
  }

  std::unique_ptr<CopyTarget> target_;
  std::unique_ptr<LedgerStore> ledger_;
};

TEST_F(WriterTest, WhatIsReadAgainIsNotWrittenAgain) {
  make_target();
  const SourceChange first = change(5);
  LeaseWriter before = writer(kAll, 10);
  EXPECT_EQ(write(before, first), WriteOutcome::Done);
  LeaseWriter after = writer(kAll, 11);
  EXPECT_EQ(write(after, first), WriteOutcome::Done);
  EXPECT_EQ(target_->written, 1u);
  EXPECT_EQ(target_->skipped, 1u);
}

TEST_F(WriterTest, WhoeverHasLostTheLeaseIsRefused) {
  make_target();
  LeaseWriter before = writer(kAll, 10);
  EXPECT_EQ(write(before, change(5)), WriteOutcome::Done);
  LeaseWriter after = writer(kAll, 11);
  EXPECT_EQ(write(after, change(7)), WriteOutcome::Done);
  EXPECT_EQ(write(before, change(6)), WriteOutcome::Lost);
  EXPECT_EQ(stored(change(7)), change(7).text);
}

TEST_F(WriterTest, WhatIsUnderWayLandsOnce) {
  // Both have seen the same; the second one finds that the position has moved.
  make_target();
  LeaseWriter before = writer(kAll, 10);
  EXPECT_EQ(write(before, change(4)), WriteOutcome::Done);
  LeaseWriter after = writer(kAll, 11);
  EXPECT_EQ(write(after, change(4)), WriteOutcome::Done);
  EXPECT_EQ(write(before, change(5)), WriteOutcome::Done);
  EXPECT_EQ(write(after, change(5)), WriteOutcome::Done);
  EXPECT_EQ(target_->written, 2u);
  EXPECT_EQ(target_->skipped, 2u);
}

TEST_F(WriterTest, ASplitInheritsWhatWasApplied) {
  make_target();
  LeaseWriter parent = writer(kAll, 10);
  EXPECT_EQ(write(parent, change(5)), WriteOutcome::Done);
  LeaseWriter child = writer(kLeft, 12);
  EXPECT_EQ(write(child, change(5)), WriteOutcome::Done);
  EXPECT_EQ(target_->skipped, 1u);
  EXPECT_EQ(write(child, change(6)), WriteOutcome::Done);
  EXPECT_EQ(target_->written, 2u);
}

TEST_F(WriterTest, AfterASplitTheOwnerOfTheParentIsRefused) {
  make_target();
  LeaseWriter parent = writer(kAll, 10);
  EXPECT_EQ(write(parent, change(4, "a", "eu")), WriteOutcome::Done);
  LeaseWriter child = writer(kLeft, 12);
  // Also where the parent has not been yet.
  for (const std::string region : {"eu", "us"}) {
    EXPECT_EQ(write(child, change(6, "a", region)), WriteOutcome::Done);
    EXPECT_EQ(write(parent, change(5, "a", region)), WriteOutcome::Lost);
    EXPECT_EQ(stored(change(6, "a", region)), change(6, "a", region).text);
  }
}

TEST_F(WriterTest, AParentThatComesLateIsToldSo) {
  make_target();
  LeaseWriter child = writer(kLeft, 12);
  EXPECT_TRUE(ledger_->register_owner(kAll, 10).superseded);
  // With leases that were made anew, epochs are higher: then it goes on from what is there.
  EXPECT_EQ(write(child, change(5)), WriteOutcome::Done);
  LeaseWriter all = writer(kAll, 20);
  EXPECT_EQ(write(all, change(5)), WriteOutcome::Done);
  EXPECT_EQ(target_->skipped, 1u);
  // A change from elsewhere has nothing to do with the child's position.
  SourceChange other = change(3, "b");
  other.source_epk = *Epk::from_hex("99");
  EXPECT_EQ(write(all, other), WriteOutcome::Done);
  EXPECT_EQ(target_->written, 2u);
  EXPECT_EQ(write(child, change(6)), WriteOutcome::Lost);
}

TEST_F(WriterTest, WithoutRoomForPositionsTheLedgerKeepsLatecomersOut) {
  make_target("/id");
  LeaseWriter before = writer(kAll, 10);
  EXPECT_EQ(write(before, change(4)), WriteOutcome::Done);
  LeaseWriter after = writer(kAll, 11);
  EXPECT_EQ(write(after, change(4)), WriteOutcome::Done);
  EXPECT_EQ(target_->skipped, 1u);
  EXPECT_EQ(write(after, change(6)), WriteOutcome::Done);
  EXPECT_EQ(write(before, change(5)), WriteOutcome::Lost);
  EXPECT_EQ(stored(change(6)), change(6).text);
  EXPECT_EQ(target_->written, 2u);
}

TEST_F(WriterTest, APositionThatSomebodyElseWroteIsNotTrusted) {
  CopyTarget& target = make_target();
  target.container.create_item(R"({"id":")" + target.positions.id_of(kAll) + R"(","region":"eu"})",
                               "eu");
  LeaseWriter writer_of_all = writer(kAll, 10);
  EXPECT_THROW(write(writer_of_all, change(5)), CopyFailure);
}

}  // namespace
}  // namespace orrery::sinks
