// ORDER BY RANK: several scores, each over all documents, put together as clients do it.
#pragma once

#include <functional>

#include "api/query_run.h"
#include "query/settings.h"

namespace orrery::api {

/// One page of a Ranked query. Blocks. Errors as run_query_page.
Result<QueryPage> run_ranked_page(const Services& services, const QueryJob& job,
                                  const query::Settings& settings,
                                  const std::function<bool()>& is_cancelled);

}  // namespace orrery::api
