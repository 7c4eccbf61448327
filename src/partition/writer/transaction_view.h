// TransactionView: the documents of a partition as one transaction sees them: the committed state,
// overlaid with transactions that are staged but not yet committed, and with its own writes.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "partition/writer/staged_map.h"
#include "protocol/ids.h"
#include "storage/keys.h"
#include "storage/records.h"
#include "storage/store.h"

namespace orrery::partition {

/// The bytes of a VersionRecord. Shared by the view, which may be asked for it again before it is
/// committed, and by the commit that is under way.
using RecordPtr = std::shared_ptr<const std::string>;

/// The newest version of a document that is staged, or that the document is gone.
struct StagedDocument {
  std::optional<storage::IdEntry> entry;
  std::vector<std::string> unique_values;
  std::weak_ptr<const std::string> record;  ///< gone once it is committed: see Stage::take_records
};

/// The version that holds the values of a unique key. The id is known of staged ones; that of a
/// committed one is in the log.
struct UniqueHolder {
  storage::LogPosition position;
  std::optional<std::string> id;
};

/// Look-ups return Unavailable on an I/O error. With Tier::Memory they never block, but may find
/// that memory does not tell: then would_block() is true and the error means nothing. Not
/// thread-safe: the writer's.
class TransactionView {
 public:
  TransactionView(storage::Store& store, PartitionNumber partition)
      : store_(store), partition_(partition) {}

  // ── one transaction after the other ──
  /// A transaction begins that would get `lsn`.
  void begin(Lsn lsn, storage::Tier tier);
  /// Its writes become visible to later transactions.
  void keep();
  /// Its writes are undone.
  void roll_back();

  // ── documents ──
  /// The entry of the document's newest version; nothing when there is none.
  Result<std::optional<storage::IdEntry>> find(const storage::DocumentKey& key);
  /// The version that find() has named. Its views live until the next look-up.
  Result<storage::VersionRecord> fetch(const storage::DocumentKey& key,
                                       const storage::IdEntry& entry);
  /// A version by its position, if the store has it: staged ones are not looked at. Views as above.
  Result<std::optional<storage::VersionRecord>> fetch_committed(storage::LogPosition position);
  /// Documents of the key's logical partition, by id, at most `count_max`. Blocks.
  Result<std::map<std::string, storage::IdEntry>> find_all(const storage::DocumentKey& key,
                                                           std::size_t count_max);
  /// The transaction's own writes.
  void put(const storage::DocumentKey& key, const storage::IdEntry& entry,
           std::vector<std::string> unique_values, const RecordPtr& record);
  void erase(const storage::DocumentKey& key);

  // ── holders of unique values, by their key in `unique` ──
  Result<std::optional<UniqueHolder>> find_holder(const std::string& unique_key);
  /// Nothing: nobody holds them.
  void set_holder(std::string unique_key, std::optional<UniqueHolder> holder);

  // ── the overlay alone ──
  /// Null when nothing is staged for the document.
  const StagedMap<StagedDocument>::Staged* find_staged(const std::string& id_key) const {
    return documents_.find(id_key);
  }
  /// Calls visit(entry, record) for each staged document that is not gone; the record is null when
  /// it was committed meanwhile.
  template <typename Visit>
  void for_each_staged(Visit visit) const {
    for (const auto& [id_key, staged] : documents_.all()) {
      if (staged.value.entry) visit(*staged.value.entry, staged.value.record.lock());
    }
  }
  /// Whether a staged transaction has replaced or deleted the version that an id names.
  bool is_superseded(const std::string& id_key, storage::LogPosition position) const;

  // ── what the transaction has seen ──
  /// The newest LSN among staged versions of others that it has seen; 0: it saw committed ones
  /// only. Its outcome must not be told before that LSN is committed.
  Lsn newest_staged_seen() const { return newest_staged_seen_; }
  bool would_block() const { return would_block_; }
  /// To be asked before a scan: fails, as look-ups do, where the transaction must not block.
  Result<> require_disk();

  /// Transactions up to `lsn` are in the store now.
  void forget_committed(Lsn lsn);
  /// Forgets everything staged.
  void reset();

 private:
  /// Reads into scratch_, as far down as this transaction may. True when found.
  Result<bool> look_up(storage::Family family, std::string_view key);
  void see_staged(Lsn lsn);
  void set(const storage::DocumentKey& key, StagedDocument document);

  storage::Store& store_;
  const PartitionNumber partition_;
  StagedMap<StagedDocument> documents_;             // By their keys in `ids`.
  StagedMap<std::optional<UniqueHolder>> holders_;  // By their keys in `unique`.

  // Of the transaction under way.
  Lsn lsn_;
  storage::Tier tier_ = storage::Tier::Disk;
  Lsn newest_staged_seen_;
  bool would_block_ = false;

  std::string scratch_;
  RecordPtr fetched_;  // Keeps what fetch() returned.
};

}  // namespace orrery::partition
