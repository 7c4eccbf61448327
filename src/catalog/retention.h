// The retention that a container's definition asks of its partitions: history and expiry entries,
// and for how long.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "partition/writer/transaction.h"
#include "protocol/container/container_definition.h"
#include "storage/records.h"

namespace orrery::catalog {

/// The settings that the partitions of such a container ought to have. Of `expiry` only whether
/// there are to be entries counts: Off, or Building.
storage::RetentionSettings retention_of(const ContainerDefinition& definition);

/// Whether a partition does what is asked.
bool retains_as_asked(const storage::RetentionSettings& kept,
                      const storage::RetentionSettings& asked);

/// Whether somebody has to look after the partitions of such a container from time to time.
inline bool needs_upkeep(const ContainerDefinition& definition) {
  return retention_of(definition) != storage::RetentionSettings{};
}

/// The head of a partition without documents that keeps what is asked from its first change on, and
/// has the indexes that the definition names.
storage::Head initial_head(Lsn lsn, UnixSeconds ts, const ContainerDefinition& definition);

/// The history whose retention is over.
partition::HistoryTrim trim_of(const ChangeFeedPolicy& policy, UnixSeconds now,
                               std::uint64_t bytes_max);

}  // namespace orrery::catalog
