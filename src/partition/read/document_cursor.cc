#include "partition/read/document_cursor.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "partition/read/version_reader.h"
#include "storage/keys.h"

namespace orrery::partition {

using index::Candidate;
using storage::Family;
using storage::LogPosition;
using storage::VersionRecord;

namespace {

/// Where a document of another key is met: one key's own entries are gone over if they are no more
/// than this, which costs little to find out.
constexpr std::size_t kOwnEntriesMax = 1000;
/// Else so many records of others are stepped over before that is done all the same.
constexpr std::size_t kForeignRecordsMax = 1000;
/// So many versions anywhere in the log are read together at first, and at most.
constexpr std::size_t kBatchSizeFirst = 16;
constexpr std::size_t kBatchSizeMax = 64;

/// The prefix of the entries in `ids` of the filter's key.
std::string key_prefix(PartitionNumber partition, const ScanFilter& filter) {
  return storage::id_key(partition, {filter.epks->min.bytes, *filter.partition_key, ""});
}

/// Whether the log is in the order of document numbers: nothing in it was written twice.
bool is_log_in_order(const storage::Snapshot& snapshot, PartitionNumber partition) {
  std::string value;
  const auto found = snapshot.get(Family::Heads, storage::partition_prefix(partition), value);
  if (found != storage::Lookup::Found) return false;
  const auto head = storage::Head::parse(value);
  return head && !head->is_reordered;
}

/// The key of the first document after this one.
std::string rid_key_after(PartitionNumber partition, DocumentNumber number) {
  if (number == DocumentCursor::kLastDocument) return storage::partition_end(partition);
  return storage::rid_key(partition, DocumentNumber{number.value + 1});
}

/// The same in a log that is in the order of numbers.
Result<std::string> log_key_after(const storage::Snapshot& snapshot, PartitionNumber partition,
                                  DocumentNumber number) {
  if (number == DocumentNumber{}) return storage::partition_prefix(partition);
  if (number == DocumentCursor::kLastDocument) return storage::partition_end(partition);
  ORRERY_TRY(const auto place, place_in_log(snapshot, partition, number));
  return place ? storage::log_key(partition, *place) : storage::partition_end(partition);
}

Candidate candidate_of(const storage::IdEntry& entry) {
  return {entry.header.number, entry.position};
}

}  // namespace

bool ScanFilter::passes(const VersionRecord& record) const {
  if (storage::expired(record.header.ts, record.header.own_ttl, default_ttl, now)) return false;
  if (partition_key && record.partition_key != *partition_key) return false;
  if (epks) {
    if (record.epk < epks->min.bytes || !(record.epk < epks->max.bytes)) return false;
  }
  return true;
}

// ── places ──────────────────────────────────────────────────────────────────────────────────────

Result<std::optional<LogPosition>> place_in_log(const storage::Snapshot& snapshot,
                                                PartitionNumber partition, DocumentNumber after) {
  const auto number = snapshot.cursor(Family::Rids, rid_key_after(partition, after),
                                      storage::partition_end(partition));
  ORRERY_TRY(number.status());
  if (!number.valid()) return std::optional<LogPosition>();
  const auto position = storage::parse_position_value(number.value());
  ORRERY_ASSERT(position.has_value());
  return position;
}

NumberSteps::NumberSteps(const storage::Snapshot& snapshot, PartitionNumber partition,
                         DocumentNumber after)
    : numbers_(snapshot.cursor(Family::Rids, rid_key_after(partition, after),
                               storage::partition_end(partition),
                               storage::Snapshot::Access::Scan)) {}

std::optional<DocumentNumber> NumberSteps::step(std::uint64_t count) {
  for (; count > 1 && numbers_.valid(); --count) numbers_.next();
  if (!numbers_.valid()) return std::nullopt;
  const DocumentNumber number = storage::document_number(numbers_.key());
  numbers_.next();
  return number;
}

// ── one partition key ────────────────────────────────────────────────────────────────────────────

Result<std::optional<std::vector<Candidate>>> find_in_key(const storage::Snapshot& snapshot,
                                                          PartitionNumber partition,
                                                          const ScanFilter& filter,
                                                          std::size_t count_max) {
  const std::string from = key_prefix(partition, filter);
  std::vector<Candidate> found;
  auto cursor = snapshot.cursor(Family::Ids, from, from + '\xFF');
  for (; cursor.valid(); cursor.next()) {
    if (found.size() == count_max) return std::optional<std::vector<Candidate>>();
    const auto entry = storage::IdEntry::parse(cursor.value());
    ORRERY_ASSERT(entry.has_value());
    found.push_back(candidate_of(*entry));
  }
  ORRERY_TRY(cursor.status());
  std::ranges::sort(found, {}, &Candidate::number);
  return std::optional(std::move(found));
}

Result<std::optional<std::uint64_t>> count_in_key(const storage::Snapshot& snapshot,
                                                  PartitionNumber partition,
                                                  const ScanFilter& filter, std::size_t count_max) {
  const std::string from = key_prefix(partition, filter);
  std::size_t entries = 0;
  std::uint64_t count = 0;
  auto cursor = snapshot.cursor(Family::Ids, from, from + '\xFF');
  for (; cursor.valid(); cursor.next()) {
    if (++entries > count_max) return std::optional<std::uint64_t>();
    const auto entry = storage::IdEntry::parse(cursor.value());
    ORRERY_ASSERT(entry.has_value());
    const auto& header = entry->header;
    if (!storage::expired(header.ts, header.own_ttl, filter.default_ttl, filter.now)) ++count;
  }
  ORRERY_TRY(cursor.status());
  return std::optional(count);
}

Result<std::optional<Candidate>> find_by_id(const storage::Snapshot& snapshot,
                                            PartitionNumber partition, const ScanFilter& filter,
                                            std::string_view id) {
  std::string value;
  switch (snapshot.get(Family::Ids, key_prefix(partition, filter).append(id), value)) {
    case storage::Lookup::Found:
      break;
    case storage::Lookup::Missing:
      return std::optional<Candidate>();
    case storage::Lookup::Unknown:
    case storage::Lookup::Failed:
      return Error(ErrorCode::Unavailable,
                   "the disk could not be read; see the server's diagnostics");
  }
  const auto entry = storage::IdEntry::parse(value);
  ORRERY_ASSERT(entry.has_value());
  return std::optional(candidate_of(*entry));
}

// ── ways ─────────────────────────────────────────────────────────────────────────────────────────

class DocumentCursor::Way {
 public:
  virtual ~Way() = default;
  /// Puts the next version into `record`. False at the end.
  virtual Result<bool> step(VersionRecord& record) = 0;
};

/// Those that are close together are stepped to, others are read several at a time.
class DocumentCursor::OverCandidates final : public Way {
 public:
  OverCandidates(const storage::Snapshot& snapshot, PartitionNumber partition,
                 std::vector<Candidate> candidates, std::size_t begin = 0)
      : batch_(snapshot, partition), candidates_(std::move(candidates)), at_(begin) {
    if (are_close()) reader_.emplace(snapshot, partition, storage::Snapshot::Access::Point);
  }

