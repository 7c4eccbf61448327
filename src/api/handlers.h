// The handlers of requests, one group per resource. Each parses, acts and answers; what goes wrong
// leaves as an Error, which the pipeline turns into a response.
//
// All run on an event loop and must not block it. The context and the services outlive the call.
#pragma once

#include "api/context.h"
#include "api/services.h"
#include "base/async.h"
#include "http/message.h"

namespace orrery::api {

/// GET /
Result<http::Response> read_account(Services& services, Context& context);

/// Lists answer queries over what they list, too.
namespace databases {
Async<http::Response> create(Services& services, Context& context);
Result<http::Response> list(Services& services, Context& context);
Result<http::Response> read(Services& services, Context& context);
Async<http::Response> remove(Services& services, Context& context);
}  // namespace databases

namespace containers {
Async<http::Response> create(Services& services, Context& context);
Result<http::Response> list(Services& services, Context& context);
Result<http::Response> read(Services& services, Context& context);
Async<http::Response> replace(Services& services, Context& context);
Async<http::Response> remove(Services& services, Context& context);
}  // namespace containers

namespace documents {
/// Also upsert.
Async<http::Response> create(Services& services, Context& context);
Async<http::Response> read(Services& services, Context& context);
Async<http::Response> replace(Services& services, Context& context);
/// Partial update.
Async<http::Response> patch(Services& services, Context& context);
Async<http::Response> remove(Services& services, Context& context);
/// Transactional batch and bulk: POST …/docs with x-ms-cosmos-is-batch-request.
Async<http::Response> batch(Services& services, Context& context);
/// POST …/operations/partitionkeydelete
Async<http::Response> remove_all_of_key(Services& services, Context& context);
/// GET …/docs
Async<http::Response> read_feed(Services& services, Context& context);
Async<http::Response> query(Services& services, Context& context);
/// The query plan for a client that goes from range to range.
Async<http::Response> query_plan(Services& services, Context& context);
}  // namespace documents

namespace topology {
/// POST …/operations/split and …/operations/merge
Async<http::Response> split(Services& services, Context& context);
Async<http::Response> merge(Services& services, Context& context);
}  // namespace topology

namespace ranges {
Result<http::Response> list(Services& services, Context& context);
Result<http::Response> read(Services& services, Context& context);
/// The list of all ranges of the container.
http::Response show(Context& context, const catalog::Container& container);
}  // namespace ranges

namespace conflicts {
Result<http::Response> list(Services& services, Context& context);
/// For what reads or deletes one: NotFound, since there are none.
Result<http::Response> find(Services& services, Context& context);
}  // namespace conflicts

namespace encryption_keys {
Async<http::Response> create(Services& services, Context& context);
Result<http::Response> list(Services& services, Context& context);
Result<http::Response> read(Services& services, Context& context);
Async<http::Response> replace(Services& services, Context& context);
}  // namespace encryption_keys

namespace offers {
Result<http::Response> list(Services& services, Context& context);
Result<http::Response> read(Services& services, Context& context);
Async<http::Response> replace(Services& services, Context& context);
}  // namespace offers

}  // namespace orrery::api
