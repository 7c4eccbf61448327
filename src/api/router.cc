#include "api/router.h"

#include <optional>

#include <fmt/format.h>

#include "api/feed/change_feed.h"
#include "api/handlers.h"
#include "api/query/query_request.h"
#include "protocol/wire/headers.h"

namespace orrery::api {
namespace {

Error not_implemented(std::string_view feature) {
  return Error(ErrorCode::NotImplemented,
               fmt::format("{} not implemented yet in this version of Orrery.", feature));
}

Error wrong_verb(const Context& context) {
  return Error(ErrorCode::MethodNotAllowed,
               fmt::format("The requested verb is not supported: {} on /{}.",
                           context.request.method, context.path.text));
}

/// Parts of the service that come later. Nothing: it is here.
std::optional<std::string_view> missing_feature(ResourceType type) {
  switch (type) {
    case ResourceType::Procedures:
      return "Stored procedures are";
    case ResourceType::Triggers:
      return "Triggers are";
    case ResourceType::Udfs:
      return "User defined functions are";
    case ResourceType::Attachments:
      return "Attachments are";
    case ResourceType::Media:
      return "Media of attachments are";
    case ResourceType::Users:
      return "Users are";
    case ResourceType::Permissions:
      return "Permissions are";
    default:
      return {};
  }
}

bool is_query_content(std::string_view content_type) {
  return is_media_type(content_type, kQueryContent) || is_media_type(content_type, kSqlContent);
}

Result<http::Response> get_list(Services& services, Context& context) {
  switch (context.path.type) {
    case ResourceType::Databases:
      return databases::list(services, context);
    case ResourceType::Containers:
      return containers::list(services, context);
    case ResourceType::Ranges:
      return ranges::list(services, context);
    case ResourceType::Conflicts:
      return conflicts::list(services, context);
    case ResourceType::EncryptionKeys:
      return encryption_keys::list(services, context);
    case ResourceType::Offers:
      return offers::list(services, context);
    default:
      return wrong_verb(context);
  }
}

Async<http::Response> post_to_list(Services& services, Context& context) {
  ORRERY_CO_TRY(const auto kind, post_kind(context));
  const auto type = context.path.type;
  if (kind == PostKind::Batch) {
    if (type == ResourceType::Documents) co_return co_await documents::batch(services, context);
    co_return wrong_verb(context);
  }
  if (kind == PostKind::QueryPlan) {
    if (type == ResourceType::Documents || type == ResourceType::Conflicts)
      co_return co_await documents::query_plan(services, context);
    co_return wrong_verb(context);
  }
  if (kind == PostKind::Query) {
    // Not silently a query of what is, where one of what changes was asked for.
    if (!context.header(headers::kAIm).empty()) {
      co_return not_implemented("Queries of the change feed (use x-orrery-feed-filter) are");
    }
    if (type == ResourceType::Documents) co_return co_await documents::query(services, context);
    co_return get_list(services, context);
  }
  switch (type) {
    case ResourceType::Databases:
      co_return co_await databases::create(services, context);
    case ResourceType::Containers:
      co_return co_await containers::create(services, context);
    case ResourceType::EncryptionKeys:
      co_return co_await encryption_keys::create(services, context);
    case ResourceType::Documents:
      co_return co_await documents::create(services, context);
    default:
      co_return wrong_verb(context);
  }
}

Async<http::Response> dispatch_list(Services& services, Context& context) {
  const auto method = context.request.method;
  if (method == "POST") co_return co_await post_to_list(services, context);
  if (method != "GET") co_return wrong_verb(context);
  if (context.path.type == ResourceType::Documents) {
    co_return co_await documents::read_feed(services, context);
  }
  co_return get_list(services, context);
}

Async<http::Response> dispatch_member(Services& services, Context& context) {
  const auto method = context.request.method;
  switch (context.path.type) {
    case ResourceType::Databases:
      if (method == "GET") co_return databases::read(services, context);
      if (method == "DELETE") co_return co_await databases::remove(services, context);
      break;
    case ResourceType::Containers:
      if (method == "GET") co_return containers::read(services, context);
      if (method == "PUT") co_return co_await containers::replace(services, context);
      if (method == "DELETE") co_return co_await containers::remove(services, context);
      break;
    case ResourceType::Documents:
      if (method == "GET") co_return co_await documents::read(services, context);
      if (method == "PUT") co_return co_await documents::replace(services, context);
      if (method == "DELETE") co_return co_await documents::remove(services, context);
      if (method == "PATCH") co_return co_await documents::patch(services, context);
      break;
    case ResourceType::Ranges:
      if (method == "GET") co_return ranges::read(services, context);
      break;
    case ResourceType::Conflicts:
      if (method == "GET" || method == "DELETE") co_return conflicts::find(services, context);
      break;
    case ResourceType::EncryptionKeys:
      if (method == "GET") co_return encryption_keys::read(services, context);
      if (method == "PUT") co_return co_await encryption_keys::replace(services, context);
      break;
    case ResourceType::Offers:
      if (method == "GET") co_return offers::read(services, context);
      if (method == "PUT") co_return co_await offers::replace(services, context);
      break;
    case ResourceType::Split:
      if (method == "POST") co_return co_await topology::split(services, context);
      break;
    case ResourceType::Merge:
      if (method == "POST") co_return co_await topology::merge(services, context);
      break;
    case ResourceType::PartitionKeyDelete:
      if (method == "POST") co_return co_await documents::remove_all_of_key(services, context);
      break;
    default:
      break;
  }
  co_return wrong_verb(context);
}

}  // namespace

Result<PostKind> post_kind(const Context& context) {
  ORRERY_TRY(const bool batch, context.flag(headers::kIsBatchRequest));
  if (batch) return PostKind::Batch;
  ORRERY_TRY(const bool plan, context.flag(headers::kIsQueryPlanRequest));
  if (plan) return PostKind::QueryPlan;
  ORRERY_TRY(const bool is_query, context.flag(headers::kIsQuery));
  ORRERY_TRY(const bool query, context.flag(headers::kQuery));
  if (is_query || query || is_query_content(context.header(headers::kContentType))) {
    return PostKind::Query;
  }
  return PostKind::Create;
}

Result<bool> is_read(const Context& context) {
  const auto method = context.request.method;
  if (method == "GET" || method == "HEAD" || method == "OPTIONS") return true;
  if (method != "POST" || !context.path.is_feed) return false;
  ORRERY_TRY(const auto kind, post_kind(context));
  return kind == PostKind::Query || kind == PostKind::QueryPlan;
}

namespace {

Async<http::Response> dispatch_once(Services& services, Context& context) {
  const auto method = context.request.method;
  if (method == "HEAD" && context.path.is_feed && context.path.type == ResourceType::Documents &&
      !context.header(headers::kAIm).empty()) {
    co_return co_await change_feed_lag(services, context);
  }
  if (method == "HEAD" || method == "OPTIONS") co_return wrong_verb(context);
  const auto type = context.path.type;
  if (type == ResourceType::Account) {
    if (method != "GET") co_return wrong_verb(context);
    co_return read_account(services, context);
  }
  if (type == ResourceType::Addresses) {
    co_return Error(ErrorCode::NotFound,
                    "Direct mode is not supported: connect with ConnectionMode.Gateway.");
  }
  if (const auto feature = missing_feature(type)) co_return not_implemented(*feature);
  if (context.path.is_feed) co_return co_await dispatch_list(services, context);
  co_return co_await dispatch_member(services, context);
}

/// Whether the container that the request has looked up is not what there is now.
bool is_outdated(const Services& services, const Context& context) {
  return context.container &&
         services.catalog.container(context.container->rid) != context.container;
}

}  // namespace

Async<http::Response> dispatch(Services& services, Context& context) {
  constexpr int kAttemptsMax = 10;
  for (int attempt = 1;; ++attempt) {
    auto response = co_await dispatch_once(services, context);
    // A range was split or merged under the request: nothing was written, and it begins again with
    // the ranges that there are now. One that named its range hears that it is gone.
    const bool again = !response && response.error().code() == ErrorCode::RangeGone &&
                       attempt < kAttemptsMax && is_outdated(services, context);
    if (!again) co_return response;
    context.container = nullptr;
    context.range = nullptr;
    context.charge = kRefused;
  }
}

}  // namespace orrery::api
