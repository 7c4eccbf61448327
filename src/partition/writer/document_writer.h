// DocumentWriter: the part of a stage that changes documents: writes, deletes by key and purges of
// expired documents.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "partition/writer/stage_state.h"
#include "partition/writer/transaction.h"
#include "partition/writer/unique_keys.h"
#include "protocol/ids.h"
#include "storage/records.h"

namespace orrery::partition {

/// Each function validates one alternative of a transaction and records what it does in the state's
/// writer and view. Errors as Partition::submit says.
class DocumentWriter {
 public:
  DocumentWriter(StageState& state, RangeId range, const Rid& container);

  Result<Committed> write(const DocumentWrites& work, const TransactionScope& scope);
  Result<Committed> delete_by_key(const DeleteByKey& work, const TransactionScope& scope);
  Result<Committed> purge(const ExpiryPurge& work, const TransactionScope& scope);

 private:
  using Operation = storage::HistoryRecord::Operation;
  struct Existing {
    storage::IdEntry entry;
    bool expired = false;
  };

  Result<std::optional<Existing>> find(const storage::DocumentKey& key,
                                       const TransactionScope& scope);
  Result<Written> apply(const Write& write, const TransactionScope& scope, std::uint32_t index);
  Result<Written> read(const Write& write, const Existing& existing);
  Result<Written> put_version(const Write& write, const NewVersion& version,
                              const std::optional<Existing>& existing,
                              const TransactionScope& scope, std::uint32_t index);
  /// The header of the version that a write makes. `replaced` is null when it creates a document.
  /// Forbidden when the range has no document numbers left.
  Result<storage::VersionHeader> make_header(const NewVersion& version,
                                             const storage::IdEntry* replaced);
  Result<Written> erase_version(const storage::DocumentKey& key, const storage::IdEntry& entry,
                                const TransactionScope& scope, std::uint32_t index,
                                Operation operation);
  /// Deletes a document that has expired and only waited for it.
  Result<> purge_version(const storage::DocumentKey& key, const storage::IdEntry& entry,
                         const TransactionScope& scope);
  Result<bool> purge_one(const PurgeCandidate& candidate, const TransactionScope& scope);
  /// Claims the unique values of a new version for `key`. Conflict when another document holds some
  /// of them, unless that has expired: then it is purged. `replaced` as above, under `old_key`.
  Result<> claim_unique_values(const storage::DocumentKey& old_key, const storage::DocumentKey& key,
                               const std::vector<std::string>& values,
                               const storage::IdEntry* replaced, const TransactionScope& scope,
                               storage::LogPosition position);
  /// Adds the change to history, if that is kept. `before` is null after a create.
  void record_change(Operation operation, const storage::DocumentKey& key,
                     const storage::IdEntry* before, DocumentNumber number,
                     std::string_view current_text, std::string_view previous_text);
  /// Whether history wants the text that a change replaces or deletes.
  bool keeps_previous(Operation operation) const;

  StageState& state_;
  UniqueKeys unique_keys_;
  const RangeId range_;
  const Rid container_;
  const std::string self_prefix_;  // "dbs/…/colls/…/docs/"
};

}  // namespace orrery::partition
