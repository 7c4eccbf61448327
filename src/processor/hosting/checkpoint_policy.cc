#include "processor/hosting/checkpoint_policy.h"

namespace orrery::processor {

bool CheckpointPolicy::due(MonotonicTime now) const {
  if (requested_) return true;
  if (is_explicit() || documents_ == 0) return false;
  const auto& [count, interval, _] = frequency_;
  if (!count && !interval) return true;
  return (count && documents_ >= *count) || (interval && now - last_ >= *interval);
}

void CheckpointPolicy::checkpointed(MonotonicTime now) {
  documents_ = 0;
  requested_ = false;
  last_ = now;
}

}  // namespace orrery::processor
