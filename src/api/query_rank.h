// ORDER BY RANK: several scores, each over all documents, put together as clients do it.
#pragma once

#include <functional>

#include "api/query_run.h"
#include "query/settings.h"

namespace orrery::api {

/// One page of a Ranked query. Blocks: the first one until every document has its score, which are
/// then kept for the next pages for a while (SuspendedQueries). `is_cancelled` and errors as
/// run_query_page; RequestTooLarge when there are more documents to compare than job.limits has
/// memory for.
Result<QueryPage> run_ranked_page(const Services& services, const QueryJob& job,
                                  const query::Settings& settings,
                                  const std::function<bool()>& is_cancelled);

}  // namespace orrery::api
