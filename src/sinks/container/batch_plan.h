// BatchPlan: which changes go into one batch together with their position.
#pragma once

#include <cstddef>
#include <vector>

#include "sinks/container/change.h"
#include "sinks/container/position.h"

namespace orrery::sinks {

struct BatchPlan {
  std::vector<const SourceChange*> changes;
  AppliedUpTo applied;  ///< after the batch
  /// The only change is larger than a batch with its position may be.
  bool too_large = false;
};
struct BatchLimits {
  std::size_t operations_max = 100;
  std::size_t bytes_max = 0;
};
/// Plans the next batch of `changes`, which are of one key, in the order of the feed, and not yet
/// applied: at least one of them, unless there is none.
BatchPlan plan_batch(const std::vector<const SourceChange*>& changes, const BatchLimits& limits);
/// The bytes that an operation with that document adds to a request.
std::size_t operation_bytes(std::size_t text_bytes);

}  // namespace orrery::sinks
