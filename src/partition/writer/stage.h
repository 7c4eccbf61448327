// Stage: validates transactions against the log's head and against what is staged but not yet
// committed, and turns them into records and index entries.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "partition/copy/copy.h"
#include "partition/copy/document_copier.h"
#include "partition/writer/document_writer.h"
#include "partition/writer/retention.h"
#include "partition/writer/stage_state.h"
#include "partition/writer/transaction.h"
#include "protocol/ids.h"
#include "storage/batch.h"
#include "storage/records.h"
#include "storage/store.h"

namespace orrery::partition {

/// The writer's side of one partition. Not thread-safe: one writer owns it.
class Stage {
 public:
  Stage(storage::Store& store, PartitionNumber partition, RangeId range, const Rid& container,
        const storage::Head& head);

  /// Validates the transaction and appends its records to `batch`; nothing is appended when it
  /// fails. Errors as Partition::submit says. The head moves by one LSN if documents change.
  ///
  /// With Tier::Memory it never blocks, but may find that memory does not tell: then would_block()
  /// is true, the outcome means nothing, and the transaction is to be staged again with Tier::Disk.
  Result<Committed> stage(const Transaction& transaction, UnixSeconds now, storage::Batch& batch,
                          storage::Tier tier = storage::Tier::Disk);
  bool would_block() const { return state_.view.would_block(); }

  /// The head with everything staged, to be committed together with it.
  const storage::Head& head() const { return state_.head; }

  /// Whether the last stage() looked at something that is not committed yet. Then its outcome, also
  /// a refusal, must not be told before that is.
  bool outcome_rests_on_staged() const { return state_.view.newest_staged_seen() != Lsn{}; }
  /// Whether the last stage() changed anything that has to be committed before its outcome is told.
  bool staged_anything() const { return staged_anything_; }

  /// The records staged since the last call. Until they are committed somebody must hold them,
  /// since a later transaction may ask for the text of one; the stage itself lets go of them here.
  std::vector<RecordPtr> take_records() { return std::exchange(records_, {}); }

  /// Everything up to `lsn` is in the store now: forgets what was remembered of it.
  void forget_committed(Lsn lsn);
  /// Forgets everything staged and goes on from `head`.
  void reset(const storage::Head& head);

  /// Split and merge: copying to the partitions that take this one's place.
  DocumentCopier& copier() { return copier_; }

 private:
  Result<Committed> attempt(const Transaction& transaction, UnixSeconds now);
  /// Appends the transaction's records to `batch`, and moves the head.
  void accept(Committed& outcome, storage::Batch& batch);

  StageState state_;
  DocumentWriter documents_;
  RetentionWriter retention_;
  DocumentCopier copier_;
  bool staged_anything_ = false;
  std::vector<RecordPtr> records_;
};

}  // namespace orrery::partition
