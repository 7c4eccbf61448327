#include "storage/records.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/keys.h"

namespace orrery::storage {
namespace {

constexpr UnixSeconds kTime = 1'743'508'800;

std::string hex(std::string_view bytes) {
  std::string out;
  for (const unsigned char byte : bytes) {
    out.push_back("0123456789abcdef"[byte >> 4]);
    out.push_back("0123456789abcdef"[byte & 15]);
  }
  return out;
}

// ── keys ─────────────────────────────────────────────────────────────────────────────────────────

TEST(KeysTest, ALogKeyIsPartitionLsnAndIndexInBigEndian) {
  const auto key = log_key(PartitionNumber{0x01020304}, {Lsn{0x1122334455667788}, 0xA1B2C3D4});
  EXPECT_EQ(hex(key),
            "01020304"
            "1122334455667788"
            "a1b2c3d4");
  EXPECT_EQ(key.size(), kLogKeySize);
  EXPECT_EQ(log_position(key), (LogPosition{Lsn{0x1122334455667788}, 0xA1B2C3D4}));
}

TEST(KeysTest, ARidKeyIsPartitionAndDocumentNumber) {
  const auto number = DocumentNumber::make(RangeId{3}, 9);
  const auto key = rid_key(PartitionNumber{1}, number);
  EXPECT_EQ(hex(key),
            "00000001"
            "0000030000000009");
  EXPECT_EQ(key.size(), kRidKeySize);
  EXPECT_EQ(document_number(key), number);
}

TEST(KeysTest, ByteOrderOfLogKeysIsTheOrderOfChanges) {
  // Values at which a little-endian or decimal encoding would sort wrongly.
  std::vector<std::string> keys;
  for (const std::uint32_t partition : {1u, 255u, 256u}) {
    for (const std::uint64_t lsn : {2ull, 9ull, 10ull, 255ull, 256ull, 1ull << 32, 1ull << 40}) {
      for (const std::uint32_t index : {0u, 1u, 255u, 256u, 70'000u}) {
        keys.push_back(log_key(PartitionNumber{partition}, {Lsn{lsn}, index}));
      }
    }
  }
  EXPECT_TRUE(std::ranges::is_sorted(keys));
}

TEST(KeysTest, APartitionEndsWhereTheNextBegins) {
  const PartitionNumber partition{255};
  EXPECT_EQ(partition_end(partition), partition_prefix(PartitionNumber{256}));
  const auto last = log_key(partition, {Lsn{UINT64_MAX}, UINT32_MAX});
  EXPECT_LT(partition_prefix(partition), last);
  EXPECT_LT(last, partition_end(partition));
}

TEST(KeysTest, IdsSortByEpkThenPartitionKeyThenId) {
  const PartitionNumber partition{1};
  const std::vector<std::string> keys = {
      id_key(partition, {"A", "x", "2"}), id_key(partition, {"A", "x", "9"}),
      id_key(partition, {"A", "y", "1"}), id_key(partition, {"B", "a", "0"})};
  EXPECT_TRUE(std::ranges::is_sorted(keys));
  EXPECT_EQ(keys[0], (partition_prefix(partition) + DocumentKey{"A", "x", "2"}.bytes()));
}

TEST(KeysTest, IntegersReadBackAsWritten) {
  std::string out;
  append_u16(out, 0xFFFE);
  append_u32(out, 0xFFFFFFFE);
  append_u64(out, 0xFFFFFFFFFFFFFFFE);
  EXPECT_EQ(read_u16(out.data()), 0xFFFE);
  EXPECT_EQ(read_u32(out.data() + 2), 0xFFFFFFFE);
  EXPECT_EQ(read_u64(out.data() + 6), 0xFFFFFFFFFFFFFFFE);
}

// ── version records ──────────────────────────────────────────────────────────────────────────────

VersionHeader header() {
  return {.number = DocumentNumber{42}, .ts = kTime, .own_ttl = kTtlNever, .indexed_leaves = 7};
}

TEST(VersionRecordTest, ReadsBackWhatWasMade) {
  const DocumentKey key{"epk", std::string("k\0y", 3), "the id"};
  const std::string value = VersionRecord::make(header(), key, R"({"id":"the id"})");
  const auto record = VersionRecord::parse(value);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->key(), key);
  EXPECT_EQ(record->text, R"({"id":"the id"})");
  EXPECT_EQ(record->header.number, DocumentNumber{42});
  EXPECT_EQ(record->header.ts, kTime);
  EXPECT_EQ(record->header.own_ttl, kTtlNever);
  EXPECT_EQ(record->header.indexed_leaves, 7u);
}

TEST(VersionRecordTest, TheFormatIsAsDrawn) {
  const auto value = VersionRecord::make(
      {.number = DocumentNumber{0x0102}, .ts = 0x1234, .own_ttl = 60, .indexed_leaves = 5},
      {"E", "KK", "III"}, "{}");
  EXPECT_EQ(hex(value),
            "01"
            "01"
            "0001"
            "0002"
            "0003"
            "0000000000001234"
            "0000003c"
            "00000005"
            "0000000000000102" +
                hex("EKKIII{}"));
}

TEST(VersionRecordTest, PartsMayBeEmptyAndLong) {
  const DocumentKey key{"", std::string(4000, 'k'), std::string(1023, 'i')};
  const std::string text(2 << 20, 't');
  const std::string value = VersionRecord::make(header(), key, text);
  const auto record = VersionRecord::parse(value);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->key(), key);
  EXPECT_EQ(record->text, text);
}

TEST(VersionRecordTest, WhateverIsCutShortBeforeTheTextIsRefused) {
  const std::string value = VersionRecord::make(header(), {"epk", "key", "id"}, "{}");
  const std::size_t before_text = value.size() - 2;
  for (std::size_t size = 0; size < before_text; ++size) {
    EXPECT_FALSE(VersionRecord::parse(std::string_view(value).substr(0, size))) << size;
  }
}

TEST(VersionRecordTest, OtherFormatsAndKindsAreRefused) {
  std::string value = VersionRecord::make(header(), {"epk", "key", "id"}, "{}");
  value[0] = 2;
  EXPECT_FALSE(VersionRecord::parse(value));
  value[0] = 1;
  value[1] = 3;
  EXPECT_FALSE(VersionRecord::parse(value));
}

// ── entries, positions, heads ────────────────────────────────────────────────────────────────────

TEST(IdEntryTest, ReadsBackWhatWasMade) {
  const IdEntry entry{{Lsn{77}, 3}, header(), 4711};
  const auto copy = IdEntry::parse(entry.make());
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->position, entry.position);
  EXPECT_EQ(copy->header.number, entry.header.number);
  EXPECT_EQ(copy->header.ts, entry.header.ts);
  EXPECT_EQ(copy->header.own_ttl, entry.header.own_ttl);
  EXPECT_EQ(copy->header.indexed_leaves, entry.header.indexed_leaves);
  EXPECT_EQ(copy->text_size, 4711u);
  EXPECT_EQ(copy->etag(), ETag(Lsn{77}, kTime));
}

