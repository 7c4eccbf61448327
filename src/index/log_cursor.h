// Following a partition's log through snapshots, for what keeps something of every document in
// memory.
#pragma once

#include <optional>

#include "base/result.h"
#include "index/reader.h"
#include "protocol/ids.h"
#include "storage/records.h"
#include "storage/store.h"

namespace orrery::index {

/// The head as the snapshot has it; an empty one when nothing of the partition was committed then.
/// Blocks. Unavailable on an I/O error.
Result<storage::Head> head_in(const storage::Snapshot& snapshot, PartitionNumber partition);

/// The version that the snapshot has of a document; nothing when it has none. Blocks. Unavailable
/// on an I/O error.
Result<std::optional<Candidate>> find_version(const storage::Snapshot& snapshot,
                                              PartitionNumber partition, DocumentNumber number);

/// Goes over all versions after a position: of each document that was changed since, the one that
/// the snapshot has. Documents that were deleted are not told of. Must not outlive the snapshot.
/// Blocks.
class LogCursor {
 public:
  LogCursor(const storage::Snapshot& snapshot, PartitionNumber partition,
            storage::LogPosition after, storage::Snapshot::Access access);

  /// False at the end, and when something went wrong: see status().
  bool next();
  /// Of the version that the last call went to; live until the next one.
  const storage::VersionRecord& record() const { return record_; }
  Candidate candidate() const;
  Result<> status() const { return cursor_.status(); }

 private:
  storage::Snapshot::Cursor cursor_;
  bool has_begun_ = false;
  storage::VersionRecord record_;
};

}  // namespace orrery::index
