#include "partition/writer/document_writer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "json/document_text.h"
#include "partition/read/point_read.h"
#include "storage/keys.h"

namespace orrery::partition {

using storage::IdEntry;
using storage::LogPosition;
using Operation = storage::HistoryRecord::Operation;

namespace {

/// Takes from the budget of an answer, and gives it back if the transaction comes to nothing.
class Allowance {
 public:
  explicit Allowance(std::atomic<std::int64_t>* budget) : budget_(budget) {}
  ~Allowance() {
    if (budget_ != nullptr) budget_->fetch_add(taken_, std::memory_order_relaxed);
  }
  Allowance(const Allowance&) = delete;
  Allowance& operator=(const Allowance&) = delete;

  bool take(std::size_t size) {
    if (budget_ == nullptr) return true;
    const auto wanted = static_cast<std::int64_t>(size);
    if (budget_->fetch_sub(wanted, std::memory_order_relaxed) < wanted) {
      budget_->fetch_add(wanted, std::memory_order_relaxed);
      return false;
    }
    taken_ += wanted;
    return true;
  }
  void keep() { taken_ = 0; }

 private:
  std::atomic<std::int64_t>* budget_;
  std::int64_t taken_ = 0;
};

Error response_too_large() {
  return Error(ErrorCode::ResponseTooLarge,
               "The response would exceed its limit with this operation: it was not done. Send "
               "fewer operations at a time, or ask for return=minimal.");
}

std::string self_prefix(const Rid& container) {
  return fmt::format("dbs/{}/colls/{}/docs/", container.database_rid().text(), container.text());
}

}  // namespace

DocumentWriter::DocumentWriter(StageState& state, RangeId range, const Rid& container)
    : state_(state),
      unique_keys_(state),
      range_(range),
      container_(container),
      self_prefix_(self_prefix(container)) {}

Result<Committed> DocumentWriter::write(const DocumentWrites& work, const TransactionScope& scope) {
  Committed committed;
  committed.writes.reserve(work.writes.size());
  Allowance allowance(work.text_budget.get());
  for (std::uint32_t index = 0; index < work.writes.size(); ++index) {
    const Write& write = work.writes[index];
    auto written = apply(write, scope, index);
    if (written && write.tells_text && !allowance.take(written->text.size())) {
      written = response_too_large();
    }
    if (written) {
      committed.writes.push_back(std::move(*written));
      continue;
    }
    // That the disk cannot be read says nothing about the write.
    if (!work.tell_failure || state_.view.would_block() ||
        written.error().code() == ErrorCode::Unavailable) {
      return Error(std::move(written).error());
    }
    committed.writes.clear();
    committed.failure = Failure{index, std::move(written).error()};
    return committed;
  }
  allowance.keep();
  return committed;
}

Result<Committed> DocumentWriter::delete_by_key(const DeleteByKey& work,
                                                const TransactionScope& scope) {
  // One more than goes into a transaction tells whether there are more.
  ORRERY_TRY(const auto found, state_.view.find_all(work.key, kDeleteByKeyDocumentsMax + 1));
  Committed committed;
  storage::DocumentKey key = work.key;
  for (const auto& [id, entry] : found) {
    if (committed.writes.size() == kDeleteByKeyDocumentsMax) {
      committed.more = true;
      break;
    }
    key.id = id;
    // Expired documents go with the rest: they only wait to be purged.
    const bool expired =
        storage::expired(entry.header.ts, entry.header.own_ttl, scope.rules.default_ttl, scope.now);
    ORRERY_TRY(auto written,
               erase_version(key, entry, scope, static_cast<std::uint32_t>(committed.writes.size()),
                             expired ? Operation::TtlDelete : Operation::Delete));
    committed.writes.push_back(std::move(written));
  }
  return committed;
}

Result<Committed> DocumentWriter::purge(const ExpiryPurge& work, const TransactionScope& scope) {
  Committed committed;
  for (const PurgeCandidate& candidate : work.candidates) {
    ORRERY_TRY(const bool purged, purge_one(candidate, scope));
    if (purged) ++committed.tidied;
  }
  return committed;
}

Result<bool> DocumentWriter::purge_one(const PurgeCandidate& candidate,
                                       const TransactionScope& scope) {
  // Switched off since the candidate was found: the entries went with it.
  if (state_.head.retention.expiry == storage::RetentionSettings::Expiry::Off) return false;
  ORRERY_TRY(const auto record, state_.view.fetch_committed(candidate.entry.position));
  if (!record) {
    // Candidates come from what is committed, and so would their versions: this one is gone.
    state_.writer.erase_stale_expiry(candidate.entry);
    return false;
  }
  const storage::DocumentKey key = record->key();
  ORRERY_TRY(const auto existing, find(key, scope));
  // Superseded by what is staged, together with its entry.
  if (!existing || existing->entry.position != candidate.entry.position) return false;
  if (!existing->expired) return false;
  ORRERY_TRY(purge_version(key, existing->entry, scope));
  return true;
}

Result<std::optional<DocumentWriter::Existing>> DocumentWriter::find(
    const storage::DocumentKey& key, const TransactionScope& scope) {
  ORRERY_TRY(const auto entry, state_.view.find(key));
  if (!entry) return std::optional<Existing>();
  return std::optional<Existing>(
      Existing{*entry, storage::expired(entry->header.ts, entry->header.own_ttl,
                                        scope.rules.default_ttl, scope.now)});
}

Result<Written> DocumentWriter::apply(const Write& write, const TransactionScope& scope,
                                      std::uint32_t index) {
  if (write.refusal) return *write.refusal;
  ORRERY_TRY(auto existing, find(write.key, scope));
  const bool visible = existing && !existing->expired &&
                       (!write.number || existing->entry.header.number == *write.number);
  switch (write.kind) {
    case Write::Kind::Create:
      if (visible) {
        return Error(ErrorCode::Conflict,
                     "Entity with the specified id already exists in the system. Choose another id "
                     "in this partition key, or upsert.");
      }
      break;
    case Write::Kind::Upsert:
      break;
    case Write::Kind::Replace:
    case Write::Kind::Delete:
    case Write::Kind::Patch:
    case Write::Kind::Read:
      if (!visible) return no_such_document();
      break;
  }
  if (write.kind == Write::Kind::Read) return read(write, *existing);
  if (visible && !write.if_match.empty() && !existing->entry.etag().matches(write.if_match)) {
    return Error(ErrorCode::PreconditionFailed,
                 "One of the specified pre-condition is not met. The document has changed since "
                 "the etag in If-Match was read: read it again.");
  }
  if (write.kind == Write::Kind::Delete) {
    return erase_version(write.key, existing->entry, scope, index, Operation::Delete);
  }
  if (write.kind == Write::Kind::Patch) {
    ORRERY_TRY(const auto record, state_.view.fetch(write.key, existing->entry));
    ORRERY_TRY(const auto version, write.change(record.text));
    return put_version(write, version, existing, scope, index);
  }
  return put_version(write, write.version, existing, scope, index);
}

Result<Written> DocumentWriter::read(const Write& write, const Existing& existing) {
  Written written;
  written.position = existing.entry.position;
  written.header = existing.entry.header;
  written.text_size = existing.entry.text_size;
  const ETag etag = existing.entry.etag();
  const auto names_it = [&](const std::string& condition) {
    return !condition.empty() && etag.matches(condition);
  };
  if (names_it(write.if_match) || names_it(write.if_none_match)) {
    written.kind = Written::Kind::NotModified;
    return written;
  }
  ORRERY_TRY(const auto record, state_.view.fetch(write.key, existing.entry));
  written.kind = Written::Kind::Read;
  written.text = record.text;
  return written;
}

Result<Written> DocumentWriter::put_version(const Write& write, const NewVersion& version,
                                            const std::optional<Existing>& existing,
                                            const TransactionScope& scope, std::uint32_t index) {
  const bool replaces = existing && !existing->expired;
  storage::DocumentKey key = write.key;
  const bool renames = replaces && write.kind == Write::Kind::Replace && version.new_id != key.id;
  // The remains of an expired document make way for a new one, with a number of its own.
  if (existing && !replaces) ORRERY_TRY(purge_version(key, existing->entry, scope));
  if (renames) {
    key.id = version.new_id;
    ORRERY_TRY(auto taken, find(key, scope));
    if (taken && !taken->expired) {
      return Error(ErrorCode::Conflict,
                   "Entity with the specified id already exists in the system. The body's id names "
                   "another document.");
    }
    if (taken) ORRERY_TRY(purge_version(key, taken->entry, scope));
  }

  Written written;
  written.kind = replaces ? Written::Kind::Replaced : Written::Kind::Created;
  written.position = LogPosition{state_.writer.head().lsn, index};
  const IdEntry* const replaced = replaces ? &existing->entry : nullptr;
  ORRERY_TRY(written.header, make_header(version, replaced));
  ORRERY_TRY(claim_unique_values(write.key, key, version.unique_values, replaced, scope,
                                 written.position));

  std::string rid;
  Rid::document(container_, written.header.number).append_text(rid);
  const std::string self = self_prefix_ + rid + "/";
  const ETag etag = written.etag();
  written.text = json::with_system_properties(
      version.open_text, {.rid = rid, .self = self, .etag = etag.text(), .ts = written.header.ts},
      replaces ? version.system_places : json::SystemPlaces());
  written.text_size = static_cast<std::uint32_t>(written.text.size());

  const auto operation = replaces ? Operation::Replace : Operation::Create;
  std::string_view previous_text;
  IndexTerms::Change terms;
  if (replaces && (state_.index_terms || keeps_previous(operation))) {
    ORRERY_TRY(const auto before, state_.view.fetch(write.key, existing->entry));
    if (keeps_previous(operation)) previous_text = before.text;
    if (state_.index_terms) terms = state_.index_terms->of_change(before.text, written.text);
  } else if (state_.index_terms) {
    terms.held = state_.index_terms->of(written.text);
  }
  record_change(operation, key, replaced, written.header.number, written.text, previous_text);

  const IdEntry entry{written.position, written.header, written.text_size};
  const RecordPtr record = std::make_shared<const std::string>(
      storage::VersionRecord::make(written.header, key, written.text));
  if (replaces) state_.writer.supersede(write.key, existing->entry, renames, std::move(terms.lost));
  if (renames) state_.view.erase(write.key);
  state_.writer.put(key, entry, record, std::move(terms.held));
  state_.view.put(key, entry, version.unique_values, record);
  return written;
}

Result<storage::VersionHeader> DocumentWriter::make_header(const NewVersion& version,
                                                           const IdEntry* replaced) {
  storage::Head& head = state_.writer.head();
  storage::VersionHeader header;
  if (replaced != nullptr) {
    header.number = replaced->header.number;
    // A document that a transaction creates and then replaces is created by it.
    header.replaces = replaced->position.lsn != head.lsn || replaced->header.replaces;
  } else {
    if (head.document_sequence == kDocumentSequenceMax) {
      return Error(ErrorCode::Forbidden, "this range has numbered as many documents as it can");
    }
    header.number = DocumentNumber::make(range_, ++head.document_sequence);
  }
  header.ts = head.ts;
  header.own_ttl = version.own_ttl;
  header.indexed_leaves = version.indexed_leaves;
  return header;
}

Result<> DocumentWriter::claim_unique_values(const storage::DocumentKey& old_key,
                                             const storage::DocumentKey& key,
                                             const std::vector<std::string>& values,
                                             const IdEntry* replaced, const TransactionScope& scope,
                                             LogPosition position) {
  if (!scope.rules.unique_values_of) return {};
  const auto own = replaced != nullptr ? std::optional(replaced->position) : std::nullopt;
  for (std::size_t policy = 0; policy < values.size(); ++policy) {
    ORRERY_TRY(const auto rival, unique_keys_.find_rival(key, policy, values[policy], own));
    if (!rival) continue;
    ORRERY_TRY(const auto existing, find(rival->key, scope));
    ORRERY_ASSERT(existing && existing->entry.position == rival->position);
    // An expired one only waits to be purged.
    if (!existing->expired) {
      return Error(ErrorCode::Conflict,
                   "Unique index constraint violation. Resource with specified id, name, or unique "
                   "index already exists.");
    }
    ORRERY_TRY(purge_version(rival->key, existing->entry, scope));
  }
  if (replaced != nullptr) ORRERY_TRY(unique_keys_.release(old_key, *replaced, scope.rules));
  unique_keys_.claim(key, values, position);
  return {};
}

Result<Written> DocumentWriter::erase_version(const storage::DocumentKey& key, const IdEntry& entry,
                                              const TransactionScope& scope, std::uint32_t index,
                                              Operation operation) {
  ORRERY_TRY(unique_keys_.release(key, entry, scope.rules));
  std::string_view previous_text;
  TermList terms;
  if (state_.index_terms || keeps_previous(operation)) {
    ORRERY_TRY(const auto record, state_.view.fetch(key, entry));
    if (keeps_previous(operation)) previous_text = record.text;
    if (state_.index_terms) terms = state_.index_terms->of(record.text);
  }
  record_change(operation, key, &entry, entry.header.number, {}, previous_text);
  state_.writer.erase(key, entry, std::move(terms));
  state_.view.erase(key);
  Written written;
  written.kind = Written::Kind::Deleted;
  written.position = LogPosition{state_.writer.head().lsn, index};
  written.header = entry.header;
  written.text_size = entry.text_size;
  return written;
}

Result<> DocumentWriter::purge_version(const storage::DocumentKey& key, const IdEntry& entry,
                                       const TransactionScope& scope) {
  ORRERY_TRY(erase_version(key, entry, scope, 0, Operation::TtlDelete));
  return {};
}

bool DocumentWriter::keeps_previous(Operation operation) const {
  using RetentionSettings = storage::RetentionSettings;
  const RetentionSettings& retention = state_.head.retention;
  if (retention.history != RetentionSettings::History::All) return false;
  switch (retention.previous_image) {
    case RetentionSettings::PreviousImage::None:
      return false;
    case RetentionSettings::PreviousImage::Delete:
      return operation == Operation::Delete || operation == Operation::TtlDelete;
    case RetentionSettings::PreviousImage::All:
      return operation != Operation::Create;
  }
  return false;
}

void DocumentWriter::record_change(Operation operation, const storage::DocumentKey& key,
                                   const IdEntry* before, DocumentNumber number,
                                   std::string_view current_text, std::string_view previous_text) {
  using History = storage::RetentionSettings::History;
  const bool deletes = operation == Operation::Delete || operation == Operation::TtlDelete;
  switch (state_.head.retention.history) {
    case History::None:
      return;
    case History::Tombstones:
      if (!deletes) return;
      break;
    case History::All:
      break;
  }
  storage::HistoryRecord change;
  change.operation = operation;
  change.ts = state_.writer.head().ts;
  if (before != nullptr) change.previous = before->position.lsn;
  change.number = number;
  change.epk = key.epk;
  change.partition_key = key.partition_key;
  change.id = key.id;
  change.current_text = current_text;
  change.previous_text = previous_text;
  state_.writer.put_history(change);
}

}  // namespace orrery::partition
