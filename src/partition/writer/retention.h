// RetentionWriter: the part of a stage that changes and tidies what is kept besides the live
// documents: expiry entries and history.
#pragma once

#include "base/result.h"
#include "partition/expiry.h"
#include "partition/history.h"
#include "partition/writer/stage_state.h"
#include "partition/writer/transaction.h"

namespace orrery::partition {

/// One function for each alternative of a transaction.
class RetentionWriter {
 public:
  explicit RetentionWriter(StageState& state) : state_(state) {}

  Committed change(const RetentionChange& work);
  Result<Committed> build_expiry();
  /// Trims nothing while the partition is being copied: the copy reads the history, and the next
  /// round trims it.
  Result<Committed> trim(const HistoryTrim& work, bool is_being_copied);

  /// Forgets how far building and trimming have come: they begin again, which does no harm.
  void restart();

 private:
  void change_expiry(storage::RetentionSettings& retention);
  void change_history(storage::RetentionSettings& retention);

  StageState& state_;
  ExpiryBuild expiry_build_;
  HistoryTrimmer trimmer_;
};

}  // namespace orrery::partition
