// RetentionSync: makes the partitions of a container keep history and expiry entries as its
// definition asks.
#pragma once

#include <mutex>
#include <set>
#include <vector>

#include "base/result.h"
#include "catalog/definitions.h"
#include "protocol/ids.h"

namespace orrery::catalog {

/// Thread-safe.
class RetentionSync {
 public:
  explicit RetentionSync(const Definitions& definitions) : definitions_(definitions) {}

  /// Applies the settings of the container's newest definition to all of its partitions, and waits
  /// for them. Not inside a transaction of the catalog: a partition may be held by a split that
  /// waits for its turn. Blocks. Unavailable or OutcomeUnknown when the disk refuses.
  Result<> apply(const Rid& container);

  /// A crash or a disk error came between a change of the definition and its partitions.
  void apply_later(const Rid& container);
  /// The containers of apply_later(), each once.
  std::vector<Rid> take_pending();

 private:
  const Definitions& definitions_;
  /// One at a time, so that the newest definition is applied last. Held while partitions commit,
  /// never inside the writer's turn.
  std::mutex apply_mutex_;
  std::mutex pending_mutex_;  // A leaf: nothing is locked inside.
  std::set<Rid> pending_;     // Guarded by pending_mutex_.
};

}  // namespace orrery::catalog
