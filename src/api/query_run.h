// One page of a query: which documents it is over, and pushing them through its execution.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/feed_scope.h"
#include "api/query_documents.h"
#include "api/services.h"
#include "base/result.h"
#include "protocol/query_continuation.h"
#include "query/access.h"
#include "query/execution.h"
#include "query/prepared.h"

namespace orrery::api {

struct QueryJob {
  catalog::ContainerPtr container;
  FeedScope scope;
  query::PreparedQueryPtr query;
  query::QueryAccess access;
  QueryPosition from;
  /// Only rows of an Ordered query from these on, as a client says that merges ranges by itself.
  std::optional<QueryPosition> resume_filter;
  query::PageLimits limits;
  AccessChoice choice = AccessChoice::Auto;
  /// A page that has found little by then ends, and says where to go on.
  std::chrono::milliseconds time_max{1000};
  /// Whether a page of rows as they come may have those of several ranges; else it ends with the
  /// range, as the service's do.
  bool spans_ranges = true;
  bool only_counts = false;  ///< see WalkScope
  std::string target;        ///< which part of the container the request names, as it names it
};

/// What was done for a page, range by range.
struct RangeReport {
  RangeId range;
  WalkReport walk;
  std::uint64_t rows = 0;
};

struct QueryPage {
  std::string rows;  ///< row,row,…
  std::size_t count = 0;
  std::optional<QueryPosition> next;
  std::vector<std::pair<const catalog::Range*, Lsn>> heads;
  query::ExecutionStats stats;
  std::vector<RangeReport> ranges;
  std::chrono::nanoseconds lookup_time{};  ///< finding documents
  std::chrono::nanoseconds total_time{};
};

/// Blocks, for about a second at most: then the page ends, perhaps without a row. `is_cancelled` is
/// asked now and then: Unavailable when it says so.
Result<QueryPage> run_query_page(const Services& services, const QueryJob& job,
                                 const std::function<bool()>& is_cancelled);

/// The page, if it is short and all that it takes is in memory. Does not block, nor take long: for
/// an event loop. Nothing where that is not so, or something went wrong: run_query_page() tells
/// what.
std::optional<QueryPage> try_query_page(const Services& services, const QueryJob& job);

/// All rows of a query over a scope, as a JSON array. For parts of larger queries.
Result<std::string> run_to_end(const Services& services, QueryJob job,
                               const std::function<bool()>& is_cancelled);

}  // namespace orrery::api
