#include "partition/writer/record_writer.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace orrery::partition {

using storage::Family;
using storage::IdEntry;
using storage::LogPosition;

namespace {

LogPosition shifted_position(LogPosition position, std::uint32_t index_shift) {
  position.index += index_shift;
  return position;
}

}  // namespace

void RecordWriter::begin(const storage::Head& head, UnixSeconds ts) {
  operations_.clear();
  head_ = head;
  head_.lsn = next(head.lsn);
  // A clock that was set back must not take `_ts` back: readers by time count on it.
  head_.ts = std::max(ts, head.ts);
  keeps_expiry_ = head.retention.expiry != storage::RetentionSettings::Expiry::Off;
  changes_documents_ = false;
  history_index_ = 0;
}

RecordWriter::Operation& RecordWriter::add(Operation::Kind kind) {
  Operation& operation = operations_.emplace_back();
  operation.kind = kind;
  return operation;
}

void RecordWriter::put(const storage::DocumentKey& key, const IdEntry& entry, RecordPtr record,
                       TermList terms) {
  // A version bears the LSN and the `_ts` of its transaction, and all entries that name it come in
  // the same batch as its record.
  ORRERY_ASSERT(entry.position.lsn == head_.lsn && entry.header.ts == head_.ts);
  ORRERY_ASSERT(record != nullptr && record->size() >= entry.text_size);
  Operation& operation = add(Operation::Kind::Put);
  operation.key = key;
  operation.entry = entry;
  operation.record = std::move(record);
  operation.terms = std::move(terms);
  changes_documents_ = true;
  head_.documents += 1;
  head_.text_bytes += entry.text_size;
}

void RecordWriter::leave(const storage::DocumentKey& key, const IdEntry& entry,
                         Operation::Kind kind, bool renamed, TermList lost_terms) {
  // Only versions that are there can leave.
  ORRERY_ASSERT(entry.position.lsn <= head_.lsn);
  bool staged_now = false;
  if (entry.position.lsn == head_.lsn) {
    for (auto at = operations_.rbegin(); at != operations_.rend(); ++at) {
      if (at->kind != Operation::Kind::Put || at->entry.position != entry.position) continue;
      at->flag = true;
      at->record.reset();
      staged_now = true;
      break;
    }
    ORRERY_ASSERT(staged_now);
  }
  Operation& operation = add(kind);
  operation.flag = renamed;
  operation.staged_now = staged_now;
  operation.key = key;
  operation.entry = entry;
  operation.terms = std::move(lost_terms);
  changes_documents_ = true;
  head_.documents -= 1;
  head_.text_bytes -= entry.text_size;
}

void RecordWriter::supersede(const storage::DocumentKey& key, const IdEntry& entry, bool renamed,
                             TermList lost_terms) {
  // The newer version goes to the end of the log, behind documents with higher numbers.
  head_.is_reordered = true;
  leave(key, entry, Operation::Kind::Supersede, renamed, std::move(lost_terms));
}

void RecordWriter::erase(const storage::DocumentKey& key, const IdEntry& entry, TermList terms) {
  leave(key, entry, Operation::Kind::Erase, false, std::move(terms));
}

void RecordWriter::put_unique(const storage::DocumentKey& key, std::size_t policy,
                              std::string_view values, LogPosition holder) {
  Operation& operation = add(Operation::Kind::PutUnique);
  operation.key = key;
  operation.entry.position = holder;
  storage::append_u16(operation.bytes, static_cast<std::uint16_t>(policy));
  operation.bytes.append(values);
}

void RecordWriter::erase_unique(const storage::DocumentKey& key, std::size_t policy,
                                std::string_view values) {
  Operation& operation = add(Operation::Kind::EraseUnique);
  operation.key = key;
  storage::append_u16(operation.bytes, static_cast<std::uint16_t>(policy));
  operation.bytes.append(values);
}

void RecordWriter::put_history(const storage::HistoryRecord& change) {
  Operation& operation = add(Operation::Kind::PutHistory);
  operation.key = change.key();
  operation.entry.position = {head_.lsn, history_index_++};
  operation.bytes = change.make();
  head_.history_bytes += operation.bytes.size();
}

