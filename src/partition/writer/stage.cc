#include "partition/writer/stage.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "json/document_text.h"
#include "storage/keys.h"

namespace orrery::partition {

using storage::Family;
using storage::IdEntry;
using storage::LogPosition;
using storage::Lookup;
using Operation = storage::HistoryRecord::Operation;

namespace {

Error not_found() {
  return Error(ErrorCode::NotFound,
               "Resource Not Found. No document with this id exists under this partition key.");
}

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

Stage::Stage(storage::Store& store, PartitionNumber partition, RangeId range, const Rid& container,
             const storage::Head& head)
    : store_(store),
      partition_(partition),
      range_(range),
      container_(container),
      self_prefix_(self_prefix(container)),
      head_(head),
      writer_(partition) {
  see_indexes();
}

Result<Committed> Stage::stage(const Transaction& transaction, UnixSeconds now,
                               storage::Batch& batch, storage::Tier tier) {
  rests_on_staged_ = false;
  staged_anything_ = false;
  tier_ = tier;
  would_block_ = false;
  document_undo_.clear();
  unique_undo_.clear();
  writer_.begin(head_, now);
  const Scope scope{transaction.rules, now};
  auto outcome =
      std::visit([&](const auto& work) { return attempt(work, scope); }, transaction.work);
  fetched_.reset();
  if (!outcome || outcome->failure) {
    take_back();
    if (outcome) outcome->lsn = head_.lsn;
    return outcome;
  }
  take_over(outcome, batch);
  return outcome;
}

Result<Committed> Stage::attempt(const DocumentWrites& work, const Scope& scope) {
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
    if (!work.tell_failure || would_block_ || written.error().code() == ErrorCode::Unavailable) {
      return Error(std::move(written).error());
    }
    committed.writes.clear();
    committed.failure = Failure{index, std::move(written).error()};
    return committed;
  }
  allowance.keep();
  return committed;
}

void Stage::take_back() {
  for (auto undo = document_undo_.rbegin(); undo != document_undo_.rend(); ++undo) {
    if (undo->second) {
      documents_[undo->first] = std::move(*undo->second);
    } else {
      documents_.erase(undo->first);
    }
  }
  for (auto undo = unique_undo_.rbegin(); undo != unique_undo_.rend(); ++undo) {
    if (undo->second) {
      uniques_[undo->first] = std::move(*undo->second);
    } else {
      uniques_.erase(undo->first);
    }
  }
}

void Stage::take_over(Result<Committed>& outcome, storage::Batch& batch) {
  if (!writer_.changes_documents()) {
    // Nothing that a reader of the log could see: no LSN, and no time of its own.
    writer_.head().lsn = head_.lsn;
    writer_.head().ts = head_.ts;
  }
  outcome->lsn = writer_.head().lsn;
  staged_anything_ = !writer_.empty() || writer_.head() != head_;
  if (!staged_anything_) return;
  for (auto& [key, before] : document_undo_) {
    document_order_.emplace_back(writer_.head().lsn, std::move(key));
  }
  for (auto& [key, before] : unique_undo_) {
    unique_order_.emplace_back(writer_.head().lsn, std::move(key));
  }
  if (mirror_) mirror_->see_change(head_.keeping, writer_.head().keeping);
  const bool indexes_change = head_.indexes != writer_.head().indexes;
  head_ = writer_.head();
  if (indexes_change) see_indexes();
  writer_.emit(batch);
  if (mirror_) writer_.emit_mirrored(*mirror_, batch);
  for (RecordPtr& record : writer_.take_records()) records_.push_back(std::move(record));
}

void Stage::forget_committed(Lsn lsn) {
  while (!document_order_.empty() && document_order_.front().first <= lsn) {
    const auto found = documents_.find(document_order_.front().second);
    if (found != documents_.end() && found->second.lsn <= lsn) documents_.erase(found);
    document_order_.pop_front();
  }
  while (!unique_order_.empty() && unique_order_.front().first <= lsn) {
    const auto found = uniques_.find(unique_order_.front().second);
    if (found != uniques_.end() && found->second.lsn <= lsn) uniques_.erase(found);
    unique_order_.pop_front();
  }
}

void Stage::reset(const storage::Head& head) {
  head_ = head;
  see_indexes();
  // What was mirrored since the failure may be missing in the targets.
  mirror_.reset();
  documents_.clear();
  uniques_.clear();
  document_order_.clear();
  unique_order_.clear();
  records_.clear();
  expiry_build_.restart();
  trimmer_.restart();
}

Result<bool> Stage::look_up(Family family, std::string_view key) {
  switch (store_.get(family, key, scratch_, tier_)) {
    case Lookup::Found:
      return true;
    case Lookup::Missing:
      return false;
    case Lookup::Unknown:
      would_block_ = true;
      return Error(ErrorCode::Internal, "memory alone does not tell");
    case Lookup::Failed:
      break;
  }
  return Error(ErrorCode::Unavailable, "the disk could not be read; see the server's diagnostics");
}

Result<std::optional<Stage::Existing>> Stage::find(const storage::DocumentKey& key,
                                                   const Scope& scope) {
  std::optional<IdEntry> entry;
  const std::string id_key = storage::id_key(partition_, key);
  if (const auto staged = documents_.find(id_key); staged != documents_.end()) {
    // What this transaction itself has done does not make it rest on others.
    if (staged->second.lsn != writer_.head().lsn) rests_on_staged_ = true;
    entry = staged->second.entry;
  } else {
    ORRERY_TRY(const bool found, look_up(Family::Ids, id_key));
    if (found) {
      entry = IdEntry::parse(scratch_);
      ORRERY_ASSERT(entry.has_value());
    }
  }
  if (!entry) return std::optional<Existing>();
  Existing existing{*entry, storage::expired(entry->header.ts, entry->header.own_ttl,
                                             scope.rules.default_ttl, scope.now)};
  return std::optional<Existing>(std::move(existing));
}

Result<storage::VersionRecord> Stage::fetch(const storage::DocumentKey& key, const IdEntry& entry) {
  fetched_.reset();
  const auto staged = documents_.find(storage::id_key(partition_, key));
  if (staged != documents_.end()) fetched_ = staged->second.record.lock();
  std::string_view value;
  if (fetched_) {
    value = *fetched_;
  } else {
    ORRERY_TRY(const bool found,
               look_up(Family::Log, storage::log_key(partition_, entry.position)));
    if (!found) {
      // An entry and its version come and go together; unless the commit of a staged one has just
      // failed. Then nothing that rests on it will be committed either.
      ORRERY_ASSERT(staged != documents_.end());
      rests_on_staged_ = true;
      return Error(ErrorCode::Unavailable, "a write that this one stands on could not be stored");
    }
    value = scratch_;
  }
  const auto record = storage::VersionRecord::parse(value);
  ORRERY_ASSERT(record.has_value());
  return *record;
}

Result<Written> Stage::apply(const Write& write, const Scope& scope, std::uint32_t index) {
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
      if (!visible) return not_found();
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
    ORRERY_TRY(const auto record, fetch(write.key, existing->entry));
    ORRERY_TRY(const auto version, write.change(record.text));
    return put_version(write, version, existing, scope, index);
  }
  return put_version(write, write.version, existing, scope, index);
}

