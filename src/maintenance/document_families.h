// The families that hold what a partition has of its documents: all but its head.
#pragma once

#include "storage/batch.h"

namespace orrery::maintenance {

inline constexpr storage::Family kDocumentFamilies[] = {
    storage::Family::Log,    storage::Family::Ids,     storage::Family::Rids,
    storage::Family::Unique, storage::Family::History, storage::Family::Expiry,
    storage::Family::Terms};

}  // namespace orrery::maintenance
