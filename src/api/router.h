// Which handler a request belongs to.
#pragma once

#include "api/context.h"
#include "api/services.h"
#include "base/async.h"
#include "base/result.h"
#include "http/message.h"

namespace orrery::api {

/// What a POST on a list asks for, in the order in which the service decides it.
enum class PostKind { Batch, QueryPlan, Query, Create };
Result<PostKind> post_kind(const Context& context);

/// Whether a read-only key may do this: reads, queries and query plans.
Result<bool> is_read(const Context& context);

/// Calls the handler of an authenticated request. NotImplemented, naming the feature, for routes of
/// the service that this server does not have; MethodNotAllowed for a verb that the route does not
/// have.
Async<http::Response> dispatch(Services& services, Context& context);

}  // namespace orrery::api
