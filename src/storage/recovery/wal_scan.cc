#include "storage/recovery/wal_scan.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <rocksdb/write_batch.h>

#include "storage/keys.h"
#include "storage/records.h"
#include "storage/recovery/rocks_log.h"

namespace orrery::storage {
namespace {

/// Number of the first operation 8, count of operations 4, both little-endian; then the operations.
constexpr std::size_t kBatchHeaderSize = 12;

/// Collects what a batch puts into `heads`.
class HeadsOfBatch final : public rocksdb::WriteBatch::Handler {
 public:
  HeadsOfBatch(std::uint32_t family, std::map<PartitionNumber, Lsn>& heads)
      : family_(family), heads_(heads) {}

  rocksdb::Status PutCF(std::uint32_t family, const rocksdb::Slice& key,
                        const rocksdb::Slice& value) override {
    if (family != family_ || key.size() != partition_prefix({}).size()) return {};
    if (const auto head = Head::parse(value.ToStringView())) {
      Lsn& highest = heads_[PartitionNumber{read_u32(key.data())}];
      highest = std::max(highest, head->lsn);
    }
    return {};
  }
  rocksdb::Status DeleteCF(std::uint32_t, const rocksdb::Slice&) override { return {}; }
  rocksdb::Status SingleDeleteCF(std::uint32_t, const rocksdb::Slice&) override { return {}; }
  rocksdb::Status DeleteRangeCF(std::uint32_t, const rocksdb::Slice&,
                                const rocksdb::Slice&) override {
    return {};
  }
  void LogData(const rocksdb::Slice&) override {}

 private:
  const std::uint32_t family_;
  std::map<PartitionNumber, Lsn>& heads_;
};

}  // namespace

std::vector<WalFile> find_wals(const std::filesystem::path& directory, std::uint64_t from) {
  constexpr std::string_view kSuffix = ".log";
  std::vector<WalFile> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    const std::string name = entry.path().filename().string();
    std::uint64_t number = 0;
    const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (failure != std::errc() || end != name.data() + name.size() - kSuffix.size() ||
        !name.ends_with(kSuffix) || number < from) {
      continue;
    }
    found.push_back({number, entry.path()});
  }
  std::ranges::sort(found, {}, &WalFile::number);
  return found;
}

void WalScanner::add(std::uint64_t wal, std::string_view bytes) {
  // After a torn tail was cut off, the log goes on in another file from the number at which the
  // first one was left. Where the two meet nothing is missing.
  may_resume_ = true;
  visit_rocks_log(bytes, {[&](std::string_view record, std::size_t begin, std::size_t) {
                            take_record(wal, record, begin);
                          },
                          [&](std::size_t offset, std::string_view why) {
                            may_resume_ = false;
                            if (!is_stopped_) stop(wal, offset, std::string(why));
                          }});
}

void WalScanner::take_record(std::uint64_t wal, std::string_view record, std::size_t offset) {
  const bool is_first = std::exchange(may_resume_, false);
  if (record.size() < kBatchHeaderSize) {
    if (!is_stopped_) stop(wal, offset, "the record is too short");
    return;
  }
  std::uint64_t number;
  std::uint32_t count;
  __builtin_memcpy(&number, record.data(), 8);
  __builtin_memcpy(&count, record.data() + 8, 4);
  if (is_stopped_ && is_first && number == expected_) is_stopped_ = false;
  if (!is_stopped_ && expected_ && number > *expected_) {
    stop(wal, offset,
         fmt::format("operations {} to {} are missing before it", *expected_, number - 1));
  }
  if (is_stopped_) {
    // One that is not beyond what is kept was written by nobody who could have acknowledged it.
    if (!expected_ || number + count > *expected_) drop(record, number + count - 1);
    return;
  }
  expected_ = number + count;
}

void WalScanner::stop(std::uint64_t wal, std::size_t offset, std::string why) {
  is_stopped_ = true;
  if (scan_.verdict == WalScan::Verdict::Damaged) return;
  scan_.verdict = WalScan::Verdict::TornTail;
  scan_.wal = wal;
  scan_.offset = offset;
  scan_.why = std::move(why);
}

void WalScanner::drop(std::string_view record, std::uint64_t last) {
  scan_.verdict = WalScan::Verdict::Damaged;
  ++scan_.records_dropped;
  scan_.last_dropped = std::max(scan_.last_dropped.value_or(0), last);
  HeadsOfBatch heads(heads_family_, scan_.heads_dropped);
  rocksdb::WriteBatch{std::string(record)}.Iterate(&heads).PermitUncheckedError();
}

WalScan WalScanner::finish() {
  if (expected_ && *expected_ > 0) scan_.last_kept = *expected_ - 1;
  return std::move(scan_);
}

Result<WalScan> scan_wals(const std::vector<WalFile>& files, std::uint32_t heads_family) {
  WalScanner scanner(heads_family);
  for (const WalFile& file : files) {
    ORRERY_TRY(const auto bytes, read_bytes(file.path));
    scanner.add(file.number, bytes);
  }
  return scanner.finish();
}

}  // namespace orrery::storage
