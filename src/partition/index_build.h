// Building secondary indexes: making the entries of documents that were there before them.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "base/result.h"
#include "partition/writer/record_writer.h"
#include "protocol/ids.h"
#include "storage/keys.h"
#include "storage/store.h"

namespace orrery::partition {

/// Whether what is staged has replaced or deleted the version that an id names.
using Superseded = std::function<bool(const std::string& id_key, storage::LogPosition position)>;

struct IndexBuildProgress {
  bool more = false;          ///< there is more to do
  std::size_t documents = 0;  ///< that were looked at
};

/// Makes the entries of the next documents in the order of their numbers, for all indexes that are
/// being built, and notes in the head how far that has come; at the end they are complete. A
/// bounded piece at a time. It walks what is committed: whoever adds an index makes the entries of
/// what is only staged then. Blocks.
Result<IndexBuildProgress> build_indexes(const storage::Store& store, PartitionNumber partition,
                                         const Superseded& superseded, RecordWriter& writer);

}  // namespace orrery::partition
