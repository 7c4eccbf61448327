// The access planner: which way leads to the documents that a query can want in one range. By their
// ids, by one or several secondary indexes, by an index in the query's order, by a vector index, or
// by a scan.
#pragma once

#include <memory>

#include "base/result.h"
#include "executor/document_source.h"
#include "query/plan/access.h"
#include "query/plan/prepared.h"

namespace orrery::executor {

/// Refers to the scope's snapshot and to the query. Blocks. Unavailable on an I/O error;
/// ReadLimitReached when the scope's entries_max is not enough.
Result<std::unique_ptr<DocumentSource>> open_source(const SourceScope& scope,
                                                    const query::PreparedQuery& query,
                                                    const query::QueryAccess& access);

}  // namespace orrery::executor
