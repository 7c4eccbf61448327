#include "index/log_cursor.h"

#include <string>
#include <utility>

#include "base/assert.h"
#include "storage/heads.h"
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

}  // namespace

Result<storage::Head> head_in(const storage::Snapshot& snapshot, PartitionNumber partition) {
  ORRERY_TRY(auto head, storage::find_head(snapshot, partition));
  return head ? std::move(*head) : storage::Head{};
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
    : cursor_(snapshot.cursor(Family::Log, storage::log_key(partition, after.next()),
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
