// Environment: what queries run on. One for all of them; it outlives each.
#pragma once

#include "base/clock.h"
#include "storage/store.h"

namespace orrery::index {
class VectorIndexes;
}

namespace orrery::executor {

class SuspendedQueries;
struct ScanHelpers;

struct Environment {
  storage::Store& store;
  const Clock& clock;
  /// Null: a query that has to see every document takes as long as it does.
  SuspendedQueries* suspended = nullptr;
  /// Null: every scan is read by one thread.
  const ScanHelpers* scan_helpers = nullptr;
  /// Null: every vector is compared.
  index::VectorIndexes* vector_indexes = nullptr;
};

}  // namespace orrery::executor
