#include "partition/scan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "storage/keys.h"
#include "storage/records.h"

namespace orrery::partition {

using storage::Family;
using storage::LogPosition;

namespace {

/// The deadline is looked at once in so many documents.
constexpr std::size_t kDeadlineInterval = 64;
/// For one key: so many records of others are stepped over before its own entries are asked
/// instead.
constexpr std::size_t kForeignRecordsMax = 1000;

bool passes(const storage::VersionRecord& record, const ScanFilter& filter) {
  if (storage::expired(record.header.ts, record.header.own_ttl, filter.default_ttl, filter.now)) {
    return false;
  }
  if (filter.partition_key && record.partition_key != *filter.partition_key) return false;
  if (filter.epks) {
    if (record.epk < filter.epks->min.bytes || !(record.epk < filter.epks->max.bytes)) return false;
  }
  return true;
}

/// Reads versions by position. Where positions ascend without gaps, as after a bulk load, stepping
/// on is much cheaper than seeking.
class LogReader {
 public:
  LogReader(const storage::Snapshot& snapshot, PartitionNumber partition)
      : partition_(partition),
        cursor_(snapshot.cursor(Family::Log, storage::partition_prefix(partition),
                                storage::partition_end(partition),
                                storage::Snapshot::Access::Scan)) {}

  /// The record at `position`, which the snapshot holds; lives until the next call.
  Result<storage::VersionRecord> at(LogPosition position) {
    if (placed_) cursor_.next();
    if (!placed_ || !cursor_.valid() || storage::log_position(cursor_.key()) != position) {
      cursor_.seek(storage::log_key(partition_, position));
    }
    placed_ = true;
    if (!cursor_.valid() || storage::log_position(cursor_.key()) != position) {
      ORRERY_TRY(cursor_.status());
      return Error(ErrorCode::Internal, "an index entry names a version that is not in the log");
    }
    const auto record = storage::VersionRecord::parse(cursor_.value());
    ORRERY_ASSERT(record.has_value());
    return *record;
  }

 private:
  PartitionNumber partition_;
  storage::Snapshot::Cursor cursor_;
  bool placed_ = false;
};

/// Collects a page.
class Collector {
 public:
  Collector(const ScanBudget& budget, std::string& text, std::size_t& count)
      : budget_(budget), text_(text), count_(count) {}

  bool full() const { return count_ >= budget_.count_max; }
  /// False when it does not fit any more.
  bool add(std::string_view document) {
    if (full() || (count_ > 0 && text_.size() + 1 + document.size() > budget_.bytes_max)) {
      return false;
    }
    if (count_ > 0) text_.push_back(',');
    text_.append(document);
    ++count_;
    return true;
  }
  bool out_of_time() {
    return ++looked_at_ % kDeadlineInterval == 0 &&
           std::chrono::steady_clock::now() > budget_.deadline;
  }

 private:
  const ScanBudget& budget_;
  std::string& text_;
  std::size_t& count_;
  std::size_t looked_at_ = 0;
};

/// The documents of one key after `after`, in the order of their numbers, by their own entries.
Result<ScanOutcome> scan_key(const storage::Snapshot& snapshot, PartitionNumber partition,
                             DocumentNumber after, const ScanFilter& filter, LogReader& log,
                             Collector& collector) {
  std::string from = storage::partition_prefix(partition);
  from.append(filter.epks->min.bytes).append(*filter.partition_key);
  std::string to = from;
  to.push_back('\xFF');
  std::vector<std::pair<DocumentNumber, LogPosition>> found;
  auto cursor = snapshot.cursor(Family::Ids, from, to);
  for (; cursor.valid(); cursor.next()) {
    const auto entry = storage::IdEntry::parse(cursor.value());
    ORRERY_ASSERT(entry.has_value());
    if (entry->header.number > after) {
      found.emplace_back(entry->header.number, entry->position);
    }
  }
  ORRERY_TRY(cursor.status());
  std::ranges::sort(found);
  ScanOutcome outcome{.exhausted = true, .last = after};
  for (const auto& [number, position] : found) {
    ORRERY_TRY(const auto record, log.at(position));
    if (passes(record, filter) && !collector.add(record.text)) {
      outcome.exhausted = false;
      return outcome;
    }
    outcome.last = number;
  }
  return outcome;
}

}  // namespace

Result<ScanOutcome> scan_by_number(const storage::Snapshot& snapshot, PartitionNumber partition,
                                   DocumentNumber after, const ScanFilter& filter,
                                   const ScanBudget& budget, std::string& text,
                                   std::size_t& count) {
  LogReader log(snapshot, partition);
  Collector collector(budget, text, count);
  ScanOutcome outcome{.exhausted = false, .last = after};
  auto cursor =
      snapshot.cursor(Family::Rids, storage::rid_key(partition, DocumentNumber{after.value + 1}),
                      storage::partition_end(partition));
  std::size_t foreign = 0;
  for (; cursor.valid(); cursor.next()) {
    const DocumentNumber number = storage::document_number(cursor.key());
    const auto position = storage::parse_position_value(cursor.value());
    ORRERY_ASSERT(position.has_value());
    ORRERY_TRY(const auto record, log.at(*position));
    if (passes(record, filter)) {
      if (!collector.add(record.text)) return outcome;
      foreign = 0;
    } else if (filter.partition_key && ++foreign > kForeignRecordsMax) {
      return scan_key(snapshot, partition, outcome.last, filter, log, collector);
    }
    outcome.last = number;
    if (collector.out_of_time()) {
      cursor.next();
      outcome.exhausted = !cursor.valid();
      return outcome;
    }
  }
  ORRERY_TRY(cursor.status());
  outcome.exhausted = true;
  return outcome;
}

}  // namespace orrery::partition
