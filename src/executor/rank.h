// ORDER BY RANK: several scores, each over all documents, put together as clients do it.
#pragma once

#include "executor/page_run.h"
#include "query/bind/settings.h"

namespace orrery::executor {

/// One page of a Ranked query. Before its first row every document needs its score: where the
/// budget is over before that, the page is empty, and what was done so far is kept for the next
/// one, as the scores then are (SuspendedQueries). Blocks. Errors as run_query_page;
/// RequestTooLarge when there are more documents to compare than job.limits has memory for.
Result<QueryPage> run_ranked_page(const Environment& environment, const QueryJob& job,
                                  const query::Settings& settings, WorkBudget& work);

}  // namespace orrery::executor
