// Letting history go: by age and by size, oldest first, and never without moving where it begins.
#pragma once

#include <cstddef>
#include <optional>

#include "base/clock.h"
#include "base/result.h"
#include "partition/writer/record_writer.h"
#include "partition/writer/transaction.h"
#include "protocol/ids.h"
#include "storage/keys.h"
#include "storage/store.h"

namespace orrery::partition {

/// Trims the history of one partition, a bounded piece at a time. Old changes first lose all but
/// deletes without texts, as far as tombstones are kept longer than everything; then those go. The
/// begins in the head move in the same commit, each for the part of the EPKs that it is about: a
/// reader that stands behind is refused and never misses something silently.
class HistoryTrimmer {
 public:
  struct Step {
    bool more = false;        ///< there is more to let go right now
    std::size_t records = 0;  ///< how many were let go
    /// In how many seconds the first of what is left will have had its time.
    std::optional<UnixSeconds> next_in = {};
  };
  /// Blocks.
  Result<Step> step(const storage::Store& store, PartitionNumber partition, const HistoryTrim& trim,
                    RecordWriter& writer);
  /// Forgets how far it has come; goes on from where history begins, or from an earlier `from`.
  void restart(std::optional<Lsn> from = {});

 private:
  /// The last change of a step, to see whether it is committed: only then the store is up to date.
  struct LastChange {
    storage::LogPosition position;
    std::size_t bytes_after = 0;  // 0: it was erased.
  };
  bool is_committed(const storage::Snapshot& snapshot, PartitionNumber partition) const;

  std::optional<LastChange> last_;
  // The records to look at next; nothing: those where the head says that history begins.
  std::optional<storage::LogPosition> reduce_next_;
  std::optional<storage::LogPosition> erase_next_;
};

}  // namespace orrery::partition
