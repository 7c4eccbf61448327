#include "partition/stage.h"

#include <algorithm>
#include <map>
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

namespace {

Error not_found() {
  return Error(ErrorCode::NotFound,
               "Resource Not Found. No document with this id exists under this partition key.");
}

std::string self_prefix(const Rid& container) {
  return fmt::format("dbs/{}/colls/{}/docs/", container.database_rid().text(), container.text());
}

}  // namespace

std::size_t Transaction::byte_size() const {
  std::size_t bytes = sizeof(Transaction);
  for (const Write& write : writes) bytes += sizeof(Write) + write.open_text.size();
  return bytes;
}

Stage::Stage(storage::Store& store, PartitionNumber partition, RangeId range, const Rid& container,
             const storage::Head& head)
    : store_(store),
      partition_(partition),
      range_(range),
      container_(container),
      self_prefix_(self_prefix(container)),
      head_(head) {}

Result<Committed> Stage::stage(const Transaction& transaction, UnixSeconds now,
                               storage::Batch& batch, storage::Tier tier) {
  rests_on_staged_ = false;
  tier_ = tier;
  would_block_ = false;
  transaction_batch_.clear();
  document_undo_.clear();
  unique_undo_.clear();
  transaction_head_ = head_;
  transaction_head_.lsn = next(head_.lsn);
  // A clock that was set back must not take `_ts` back: readers by time count on it.
  transaction_head_.ts = std::max(now, head_.ts);

  const auto attempt = [&]() -> Result<Committed> {
    if (transaction.delete_all) {
      return delete_all(*transaction.delete_all, transaction.rules);
    }
    Committed committed;
    committed.lsn = transaction_head_.lsn;
    committed.writes.reserve(transaction.writes.size());
    std::uint32_t index = 0;
    for (const Write& write : transaction.writes) {
      ORRERY_TRY(auto written, apply(write, transaction.rules, now, index));
      committed.writes.push_back(std::move(written));
      ++index;
    }
    return committed;
  };

  auto outcome = attempt();
  if (!outcome) {
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
    return outcome;
  }
  if (transaction_batch_.empty()) {
    // Nothing to delete: no commit, no LSN.
    outcome->lsn = head_.lsn;
    return outcome;
  }
  for (auto& [key, before] : document_undo_) {
    document_order_.emplace_back(transaction_head_.lsn, std::move(key));
  }
  for (auto& [key, before] : unique_undo_) {
    unique_order_.emplace_back(transaction_head_.lsn, std::move(key));
  }
  head_ = transaction_head_;
  batch.append(transaction_batch_);
  return outcome;
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
  documents_.clear();
  uniques_.clear();
  document_order_.clear();
  unique_order_.clear();
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
                                                   const Rules& rules, UnixSeconds now) {
  std::optional<IdEntry> entry;
  const std::string id_key = storage::id_key(partition_, key);
  if (const auto staged = documents_.find(id_key); staged != documents_.end()) {
    rests_on_staged_ = true;
    entry = staged->second.entry;
  } else {
    ORRERY_TRY(const bool found, look_up(Family::Ids, id_key));
    if (found) {
      entry = IdEntry::parse(scratch_);
      ORRERY_ASSERT(entry.has_value());
    }
  }
  if (!entry) return std::optional<Existing>();
  Existing existing{
      *entry, storage::expired(entry->header.ts, entry->header.own_ttl, rules.default_ttl, now)};
  return std::optional<Existing>(std::move(existing));
}

Result<Written> Stage::apply(const Write& write, const Rules& rules, UnixSeconds now,
                             std::uint32_t index) {
  ORRERY_TRY(auto existing, find(write.key, rules, now));
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
      if (!visible) return not_found();
      break;
  }
  if (visible && !write.if_match.empty() && !existing->entry.etag().matches(write.if_match)) {
    return Error(ErrorCode::PreconditionFailed,
                 "One of the specified pre-condition is not met. The document has changed since "
                 "the etag in If-Match was read: read it again.");
  }
  if (write.kind == Write::Kind::Delete) {
    return erase_version(write.key, existing->entry, rules, index);
  }
  return put_version(write, existing, rules, now, index);
}

