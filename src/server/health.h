// The port that health checks of containers ask: /alive, /ready and /status, as the vendor's
// emulator answers them. Nothing there needs a key, and nothing of the data can be seen.
#pragma once

#include <functional>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>

#include "base/result.h"
#include "http/message.h"

namespace orrery::server {

/// 200 or 503 with a reason, 404 for all else. `check_ready` says whether a write would succeed,
/// and may block.
boost::asio::awaitable<http::Response> answer_health(http::Request& request,
                                                     boost::asio::thread_pool& blocking,
                                                     std::function<Result<>()> check_ready);

}  // namespace orrery::server