Result<Written> Stage::read(const Write& write, const Existing& existing) {
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
  ORRERY_TRY(const auto record, fetch(write.key, existing.entry));
  written.kind = Written::Kind::Read;
  written.text = record.text;
  return written;
}

Result<Written> Stage::put_version(const Write& write, const NewVersion& version,
                                   const std::optional<Existing>& existing, const Scope& scope,
                                   std::uint32_t index) {
  const bool replaces = existing && !existing->expired;
  storage::DocumentKey key = write.key;
  const bool renames = replaces && write.kind == Write::Kind::Replace && version.new_id != key.id;
  // What is left of an expired document makes way for a new one, with a number of its own.
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
  written.position = LogPosition{writer_.head().lsn, index};
  if (replaces) {
    written.header.number = existing->entry.header.number;
  } else {
    if (writer_.head().document_sequence == kDocumentSequenceMax) {
      return Error(ErrorCode::Forbidden, "this range has numbered as many documents as it can");
    }
    written.header.number = DocumentNumber::make(range_, ++writer_.head().document_sequence);
  }
  written.header.ts = writer_.head().ts;
  written.header.own_ttl = version.own_ttl;
  written.header.indexed_leaves = version.indexed_leaves;
  // What a transaction creates and then replaces is created by it.
  written.header.replaces = replaces && (existing->entry.position.lsn != writer_.head().lsn ||
                                         existing->entry.header.replaces);

  ORRERY_TRY(claim_unique_values(write.key, key, version.unique_values,
                                 replaces ? existing : std::nullopt, scope, written.position));

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
  if (replaces && (index_terms_ || keeps_previous(operation))) {
    ORRERY_TRY(const auto before, fetch(write.key, existing->entry));
    if (keeps_previous(operation)) previous_text = before.text;
    if (index_terms_) terms = index_terms_->of_change(before.text, written.text);
  } else if (index_terms_) {
    terms.held = index_terms_->of(written.text);
  }
  record_change(operation, key, replaces ? &existing->entry : nullptr, written.header.number,
                written.text, previous_text);

  const IdEntry entry{written.position, written.header, written.text_size};
  const RecordPtr record = std::make_shared<const std::string>(
      storage::VersionRecord::make(written.header, key, written.text));
  if (replaces) writer_.supersede(write.key, existing->entry, renames, std::move(terms.lost));
  if (renames) remember(write.key, std::nullopt, {}, nullptr);
  writer_.put(key, entry, record, std::move(terms.held));
  remember(key, entry, version.unique_values, record);
  return written;
}

