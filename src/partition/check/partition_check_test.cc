#include "partition/check/partition_check.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "partition/partition.h"
#include "partition/test_environment.h"
#include "partition/writer/unique_keys.h"
#include "storage/keys.h"
#include "storage/records.h"

namespace orrery::partition {
namespace {

using storage::Batch;
using storage::Family;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr PartitionNumber kChecked{5};
constexpr RangeId kRange{0};

/// A partition with some of everything, which is then damaged behind its back.
class PartitionCheckTest : public testing::Test {
 protected:
  PartitionCheckTest() {
    home.committer().start();
    partition =
        std::make_shared<Partition>(home.environment(), kChecked, kRange,
                                    Rid::container({0, 0, 0, 1}, {0x80, 0, 0, 1}), storage::Head{});
    using storage::RetentionSettings;
    submit({.work = RetentionChange{{RetentionSettings::History::All,
                                     RetentionSettings::PreviousImage::All,
                                     RetentionSettings::Expiry::Complete}}});
    submit({.work = IndexChange{.add = {"/a"}, .drop = {}}});
    for (const char* id : {"one", "two", "three"}) {
      submit(
          transaction_of({{.id = id, .ttl = 1000, .unique = {id}, .members = R"("a":1)"}}, rules));
    }
    submit(transaction_of({{.kind = Write::Kind::Delete, .id = "three"}}, rules));
    submit(transaction_of({{.kind = Write::Kind::Upsert,
                            .id = "one",
                            .ttl = 1000,
                            .unique = {"one"},
                            .members = R"("a":2)"}},
                          rules));
    home.committer().stop();
  }
  ~PartitionCheckTest() override {
    partition.reset();
    home.close();
  }

  void submit(Transaction transaction) {
    const auto done = partition->submit_and_wait(std::move(transaction));
    ASSERT_TRUE(done) << done.error().message();
  }

  std::vector<std::string> found() {
    Findings findings;
    CheckPace pace({}, /*rests=*/false);
    const auto snapshot = home.store().snapshot();
    const CheckedPartition checked{
        .number = kChecked, .name = "d/c, range 0", .range = kRange, .epks = epks, .rules = rules};
    PartitionCheck check(*snapshot, checked, findings, pace);
    EXPECT_TRUE(check.run());
    std::vector<std::string> lines;
    for (const Finding& finding : findings.kept()) {
      lines.push_back(finding.where + ": " + finding.what);
    }
    return lines;
  }

  void change(const std::function<void(Batch&)>& fill) {
    Batch batch;
    fill(batch);
    ASSERT_TRUE(storage::commit(home.store(), batch));
  }
  /// A key of a family in the partition; of `expiry`, of a version that is there.
  std::string last_key(Family family) {
    const auto all =
        storage::contents(*home.store().snapshot(), family, storage::partition_prefix(kChecked),
                          storage::partition_end(kChecked));
    EXPECT_FALSE(all.empty());
    return all.empty() ? "" : all.back().first;
  }
  void erase_last(Family family) {
    change([&, key = last_key(family)](Batch& batch) { batch.erase(family, key); });
  }
  void change_head(const std::function<void(storage::Head&)>& how) {
    std::string value;
    ASSERT_EQ(home.store().get(Family::Heads, storage::partition_prefix(kChecked), value,
                               storage::Tier::Disk),
              storage::Lookup::Found);
    auto head = storage::Head::parse(value);
    ASSERT_TRUE(head);
    how(*head);
    change([&](Batch& batch) {
      batch.put(Family::Heads, storage::partition_prefix(kChecked), head->make());
    });
  }