TEST(IdEntryTest, TheFormatIsAsDrawn) {
  const IdEntry entry{
      {Lsn{0x0A}, 0x0B},
      {.number = DocumentNumber{0x0C}, .ts = 0x0D, .own_ttl = -1, .indexed_leaves = 0x0F},
      0x0E};
  EXPECT_EQ(hex(entry.make()),
            "01"
            "000000"
            "0000000b"
            "000000000000000a"
            "000000000000000c"
            "000000000000000d"
            "ffffffff"
            "0000000e"
            "0000000f");
}

TEST(PositionTest, ReadsBackWhatWasMade) {
  const LogPosition position{Lsn{1ull << 40}, 9};
  EXPECT_EQ(parse_position_value(make_position_value(position)), position);
  EXPECT_EQ(hex(make_position_value({Lsn{2}, 1})),
            "01"
            "0000000000000002"
            "00000001");
}

IndexRecords some_indexes() {
  return std::make_shared<const std::vector<IndexRecord>>(std::vector<IndexRecord>{
      {2, "/a/[]/b", IndexRecord::State::Complete, {}},
      {9, "/a ASC,/b DESC", IndexRecord::State::Building, DocumentNumber{77}}});
}

TEST(HeadTest, ReadsBackWhatWasMade) {
  const Head head{
      .lsn = Lsn{5},
      .ts = kTime,
      .document_sequence = 6,
      .documents = 3,
      .text_bytes = 1'000'000'000'000,
      .retention = {RetentionSettings::History::Tombstones,
                    RetentionSettings::PreviousImage::Delete, RetentionSettings::Expiry::Building},
      .history_bytes = 77,
      .merged_at = Lsn{4},
      .index_bound = 131'072,
      .history = std::make_shared<const std::vector<HistoryPart>>(
          std::vector<HistoryPart>{{"", Lsn{2}, Lsn{1}}, {"m", Lsn{4}, Lsn{3}}}),
      .is_reordered = true,
      .last_index_id = 9,
      .indexes = some_indexes()};
  EXPECT_EQ(Head::parse(head.make()), head);
  Head other = head;
  other.history = std::make_shared<const std::vector<HistoryPart>>(
      std::vector<HistoryPart>{{"", Lsn{2}, Lsn{1}}, {"m", Lsn{4}, Lsn{4}}});
  EXPECT_NE(other, head);
  other = head;
  other.indexes = nullptr;
  EXPECT_NE(other, head);
  other = head;
  other.last_index_id = 10;
  EXPECT_NE(other, head);
  other = head;
  other.is_reordered = false;
  EXPECT_NE(other, head);
  EXPECT_EQ(Head::parse(other.make()), other);
}