Result<Written> Stage::erase_version(const storage::DocumentKey& key, const IdEntry& entry,
                                     const Scope& scope, std::uint32_t index, Operation operation) {
  ORRERY_TRY(release_unique_values(key, entry, scope.rules));
  std::string_view previous_text;
  TermList terms;
  if (index_terms_ || keeps_previous(operation)) {
    ORRERY_TRY(const auto record, fetch(key, entry));
    if (keeps_previous(operation)) previous_text = record.text;
    if (index_terms_) terms = index_terms_->of(record.text);
  }
  record_change(operation, key, &entry, entry.header.number, {}, previous_text);
  writer_.erase(key, entry, std::move(terms));
  remember(key, std::nullopt, {}, nullptr);
  Written written;
  written.kind = Written::Kind::Deleted;
  written.position = LogPosition{writer_.head().lsn, index};
  written.header = entry.header;
  written.text_size = entry.text_size;
  return written;
}

Result<> Stage::purge_version(const storage::DocumentKey& key, const IdEntry& entry,
                              const Scope& scope) {
  ORRERY_TRY(erase_version(key, entry, scope, 0, Operation::TtlDelete));
  return {};
}

bool Stage::keeps_previous(Operation operation) const {
  using Keeping = storage::Keeping;
  const Keeping& keeping = head_.keeping;
  if (keeping.history != Keeping::History::All) return false;
  switch (keeping.previous_image) {
    case Keeping::PreviousImage::None:
      return false;
    case Keeping::PreviousImage::Delete:
      return operation == Operation::Delete || operation == Operation::TtlDelete;
    case Keeping::PreviousImage::All:
      return operation != Operation::Create;
  }
  return false;
}

void Stage::record_change(Operation operation, const storage::DocumentKey& key,
                          const IdEntry* before, DocumentNumber number,
                          std::string_view current_text, std::string_view previous_text) {
  using History = storage::Keeping::History;
  const bool deletes = operation == Operation::Delete || operation == Operation::TtlDelete;
  switch (head_.keeping.history) {
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
  change.ts = writer_.head().ts;
  if (before != nullptr) change.previous = before->position.lsn;
  change.number = number;
  change.epk = key.epk;
  change.partition_key = key.partition_key;
  change.id = key.id;
  change.current_text = current_text;
  change.previous_text = previous_text;
  writer_.put_history(change);
}

void Stage::remember(const storage::DocumentKey& key, std::optional<IdEntry> entry,
                     std::vector<std::string> unique_values, const RecordPtr& record) {
  std::string id_key = storage::id_key(partition_, key);
  auto& slot = documents_[id_key];
  std::optional<StagedDocument> before;
  if (slot.lsn != Lsn{}) before = std::move(slot);
  slot = StagedDocument{writer_.head().lsn, std::move(entry), std::move(unique_values), record};
  document_undo_.emplace_back(std::move(id_key), std::move(before));
}

}  // namespace orrery::partition
