// Stage: validates transactions against the log's head and against what is staged but not yet
// committed, and turns them into records and index entries.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "partition/transaction.h"
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
  /// fails. Errors as Partition::submit says. The head moves by one LSN.
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

  /// Everything up to `lsn` is in the store now: forgets what was remembered of it.
  void forget_committed(Lsn lsn);
  /// Forgets everything staged and goes on from `head`.
  void reset(const storage::Head& head);

 private:
  /// What is staged for one document: its version, or that it is gone.
  struct StagedDocument {
    Lsn lsn;
    std::optional<storage::IdEntry> entry;
    std::vector<std::string> unique_values;
  };
  /// Which version holds the values of a unique key. The header is known of staged versions; that
  /// of a committed one is in the log.
  struct Holder {
    storage::LogPosition position;
    std::optional<storage::VersionHeader> header;
  };
  struct StagedUnique {
    Lsn lsn;
    std::optional<Holder> holder;
  };
  struct Existing {
    storage::IdEntry entry;
    bool expired = false;
  };

  Result<std::optional<Existing>> find(const storage::DocumentKey& key, const Rules& rules,
                                       UnixSeconds now);
  Result<Written> apply(const Write& write, const Rules& rules, UnixSeconds now,
                        std::uint32_t index);
  Result<Written> put_version(const Write& write, const std::optional<Existing>& existing,
                              const Rules& rules, UnixSeconds now, std::uint32_t index);
  Result<Written> erase_version(const storage::DocumentKey& key, const storage::IdEntry& entry,
                                const Rules& rules, std::uint32_t index);
  Result<Committed> delete_all(const storage::DocumentKey& key, const Rules& rules);

  Result<> claim_unique_values(const Write& write, const storage::DocumentKey& key,
                               const std::optional<Existing>& existing, const Rules& rules,
                               UnixSeconds now, const Holder& claimant);
  Result<std::vector<std::string>> unique_values_of(const storage::DocumentKey& key,
                                                    const storage::IdEntry& entry,
                                                    const Rules& rules);
  Result<> release_unique_values(const storage::DocumentKey& key, const storage::IdEntry& entry,
                                 const Rules& rules);
  Result<std::optional<Holder>> find_holder(const std::string& unique_key);
  /// Whether the version that holds the values is one that can be seen.
  Result<bool> is_visible(const Holder& holder, const Rules& rules, UnixSeconds now);
  void remember_holder(std::string unique_key, std::optional<Holder> holder);
  std::string unique_key(const storage::DocumentKey& key, std::size_t policy,
                         std::string_view values) const;

  void remember(const storage::DocumentKey& key, std::optional<storage::IdEntry> entry,
                std::vector<std::string> unique_values);
  void erase_records(const storage::IdEntry& entry);
  /// Reads into scratch_, as far down as this transaction may. True when found.
  Result<bool> look_up(storage::Family family, std::string_view key);

  storage::Store& store_;
  const PartitionNumber partition_;
  const RangeId range_;
  const Rid container_;
  const std::string self_prefix_;  // "dbs/…/colls/…/docs/"

  storage::Head head_;
  // What a transaction has done so far; taken over only when all of it is valid.
  storage::Batch transaction_batch_;
  storage::Head transaction_head_;
  bool rests_on_staged_ = false;
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

  std::string scratch_;
};

}  // namespace orrery::partition
