// Building secondary indexes: making the entries of documents that were there before them.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "partition/writer/record_writer.h"
#include "partition/writer/transaction_view.h"
#include "protocol/ids.h"
#include "storage/keys.h"
#include "storage/store.h"

namespace orrery::partition {

struct IndexBuildProgress {
  bool more = false;          ///< there is more to do
  std::size_t documents = 0;  ///< that were looked at
};

/// Makes the entries of the next documents in the order of their numbers, for all indexes that are
/// being built, and notes in the head how far that has come; at the end they are complete. A
/// bounded step at a time. It walks committed versions: the transaction that adds an index makes
/// the entries of those that are only staged then. `view` tells which versions are superseded.
/// Blocks.
Result<IndexBuildProgress> build_indexes(const storage::Store& store, PartitionNumber partition,
                                         const TransactionView& view, RecordWriter& writer);

}  // namespace orrery::partition
