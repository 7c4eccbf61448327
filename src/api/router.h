// The way of a request to its handler: resolve its target, authorise, handle.
#pragma once

#include "api/authorizer.h"
#include "api/context.h"
#include "api/services.h"
#include "base/async.h"
#include "base/result.h"
#include "http/message.h"

namespace orrery::api {

/// The kinds of POST on a list, in the order in which the service decides between them.
enum class PostKind { Batch, QueryPlan, Query, Create };
Result<PostKind> post_kind(const Context& context);

/// BadRequest where the headers that decide it are malformed.
Result<Action> action_of(const Context& context);

/// Answers an authenticated request, again with the ranges that there are now where they were split
/// or merged under it. Forbidden as authorize(); NotImplemented, naming the feature, for routes of
/// the service that this server does not have; MethodNotAllowed for a verb that the route does not
/// have; as resolve() when the target does not exist; else as the handler says.
Async<http::Response> dispatch(Services& services, Context& context, Action action);

}  // namespace orrery::api
