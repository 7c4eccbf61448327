// Walking a partition in `_rid` order.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/work_budget.h"
#include "partition/read/document_cursor.h"
#include "protocol/ids.h"
#include "storage/store.h"

namespace orrery::partition {

struct ScanBudget {
  std::uint32_t count_max;  ///< of `count` below
  std::size_t bytes_max;    ///< of the text below; one document always fits
  WorkBudget& work;         ///< outlives the scan, which ends when it is over
};

struct ScanOutcome {
  bool exhausted = false;  ///< nothing is left after `last`
  DocumentNumber last;     ///< the last one looked at
};

/// Appends the texts of the documents after `after` that pass the filter to `text`, separated by
/// commas, and adds their number to `count`, until the budget is spent. Blocks. Unavailable on an
/// I/O error; interruption() when the work stops.
Result<ScanOutcome> scan_by_number(const storage::Snapshot& snapshot, PartitionNumber partition,
                                   DocumentNumber after, const ScanFilter& filter,
                                   const ScanBudget& budget, std::string& text, std::size_t& count);

}  // namespace orrery::partition
