#include "server/health.h"

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "api/context.h"
#include "api/reply.h"
#include "base/async.h"
#include "json/document_text.h"

namespace orrery::server {

boost::asio::awaitable<http::Response> answer_health(http::Request& request,
                                                     boost::asio::thread_pool& blocking,
                                                     std::function<Result<>()> check_ready) {
  api::Context context(request, api::make_activity_id());
  const std::string_view path =
      std::string_view(request.target).substr(0, request.target.find('?'));
  if (request.method != "GET" && request.method != "HEAD") {
    co_return api::error_reply(
        context, Error(ErrorCode::MethodNotAllowed, "Health can only be read (GET or HEAD)."));
  }
  if (path == "/alive") co_return api::reply(context, 200, R"({"alive":true})");
  if (path != "/ready" && path != "/status") {
    co_return api::error_reply(
        context, Error(ErrorCode::NotFound,
                       "This port answers /alive, /ready and /status. Data is at the other one."));
  }
  const auto ready = co_await run_blocking(blocking, std::move(check_ready));
  std::string body =
      fmt::format(R"({{"alive":true,"ready":{},"version":"{}")", ready.has_value(), ORRERY_VERSION);
  if (!ready) {
    body += ",\"reason\":";
    json::append_quoted(body, ready.error().message());
  }
  body.push_back('}');
  co_return api::reply(context, ready || path == "/status" ? 200 : 503, std::move(body));
}

}  // namespace orrery::server