  Result<bool> step(VersionRecord& record) override {
    if (at_ == candidates_.size()) return false;
    if (reader_) {
      ORRERY_TRY(record, reader_->at(candidates_[at_++].position));
      return true;
    }
    if (place_ == batch_.size()) ORRERY_TRY(read_batch());
    ++at_;
    record = batch_[place_++];
    return true;
  }

 private:
  bool are_close() const {
    if (candidates_.size() <= kBatchSizeFirst) return false;
    const auto [first, last] = std::ranges::minmax(candidates_, {}, &Candidate::position);
    const std::uint64_t distance = last.position.lsn.value - first.position.lsn.value;
    return distance / candidates_.size() <= VersionReader::kStepsMax / 2;
  }

  Result<> read_batch() {
    const std::size_t count = std::min(batch_size_, candidates_.size() - at_);
    batch_size_ = std::min(batch_size_ * 2, kBatchSizeMax);
    positions_.clear();
    for (std::size_t place = at_; place < at_ + count; ++place) {
      positions_.push_back(candidates_[place].position);
    }
    place_ = 0;
    return batch_.read(positions_);
  }

  std::optional<VersionReader> reader_;
  VersionBatch batch_;
  std::size_t batch_size_ = kBatchSizeFirst;
  std::size_t place_ = 0;  // In the batch.
  std::vector<LogPosition> positions_;
  const std::vector<Candidate> candidates_;
  std::size_t at_;
};

class DocumentCursor::InLog final : public Way {
 public:
  /// From the key `begin` on, up to `end`.
  InLog(const storage::Snapshot& snapshot, std::string_view begin, std::string_view end)
      : cursor_(snapshot.cursor(Family::Log, begin, end, storage::Snapshot::Access::Scan)) {}

  Result<bool> step(VersionRecord& record) override {
    if (has_begun_) cursor_.next();
    has_begun_ = true;
    if (!cursor_.valid()) {
      ORRERY_TRY(cursor_.status());
      return false;
    }
    const auto parsed = VersionRecord::parse(cursor_.value());
    ORRERY_ASSERT(parsed.has_value());
    record = *parsed;
    return true;
  }

