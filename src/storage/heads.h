// Reading the heads of partitions.
#pragma once

#include <optional>

#include "base/result.h"
#include "protocol/ids.h"
#include "storage/records.h"
#include "storage/store.h"

namespace orrery::storage {

/// The head of a partition as the snapshot has it; nothing when nothing of it was committed then.
/// Blocks. Unavailable on an I/O error.
Result<std::optional<Head>> find_head(const Snapshot& snapshot, PartitionNumber partition);

}  // namespace orrery::storage
