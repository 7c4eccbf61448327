// The part of a stage that changes which secondary indexes there are, and builds them. Their
// entries for a write are DocumentWriter's.
#pragma once

#include "base/result.h"
#include "partition/writer/stage_state.h"
#include "partition/writer/transaction.h"

namespace orrery::partition {

/// Errors as IndexChange says.
Result<Committed> change_indexes(StageState& state, const IndexChange& change);
Result<Committed> build_indexes(StageState& state);

}  // namespace orrery::partition
