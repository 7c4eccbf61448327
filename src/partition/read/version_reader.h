// Reading versions by their positions in the log.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "protocol/ids.h"
#include "storage/records.h"
#include "storage/store.h"

namespace orrery::partition {

/// For positions that are mostly close together and ascend: it steps from one to the next where
/// that is cheaper than seeking. Must not outlive the snapshot. Blocks.
class VersionReader {
 public:
  VersionReader(const storage::Snapshot& snapshot, PartitionNumber partition,
                storage::Snapshot::Access access);

  /// The version at `position`, which the snapshot holds; lives until the next call. Unavailable on
  /// an I/O error.
  Result<storage::VersionRecord> at(storage::LogPosition position);

  /// So many versions are stepped over rather than sought past.
  static constexpr std::size_t kStepsMax = 16;

 private:
  /// Whether it came to `position` by stepping.
  bool step_to(storage::LogPosition position);

  PartitionNumber partition_;
  storage::Snapshot::Cursor cursor_;
};

/// For positions anywhere in the log: several are read together. Must not outlive the snapshot.
/// Blocks.
class VersionBatch {
 public:
  VersionBatch(const storage::Snapshot& snapshot, PartitionNumber partition)
      : snapshot_(snapshot), partition_(partition) {}

  /// Reads these versions, all of which the snapshot holds. As VersionReader::at().
  Result<> read(std::span<const storage::LogPosition> positions);
  std::size_t size() const { return records_.size(); }
  /// In the order of the positions; live until the next read.
  const storage::VersionRecord& operator[](std::size_t place) const { return records_[place]; }

 private:
  const storage::Snapshot& snapshot_;
  PartitionNumber partition_;
  std::vector<std::string> keys_;
  storage::Snapshot::Values values_;
  std::vector<storage::VersionRecord> records_;
};

}  // namespace orrery::partition
