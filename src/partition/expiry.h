// Expiry entries: finding what is due, and making the entries of documents that were there before
// TTL was switched on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "partition/writer/record_writer.h"
#include "partition/writer/transaction.h"
#include "partition/writer/transaction_view.h"
#include "protocol/ids.h"
#include "storage/keys.h"
#include "storage/store.h"

namespace orrery::partition {

/// How many documents one purge takes at most: one LSN, and a pause in which others may write.
inline constexpr std::size_t kPurgeDocumentsMax = 200;

/// Finds the documents that are due in one partition. Used by one thread at a time.
class DueQueue {
 public:
  struct Due {
    std::vector<PurgeCandidate> candidates;  ///< for ExpiryPurge
    /// When to look again, if nothing is written in between; nothing: no document will ever be due.
    std::optional<UnixSeconds> next;
  };
  /// The first that are due, at most kPurgeDocumentsMax. Blocks.
  Result<Due> find(const storage::Snapshot& snapshot, PartitionNumber partition,
                   std::optional<std::int32_t> default_ttl, UnixSeconds now);
  /// They have been purged or collected: the next find() does not look there again, since what has
  /// been erased at the front of a family is slow to step over.
  void passed(const std::vector<PurgeCandidate>& candidates);
  /// Looks at everything again: whenever entries may have come behind what has been passed.
  void restart();

 private:
  std::optional<storage::ExpiryEntry> passed_[2];  // By kind: the last one.
  UnixSeconds last_now_ = 0;
};

/// Walks all committed documents of a partition and makes their entries, a bounded step at a time.
class ExpiryBuild {
 public:
  /// True while there is more to do. `view` tells which versions are superseded. Blocks.
  Result<bool> step(const storage::Store& store, PartitionNumber partition,
                    const TransactionView& view, RecordWriter& writer);
  void restart() { next_.clear(); }

 private:
  std::string next_;  // The key in `ids` to go on with; empty: the first.
};

}  // namespace orrery::partition
