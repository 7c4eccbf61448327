#include "partition/read/version_reader.h"

#include "base/assert.h"
#include "storage/keys.h"

namespace orrery::partition {

using storage::Family;
using storage::LogPosition;
using storage::VersionRecord;

namespace {

Error not_in_log() {
  return {ErrorCode::Internal, "an index entry names a version that is not in the log"};
}

VersionRecord record_in(std::string_view value) {
  const auto record = VersionRecord::parse(value);
  ORRERY_ASSERT(record.has_value());
  return *record;
}

}  // namespace

VersionReader::VersionReader(const storage::Snapshot& snapshot, PartitionNumber partition,
                             storage::Snapshot::Access access)
    : partition_(partition),
      cursor_(snapshot.cursor(Family::Log, storage::partition_prefix(partition),
                              storage::partition_end(partition), access)) {}

bool VersionReader::step_to(LogPosition position) {
  for (std::size_t steps = 0; cursor_.valid(); ++steps, cursor_.next()) {
    const LogPosition here = storage::log_position(cursor_.key());
    if (here == position) return true;
    const bool is_close = here < position && position.lsn.value - here.lsn.value <= kStepsMax;
    if (!is_close || steps == kStepsMax) return false;
  }
  return false;
}

Result<VersionRecord> VersionReader::at(LogPosition position) {
  if (!step_to(position)) {
    cursor_.seek(storage::log_key(partition_, position));
    if (!cursor_.valid() || storage::log_position(cursor_.key()) != position) {
      ORRERY_TRY(cursor_.status());
      return not_in_log();
    }
  }
  return record_in(cursor_.value());
}

Result<> VersionBatch::read(std::span<const LogPosition> positions) {
  keys_.clear();
  records_.clear();
  for (const LogPosition position : positions) {
    keys_.push_back(storage::log_key(partition_, position));
  }
  ORRERY_TRY(const bool are_there, snapshot_.get_versions(keys_, values_));
  if (!are_there) return not_in_log();
  for (std::size_t place = 0; place < keys_.size(); ++place) {
    records_.push_back(record_in(values_[place]));
  }
  return {};
}

}  // namespace orrery::partition
