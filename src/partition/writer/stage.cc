#include "partition/writer/stage.h"

#include <utility>
#include <variant>

#include "base/assert.h"
#include "partition/writer/index_change.h"

namespace orrery::partition {
namespace {

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

}  // namespace

Stage::Stage(storage::Store& store, PartitionNumber partition, RangeId range, const Rid& container,
             const storage::Head& head)
    : state_(store, partition, head),
      documents_(state_, range, container),
      retention_(state_),
      copier_(state_) {}

Result<Committed> Stage::stage(const Transaction& transaction, UnixSeconds now,
                               storage::Batch& batch, storage::Tier tier) {
  staged_anything_ = false;
  state_.writer.begin(state_.head, now);
  state_.view.begin(state_.writer.head().lsn, tier);
  auto outcome = attempt(transaction, now);
  if (!outcome || outcome->failure) {
    state_.view.roll_back();
    if (outcome) outcome->lsn = state_.head.lsn;
    return outcome;
  }
  accept(*outcome, batch);
  return outcome;
}

Result<Committed> Stage::attempt(const Transaction& transaction, UnixSeconds now) {
  const TransactionScope scope{transaction.rules, now};
  using Outcome = Result<Committed>;
  return std::visit(
      Overloaded{
          [&](const DocumentWrites& work) { return documents_.write(work, scope); },
          [&](const DeleteByKey& work) { return documents_.delete_by_key(work, scope); },
          [&](const ExpiryPurge& work) { return documents_.purge(work, scope); },
          [&](const RetentionChange& work) -> Outcome { return retention_.change(work); },
          [&](const ExpiryBuildStep&) { return retention_.build_expiry(); },
          [&](const HistoryTrim& work) {
            return retention_.trim(work, copier_.mirror() != nullptr);
          },
          [&](const IndexChange& work) { return change_indexes(state_, work); },
          [&](const IndexBuildStep&) { return build_indexes(state_); },
      },
      transaction.work);
}

void Stage::accept(Committed& outcome, storage::Batch& batch) {
  storage::Head& after = state_.writer.head();
  if (!state_.writer.changes_documents()) {
    // Nothing that a reader of the log could see: no LSN, and no time of its own.
    after.lsn = state_.head.lsn;
    after.ts = state_.head.ts;
  }
  outcome.lsn = after.lsn;
  staged_anything_ = !state_.writer.empty() || after != state_.head;
  // Also where nothing was staged: then the view has nothing to keep.
  state_.view.keep();
  if (!staged_anything_) return;
  // LSNs are dense, and `_ts` never falls, whatever the clock does.
  ORRERY_ASSERT(after.lsn.value - state_.head.lsn.value <= 1);
  ORRERY_ASSERT(after.ts >= state_.head.ts);
  ORRERY_ASSERT(after.document_sequence >= state_.head.document_sequence);
  Mirror* const mirror = copier_.mirror();
  if (mirror != nullptr) mirror->see_change(state_.head.retention, after.retention);
  state_.set_head(after);
  state_.writer.emit(batch);
  if (mirror != nullptr) state_.writer.emit_mirrored(*mirror, batch);
  for (RecordPtr& record : state_.writer.take_records()) records_.push_back(std::move(record));
}

void Stage::forget_committed(Lsn lsn) {
  // Only staged transactions can have been committed.
  ORRERY_ASSERT(lsn <= state_.head.lsn);
  state_.view.forget_committed(lsn);
}

void Stage::reset(const storage::Head& head) {
  state_.set_head(head);
  state_.view.reset();
  // Changes mirrored since the failure may be missing in the targets.
  copier_.end();
  records_.clear();
  retention_.restart();
}

}  // namespace orrery::partition
