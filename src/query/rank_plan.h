// ORDER BY RANK as a plan says it.
#pragma once

#include <string_view>

#include "base/result.h"
#include "query/ast.h"
#include "query/query_info.h"
#include "query/settings.h"

namespace orrery::query {

/// How the texts of components look.
enum class RankForm {
  Ordered,  ///< as other texts with ORDER BY: rows {"_rid","orderByItems","payload"}
  Scored,   ///< rows {"_rid","payload","componentScores"}, which need no order
};

/// Of a query with ORDER BY RANK, as the parser made it. Errors: see make_rank_plan. A single
/// component always has the ordered form.
Result<RankInfo> make_rank_info(const Query& query, std::string_view text,
                                const Parameters& parameters, RankForm form);

}  // namespace orrery::query