void RecordWriter::erase_history(LogPosition position, std::string_view record) {
  const auto parsed = storage::HistoryRecord::parse(record);
  ORRERY_ASSERT(parsed.has_value());
  Operation& operation = add(Operation::Kind::EraseHistory);
  operation.key = parsed->key();
  operation.entry.position = position;
  head_.history_bytes -= record.size();
}

void RecordWriter::strip_history(LogPosition position, std::string_view record) {
  auto parsed = storage::HistoryRecord::parse(record);
  ORRERY_ASSERT(parsed.has_value());
  parsed->current_text = {};
  parsed->previous_text = {};
  Operation& operation = add(Operation::Kind::PutHistory);
  operation.key = parsed->key();
  operation.entry.position = position;
  operation.bytes = parsed->make();
  head_.history_bytes -= record.size() - operation.bytes.size();
}

void RecordWriter::erase_all_history() {
  add(Operation::Kind::EraseAllHistory);
  head_.history_bytes = 0;
}

void RecordWriter::put_expiry(const storage::ExpiryEntry& entry) {
  add(Operation::Kind::PutExpiry).expiry = entry;
}

void RecordWriter::erase_stale_expiry(const storage::ExpiryEntry& entry) {
  add(Operation::Kind::EraseExpiry).expiry = entry;
}

void RecordWriter::erase_all_expiry() { add(Operation::Kind::EraseAllExpiry); }

void RecordWriter::put_terms(DocumentNumber number, LogPosition position, TermList terms) {
  // An index entry names a version that is there, not one to come.
  ORRERY_ASSERT(position.lsn <= head_.lsn);
  Operation& operation = add(Operation::Kind::PutTerms);
  operation.entry.position = position;
  operation.entry.header.number = number;
  operation.terms = std::move(terms);
}

void RecordWriter::erase_index(std::uint32_t index) {
  add(Operation::Kind::EraseIndex).index = index;
}

void RecordWriter::emit(storage::Batch& batch) const {
  for (const Operation& operation : operations_) {
    emit_operation(operation, {.partition = partition_}, batch);
  }
}

void RecordWriter::emit_mirrored(Mirror& mirror, storage::Batch& batch) const {
  for (const Operation& operation : operations_) {
    switch (operation.kind) {
      case Operation::Kind::Put:
        if (!operation.flag) mirror.count_put(operation.key.epk, operation.entry);
        break;
      case Operation::Kind::Supersede:
      case Operation::Kind::Erase:
        if (operation.staged_now) break;
        // Nobody has copied it yet, and nobody will.
        if (!mirror.has(operation.entry.position)) continue;
        mirror.count_erase(operation.key.epk, operation.entry);
        break;
      case Operation::Kind::PutHistory:
        mirror.count_history(operation.key.epk, operation.entry.position, operation.bytes.size());
        break;
      case Operation::Kind::PutUnique:
      case Operation::Kind::EraseUnique:
        break;
      // History is not trimmed meanwhile; and expiry entries that come apart from their versions
      // are made anew afterwards.
      case Operation::Kind::EraseHistory:
      case Operation::Kind::PutExpiry:
      case Operation::Kind::EraseExpiry:
      case Operation::Kind::EraseAllHistory:
      case Operation::Kind::EraseAllExpiry:
      // So are indexes that were not complete when the copy began; and one that is dropped
      // meanwhile is tidied away when it ends.
      case Operation::Kind::PutTerms:
      case Operation::Kind::EraseIndex:
        continue;
    }
    const CopyTarget& target = mirror.owner_of(operation.key.epk).target;
    emit_operation(operation, {target.partition, target.index_shift, &mirror}, batch);
  }
}

std::vector<RecordPtr> RecordWriter::take_records() {
  std::vector<RecordPtr> records;
  for (Operation& operation : operations_) {
    if (operation.record) records.push_back(std::move(operation.record));
  }
  operations_.clear();
  return records;
}

