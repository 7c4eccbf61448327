// CheckpointPolicy: when a position is due to be written.
#pragma once

#include <cstdint>

#include "orrery/processor.h"
#include "processor/hosting/runtime.h"

namespace orrery::processor {

/// Of one lease, from its acquisition on.
class CheckpointPolicy {
 public:
  CheckpointPolicy(CheckpointFrequency frequency, MonotonicTime now)
      : frequency_(frequency), last_(now) {}

  /// So many documents more are processed.
  void processed(std::uint64_t documents) { documents_ += documents; }
  /// The observer asks for what is processed to be checkpointed.
  void request() { requested_ = true; }
  /// Whether what is processed has to be checkpointed now.
  bool due(MonotonicTime now) const;
  /// It was.
  void checkpointed(MonotonicTime now);

  /// Only when the observer asks for it.
  bool is_explicit() const { return frequency_.explicit_checkpoint; }
  /// Documents that would come again if the host died now.
  std::uint64_t unconfirmed() const { return documents_; }

 private:
  CheckpointFrequency frequency_;
  MonotonicTime last_;
  std::uint64_t documents_ = 0;
  bool requested_ = false;
};

}  // namespace orrery::processor
