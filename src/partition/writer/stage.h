// Stage: validates transactions against the log's head and against what is staged but not yet
// committed, and turns them into records and index entries.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "partition/copy/copy.h"
#include "partition/expiry.h"
#include "partition/history.h"
#include "partition/index_build.h"
#include "partition/writer/index_terms.h"
#include "partition/writer/record_writer.h"
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
  bool would_block() const { return would_block_; }

  /// The head with everything staged. Whoever commits what is staged stores it too.
  const storage::Head& head() const { return head_; }

  /// Whether the last stage() looked at something that is not committed yet. Then its outcome, also
  /// a refusal, must not be told before that is.
  bool outcome_rests_on_staged() const { return rests_on_staged_; }
  /// Whether the last stage() changed anything that has to be committed before its outcome is told.
  bool staged_anything() const { return staged_anything_; }

  /// The records staged since the last call. Until they are committed somebody must hold them,
  /// since a later transaction may ask for the text of one; the stage itself lets go of them here.
  std::vector<RecordPtr> take_records() { return std::exchange(records_, {}); }

  /// Everything up to `lsn` is in the store now: forgets what was remembered of it.
  void forget_committed(Lsn lsn);
  /// Forgets everything staged and goes on from `head`.
  void reset(const storage::Head& head);

  // ── split and merge: see copy.h ──
  /// Conflict when a copy is under way.
  Result<> begin_copy(CopyPlan plan);
  /// Appends the records of the next documents for their targets to `batch`. Everything up to the
  /// begin of the copy must be committed. False when nothing is left. Blocks.
  Result<bool> copy_step(storage::Batch& batch);
  /// All indexes that this partition has in the targets, and will get there, are below. Unavailable
  /// as copy_outcome().
  Result<std::uint32_t> copied_index_bound() const;
  /// Unavailable when no copy is under way, or it is not complete.
  Result<CopyOutcome> copy_outcome() const;
  void end_copy() { mirror_.reset(); }

 private:
  class Piece;

  Result<> copy_log(const storage::Snapshot& snapshot, storage::Batch& batch, Piece& piece);
  Result<> copy_version(storage::LogPosition position, std::string_view value,
                        storage::Batch& batch);
  Result<> copy_history(const storage::Snapshot& snapshot, storage::Batch& batch, Piece& piece);

  /// What is staged for one document: its version, or that it is gone.
  struct StagedDocument {
    Lsn lsn;
    std::optional<storage::IdEntry> entry;
    std::vector<std::string> unique_values;
    std::weak_ptr<const std::string> record;  ///< gone once it is committed: see take_records
  };
  /// Which version holds the values of a unique key. The id is known of staged ones; that of a
  /// committed one is in the log.
  struct Holder {
    storage::LogPosition position;
    std::optional<std::string> id;
  };
  struct StagedUnique {
    Lsn lsn;
    std::optional<Holder> holder;
  };
  struct Existing {
    storage::IdEntry entry;
    bool expired = false;
  };
  /// What goes for all that one transaction does.
  struct Scope {
    const Rules& rules;
    UnixSeconds now;
  };

  // ── one for each alternative of a transaction ──
  Result<Committed> attempt(const DocumentWrites& work, const Scope& scope);
  Result<Committed> attempt(const DeleteByKey& work, const Scope& scope);
  Result<Committed> attempt(const ExpiryPurge& work, const Scope& scope);
  Result<Committed> attempt(const RetentionChange& work, const Scope& scope);
  Result<Committed> attempt(const ExpiryBuildStep& work, const Scope& scope);
  Result<Committed> attempt(const HistoryTrim& work, const Scope& scope);
  Result<Committed> attempt(const IndexChange& work, const Scope& scope);
  Result<Committed> attempt(const IndexBuildStep& work, const Scope& scope);
  void take_back();
  void take_over(Result<Committed>& outcome, storage::Batch& batch);

  // ── documents: stage.cc ──
  Result<std::optional<Existing>> find(const storage::DocumentKey& key, const Scope& scope);
  Result<Written> apply(const Write& write, const Scope& scope, std::uint32_t index);
  Result<Written> read(const Write& write, const Existing& existing);
  Result<Written> put_version(const Write& write, const NewVersion& version,
                              const std::optional<Existing>& existing, const Scope& scope,
                              std::uint32_t index);
  Result<Written> erase_version(const storage::DocumentKey& key, const storage::IdEntry& entry,
                                const Scope& scope, std::uint32_t index,
                                storage::HistoryRecord::Operation operation);
  /// Deletes a document that has expired and only waited for it.
  Result<> purge_version(const storage::DocumentKey& key, const storage::IdEntry& entry,
                         const Scope& scope);
  /// The record of a version, staged or stored. Its views live until the next look-up.
  Result<storage::VersionRecord> fetch(const storage::DocumentKey& key,
                                       const storage::IdEntry& entry);
  /// Adds the change to history, if that is kept. `before` is null after a create.
  void record_change(storage::HistoryRecord::Operation operation, const storage::DocumentKey& key,
                     const storage::IdEntry* before, DocumentNumber number,
                     std::string_view current_text, std::string_view previous_text);
  /// Whether history wants the text that a change replaces or deletes.
  bool keeps_previous(storage::HistoryRecord::Operation operation) const;
  void remember(const storage::DocumentKey& key, std::optional<storage::IdEntry> entry,
                std::vector<std::string> unique_values, const RecordPtr& record);
  /// Reads into scratch_, as far down as this transaction may. True when found.
  Result<bool> look_up(storage::Family family, std::string_view key);

  // ── what is not a write: stage_upkeep.cc ──
  Result<> needs_disk();
  /// Looks at what is staged when it is called.
  Superseded superseded() const;
  Result<bool> purge_one(const PurgeCandidate& candidate, const Scope& scope);

  // ── secondary indexes: stage_index.cc ──
  /// Makes the entries of what is staged, for indexes that are added now.
  void index_staged(const std::vector<storage::IndexRecord>& added);
  /// After head_ has changed.
  void see_indexes();

  // ── unique keys: stage_unique.cc ──
  Result<> claim_unique_values(const storage::DocumentKey& old_key, const storage::DocumentKey& key,
                               const std::vector<std::string>& values,
                               const std::optional<Existing>& existing, const Scope& scope,
                               storage::LogPosition position);
  Result<std::vector<std::string>> unique_values_of(const storage::DocumentKey& key,
                                                    const storage::IdEntry& entry,
                                                    const Rules& rules);
  Result<> release_unique_values(const storage::DocumentKey& key, const storage::IdEntry& entry,
                                 const Rules& rules);
  Result<std::optional<Holder>> find_holder(const std::string& unique_key);
  /// Conflict, unless the holder has expired: then it is purged.
  Result<> make_way(const storage::DocumentKey& key, const Holder& holder, const Scope& scope);
  void remember_holder(std::string unique_key, std::optional<Holder> holder);
  std::string unique_key(const storage::DocumentKey& key, std::size_t policy,
                         std::string_view values) const;

  storage::Store& store_;
  const PartitionNumber partition_;
  const RangeId range_;
  const Rid container_;
  const std::string self_prefix_;  // "dbs/…/colls/…/docs/"

  storage::Head head_;
  std::unique_ptr<const IndexTerms> index_terms_;  // Of the head's indexes; null when it has none.
  // What a transaction has done so far; taken over only when all of it is valid.
  RecordWriter writer_;
  bool rests_on_staged_ = false;
  bool staged_anything_ = false;
  storage::Tier tier_ = storage::Tier::Disk;
  bool would_block_ = false;

  // Staged and not yet committed, by key; and the same in commit order, to forget them by. Within a
  // transaction these change at once, and are put back when it fails: see undo_.
  std::unordered_map<std::string, StagedDocument> documents_;
  std::unordered_map<std::string, StagedUnique> uniques_;
  std::deque<std::pair<Lsn, std::string>> document_order_;
  std::deque<std::pair<Lsn, std::string>> unique_order_;
  std::vector<std::pair<std::string, std::optional<StagedDocument>>> document_undo_;
  std::vector<std::pair<std::string, std::optional<StagedUnique>>> unique_undo_;
  std::vector<RecordPtr> records_;

  std::optional<Mirror> mirror_;  // While the partition is being copied.

  // How far the upkeep has come. Forgotten by a reset: it then begins again, which does no harm.
  ExpiryBuild expiry_build_;
  HistoryTrimmer trimmer_;

  std::string scratch_;
  RecordPtr fetched_;  // Keeps what fetch() returned.
};

}  // namespace orrery::partition
