// Which vectors a query is after, where an index could find most of them: ORDER BY VectorDistance.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/vector.h"
#include "query/plan/prepared.h"

namespace orrery::query {

/// The documents that are most similar to a vector, as many as TOP, or OFFSET and LIMIT, want.
struct VectorOrder {
  std::vector<std::string> path;  ///< member names of the document
  Floats vector;
  VectorOptions options;  ///< of the container's policy and of the call
  std::uint64_t skip = 0;
  std::uint64_t take = 0;
};

/// Nothing when the query has another order, or is after all documents, or wants every document to
/// be looked at (the third argument: brute force).
std::optional<VectorOrder> vector_order_of(const PreparedQuery& query);

}  // namespace orrery::query
