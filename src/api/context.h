// Context: what is known about one request on its way through the server.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/authorizer.h"
#include "api/charge.h"
#include "api/target.h"
#include "base/background_pool.h"
#include "base/result.h"
#include "base/work_budget.h"
#include "http/message.h"
#include "protocol/tokens/session_token.h"
#include "protocol/wire/resource_path.h"

namespace orrery::api {

struct Context {
  Context(http::Request& incoming, std::string activity)
      : request(incoming), activity_id(std::move(activity)) {}

  http::Request& request;
  std::string activity_id;
  ResourcePath path;
  Principal principal;
  std::string_view api_version;  ///< empty: the newest
  SessionTokenForm token_form = SessionTokenForm::Vector;

  /// Set as soon as it is known, so that an error carries it too: clients take the session token
  /// from a 404, 409 or 412 as well.
  Target target;
  /// When the request came: what it waits for counts from here, also when it begins again.
  const std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();

  Charge charge = kRefused;
  std::chrono::milliseconds retry_after{0};  ///< of a refusal; 0: what is usual for the error
  bool is_batch = false;  ///< whose failures carry no x-ms-content-path: .NET's client counts on it

  std::string_view header(HeaderName name) const { return request.header(name); }
  /// "true" in any case. BadRequest, naming the header, for anything else but "false" or nothing.
  Result<bool> flag(HeaderName name) const;
};

/// The client that the request's threads are counted for: all requests from one address with the
/// same kind of key.
ClientId client_of(const Context& context);

/// Cancels work done for this request on other threads once its client has gone. For its event
/// loop. Null where no client can leave.
Cancellation when_client_leaves(const Context& context);

/// Counts the answer to this request as soon as it has been read: see http::Client::hold_answer. On
/// TooManyRequests let it go; the client is told when to come back.
Result<> hold_answer(Context& context, std::size_t bytes);

/// x-ms-max-item-count: `absent` when absent or 0, nothing for -1 (no bound by count). BadRequest
/// for the rest.
Result<std::optional<std::uint32_t>> page_size(const Context& context, std::uint32_t absent);

}  // namespace orrery::api