 private:
  storage::Snapshot::Cursor cursor_;
  bool has_begun_ = false;
};

class DocumentCursor::ByNumber final : public Way {
 public:
  ByNumber(const storage::Snapshot& snapshot, PartitionNumber partition, DocumentNumber after,
           const ScanFilter& filter, DocumentNumber last)
      : snapshot_(snapshot),
        partition_(partition),
        filter_(filter),
        numbers_(snapshot.cursor(Family::Rids, rid_key_after(partition, after),
                                 rid_key_after(partition, last))),
        versions_(snapshot, partition, storage::Snapshot::Access::Scan) {}

  Result<bool> step(VersionRecord& record) override {
    if (own_) return own_->step(record);
    if (has_begun_) numbers_.next();
    has_begun_ = true;
    if (!numbers_.valid()) {
      ORRERY_TRY(numbers_.status());
      return false;
    }
    const auto position = storage::parse_position_value(numbers_.value());
    ORRERY_ASSERT(position.has_value());
    ORRERY_TRY(record, versions_.at(*position));
    if (filter_.partition_key && filter_.epks) ORRERY_TRY(judge(record));
    return true;
  }

 private:
  /// Goes over to the key's own entries where those of others would cost more.
  Result<> judge(const VersionRecord& record) {
    if (record.partition_key == *filter_.partition_key) {
      foreign_ = 0;
      return {};
    }
    ++foreign_;
    if (!has_asked_) {
      has_asked_ = true;
      return use_own_entries(record.header.number, kOwnEntriesMax);
    }
    if (foreign_ <= kForeignRecordsMax) return {};
    return use_own_entries(record.header.number, SIZE_MAX);
  }

  Result<> use_own_entries(DocumentNumber after, std::size_t count_max) {
    ORRERY_TRY(auto found, find_in_key(snapshot_, partition_, filter_, count_max));
    if (!found) return {};
    const auto begin = std::ranges::upper_bound(*found, after, {}, &Candidate::number);
    const auto passed = static_cast<std::size_t>(begin - found->begin());
    own_.emplace(snapshot_, partition_, std::move(*found), passed);
    return {};
  }

  const storage::Snapshot& snapshot_;
  const PartitionNumber partition_;
  const ScanFilter filter_;
  storage::Snapshot::Cursor numbers_;
  VersionReader versions_;
  bool has_begun_ = false;
  bool has_asked_ = false;   // Whether the key's own entries were counted.
  std::size_t foreign_ = 0;  // Records of other keys since the last one of this.
  std::optional<OverCandidates> own_;
};

// ── the cursor ───────────────────────────────────────────────────────────────────────────────────

DocumentCursor::DocumentCursor(std::unique_ptr<Way> way, ScanFilter filter)
    : way_(std::move(way)), filter_(std::move(filter)) {}
DocumentCursor::DocumentCursor(Error error) : status_(std::move(error)) {}
DocumentCursor::DocumentCursor(DocumentCursor&&) noexcept = default;
DocumentCursor::~DocumentCursor() = default;

DocumentCursor DocumentCursor::by_number(const storage::Snapshot& snapshot,
                                         PartitionNumber partition, DocumentNumber after,
                                         ScanFilter filter, DocumentNumber last) {
  // Of one key its own entries are quicker.
  if (!filter.partition_key && is_log_in_order(snapshot, partition)) {
    const auto begin = log_key_after(snapshot, partition, after);
    if (!begin) return DocumentCursor(begin.error());
    const auto end = log_key_after(snapshot, partition, last);
    if (!end) return DocumentCursor(end.error());
    return {std::make_unique<InLog>(snapshot, *begin, *end), std::move(filter)};
  }
  auto way = std::make_unique<ByNumber>(snapshot, partition, after, filter, last);
  return {std::move(way), std::move(filter)};
}

DocumentCursor DocumentCursor::in_log(const storage::Snapshot& snapshot, PartitionNumber partition,
                                      ScanFilter filter, LogPart part) {
  const bool is_to_end = part.end == LogPart().end;
  auto way = std::make_unique<InLog>(
      snapshot, storage::log_key(partition, part.begin),
      is_to_end ? storage::partition_end(partition) : storage::log_key(partition, {part.end, 0}));
  return {std::move(way), std::move(filter)};
}

DocumentCursor DocumentCursor::over(const storage::Snapshot& snapshot, PartitionNumber partition,
                                    std::vector<Candidate> candidates, ScanFilter filter) {
  return {std::make_unique<OverCandidates>(snapshot, partition, std::move(candidates)),
          std::move(filter)};
}

bool DocumentCursor::step() {
  if (!status_) return false;
  const auto found = way_->step(record_);
  if (!found) status_ = Error(found.error());
  if (!found || !*found) return false;
  ++looked_at_;
  return true;
}

bool DocumentCursor::next() {
  while (step()) {
    if (passes()) return true;
  }
  return false;
}

}  // namespace orrery::partition
