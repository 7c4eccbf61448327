// What a container's definition asks its partitions to keep, and for how long.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "partition/writer/transaction.h"
#include "protocol/container/container_definition.h"
#include "storage/records.h"

namespace orrery::catalog {

/// What the partitions of such a container are to keep. Of `expiry` only whether there are to be
/// entries counts: Off, or Building.
storage::Keeping keeping_of(const ContainerDefinition& definition);

/// Whether a partition does what is asked.
bool keeps_as_asked(const storage::Keeping& kept, const storage::Keeping& asked);

/// Whether somebody has to look after the partitions of such a container from time to time.
inline bool needs_upkeep(const ContainerDefinition& definition) {
  return keeping_of(definition) != storage::Keeping{};
}

/// The head of a partition without documents that keeps what is asked from its first change on, and
/// has the indexes that the definition names.
storage::Head initial_head(Lsn lsn, UnixSeconds ts, const ContainerDefinition& definition);

/// What of the history has had its time.
partition::HistoryTrim trim_of(const ChangeFeedPolicy& policy, UnixSeconds now,
                               std::uint64_t bytes_max);

}  // namespace orrery::catalog
