#include "storage/recovery/wal_scan.h"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/write_batch.h>

#include "storage/records.h"
#include "storage/recovery/rocks_log.h"
#include "storage/test_store.h"

namespace orrery::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using Verdict = WalScan::Verdict;

constexpr std::uint32_t kHeads = 2;

/// A log file under construction. Its operations are numbered on from `next`.
struct Log {
  explicit Log(std::uint64_t first = 1) : next(first) {}

  /// Appends a commit of `count` operations, none of them a head.
  Log& add(std::uint32_t count = 1) {
    append_record(std::string(count, 'x'), count);
    return *this;
  }
  void append_record(std::string_view operations, std::uint32_t count) {
    std::string record(reinterpret_cast<const char*>(&next), 8);
    record.append(reinterpret_cast<const char*>(&count), 4);
    record.append(operations);
    offsets.push_back(bytes.size());
    append_rocks_log(bytes, record);
    next += count;
  }
  /// A commit whose only operation is the head of a partition, as RocksDB has it in a batch: type,
  /// family, and key and value with their sizes, all small.
  Log& add_head(std::uint32_t partition, std::uint64_t lsn) {
    Head head;
    head.lsn = Lsn{lsn};
    const std::string value = head.make();
    const std::string key = partition_prefix(PartitionNumber{partition});
    std::string operation = {5, kHeads, static_cast<char>(key.size())};
    operation += key;
    operation.push_back(static_cast<char>(value.size()));
    append_record(operation + value, 1);
    return *this;
  }
  Log& damage(std::size_t record) {
    bytes[offsets[record] + 8] ^= 0x20;
    return *this;
  }
  Log& cut(std::size_t count) {
    bytes.resize(bytes.size() - count);
    return *this;
  }

  std::uint64_t next;
  std::string bytes;
  std::vector<std::size_t> offsets;
};

template <typename... Logs>
WalScan scan(const Logs&... logs) {
  WalScanner scanner(kHeads);
  std::uint64_t number = 7;
  (scanner.add(number++, logs.bytes), ...);
  return scanner.finish();
}

TEST(WalScanTest, AWholeLogIsSound) {
  const WalScan found = scan(Log(10).add(3).add(1).add(2));
  EXPECT_EQ(found.verdict, Verdict::Sound);
  EXPECT_EQ(found.last_kept, 15u);
  EXPECT_EQ(scan(Log()).verdict, Verdict::Sound);
  EXPECT_FALSE(scan(Log()).last_kept);
}

TEST(WalScanTest, NothingWholeFollowsATornTail) {
  const WalScan cut = scan(Log(1).add().add().cut(1));
  EXPECT_EQ(cut.verdict, Verdict::TornTail);
  EXPECT_EQ(cut.last_kept, 1u);
  EXPECT_EQ(scan(Log(1).add().add().damage(1)).verdict, Verdict::TornTail);
  Log zeros = Log(1).add();
  zeros.bytes.append(5000, '\0');
  EXPECT_EQ(scan(zeros).verdict, Verdict::TornTail);
}

TEST(WalScanTest, ATornTailOfManyBlocksMayHaveLostAnyOfThem) {
  for (std::size_t block = 0; block < 4; ++block) {
    Log log = Log(1).add().add(100'000);
    const std::size_t at = block * kRocksLogBlockSize + 100;
    log.bytes.replace(at, 512, 512, '\0');
    EXPECT_EQ(scan(log).verdict, Verdict::TornTail) << block;
    EXPECT_EQ(scan(log).last_kept, 1u);
  }
}

TEST(WalScanTest, WhatFollowsDamageIsCounted) {
  Log log(1);
  log.add_head(3, 20).add_head(3, 21).add_head(3, 22).add_head(4, 8).add_head(3, 23);
  log.damage(1);
  const WalScan found = scan(log);
  EXPECT_EQ(found.verdict, Verdict::Damaged);
  EXPECT_EQ(found.wal, 7u);
  EXPECT_EQ(found.offset, log.offsets[1]);
  EXPECT_THAT(found.why, HasSubstr("checksum"));
  EXPECT_EQ(found.last_kept, 1u);
  EXPECT_EQ(found.last_dropped, 5u);
  EXPECT_EQ(found.records_dropped, 3u);
  EXPECT_THAT(found.heads_dropped,
              ElementsAre(Pair(PartitionNumber{3}, Lsn{23}), Pair(PartitionNumber{4}, Lsn{8})));
}

TEST(WalScanTest, DamageInTheFirstRecordIsDamage) {
  const WalScan found = scan(Log(1).add().add().damage(0));
  EXPECT_EQ(found.verdict, Verdict::Damaged);
  EXPECT_FALSE(found.last_kept);
}

TEST(WalScanTest, DamageAtTheEndOfALogBeforeAnotherIsDamage) {
  const Log first = Log(1).add().add().damage(1);
  EXPECT_EQ(scan(first, Log(3).add()).verdict, Verdict::Damaged);
  EXPECT_EQ(scan(first, Log(3)).verdict, Verdict::TornTail);
}

TEST(WalScanTest, ALogThatGoesOnWhereATornTailWasCutOffMissesNothing) {
  // The opening that cut it off was killed before it was done.
  const Log torn = Log(1).add().add().cut(2);
  const Log next = Log(2).add(0);
  EXPECT_EQ(scan(torn, next).verdict, Verdict::TornTail);
  EXPECT_EQ(scan(torn, next).last_kept, 1u);
  const WalScan written = scan(torn, Log(2).add(0).add().add());
  EXPECT_EQ(written.verdict, Verdict::TornTail);
  EXPECT_EQ(written.last_kept, 3u);
  EXPECT_EQ(written.records_dropped, 0u);
}

TEST(WalScanTest, OperationsThatAreMissingBetweenTwoLogsAreNoticed) {
  const WalScan found = scan(Log(1).add().add(), Log(5).add_head(1, 9));
  EXPECT_EQ(found.verdict, Verdict::Damaged);
  EXPECT_EQ(found.wal, 8u);
  EXPECT_THAT(found.why, HasSubstr("operations 3 to 4 are missing"));
  EXPECT_EQ(found.last_kept, 2u);
  EXPECT_THAT(found.heads_dropped, ElementsAre(Pair(PartitionNumber{1}, Lsn{9})));
}

TEST(WalScanTest, EmptyLogsInBetweenMeanNothing) {
  EXPECT_EQ(scan(Log(1).add(), Log(), Log(2).add()).verdict, Verdict::Sound);
}

TEST(WalScanTest, FindsLogsByNumber) {
  TemporaryDirectory directory;
  for (const char* name : {"000010.log", "000009.log", "100000.log", "x.log", "000011.sst", "12"}) {
    std::FILE* file = std::fopen((directory.path() / name).c_str(), "w");
    ASSERT_NE(file, nullptr);
    std::fclose(file);
  }
  std::vector<std::uint64_t> numbers;
  for (const WalFile& file : find_wals(directory.path(), 10)) numbers.push_back(file.number);
  EXPECT_THAT(numbers, ElementsAre(10, 100000));
  EXPECT_THAT(find_wals(directory.path() / "missing", 0), IsEmpty());
}

}  // namespace
}  // namespace orrery::storage
