#include "storage/wal_guard.h"

#include <algorithm>
#include <cstring>
#include <ranges>

#include <rocksdb/write_batch.h>

#include "storage/rocks_log.h"

namespace orrery::storage {

std::uint64_t WalGuard::first_wal() const {
  // Older ones than the first that had a record were skipped, or empty.
  if (first_seen_) return *first_seen_;
  return first_wals_.empty() ? 0 : std::ranges::min(first_wals_ | std::views::values);
}

std::uint32_t WalGuard::family(const std::string& name) const {
  const auto found = families_.find(name);
  return found == families_.end() ? 0 : found->second;
}

bool WalGuard::is_beyond(std::uint32_t family, std::uint64_t wal) const {
  const auto found = first_wals_.find(family);
  return found != first_wals_.end() && found->second > wal;
}

std::uint64_t WalGuard::replayed(std::uint64_t wal) const {
  const auto found = replayed_.find(wal);
  return found == replayed_.end() ? 0 : found->second;
}

void WalGuard::ColumnFamilyLogNumberMap(const std::map<std::uint32_t, std::uint64_t>& first_wals,
                                        const std::map<std::string, std::uint32_t>& families) {
  first_wals_ = first_wals;
  families_ = families;
}

rocksdb::WalFilter::WalProcessingOption WalGuard::LogRecordFound(unsigned long long wal,
                                                                 const std::string&,
                                                                 const rocksdb::WriteBatch& batch,
                                                                 rocksdb::WriteBatch*, bool*) {
  if (!first_seen_) first_seen_ = wal;
  std::uint64_t& replayed = replayed_[wal];
  replayed = end_of_record(replayed, batch.GetDataSize());
  std::uint64_t number;
  std::memcpy(&number, batch.Data().data(), sizeof number);  // What every batch begins with.
  if (expected_ && number > *expected_) {
    stopped_in_ = wal;
    return on_gap_ == OnGap::Fail ? WalProcessingOption::kCorruptedRecord
                                  : WalProcessingOption::kStopReplay;
  }
  expected_ = number + batch.Count();
  return WalProcessingOption::kContinueProcessing;
}

}  // namespace orrery::storage