void RecordWriter::emit_terms(const Operation& operation, bool erases, const Destination& to,
                              storage::Batch& batch) {
  if (operation.terms.empty()) return;
  const std::string value = erases ? std::string()
                                   : storage::make_position_value(shifted_position(
                                         operation.entry.position, to.index_shift));
  std::string key;
  operation.terms.for_each([&](std::uint32_t index, std::string_view term) {
    if (to.mirror != nullptr) {
      const auto there = to.mirror->index_there(index);
      if (!there) return;
      index = *there;
    }
    key.clear();
    storage::append_term_key(key, to.partition, index, term, operation.entry.header.number);
    if (erases) {
      batch.erase(Family::Terms, key);
    } else {
      batch.put(Family::Terms, key, value);
    }
  });
}

void RecordWriter::emit_operation(const Operation& operation, const Destination& to,
                                  storage::Batch& batch) const {
  const PartitionNumber partition = to.partition;
  const LogPosition position = shifted_position(operation.entry.position, to.index_shift);
  const auto unique_key = [&] {
    std::string key = storage::partition_prefix(partition);
    key.append(operation.key.epk).append(operation.key.partition_key).append(operation.bytes);
    return key;
  };
  const auto expiry_of_version = [&] { return expiry_of(position, operation.entry.header); };
  switch (operation.kind) {
    case Operation::Kind::Put: {
      if (operation.flag) return;
      // The entries below name the version that is put with them.
      ORRERY_ASSERT(operation.record != nullptr);
      IdEntry entry = operation.entry;
      entry.position = position;
      batch.put(Family::Log, storage::log_key(partition, position), *operation.record);
      batch.put(Family::Ids, storage::id_key(partition, operation.key), entry.make());
      batch.put(Family::Rids, storage::rid_key(partition, entry.header.number),
                storage::make_position_value(position));
      emit_terms(operation, false, to, batch);
      if (!keeps_expiry_) return;
      if (const auto expiry = expiry_of_version()) {
        batch.put(Family::Expiry, storage::expiry_key(partition, *expiry), {});
      }
      return;
    }
    case Operation::Kind::Supersede:
    case Operation::Kind::Erase: {
      if (!operation.staged_now) {
        batch.erase_single(Family::Log, storage::log_key(partition, position));
        if (keeps_expiry_) {
          if (const auto expiry = expiry_of_version()) {
            batch.erase(Family::Expiry, storage::expiry_key(partition, *expiry));
          }
        }
      }
      // Also those of a version that was never emitted: the one before it may have had them, and
      // left them to it.
      emit_terms(operation, true, to, batch);
      const bool erased = operation.kind == Operation::Kind::Erase;
      if (erased || operation.flag) {
        batch.erase(Family::Ids, storage::id_key(partition, operation.key));
      }
      if (erased) {
        batch.erase(Family::Rids, storage::rid_key(partition, operation.entry.header.number));
      }
      return;
    }
    case Operation::Kind::PutUnique:
      batch.put(Family::Unique, unique_key(), storage::make_position_value(position));
      return;
    case Operation::Kind::EraseUnique:
      batch.erase(Family::Unique, unique_key());
      return;
    case Operation::Kind::PutHistory:
      batch.put(Family::History, storage::history_key(partition, position), operation.bytes);
      return;
    case Operation::Kind::EraseHistory:
      batch.erase(Family::History, storage::history_key(partition, position));
      return;
    case Operation::Kind::PutExpiry:
    case Operation::Kind::EraseExpiry: {
      storage::ExpiryEntry expiry = operation.expiry;
      expiry.position = shifted_position(expiry.position, to.index_shift);
      if (operation.kind == Operation::Kind::PutExpiry) {
        batch.put(Family::Expiry, storage::expiry_key(partition, expiry), {});
      } else {
        batch.erase(Family::Expiry, storage::expiry_key(partition, expiry));
      }
      return;
    }
    case Operation::Kind::EraseAllHistory:
      batch.erase_range(Family::History, storage::partition_prefix(partition),
                        storage::partition_end(partition));
      return;
    case Operation::Kind::EraseAllExpiry:
      batch.erase_range(Family::Expiry, storage::partition_prefix(partition),
                        storage::partition_end(partition));
      return;
    case Operation::Kind::PutTerms:
      emit_terms(operation, false, to, batch);
      return;
    case Operation::Kind::EraseIndex:
      batch.erase_range(Family::Terms, storage::terms_prefix(partition, operation.index),
                        storage::terms_end(partition, operation.index));
      return;
  }
}

}  // namespace orrery::partition
