// One page of a query: which documents it is over, and pushing them through its execution.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/work_budget.h"
#include "catalog/resources.h"
#include "executor/document_source.h"
#include "executor/environment.h"
#include "executor/scope.h"
#include "executor/suspended_queries.h"
#include "protocol/tokens/query_continuation.h"
#include "query/eval/execution.h"
#include "query/plan/access.h"
#include "query/plan/prepared.h"

namespace orrery::executor {

struct QueryJob {
  catalog::ContainerPtr container;
  ContainerScope scope;
  query::PreparedQueryPtr query;
  query::QueryAccess access;
  QueryPosition from;
  /// Only rows of an Ordered query from these on, as a client says that merges ranges by itself.
  std::optional<QueryPosition> resume_filter;
  query::PageLimits limits;
  AccessChoice choice = AccessChoice::Auto;
  /// Whether a page of rows as they come may have those of several ranges; else it ends with the
  /// range, as the service's do.
  bool spans_ranges = true;
  bool only_counts = false;  ///< see SourceScope
  std::string target;        ///< which part of the container the request names, as it names it
  std::uint64_t client = 0;  ///< ClientId::client of who asks
};

/// The work done for a page in one range.
struct RangeReport {
  RangeId range;
  SourceReport source;
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

/// A page on its way, which may take several slices of time. Not thread-safe.
class PageRun : public SuspendedQuery {
 public:
  static std::unique_ptr<PageRun> make(const Environment& environment, const QueryJob& job);

  /// Reads what the page needs. False when the budget was over before that was done: it goes on
  /// with another. Blocks. interruption() when the budget stops.
  virtual Result<bool> read(WorkBudget& work) = 0;
  /// Once all was read.
  virtual Result<QueryPage> page(WorkBudget& work) = 0;
};

/// Blocks until the page is full or the budget is over: then it ends, perhaps without a row.
/// interruption() when the budget stops.
Result<QueryPage> run_query_page(const Environment& environment, const QueryJob& job,
                                 WorkBudget& work);

/// The page, if it is short and all that it takes is in memory. Does not block, nor take long: for
/// an event loop. Nothing where that is not so, or something went wrong: run_query_page() tells
/// what.
std::optional<QueryPage> try_query_page(const Environment& environment, const QueryJob& job);

}  // namespace orrery::executor
