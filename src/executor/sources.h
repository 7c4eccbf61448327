// The kinds of DocumentSource that AccessPlanner chooses from. ParallelScan is one more.
#pragma once

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "executor/document_source.h"
#include "executor/index_match.h"
#include "partition/read/document_cursor.h"

namespace orrery::executor {

/// ReadLimitReached: SourceScope::entries_max is not enough.
Error too_many_entries();

/// Documents that a cursor finds: of a scan, of one partition key, or of a list of candidates.
std::unique_ptr<DocumentSource> make_cursor_source(partition::DocumentCursor cursor,
                                                   bool is_in_order, SourceReport report);

/// Documents in the order of an index, which is that of the query.
std::unique_ptr<DocumentSource> make_ordered_index_source(const SourceScope& scope,
                                                          std::uint32_t index, OrderMatch match,
                                                          SourceReport report);

/// As many documents as were counted in an index; none is read.
std::unique_ptr<DocumentSource> make_count_source(std::uint64_t count, SourceReport report);

}  // namespace orrery::executor