  TestEnvironment home;
  std::shared_ptr<Partition> partition;
  Rules rules = rules_with_unique_keys(3600);
  EpkRange epks;
};

TEST_F(PartitionCheckTest, ASoundPartitionHasNoFindings) { EXPECT_THAT(found(), IsEmpty()); }

TEST_F(PartitionCheckTest, SaysWhere) {
  erase_last(Family::Ids);
  EXPECT_THAT(
      found(),
      ElementsAre(testing::MatchesRegex(
          R"(d/c, range 0 \(partition 5\), log [0-9]+\.0: document '[a-z]+' has no entry in ids)")));
}

TEST_F(PartitionCheckTest, FindsWhatIsMissing) {
  // All were written while entries were kept.
  change_head([](storage::Head& head) {
    head.retention.expiry = storage::RetentionSettings::Expiry::Complete;
  });
  const auto finds = [&](Family family, const char* what) {
    const auto key = last_key(family);
    std::string value;
    ASSERT_EQ(home.store().get(family, key, value, storage::Tier::Disk), storage::Lookup::Found);
    change([&](Batch& batch) { batch.erase(family, key); });
    EXPECT_THAT(found(), Contains(HasSubstr(what)));
    change([&](Batch& batch) { batch.put(family, key, value); });
    EXPECT_THAT(found(), IsEmpty());
  };
  finds(Family::Ids, "has no entry in ids");
  finds(Family::Rids, "has no entry in rids");
  finds(Family::Unique, "does not hold its values of unique key 0");
  finds(Family::Expiry, "has no entry in expiry");
  finds(Family::Terms, "has no entry in the index /a");
  finds(Family::Log, "documents are in the log, but the head counts");
}

TEST_F(PartitionCheckTest, FindsHistoryThatIsMissing) {
  const auto all =
      storage::contents(*home.store().snapshot(), Family::History,
                        storage::partition_prefix(kChecked), storage::partition_end(kChecked));
  change([&](Batch& batch) { batch.erase(Family::History, all.back().first); });
  EXPECT_THAT(found(), Contains(HasSubstr("document 'one' has no change in history")));
  EXPECT_THAT(found(), Contains(HasSubstr("but the head counts")));
}

TEST_F(PartitionCheckTest, FindsEntriesOfNothing) {
  const std::string value = storage::make_position_value({Lsn{2}, 0});
  const auto finds = [&](Family family, const std::string& key, const std::string& entry,
                         const char* what) {
    change([&](Batch& batch) { batch.put(family, key, entry); });
    EXPECT_THAT(found(), ElementsAre(HasSubstr(what)));
    change([&](Batch& batch) { batch.erase(family, key); });
  };
  std::string known;
  ASSERT_EQ(home.store().get(Family::Ids, last_key(Family::Ids), known, storage::Tier::Disk),
            storage::Lookup::Found);
  finds(Family::Ids, storage::id_key(kChecked, key_of("p", "four")), known,
        "3 entries, but 2 versions");
  finds(Family::Rids, storage::rid_key(kChecked, DocumentNumber{77}), value,
        "3 entries, but 2 versions");
  finds(Family::Unique, unique_key(kChecked, key_of("p", "four"), 0, "four"), value,
        "an entry names 2.0, which is not there");
  std::string term;
  storage::append_term_key(term, kChecked, 1, "\x10", DocumentNumber{77});
  finds(Family::Terms, term, value, "1 entries of the index /a are of nothing");
  term.clear();
  storage::append_term_key(term, kChecked, 9, "\x10", DocumentNumber{77});
  finds(Family::Terms, term, value, "1 entries are of index 9, which is not there");
}

TEST_F(PartitionCheckTest, AnExpiryEntryOfAVersionThatIsGoneIsCollectedLater) {
  change([&](Batch& batch) {
    batch.put(Family::Expiry,
              storage::expiry_key(kChecked, {storage::ExpiryEntry::Kind::Own, 1, {Lsn{1}, 0}}), "");
  });
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(PartitionCheckTest, FindsAHeadThatDoesNotFit) {
  change_head([](storage::Head& head) { head.lsn = Lsn{2}; });
  EXPECT_THAT(found(), Contains(HasSubstr("is above the head 2")));
}

TEST_F(PartitionCheckTest, FindsCountsThatDoNotFit) {
  change_head([](storage::Head& head) { ++head.documents; });
  EXPECT_THAT(found(), ElementsAre(HasSubstr("2 documents are in the log, but the head counts 3")));
  change_head([](storage::Head& head) { --head.documents, ++head.text_bytes; });
  EXPECT_THAT(found(), ElementsAre(HasSubstr("but the head counts")));
  change_head([](storage::Head& head) { --head.text_bytes, ++head.history_bytes; });
  EXPECT_THAT(found(), ElementsAre(HasSubstr("history has")));
  change_head([](storage::Head& head) { --head.history_bytes, head.document_sequence = 1; });
  EXPECT_THAT(found(), Contains(HasSubstr("is above the last one that was given: 1")));
}

TEST_F(PartitionCheckTest, FindsDocumentsOfAnotherRange) {
  epks.max = Epk{"a"};
  EXPECT_THAT(found(), Contains(HasSubstr("is of another range")));
}

TEST_F(PartitionCheckTest, FindsTextsThatAreNotTheirOwn) {
  const auto key = last_key(Family::Log);
  std::string value;
  ASSERT_EQ(home.store().get(Family::Log, key, value, storage::Tier::Disk), storage::Lookup::Found);
  const auto finds = [&](const std::string& from, const std::string& to, const char* what) {
    std::string changed = value;
    changed.replace(changed.find(from), from.size(), to);
    change([&](Batch& batch) { batch.put(Family::Log, key, changed); });
    EXPECT_THAT(found(), Contains(HasSubstr(what)));
  };
  finds(R"({"id")", R"(["id")", "is no JSON object");
  finds(R"("_ts":1)", R"("_ts":2)", "id, _etag or _ts");
  finds(R"("_etag")", R"("_etga")", "id, _etag or _ts");
}

TEST_F(PartitionCheckTest, StopsWhenItIsTold) {
  std::stop_source source;
  source.request_stop();
  Findings findings;
  CheckPace pace(source.get_token(), /*rests=*/true);
  const auto snapshot = home.store().snapshot();
  const CheckedPartition checked{
      .number = kChecked, .name = "", .range = {}, .epks = {}, .rules = {}};
  EXPECT_FALSE(PartitionCheck(*snapshot, checked, findings, pace).run());
}

}  // namespace
}  // namespace orrery::partition
