// StageState: shared by the parts of a stage.
#pragma once

#include <memory>

#include "base/clock.h"
#include "partition/writer/index_terms.h"
#include "partition/writer/record_writer.h"
#include "partition/writer/transaction.h"
#include "partition/writer/transaction_view.h"
#include "protocol/ids.h"
#include "storage/records.h"
#include "storage/store.h"

namespace orrery::partition {

/// Owned by the stage, which outlives its parts. Not thread-safe: the writer's.
struct StageState {
  StageState(storage::Store& store_of_partition, PartitionNumber number, const storage::Head& first)
      : store(store_of_partition), partition(number), writer(number), view(store, number) {
    set_head(first);
  }
  StageState(const StageState&) = delete;
  StageState& operator=(const StageState&) = delete;

  /// The head moves, and with it which indexes there are.
  void set_head(const storage::Head& next) {
    const bool indexes_change = head.indexes != next.indexes;
    head = next;
    if (!indexes_change) return;
    if (!head.indexes) {
      index_terms.reset();
    } else if (!index_terms || !index_terms->is_for(*head.indexes)) {
      index_terms = std::make_unique<const IndexTerms>(*head.indexes);
    }
  }

  storage::Store& store;
  const PartitionNumber partition;
  storage::Head head;                             ///< with everything staged
  std::unique_ptr<const IndexTerms> index_terms;  ///< of the head's indexes; null: it has none
  // The transaction under way: its records, and its view. Taken over only when all of it is valid.
  RecordWriter writer;
  TransactionView view;
};

/// Holds for everything that one transaction does.
struct TransactionScope {
  const Rules& rules;
  UnixSeconds now;
};

}  // namespace orrery::partition
