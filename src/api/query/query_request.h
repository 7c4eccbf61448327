// A request for a query: text, parameters, position; and settings of its container.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/context.h"
#include "base/result.h"
#include "json/value.h"
#include "protocol/container/container_definition.h"
#include "protocol/tokens/query_continuation.h"
#include "query/bind/settings.h"
#include "query/eval/execution.h"
#include "query/plan/prepared.h"

namespace orrery::api {

inline constexpr std::string_view kQueryContent = "application/query+json";
inline constexpr std::string_view kSqlContent = "application/sql";
/// Whether a content type is `type`, in any case and with any parameters: `; charset=utf-8`.
bool is_media_type(std::string_view content_type, std::string_view type);

struct QueryBody {
  std::string text;
  query::Parameters parameters;
  json::Value resume_filter;  ///< undefined when there is none
};

/// `{"query":…,"parameters":[…]}`, or of application/sql the bare text. BadRequest.
Result<QueryBody> parse_query_body(const Context& context);

/// Where the page begins; the beginning without a token. Of documents of `container` also from the
/// service's tokens, if rows are not sorted; one of another container says nothing. BadRequest for
/// a token of another query.
Result<QueryPosition> query_position(const Context& context, const query::PreparedQuery& query,
                                     const Rid* container = nullptr);

/// `{"value":[…],"rid":…,"exclude":…}`: where a client that merges ranges goes on. Nothing when
/// there is none, or the query is not ordered. BadRequest when it does not fit the order.
Result<std::optional<QueryPosition>> resume_position(const json::Value& filter,
                                                     const query::PreparedQuery& query);

}  // namespace orrery::api
