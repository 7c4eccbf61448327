// RecordWriter: the records that a transaction puts and erases. All parts of the stage go through
// it, so that nothing that belongs together comes apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "partition/copy/copy.h"
#include "partition/writer/index_terms.h"
#include "partition/writer/transaction_view.h"
#include "protocol/ids.h"
#include "storage/batch.h"
#include "storage/keys.h"
#include "storage/records.h"

namespace orrery::partition {

/// Not thread-safe: the stage of one partition owns it.
class RecordWriter {
 public:
  explicit RecordWriter(PartitionNumber partition) : partition_(partition) {}

  /// Begins a transaction that stands on `head` and would get the next LSN. Operations that were
  /// not emitted are forgotten.
  void begin(const storage::Head& head, UnixSeconds ts);

  /// The head after the transaction: its counters follow what is put and erased.
  storage::Head& head() { return head_; }
  const storage::Head& head() const { return head_; }

  // ── documents; each with all entries that name the version, also that in `expiry` ──
  /// A new version. `record` is a VersionRecord of the key, `terms` what it has in indexes.
  void put(const storage::DocumentKey& key, const storage::IdEntry& entry, RecordPtr record,
           TermList terms);
  /// The version makes way for a newer one of the same document, which is put next. When that has
  /// another id, the old one is freed. `lost_terms` are those that the newer one has not.
  void supersede(const storage::DocumentKey& key, const storage::IdEntry& entry, bool renamed,
                 TermList lost_terms);
  /// The document goes, with all its terms.
  void erase(const storage::DocumentKey& key, const storage::IdEntry& entry, TermList terms);

  // ── which document of the key's logical partition holds the values of a unique key ──
  void put_unique(const storage::DocumentKey& key, std::size_t policy, std::string_view values,
                  storage::LogPosition holder);
  void erase_unique(const storage::DocumentKey& key, std::size_t policy, std::string_view values);

  // ── history ──
  /// The next change of this transaction.
  void put_history(const storage::HistoryRecord& change);
  /// Lets a change go; or all but what a tombstone needs. Both need the record as it is stored.
  void erase_history(storage::LogPosition position, std::string_view record);
  void strip_history(storage::LogPosition position, std::string_view record);
  void erase_all_history();

  // ── expiry entries that are built or collected apart from their versions ──
  void put_expiry(const storage::ExpiryEntry& entry);
  /// The version is gone, and with it the key that it had.
  void erase_stale_expiry(const storage::ExpiryEntry& entry);
  void erase_all_expiry();

  // ── secondary indexes, apart from changes of documents ──
  /// Entries of a version that was there before the index.
  void put_terms(DocumentNumber number, storage::LogPosition position, TermList terms);
  /// An index goes, with all that is in it.
  void erase_index(std::uint32_t index);

  /// Whether documents change: only then the transaction takes an LSN.
  bool changes_documents() const { return changes_documents_; }
  bool empty() const { return operations_.empty(); }

  /// Appends all of it to `batch`. A version that was put and superseded within the transaction
  /// leaves no trace: the log shows a document once, with its final content, and a key of the log
  /// that is erased was put by an earlier transaction.
  void emit(storage::Batch& batch) const;
  /// Appends the same for the partitions that will take this one's place, and counts it there.
  void emit_mirrored(Mirror& mirror, storage::Batch& batch) const;
  /// The records that were emitted, to be held until they are committed.
  std::vector<RecordPtr> take_records();

 private:
  struct Operation {
    enum class Kind : std::uint8_t {
      Put,
      Supersede,
      Erase,
      PutUnique,
      EraseUnique,
      PutHistory,
      EraseHistory,
      PutExpiry,
      EraseExpiry,
      EraseAllHistory,
      EraseAllExpiry,
      PutTerms,
      EraseIndex,
    };
    Kind kind;
    bool flag = false;         // Put: cancelled. Supersede: renamed.
    bool staged_now = false;   // Supersede, Erase: of a version that was never emitted.
    storage::DocumentKey key;  // Empty where no document is concerned.
    storage::IdEntry entry;    // The version; of the others only its position counts.
    storage::ExpiryEntry expiry;
    RecordPtr record;
    std::string bytes;  // Unique: policy and values. History: the record.
    TermList terms;
    std::uint32_t index = 0;  // EraseIndex: which.
  };

  Operation& add(Operation::Kind kind);
  void leave(const storage::DocumentKey& key, const storage::IdEntry& entry, Operation::Kind kind,
             bool renamed, TermList lost_terms);
  /// Where an operation is emitted to.
  struct Destination {
    PartitionNumber partition;
    std::uint32_t index_shift = 0;   // Added to the index of every position.
    const Mirror* mirror = nullptr;  // Knows the ids of secondary indexes there; null: the same.
  };
  void emit_operation(const Operation& operation, const Destination& to,
                      storage::Batch& batch) const;
  /// Puts its terms, or erases them.
  static void emit_terms(const Operation& operation, bool erases, const Destination& to,
                         storage::Batch& batch);

  const PartitionNumber partition_;
  storage::Head head_;
  bool keeps_expiry_ = false;  // As it was when the transaction began.
  bool changes_documents_ = false;
  std::uint32_t history_index_ = 0;
  std::vector<Operation> operations_;
};

}  // namespace orrery::partition
