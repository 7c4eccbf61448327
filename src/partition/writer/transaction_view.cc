#include "partition/writer/transaction_view.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace orrery::partition {

using storage::Family;
using storage::IdEntry;
using storage::Lookup;
using storage::VersionRecord;

void TransactionView::begin(Lsn lsn, storage::Tier tier) {
  lsn_ = lsn;
  tier_ = tier;
  newest_staged_seen_ = Lsn{};
  would_block_ = false;
}

void TransactionView::keep() {
  documents_.keep(lsn_);
  holders_.keep(lsn_);
  fetched_.reset();
}

void TransactionView::roll_back() {
  documents_.roll_back();
  holders_.roll_back();
  fetched_.reset();
}

Result<bool> TransactionView::look_up(Family family, std::string_view key) {
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

Result<> TransactionView::require_disk() {
  if (tier_ == storage::Tier::Disk) return {};
  would_block_ = true;
  return Error(ErrorCode::Internal, "a scan may block");
}

void TransactionView::see_staged(Lsn lsn) {
  // Nothing is staged ahead of the transaction that looks.
  ORRERY_ASSERT(lsn <= lsn_);
  newest_staged_seen_ = std::max(newest_staged_seen_, lsn);
}

Result<std::optional<IdEntry>> TransactionView::find(const storage::DocumentKey& key) {
  const std::string id_key = storage::id_key(partition_, key);
  if (const auto* staged = documents_.find(id_key)) {
    // Its own writes don't make a transaction rest on others.
    if (staged->lsn != lsn_) see_staged(staged->lsn);
    return staged->value.entry;
  }
  ORRERY_TRY(const bool found, look_up(Family::Ids, id_key));
  if (!found) return std::optional<IdEntry>();
  auto entry = IdEntry::parse(scratch_);
  ORRERY_ASSERT(entry.has_value());
  // The store holds committed versions only.
  ORRERY_ASSERT(entry->position.lsn < lsn_);
  return entry;
}

Result<VersionRecord> TransactionView::fetch(const storage::DocumentKey& key,
                                             const IdEntry& entry) {
  fetched_.reset();
  const auto* staged = documents_.find(storage::id_key(partition_, key));
  if (staged != nullptr) fetched_ = staged->value.record.lock();
  std::string_view value;
  if (fetched_) {
    value = *fetched_;
  } else {
    ORRERY_TRY(const bool found,
               look_up(Family::Log, storage::log_key(partition_, entry.position)));
    if (!found) {
      // An entry and its version come and go together; unless the commit of a staged one has just
      // failed. Then nothing that rests on it will be committed either.
      ORRERY_ASSERT(staged != nullptr);
      see_staged(staged->lsn);
      return Error(ErrorCode::Unavailable, "a write that this one stands on could not be stored");
    }
    value = scratch_;
  }
  const auto record = VersionRecord::parse(value);
  ORRERY_ASSERT(record.has_value());
  // The entry names this version and no other.
  ORRERY_ASSERT(record->header.number == entry.header.number);
  return *record;
}

Result<std::optional<VersionRecord>> TransactionView::fetch_committed(
    storage::LogPosition position) {
  ORRERY_TRY(const bool found, look_up(Family::Log, storage::log_key(partition_, position)));
  if (!found) return std::optional<VersionRecord>();
  auto record = VersionRecord::parse(scratch_);
  ORRERY_ASSERT(record.has_value());
  return record;
}

Result<std::map<std::string, IdEntry>> TransactionView::find_all(const storage::DocumentKey& key,
                                                                 std::size_t count_max) {
  ORRERY_TRY(require_disk());
  storage::DocumentKey prefix = key;
  prefix.id.clear();
  const std::string from = storage::id_key(partition_, prefix);
  std::string to = from;
  // No byte of UTF-8 is 0xFF, so this is beyond every id.
  to.push_back('\xFF');

  std::map<std::string, IdEntry> found;
  ORRERY_TRY(const auto snapshot, store_.snapshot());
  auto cursor = snapshot.cursor(Family::Ids, from, to);
  // Staged deletions may take some away again.
  const std::size_t committed_max = count_max + documents_.all().size();
  for (; cursor.valid() && found.size() < committed_max; cursor.next()) {
    const auto entry = IdEntry::parse(cursor.value());
    ORRERY_ASSERT(entry.has_value());
    found.emplace(cursor.key().substr(from.size()), *entry);
  }
  ORRERY_TRY(cursor.status());
  for (const auto& [id_key, staged] : documents_.all()) {
    if (!id_key.starts_with(from)) continue;
    see_staged(staged.lsn);
    const std::string id = id_key.substr(from.size());
    if (staged.value.entry) {
      found.insert_or_assign(id, *staged.value.entry);
    } else {
      found.erase(id);
    }
  }
  while (found.size() > count_max) found.erase(std::prev(found.end()));
  return found;
}

void TransactionView::set(const storage::DocumentKey& key, StagedDocument document) {
  documents_.set(storage::id_key(partition_, key), lsn_, std::move(document));
}

void TransactionView::put(const storage::DocumentKey& key, const IdEntry& entry,
                          std::vector<std::string> unique_values, const RecordPtr& record) {
  // The entry names a version of this transaction, and its record is at hand.
  ORRERY_ASSERT(entry.position.lsn == lsn_ && record != nullptr);
  set(key, {entry, std::move(unique_values), record});
}

void TransactionView::erase(const storage::DocumentKey& key) { set(key, {}); }

Result<std::optional<UniqueHolder>> TransactionView::find_holder(const std::string& unique_key) {
  if (const auto* staged = holders_.find(unique_key)) {
    if (staged->lsn != lsn_) see_staged(staged->lsn);
    return staged->value;
  }
  ORRERY_TRY(const bool found, look_up(Family::Unique, unique_key));
  if (!found) return std::optional<UniqueHolder>();
  const auto position = storage::parse_position_value(scratch_);
  ORRERY_ASSERT(position.has_value());
  return std::optional<UniqueHolder>(UniqueHolder{*position, std::nullopt});
}

void TransactionView::set_holder(std::string unique_key, std::optional<UniqueHolder> holder) {
  holders_.set(std::move(unique_key), lsn_, std::move(holder));
}

bool TransactionView::is_superseded(const std::string& id_key,
                                    storage::LogPosition position) const {
  const auto* staged = documents_.find(id_key);
  return staged != nullptr && (!staged->value.entry || staged->value.entry->position != position);
}

void TransactionView::forget_committed(Lsn lsn) {
  documents_.forget_committed(lsn);
  holders_.forget_committed(lsn);
}

void TransactionView::reset() {
  documents_.clear();
  holders_.clear();
}

}  // namespace orrery::partition
