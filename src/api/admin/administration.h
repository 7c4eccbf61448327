// Administration: what operators do to a running server, under /_orrery/. For keys that may write.
#pragma once

#include "api/context.h"
#include "api/services.h"
#include "base/async.h"
#include "http/message.h"

namespace orrery::api::administration {

/// NotFound for what is not there; Forbidden for a read-only key.
Async<http::Response> respond(Services& services, Context& context);

}  // namespace orrery::api::administration