Result<Written> Stage::put_version(const Write& write, const std::optional<Existing>& existing,
                                   const Rules& rules, UnixSeconds now, std::uint32_t index) {
  const bool replaces = existing && !existing->expired;
  storage::DocumentKey key = write.key;
  const bool renames = replaces && write.kind == Write::Kind::Replace && write.new_id != key.id;
  if (renames) {
    key.id = write.new_id;
    ORRERY_TRY(auto taken, find(key, rules, now));
    if (taken && !taken->expired) {
      return Error(ErrorCode::Conflict,
                   "Entity with the specified id already exists in the system. The body's id names "
                   "another document.");
    }
    if (taken) ORRERY_TRY(erase_version(key, taken->entry, rules, index));
  }

  Written written;
  written.kind = replaces ? Written::Kind::Replaced : Written::Kind::Created;
  written.position = LogPosition{transaction_head_.lsn, index};
  if (replaces) {
    written.header.number = existing->entry.header.number;
  } else {
    if (transaction_head_.document_sequence == kDocumentSequenceMax) {
      return Error(ErrorCode::Forbidden, "this range has numbered as many documents as it can");
    }
    written.header.number = DocumentNumber::make(range_, ++transaction_head_.document_sequence);
  }
  written.header.ts = transaction_head_.ts;
  written.header.own_ttl = write.own_ttl;
  written.header.indexed_leaves = write.indexed_leaves;

  ORRERY_TRY(claim_unique_values(write, key, existing, rules, now,
                                 Holder{written.position, written.header}));

  std::string rid;
  Rid::document(container_, written.header.number).append_text(rid);
  const std::string self = self_prefix_ + rid + "/";
  const ETag etag = written.etag();
  written.text = json::with_system_properties(
      write.open_text, {.rid = rid, .self = self, .etag = etag.text(), .ts = written.header.ts});
  written.text_size = static_cast<std::uint32_t>(written.text.size());

  if (existing) erase_records(existing->entry);
  if (existing && !replaces) {
    // What is left of an expired document makes way for a new one, with a number of its own.
    transaction_batch_.erase(Family::Rids,
                             storage::rid_key(partition_, existing->entry.header.number));
  }
  if (renames) {
    transaction_batch_.erase(Family::Ids, storage::id_key(partition_, write.key));
    remember(write.key, std::nullopt, {});
  }
  const IdEntry entry{written.position, written.header, written.text_size};
  transaction_batch_.put(Family::Log, storage::log_key(partition_, written.position),
                         storage::VersionRecord::make(written.header, key, written.text));
  transaction_batch_.put(Family::Ids, storage::id_key(partition_, key), entry.make());
  transaction_batch_.put(Family::Rids, storage::rid_key(partition_, written.header.number),
                         storage::make_position_value(written.position));
  transaction_head_.documents += 1;
  transaction_head_.text_bytes += written.text_size;
  remember(key, entry, write.unique_values);
  return written;
}

Result<Written> Stage::erase_version(const storage::DocumentKey& key, const IdEntry& entry,
                                     const Rules& rules, std::uint32_t index) {
  ORRERY_TRY(release_unique_values(key, entry, rules));
  erase_records(entry);
  transaction_batch_.erase(Family::Ids, storage::id_key(partition_, key));
  transaction_batch_.erase(Family::Rids, storage::rid_key(partition_, entry.header.number));
  remember(key, std::nullopt, {});
  Written written;
  written.kind = Written::Kind::Deleted;
  written.position = LogPosition{transaction_head_.lsn, index};
  written.header = entry.header;
  written.text_size = entry.text_size;
  return written;
}

void Stage::erase_records(const IdEntry& entry) {
  transaction_batch_.erase_single(Family::Log, storage::log_key(partition_, entry.position));
  transaction_head_.documents -= 1;
  transaction_head_.text_bytes -= entry.text_size;
}

Result<Committed> Stage::delete_all(const storage::DocumentKey& key, const Rules& rules) {
  if (tier_ == storage::Tier::Memory) {
    would_block_ = true;
    return Error(ErrorCode::Internal, "a scan may block");
  }
  storage::DocumentKey prefix = key;
  prefix.id.clear();
  const std::string from = storage::id_key(partition_, prefix);
  std::string to = from;
  // No byte of UTF-8 is 0xFF, so this is beyond every id.
  to.push_back('\xFF');

  // Committed documents, overlaid with what is staged. One more than goes into a transaction tells
  // whether there are more; staged deletions may take some away again.
  std::map<std::string, std::optional<IdEntry>> found;
  ORRERY_TRY(const auto snapshot, store_.snapshot());
  auto cursor = snapshot.cursor(Family::Ids, from, to);
  const std::size_t limit = kDeleteAllDocumentsMax + 1 + documents_.size();
  for (; cursor.valid() && found.size() < limit; cursor.next()) {
    found.emplace(cursor.key(), IdEntry::parse(cursor.value()));
  }
  ORRERY_TRY(cursor.status());
  for (const auto& [id_key, staged] : documents_) {
    if (id_key.starts_with(from)) {
      rests_on_staged_ = true;
      found.insert_or_assign(id_key, staged.entry);
    }
  }

  Committed committed;
  committed.lsn = transaction_head_.lsn;
  for (const auto& [id_key, entry] : found) {
    if (!entry) continue;
    if (committed.writes.size() == kDeleteAllDocumentsMax) {
      committed.more = true;
      break;
    }
    storage::DocumentKey document = prefix;
    document.id = id_key.substr(from.size());
    // What has expired goes with the rest: it only waits to be purged.
    ORRERY_TRY(auto written, erase_version(document, *entry, rules,
                                           static_cast<std::uint32_t>(committed.writes.size())));
    committed.writes.push_back(std::move(written));
  }
  return committed;
}

void Stage::remember(const storage::DocumentKey& key, std::optional<IdEntry> entry,
                     std::vector<std::string> unique_values) {
  std::string id_key = storage::id_key(partition_, key);
  auto& slot = documents_[id_key];
  std::optional<StagedDocument> before;
  if (slot.lsn != Lsn{}) before = std::move(slot);
  slot = StagedDocument{transaction_head_.lsn, std::move(entry), std::move(unique_values)};
  document_undo_.emplace_back(std::move(id_key), std::move(before));
}

}  // namespace orrery::partition
