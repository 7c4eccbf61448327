#include "index/log_cursor.h"

#include <limits>
#include <string>

#include "base/assert.h"
#include "storage/keys.h"

namespace orrery::index {

using storage::Family;
using storage::LogPosition;
using storage::Lookup;

namespace {

/// False when there is none.
Result<bool> get(const storage::Snapshot& snapshot, Family family, const std::string& key,
                 std::string& value) {
  switch (snapshot.get(family, key, value)) {
    case Lookup::Found:
      return true;
    case Lookup::Missing:
      return false;
    case Lookup::Unknown:
    case Lookup::Failed:
      break;
  }
  return Error(ErrorCode::Unavailable, "the disk could not be read; see the server's diagnostics");
}

std::string log_key_after(PartitionNumber partition, LogPosition position) {
  const bool is_last = position.index == std::numeric_limits<std::uint32_t>::max();
  return storage::log_key(partition, is_last ? LogPosition{next(position.lsn), 0}
                                             : LogPosition{position.lsn, position.index + 1});
}

}  // namespace

Result<storage::Head> head_in(const storage::Snapshot& snapshot, PartitionNumber partition) {
  std::string value;
  ORRERY_TRY(const bool is_there,
             get(snapshot, Family::Heads, storage::partition_prefix(partition), value));
  if (!is_there) return storage::Head{};
  const auto head = storage::Head::parse(value);
  ORRERY_ASSERT(head.has_value());
  return *head;
}

Result<std::optional<Candidate>> find_version(const storage::Snapshot& snapshot,
                                              PartitionNumber partition, DocumentNumber number) {
  std::string value;
  ORRERY_TRY(const bool is_there,
             get(snapshot, Family::Rids, storage::rid_key(partition, number), value));
  if (!is_there) return std::optional<Candidate>();
  const auto position = storage::parse_position_value(value);
  ORRERY_ASSERT(position.has_value());
  return std::optional(Candidate{number, *position});
}

LogCursor::LogCursor(const storage::Snapshot& snapshot, PartitionNumber partition,
                     LogPosition after, storage::Snapshot::Access access)
    : cursor_(snapshot.cursor(Family::Log, log_key_after(partition, after),
                              storage::partition_end(partition), access)) {}

bool LogCursor::next() {
  if (has_begun_) cursor_.next();
  has_begun_ = true;
  if (!cursor_.valid()) return false;
  const auto record = storage::VersionRecord::parse(cursor_.value());
  ORRERY_ASSERT(record.has_value());
  record_ = *record;
  return true;
}

Candidate LogCursor::candidate() const {
  return {record_.header.number, storage::log_position(cursor_.key())};
}

}  // namespace orrery::index
