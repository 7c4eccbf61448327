// CommitLog: the seam under the partitions. Batches that it has accepted are committed; nothing
// above it knows whether that means a local disk or a quorum of machines.
#pragma once

#include <span>

#include "base/result.h"
#include "storage/batch.h"

namespace orrery::commitlog {

class CommitLog {
 public:
  virtual ~CommitLog() = default;

  /// Commits all batches together, in order, durably. Blocks. Called by one thread. Unavailable
  /// when it failed: whether the batches are committed is unknown then, and every further append
  /// fails until recover() succeeds.
  virtual Result<> append(std::span<const storage::Batch* const> batches) = 0;

  /// After a failed append: finds out what is committed and makes appends possible again, or says
  /// why that cannot be done yet. Blocks.
  virtual Result<> recover() = 0;
};

}  // namespace orrery::commitlog
