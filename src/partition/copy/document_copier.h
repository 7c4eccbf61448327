// DocumentCopier: the part of a stage that copies the documents which were there when a split or
// merge began. Later changes are mirrored by the records' writer. See copy.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "partition/copy/copy.h"
#include "partition/writer/stage_state.h"
#include "storage/batch.h"
#include "storage/store.h"

namespace orrery::partition {

class DocumentCopier {
 public:
  explicit DocumentCopier(StageState& state) : state_(state) {}

  /// Conflict when a copy is under way.
  Result<> begin(CopyPlan plan);
  /// Appends the records of the next documents for their targets to `batch`. Everything up to the
  /// begin of the copy must be committed. False when nothing is left. Blocks.
  Result<bool> step(storage::Batch& batch);
  /// All indexes that this partition has in the targets, and will get there, are below. Unavailable
  /// as outcome().
  Result<std::uint32_t> index_bound() const;
  /// Unavailable when no copy is under way, or it is not complete.
  Result<CopyOutcome> outcome() const;
  void end() { mirror_.reset(); }

  /// Null when no copy is under way.
  Mirror* mirror() { return mirror_ ? &*mirror_ : nullptr; }

 private:
  class Chunk;

  Result<> copy_log(const storage::Snapshot& snapshot, storage::Batch& batch, Chunk& chunk);
  Result<> copy_version(storage::LogPosition position, std::string_view value,
                        storage::Batch& batch);
  Result<> copy_history(const storage::Snapshot& snapshot, storage::Batch& batch, Chunk& chunk);

  StageState& state_;
  std::optional<Mirror> mirror_;
};

}  // namespace orrery::partition
