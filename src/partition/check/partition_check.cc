#include "partition/check/partition_check.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "json/value.h"
#include "partition/writer/unique_keys.h"

namespace orrery::partition {

using storage::Family;
using storage::HistoryRecord;
using storage::LogPosition;
using storage::Lookup;
using storage::VersionRecord;
using Cursor = storage::Snapshot::Cursor;
using Retention = storage::RetentionSettings;

namespace {

std::string text_of(LogPosition position) {
  return fmt::format("{}.{}", position.lsn.value, position.index);
}

std::span<const storage::IndexRecord> indexes_of(const storage::Head& head) {
  if (!head.indexes) return {};
  return *head.indexes;
}

}  // namespace

PartitionCheck::PartitionCheck(const storage::Snapshot& snapshot, const CheckedPartition& partition,
                               Findings& findings, CheckPace& pace)
    : snapshot_(snapshot),
      partition_(partition),
      findings_(findings),
      pace_(pace),
      from_(storage::partition_prefix(partition.number)),
      to_(storage::partition_end(partition.number)) {}

void PartitionCheck::find(std::string_view where, std::string what) {
  findings_.add(
      fmt::format("{} (partition {}), {}", partition_.name, partition_.number.value, where),
      std::move(what));
}

void PartitionCheck::find_at(std::string_view family, LogPosition position, std::string what) {
  find(fmt::format("{} {}", family, text_of(position)), std::move(what));
}

const std::string* PartitionCheck::get(Family family, const std::string& key) {
  return snapshot_.get(family, key, value_) == Lookup::Found ? &value_ : nullptr;
}

bool PartitionCheck::ended(const Cursor& cursor, std::string_view name, bool goes_on) {
  if (!goes_on) return false;
  if (const auto status = cursor.status(); !status) find(name, status.error().message());
  return true;
}

bool PartitionCheck::run() {
  if (!read_head()) return true;
  check_head();
  if (!indexes_of(head_).empty()) terms_.emplace(indexes_of(head_));
  return check_versions() && count_entries(Family::Ids, "ids", documents_) &&
         count_entries(Family::Rids, "rids", documents_) && check_unique() && check_expiry() &&
         check_history() && check_terms();
}

// ── the head ─────────────────────────────────────────────────────────────────────────────────────

bool PartitionCheck::read_head() {
  switch (snapshot_.get(Family::Heads, from_, value_)) {
    case Lookup::Found:
      if (auto head = storage::Head::parse(value_)) {
        head_ = std::move(*head);
        return true;
      }
      find("heads", "the head is of a format that this version cannot read");
      return false;
    case Lookup::Missing:
      // One that nothing was written to yet has none.
      return true;
    default:
      find("heads", "the head cannot be read");
      return false;
  }
}

void PartitionCheck::check_head() {
  const bool keeps = head_.retention.history != Retention::History::None;
  if (keeps != (head_.history != nullptr)) {
    find("heads", "whether history is kept, and where it begins, do not agree");
  }
  if (head_.history) {
    for (const auto& part : *head_.history) {
      if (part.tombstones_begin > part.all_begin || part.all_begin > head_.lsn) {
        find("heads",
             fmt::format("history begins at {} and {}, but the head is {}",
                         part.tombstones_begin.value, part.all_begin.value, head_.lsn.value));
      }
    }
  }
  for (const auto& index : indexes_of(head_)) {
    if (index.id > head_.last_index_id) {
      find("heads", fmt::format("the index {} has the id {}, above the last one that was given: {}",
                                index.spec, index.id, head_.last_index_id));
    }
  }
  if (!head_.gaps) return;
  Lsn before{0};
  for (const auto& gap : *head_.gaps) {
    if (gap.ended < before || gap.resumed < gap.ended || gap.resumed > head_.lsn) {
      find("heads",
           fmt::format("the gap {} to {} is not in order", gap.ended.value, gap.resumed.value));
    }
    before = gap.resumed;
  }
}

// ── versions, and what each should have ──────────────────────────────────────────────────────────

bool PartitionCheck::check_versions() {
  auto cursor = snapshot_.cursor(Family::Log, from_, to_, storage::Snapshot::Access::Scan);
  bool goes_on = true;
  for (; cursor.valid() && (goes_on = pace_.go_on()); cursor.next()) {
    if (cursor.key().size() != storage::kLogKeySize) {
      find("log", "a key is not of the right size");
      continue;
    }
    const LogPosition position = storage::log_position(cursor.key());
    const auto record = VersionRecord::parse(cursor.value());
    if (!record) {
      find_at("log", position, "the version cannot be read");
      continue;
    }
    check_version(position, *record);
    ++documents_;
    text_bytes_ += record->text.size();
  }
  if (!ended(cursor, "log", goes_on)) return false;
  if (documents_ != head_.documents) {
    find("heads", fmt::format("{} documents are in the log, but the head counts {}", documents_,
                              head_.documents));
  } else if (text_bytes_ != head_.text_bytes) {
    find("heads", fmt::format("the texts in the log have {} bytes, but the head counts {}",
                              text_bytes_, head_.text_bytes));
  }
  return true;
}

void PartitionCheck::check_version(LogPosition position, const VersionRecord& record) {
  check_place(position, record);
  check_ids(position, record);
  check_text(position, record);
  check_expiry_of(position, record);
  check_history_of(position, record);
}

void PartitionCheck::check_place(LogPosition position, const VersionRecord& record) {
  const auto& header = record.header;
  if (position.lsn > head_.lsn) {
    find_at("log", position, fmt::format("is above the head {}", head_.lsn.value));
  }
  if (position.index >= head_.index_bound) {
    find_at("log", position, fmt::format("is above the bound of indexes {}", head_.index_bound));
  }
  if (!partition_.epks.contains(Epk{std::string(record.epk)})) {
    find_at("log", position,
            fmt::format("the key of document '{}' is of another range", record.id));
  }
  if (position.lsn > head_.merged_at) {
    if (header.ts < last_ts_ || header.ts > head_.ts) {
      find_at("log", position,
              fmt::format("_ts {} goes back, or is above that of the head", header.ts));
    }
    last_ts_ = std::max(last_ts_, header.ts);
  }
  const std::uint64_t sequence = header.number.value & kDocumentSequenceMax;
  if (header.number.value >> 40 == partition_.range.value && sequence > head_.document_sequence) {
    find_at("log", position,
            fmt::format("document number {} is above the last one that was given: {}", sequence,
                        head_.document_sequence));
  }
  if (!head_.is_reordered && header.number < last_number_) {
    find_at("log", position, "the log is said to be in the order of document numbers, and is not");
  }
  last_number_ = header.number;
}

void PartitionCheck::check_ids(LogPosition position, const VersionRecord& record) {
  const std::string* value = get(Family::Ids, storage::id_key(partition_.number, record.key()));
  if (value == nullptr) {
    find_at("log", position, fmt::format("document '{}' has no entry in ids", record.id));
  } else if (const auto entry = storage::IdEntry::parse(*value);
             !entry || entry->position != position ||
             entry->header.number != record.header.number || entry->header.ts != record.header.ts ||
             entry->header.own_ttl != record.header.own_ttl ||
             entry->header.indexed_leaves != record.header.indexed_leaves ||
             entry->text_size != record.text.size()) {
    find_at("log", position,
            fmt::format("the entry of document '{}' in ids is of another version", record.id));
  }
  value = get(Family::Rids, storage::rid_key(partition_.number, record.header.number));
  if (value == nullptr) {
    find_at("log", position, fmt::format("document '{}' has no entry in rids", record.id));
  } else if (storage::parse_position_value(*value) != position) {
    find_at("log", position,
            fmt::format("the entry of document '{}' in rids is of another version", record.id));
  }
}

void PartitionCheck::check_text(LogPosition position, const VersionRecord& record) {
  const auto document = json::Value::parse(record.text);
  if (!document || !document->is_object()) {
    find_at("log", position, fmt::format("the text of document '{}' is no JSON object", record.id));
    return;
  }
  const auto ts = document->member("_ts");
  const ETag etag(position.lsn, record.header.ts);
  if (!document->member("id").is_string(record.id) ||
      !document->member("_etag").is_string(etag.text()) || !ts.is_number() ||
      !ts.as_number().is_integer || ts.as_number().integer != record.header.ts) {
    find_at("log", position,
            fmt::format("id, _etag or _ts in the text of document '{}' are not those of its record",
                        record.id));
  }
  check_terms_of(position, record);
  check_unique_of(position, record);
}

void PartitionCheck::check_unique_of(LogPosition position, const VersionRecord& record) {
  if (!partition_.rules.unique_values_of) return;
  const auto values = (*partition_.rules.unique_values_of)(record.text);
  for (std::size_t policy = 0; policy < values.size(); ++policy) {
    const std::string* value =
        get(Family::Unique, unique_key(partition_.number, record.key(), policy, values[policy]));
    // Another document may have taken the values over, in a store of the first version, after this
    // one had expired.
    if (value == nullptr || !storage::parse_position_value(*value)) {
      find_at("log", position,
              fmt::format("document '{}' does not hold its values of unique key {}", record.id,
                          policy));
    }
  }
}

void PartitionCheck::check_expiry_of(LogPosition position, const VersionRecord& record) {
  if (head_.retention.expiry != Retention::Expiry::Complete) return;
  const auto entry = storage::expiry_of(position, record.header);
  if (entry && get(Family::Expiry, storage::expiry_key(partition_.number, *entry)) == nullptr) {
    find_at("log", position, fmt::format("document '{}' has no entry in expiry", record.id));
  }
}

void PartitionCheck::check_terms_of(LogPosition position, const VersionRecord& record) {
  if (!terms_) return;
  terms_->of(record.text).for_each([&](std::uint32_t id, std::string_view term) {
    std::string key;
    storage::append_term_key(key, partition_.number, id, term, record.header.number);
    const std::string* value = get(Family::Terms, key);
    if (value != nullptr && storage::parse_position_value(*value) == position) {
      ++terms_found_[id];
      return;
    }
    const storage::IndexRecord* index = storage::find_index(head_.indexes, id);
    if (value != nullptr) {
      ++terms_found_[id];
      find_at("log", position,
              fmt::format("the entry of document '{}' in the index {} is of another version",
                          record.id, index->spec));
    } else if (index->is_complete() || record.header.number <= index->built_up_to) {
      find_at("log", position,
              fmt::format("document '{}' has no entry in the index {}", record.id, index->spec));
    }
  });
}

void PartitionCheck::check_history_of(LogPosition position, const VersionRecord& record) {
  if (head_.retention.history != Retention::History::All) return;
  const auto* part = storage::find_part(head_.history, record.epk);
  if (part == nullptr || position.lsn <= part->all_begin) return;
  auto cursor =
      snapshot_.cursor(Family::History, storage::history_key(partition_.number, {position.lsn, 0}),
                       storage::history_key(partition_.number, {next(position.lsn), 0}));
  for (; cursor.valid(); cursor.next()) {
    const auto change = HistoryRecord::parse(cursor.value());
    if (change && change->number == record.header.number && change->current_text == record.text) {
      return;
    }
  }
  find_at("log", position, fmt::format("document '{}' has no change in history", record.id));
}

// ── what there is besides ────────────────────────────────────────────────────────────────────────

bool PartitionCheck::count_entries(Family family, std::string_view name, std::uint64_t expected) {
  auto cursor = snapshot_.cursor(family, from_, to_, storage::Snapshot::Access::Scan);
  std::uint64_t count = 0;
  bool goes_on = true;
  for (; cursor.valid() && (goes_on = pace_.go_on()); cursor.next()) ++count;
  if (!ended(cursor, name, goes_on)) return false;
  // Each version has an entry, as was seen: others are of nothing.
  if (count > expected) {
    find(name, fmt::format("{} entries, but {} versions are in the log", count, expected));
  }
  return true;
}

bool PartitionCheck::check_unique() {
  auto cursor = snapshot_.cursor(Family::Unique, from_, to_, storage::Snapshot::Access::Scan);
  bool goes_on = true;
  for (; cursor.valid() && (goes_on = pace_.go_on()); cursor.next()) {
    const auto position = storage::parse_position_value(cursor.value());
    const std::string* value =
        position ? get(Family::Log, storage::log_key(partition_.number, *position)) : nullptr;
    const auto record = value != nullptr ? VersionRecord::parse(*value) : std::nullopt;
    if (!record || !json::Value::parse(record->text) || !partition_.rules.unique_values_of) {
      find("unique", position
                         ? fmt::format("an entry names {}, which is not there", text_of(*position))
                         : "an entry cannot be read");
      continue;
    }
    const auto values = (*partition_.rules.unique_values_of)(record->text);
    bool is_held = false;
    for (std::size_t policy = 0; policy < values.size() && !is_held; ++policy) {
      is_held =
          unique_key(partition_.number, record->key(), policy, values[policy]) == cursor.key();
    }
    if (!is_held) {
      find("unique",
           fmt::format("an entry names document '{}', which does not have its values", record->id));
    }
  }
  return ended(cursor, "unique", goes_on);
}

bool PartitionCheck::check_expiry() {
  auto cursor = snapshot_.cursor(Family::Expiry, from_, to_, storage::Snapshot::Access::Scan);
  bool goes_on = true;
  for (; cursor.valid() && (goes_on = pace_.go_on()); cursor.next()) {
    if (cursor.key().size() != storage::kExpiryKeySize) {
      find("expiry", "a key is not of the right size");
      continue;
    }
    if (head_.retention.expiry == Retention::Expiry::Off) {
      find("expiry", "there are entries, though the head says that there are none");
      return true;
    }
    const auto entry = storage::expiry_entry(cursor.key());
    const std::string* value =
        get(Family::Log, storage::log_key(partition_.number, entry.position));
    const auto record = value != nullptr ? VersionRecord::parse(*value) : std::nullopt;
    if (record && storage::expiry_of(entry.position, record->header) != entry) {
      find_at("expiry", entry.position,
              fmt::format("document '{}' is due at another time", record->id));
    }
  }
  return ended(cursor, "expiry", goes_on);
}

bool PartitionCheck::check_history() {
  auto cursor = snapshot_.cursor(Family::History, from_, to_, storage::Snapshot::Access::Scan);
  bool goes_on = true;
  std::uint64_t bytes = 0;
  UnixSeconds ts = 0;
  for (; cursor.valid() && (goes_on = pace_.go_on()); cursor.next()) {
    bytes += cursor.value().size();
    if (cursor.key().size() != storage::kLogKeySize) {
      find("history", "a key is not of the right size");
      continue;
    }
    const LogPosition position = storage::log_position(cursor.key());
    const auto change = HistoryRecord::parse(cursor.value());
    if (!change) {
      find_at("history", position, "the change cannot be read");
      continue;
    }
    if (position.lsn > head_.lsn || position.index >= head_.index_bound) {
      find_at("history", position, fmt::format("is above the head {}", head_.lsn.value));
    }
    const auto* part = storage::find_part(head_.history, change->epk);
    if (part == nullptr || position.lsn < part->tombstones_begin) {
      find_at("history", position, "the change is older than history is kept");
    }
    if (position.lsn > head_.merged_at) {
      if (change->ts < ts) find_at("history", position, "_ts goes back");
      ts = std::max(ts, change->ts);
    }
    if (change->deletes() &&
        get(Family::Rids, storage::rid_key(partition_.number, change->number)) != nullptr) {
      find_at("history", position,
              fmt::format("document '{}' was deleted and is there", change->id));
    }
  }
  if (!ended(cursor, "history", goes_on)) return false;
  if (bytes != head_.history_bytes) {
    find("heads",
         fmt::format("history has {} bytes, but the head counts {}", bytes, head_.history_bytes));
  }
  return true;
}

bool PartitionCheck::check_terms() {
  std::map<std::uint32_t, std::uint64_t> counts;
  auto cursor = snapshot_.cursor(Family::Terms, from_, to_, storage::Snapshot::Access::Scan);
  bool goes_on = true;
  for (; cursor.valid() && (goes_on = pace_.go_on()); cursor.next()) {
    if (cursor.key().size() < storage::kTermKeySizeMin) {
      find("terms", "a key is not of the right size");
      continue;
    }
    ++counts[storage::parse_term_key(cursor.key()).index];
  }
  if (!ended(cursor, "terms", goes_on)) return false;
  for (const auto& [id, count] : counts) {
    const storage::IndexRecord* index = storage::find_index(head_.indexes, id);
    if (index == nullptr) {
      find("terms", fmt::format("{} entries are of index {}, which is not there", count, id));
    } else if (count > terms_found_[id]) {
      find("terms", fmt::format("{} entries of the index {} are of nothing",
                                count - terms_found_[id], index->spec));
    }
  }
  return true;
}

}  // namespace orrery::partition
