// Bulk: operations that have nothing to do with each other, in requests of many, one range each.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "client/exchange/pipeline.h"
#include "orrery/batch.h"

namespace orrery::client {

/// As many operations, and as large a body, as the service takes in one request.
inline constexpr std::size_t kBulkOperationsMax = 100;
inline constexpr std::size_t kBulkBytesMax = 2 * 1024 * 1024;

/// Carries out `operations` on "dbs/x/colls/y". Blocks; uses threads of its own. Throws
/// CosmosException when nothing was sent (Argument; the ranges can't be read) or the call was
/// cancelled; what becomes of single operations, or of a request, is in their results.
BulkResponse run_bulk(Pipeline& pipeline, const std::string& container,
                      const std::vector<ItemOperation>& operations, const BulkOptions& options);

}  // namespace orrery::client