TEST(HeadTest, ANewPartitionsHeadIsOneAndItKeepsNothing) {
  EXPECT_EQ(Head{}.lsn, Lsn{1});
  EXPECT_EQ(Head{}.documents, 0u);
  EXPECT_EQ(Head{}.retention, RetentionSettings{});
  EXPECT_FALSE(Head{}.history);
  EXPECT_FALSE(Head{}.indexes);
  EXPECT_EQ(hex(Head{}.make()).size(), 2 * 73u);
}

TEST(HeadTest, AHeadOfTheFirstFormatIsStillRead) {
  std::string old("\x01", 1);
  for (const std::uint64_t field : {5, 1'743'508'416, 6, 2, 3, 400}) append_u64(old, field);
  EXPECT_EQ(Head::parse(old), (Head{.lsn = Lsn{5},
                                    .ts = 1'743'508'416,
                                    .document_sequence = 6,
                                    .documents = 3,
                                    .text_bytes = 400,
                                    .is_reordered = true}));
  EXPECT_FALSE(Head::parse(old + "x"));
  EXPECT_FALSE(Head::parse(std::string_view(old).substr(1)));
}

TEST(HeadTest, AHeadOfTheSecondFormatIsStillRead) {
  Head head{.lsn = Lsn{5}, .ts = kTime, .documents = 3};
  head.history = std::make_shared<const std::vector<HistoryPart>>(
      std::vector<HistoryPart>{{"m", Lsn{4}, Lsn{3}}});
  std::string old = head.make();
  old[0] = 2;
  old.resize(old.size() - 7);  // It had no indexes, nor how many there are, nor the log's order.
  head.is_reordered = true;
  EXPECT_EQ(Head::parse(old), head);
  EXPECT_FALSE(Head::parse(old + "x"));
}

TEST(HeadTest, AnIndexIsFoundByItsSpecAndByItsId) {
  const auto indexes = some_indexes();
  EXPECT_EQ(find_index(indexes, "/a ASC,/b DESC")->id, 9u);
  EXPECT_EQ(find_index(indexes, 2)->spec, "/a/[]/b");
  EXPECT_EQ(find_index(indexes, "/a"), nullptr);
  EXPECT_EQ(find_index(indexes, 3), nullptr);
  EXPECT_EQ(find_index(nullptr, 2), nullptr);
}

TEST(HeadTest, AHeadWithHistoryAndIndexesIsRefusedWhenCutShortOrProlonged) {
  Head head;
  head.indexes = some_indexes();
  head.history = std::make_shared<const std::vector<HistoryPart>>(
      std::vector<HistoryPart>{{"", Lsn{2}, Lsn{1}}, {"m", Lsn{4}, Lsn{3}}});
  const std::string value = head.make();
  for (std::size_t size = 0; size < value.size(); ++size) {
    EXPECT_FALSE(Head::parse(std::string_view(value).substr(0, size))) << size;
  }
  EXPECT_FALSE(Head::parse(value + "x"));
}

TEST(HeadTest, OnlyAHeadWithGapsIsOfTheFourthFormat) {
  Head head{.lsn = Lsn{11}};
  EXPECT_EQ(head.make()[0], 3);
  head.resume_at(Lsn{1'000});
  head.lsn = Lsn{1'005};
  head.resume_at(Lsn{5'000});
  const std::string value = head.make();
  EXPECT_EQ(value[0], 4);
  EXPECT_EQ(Head::parse(value), head);
  EXPECT_NE(head, (Head{.lsn = head.lsn}));
  EXPECT_THAT(*head.gaps,
              ::testing::ElementsAre(LsnGap{Lsn{11}, Lsn{1'000}}, LsnGap{Lsn{1'005}, Lsn{5'000}}));
  for (std::size_t size = 0; size < value.size(); ++size) {
    EXPECT_FALSE(Head::parse(std::string_view(value).substr(0, size))) << size;
  }
  EXPECT_FALSE(Head::parse(value + "x"));
}

TEST(HeadTest, GapsAreNotCountedAndAPositionInOneIsTold) {
  Head head{.lsn = Lsn{11}};
  head.resume_at(Lsn{1'000});
  head.lsn = Lsn{1'005};
  head.resume_at(Lsn{5'000});
  head.lsn = Lsn{5'002};
  EXPECT_EQ(head.lsns_above(Lsn{0}), 11 + 5 + 2u);
  EXPECT_EQ(head.lsns_above(Lsn{11}), 5 + 2u);
  EXPECT_EQ(head.lsns_above(Lsn{500}), 5 + 2u);
  EXPECT_EQ(head.lsns_above(Lsn{1'000}), 5 + 2u);
  EXPECT_EQ(head.lsns_above(Lsn{1'003}), 2 + 2u);
  EXPECT_EQ(head.lsns_above(Lsn{4'999}), 2u);
  EXPECT_EQ(head.lsns_above(Lsn{5'002}), 0u);
  EXPECT_EQ(head.lsns_above(Lsn{6'000}), 0u);
  EXPECT_EQ((Head{.lsn = Lsn{11}}).lsns_above(Lsn{1}), 10u);
  Head cut = head;
  cut.lsn = Lsn{1'003};
  EXPECT_EQ(cut.lsns_above(Lsn{1}), 10 + 3u);
  EXPECT_EQ(head.advanced(Lsn{1}, 10), Lsn{11});
  EXPECT_EQ(head.advanced(Lsn{1}, 11), Lsn{1'001});
  EXPECT_EQ(head.advanced(Lsn{1}, 16), Lsn{5'001});
  EXPECT_EQ(head.advanced(Lsn{500}, 1), Lsn{1'001});
  EXPECT_EQ(head.advanced(Lsn{1'001}, 2), Lsn{1'003});
  EXPECT_EQ(head.advanced(Lsn{5'002}, 3), Lsn{5'005});
  for (const std::uint64_t outside : {0, 11, 1'000, 1'003, 1'005, 5'000, 5'002, 9'000}) {
    EXPECT_EQ(head.gap_around(Lsn{outside}), nullptr) << outside;
  }
  EXPECT_EQ(head.gap_around(Lsn{12}), &head.gaps->at(0));
  EXPECT_EQ(head.gap_around(Lsn{999}), &head.gaps->at(0));
  EXPECT_EQ(head.gap_around(Lsn{4'999}), &head.gaps->at(1));
}

TEST(HeadTest, ThereIsABoundToTheGapsThatAreKept) {
  Head head;
  for (std::uint64_t life = 1; life <= kLsnGapsMax + 1; ++life) head.resume_at(Lsn{life * 1'000});
  EXPECT_EQ(head.gaps->size(), kLsnGapsMax);
  EXPECT_EQ(head.gaps->front(), (LsnGap{Lsn{1}, Lsn{2'000}}));
  EXPECT_EQ(Head::parse(head.make()), head);
}

TEST(HeadTest, APartIsFoundByEpk) {
  const HistoryParts parts = std::make_shared<const std::vector<HistoryPart>>(
      std::vector<HistoryPart>{{"", Lsn{2}, Lsn{1}}, {"m", Lsn{4}, Lsn{3}}});
  EXPECT_EQ(find_part(parts, "")->all_begin, Lsn{2});
  EXPECT_EQ(find_part(parts, "lz")->all_begin, Lsn{2});
  EXPECT_EQ(find_part(parts, "m")->all_begin, Lsn{4});
  EXPECT_EQ(find_part(parts, "z")->all_begin, Lsn{4});
  EXPECT_EQ(find_part(nullptr, "z"), nullptr);
}

// ── history ──────────────────────────────────────────────────────────────────────────────────────

TEST(HistoryRecordTest, ReadsBackWhatWasMade) {
  HistoryRecord record;
  record.operation = HistoryRecord::Operation::TtlDelete;
  record.ts = kTime;
  record.previous = Lsn{41};
  record.number = DocumentNumber{9};
  record.epk = "E";
  record.partition_key = "PK";
  record.id = "the id";
  record.current_text = "{}";
  record.previous_text = R"({"a":1})";
  const std::string value = record.make();
  const auto parsed = HistoryRecord::parse(value);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->operation, record.operation);
  EXPECT_TRUE(parsed->deletes());
  EXPECT_EQ(parsed->ts, kTime);
  EXPECT_EQ(parsed->previous, Lsn{41});
  EXPECT_EQ(parsed->number, DocumentNumber{9});
  EXPECT_EQ(parsed->key(), (DocumentKey{"E", "PK", "the id"}));
  EXPECT_EQ(parsed->current_text, "{}");
  EXPECT_EQ(parsed->previous_text, R"({"a":1})");
}

TEST(HistoryRecordTest, WhatIsCutShortOrUnknownIsRefused) {
  HistoryRecord record;
  record.epk = "E";
  record.partition_key = "PK";
  record.id = "id";
  record.current_text = "{}";
  std::string value = record.make();
  for (std::size_t size = 0; size < value.size(); ++size) {
    EXPECT_FALSE(HistoryRecord::parse(std::string_view(value).substr(0, size))) << size;
  }
  for (const char operation : {0, 5}) {
    value[1] = operation;
    EXPECT_FALSE(HistoryRecord::parse(value));
  }
}

// ── when a version is due ────────────────────────────────────────────────────────────────────────

TEST(ExpiryKeyTest, ReadsBackWhatWasMadeAndSortsByWhatIsDue) {
  const PartitionNumber partition{7};
  const ExpiryEntry first{ExpiryEntry::Kind::Default, 100, {Lsn{9}, 3}};
  const ExpiryEntry second{ExpiryEntry::Kind::Default, 101, {Lsn{2}, 0}};
  const ExpiryEntry own{ExpiryEntry::Kind::Own, 50, {Lsn{3}, 1}};
  for (const auto& entry : {first, second, own}) {
    EXPECT_EQ(expiry_entry(expiry_key(partition, entry)), entry);
  }
  EXPECT_LT(expiry_key(partition, first), expiry_key(partition, second));
  EXPECT_LT(expiry_key(partition, second), expiry_key(partition, own));
  EXPECT_EQ(expiry_key(partition, own).size(), kExpiryKeySize);
}

TEST(ExpiryKeyTest, AVersionIsDueByItsOwnTtlOrByTheDefaultOrNever) {
  const LogPosition position{Lsn{2}, 1};
  const auto due = [&](std::int32_t own_ttl) {
    return expiry_of(position,
                     {.number = {}, .ts = kTime, .own_ttl = own_ttl, .indexed_leaves = 0});
  };
  EXPECT_EQ(due(kTtlAbsent), (ExpiryEntry{ExpiryEntry::Kind::Default, kTime, position}));
  EXPECT_EQ(due(60), (ExpiryEntry{ExpiryEntry::Kind::Own, kTime + 60, position}));
  EXPECT_EQ(due(kTtlNever), std::nullopt);
}

TEST(FixedSizeValuesTest, AreRefusedWhenCutShortProlongedOrOfAnotherFormat) {
  const auto refused = [](std::string value, auto parse) {
    for (std::size_t size = 0; size < value.size(); ++size) {
      EXPECT_FALSE(parse(std::string_view(value).substr(0, size))) << size;
    }
    EXPECT_FALSE(parse(value + "x"));
    value[0] = 9;
    EXPECT_FALSE(parse(value));
  };
  refused(IdEntry{}.make(), IdEntry::parse);
  refused(make_position_value({}), parse_position_value);
  refused(Head{}.make(), Head::parse);
}

// ── expiry ───────────────────────────────────────────────────────────────────────────────────────

struct ExpiryCase {
  std::optional<std::int32_t> default_ttl;
  std::int32_t own_ttl;
  std::int32_t age;
  bool gone;
};

class ExpiryTest : public testing::TestWithParam<ExpiryCase> {};

TEST_P(ExpiryTest, FollowsTheDocumentsOwnTtlWithinWhatTheContainerAllows) {
  const auto& given = GetParam();
  EXPECT_EQ(expired(kTime, given.own_ttl, given.default_ttl, kTime + given.age), given.gone);
}

INSTANTIATE_TEST_SUITE_P(
    Matrix, ExpiryTest,
    testing::Values(
        // TTL is off: a document's own TTL does not count.
        ExpiryCase{{}, kTtlAbsent, 1'000'000, false}, ExpiryCase{{}, 1, 1'000'000, false},
        ExpiryCase{{}, kTtlNever, 1'000'000, false},
        // On without a default: only a document's own counts.
        ExpiryCase{-1, kTtlAbsent, 1'000'000, false}, ExpiryCase{-1, kTtlNever, 1'000'000, false},
        ExpiryCase{-1, 10, 9, false}, ExpiryCase{-1, 10, 10, true}, ExpiryCase{-1, 10, 11, true},
        // A default, which a document's own overrides in either direction.
        ExpiryCase{60, kTtlAbsent, 59, false}, ExpiryCase{60, kTtlAbsent, 60, true},
        ExpiryCase{60, 10, 10, true}, ExpiryCase{60, 100, 60, false},
        ExpiryCase{60, 100, 100, true}, ExpiryCase{60, kTtlNever, 1'000'000, false},
        // A clock that was set back makes nothing expire, and the longest TTL does not overflow.
        ExpiryCase{60, kTtlAbsent, -1'000'000, false},
        ExpiryCase{INT32_MAX, kTtlAbsent, 1'000'000, false},
        ExpiryCase{60, INT32_MAX, 1'000'000, false}));

}  // namespace
}  // namespace orrery::storage
