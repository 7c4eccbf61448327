#include "api/pipeline.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "api/admin/administration.h"
#include "api/admin/explorer.h"
#include "api/reply.h"
#include "api/router.h"
#include "base/async.h"
#include "base/diagnostics.h"
#include "protocol/auth/well_known_key.h"
#include "protocol/wire/headers.h"
#include "protocol/wire/wire_error.h"

namespace orrery::api {
namespace {

/// A principal as http::Request::admission has it: never 0.
std::uint64_t admission_of(const Principal& principal) {
  return principal.key << 1 | (principal.access == Access::ReadWrite ? 1 : 0);
}
Principal principal_of(std::uint64_t admission) {
  return {(admission & 1) != 0 ? Access::ReadWrite : Access::ReadOnly, admission >> 1};
}

/// The client's activity id, if it can be one: it goes into headers, bodies and diagnostics.
std::string activity_id_of(const http::Request& request) {
  constexpr std::size_t kActivityIdMax = 64;
  const auto given = request.header(headers::kActivityId);
  const bool usable =
      !given.empty() && given.size() <= kActivityIdMax &&
      std::ranges::all_of(given, [](unsigned char c) { return std::isalnum(c) || c == '-'; });
  return usable ? std::string(given) : make_activity_id();
}

/// Whether somebody was not let in, rather than mistaken: by the key, by the name of the host, or
/// because there was no room.
bool leaves_a_trace(const Context& context, const Error& error) {
  const int status = wire_error(error.code()).status;
  if (status == 500 || status == 503) return false;
  return !context.request.authorized || error.code() == ErrorCode::Forbidden ||
         error.code() == ErrorCode::TooManyRequests;
}

/// Whether somebody has typed the address into a browser: no client of the API does that.
bool asks_for_a_page(const http::Request& request) {
  return (request.method == "GET" || request.method == "HEAD") &&
         !request.has_header(headers::kAuthorization) &&
         request.header(headers::kAccept).find("text/html") != std::string_view::npos;
}

Error only_read(std::string_view path) {
  return Error(ErrorCode::MethodNotAllowed,
               fmt::format("/{} can only be read (GET or HEAD).", path));
}

/// Own routes need no key, so that a body for one of them is not waited for.
Result<> refuse_body(const http::Request& request, std::string_view path) {
  if (request.method != "GET" && request.method != "HEAD") return only_read(path);
  return Error(ErrorCode::BadRequest, fmt::format("/{} takes no body.", path));
}

/// YYYY-MM-DD; every date is accepted, also ones that were never published.
Result<> check_version(std::string_view version) {
  if (version.empty()) return {};
  bool dated = version.size() == 10;
  for (std::size_t i = 0; dated && i < version.size(); ++i) {
    dated = i == 4 || i == 7 ? version[i] == '-'
                             : std::isdigit(static_cast<unsigned char>(version[i])) != 0;
  }
  if (dated) return {};
  return Error(ErrorCode::BadRequest,
               fmt::format("x-ms-version must be a date like 2020-07-15, not '{}'.", version));
}

}  // namespace

boost::asio::awaitable<http::Response> Pipeline::handle(http::Request& request) {
  Context context(request, activity_id_of(request));
  auto outcome = co_await respond(context);
  if (outcome) {
    count(*outcome, context.charge);
    co_return std::move(*outcome);
  }
  co_return refusal_of(context, outcome.error());
}

http::Response Pipeline::refusal_of(Context& context, const Error& error) {
  const http::Request& request = context.request;
  auto response = error_reply(context, error);
  // A disk that refuses is told of once, by the committer, not with every request that it fails.
  if (error.code() == ErrorCode::Internal) {
    diagnostics::error("{} {} answered {}: {} (activity {})", request.method, request.target,
                       response.status, error.message(), context.activity_id);
  }
  if (leaves_a_trace(context, error)) {
    const auto client = request.client != nullptr ? request.client->address() : std::string();
    refusals_.add({.client = client,
                   .method = request.method,
                   .target = request.target,
                   .status = response.status,
                   .substatus = wire_error(error.code()).substatus,
                   .reason = error.message(),
                   .activity_id = context.activity_id});
  }
  count(response, context.charge);
  return response;
}

std::optional<http::Response> Pipeline::admit(http::Request& request) {
  const auto path = parse_resource_path(request.target);
  const bool own = path && path->type == ResourceType::Own;
  auto checked = check_host(request);
  if (checked && own) {
    checked = refuse_body(request, path->text);
  } else if (checked) {
    checked = check_key(request, path);
  }
  if (checked) return std::nullopt;
  Context context(request, activity_id_of(request));
  return refusal_of(context, checked.error());
}

Result<> Pipeline::check_host(const http::Request& request) const {
  return services_.hosts.check(request.header(headers::kHost), request.header(headers::kOrigin));
}

/// Everybody has the key, so that what the account is called is no secret.
bool Pipeline::is_open_to_all(const http::Request& request,
                              const Result<ResourcePath>& path) const {
  return services_.shows_account_to_all && path && path->type == ResourceType::Account &&
         (request.method == "GET" || request.method == "HEAD") &&
         !request.has_header(headers::kAuthorization) &&
         std::ranges::any_of(services_.keys->in_force(),
                             [](const AccountKey& key) { return key.text == kWellKnownKey; });
}

/// Notes in the request what the key may do, so that it is verified once.
Result<> Pipeline::check_key(http::Request& request, const Result<ResourcePath>& path) {
  if (request.admission != 0) return {};
  ORRERY_TRY(const auto principal, authenticator_.authenticate(request, path ? &*path : nullptr));
  request.admission = admission_of(principal);
  request.authorized = true;
  return {};
}

http::Response Pipeline::refuse(const http::Refusal& refusal) {
  const auto activity_id = make_activity_id();
  auto response = refusal_reply(refusal, activity_id);
  refusals_.add({.client = refusal.client,
                 .method = refusal.method,
                 .target = refusal.target,
                 .status = response.status,
                 .substatus = wire_error(refusal.error.code()).substatus,
                 .reason = refusal.error.message(),
                 .activity_id = activity_id});
  count(response, kRefused);
  return response;
}

void Pipeline::count(const http::Response& response, Charge charge) {
  const auto hundreds = static_cast<std::size_t>(response.status / 100);
  if (hundreds < stats_.responses.size()) {
    stats_.responses[hundreds].fetch_add(1, std::memory_order_relaxed);
  }
  if (response.status == 429) stats_.throttled.fetch_add(1, std::memory_order_relaxed);
  stats_.charge_hundredths.fetch_add(static_cast<std::uint64_t>(charge.hundredths),
                                     std::memory_order_relaxed);
}

Async<http::Response> Pipeline::respond(Context& context) {
  http::Request& request = context.request;
  ORRERY_CO_TRY(check_host(request));
  auto path = parse_resource_path(request.target);
  if (path && path->type == ResourceType::Own) {
    context.path = std::move(*path);
    co_return co_await respond_own(context);
  }
  if (path && path->type == ResourceType::Account && asks_for_a_page(request)) {
    co_return explorer::redirect_from_root(context);
  }
  if (!is_open_to_all(request, path)) ORRERY_CO_TRY(check_key(request, path));
  context.principal = principal_of(request.admission);
  if (!path) co_return Error(path.error());
  context.path = std::move(*path);
  if (context.path.type == ResourceType::Administration) {
    co_return co_await administration::respond(services_, context);
  }

  ORRERY_CO_TRY(const Action action, action_of(context));
  context.api_version = context.header(headers::kVersion);
  ORRERY_CO_TRY(check_version(context.api_version));
  context.token_form = session_token_form(context.api_version);
  auto response = co_await dispatch(services_, context, action);
  if (response) {
    response->repeatable = action == Action::Read;
    add_content_location(*response, context, services_.advertised_endpoint);
  }
  co_return response;
}

Async<http::Response> Pipeline::respond_own(Context& context) {
  const std::string& path = context.path.text;
  const http::Request& request = context.request;
  auto page = explorer::serve(context);
  const bool known = path == "_health" || path == "_ready" || path == "_metrics" ||
                     path == "_explorer/emulator.pem" || page;
  if (!known) {
    // A stranger learns nothing about what is here and what is not.
    ORRERY_CO_TRY(authenticator_.authenticate(request, nullptr));
    co_return Error(ErrorCode::NotFound, fmt::format("Resource Not Found. There is no /{}.", path));
  }
  if (request.method != "GET" && request.method != "HEAD") {
    co_return only_read(path);
  }
  if (page) co_return std::move(*page);
  if (path == "_health") {
    co_return reply(context, 200, R"({"status":"alive"})");
  }
  if (path == "_ready") {
    ORRERY_CO_TRY(
        co_await run_blocking(services_.blocking, [this] { return services_.check_ready(); }));
    co_return reply(context, 200, R"({"status":"ready"})");
  }
  if (path == "_metrics") {
    // Open to this machine. From elsewhere the figures of an account are nobody's business.
    if (!request.from_loopback && !authenticator_.bears_key(request)) {
      co_return Error(
          ErrorCode::Unauthorized,
          "From beyond this machine metrics need 'Authorization: Bearer <account key>'.");
    }
    auto text = co_await run_blocking(services_.blocking, [this] { return services_.metrics(); });
    co_return reply(context, 200, std::move(text), "text/plain; version=0.0.4");
  }
  auto certificate = services_.certificate_pem ? services_.certificate_pem() : std::string();
  if (certificate.empty()) {
    co_return Error(ErrorCode::NotFound, "Resource Not Found. The server has no certificate.");
  }
  co_return reply(context, 200, std::move(certificate), "application/x-pem-file");
}

}  // namespace orrery::api
