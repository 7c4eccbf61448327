// ORDER BY RANK as a plan says it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "query/bind/settings.h"
#include "query/plan/query_info.h"
#include "query/syntax/ast.h"

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

/// For each component of make_rank_plan, whose errors it has, the same rows without payload, in
/// their order only where that tells which ones they are. Placeholders as there.
Result<std::vector<std::string>> make_score_queries(const Query& query, std::string_view text,
                                                    const Parameters& parameters);

}  // namespace orrery::query
