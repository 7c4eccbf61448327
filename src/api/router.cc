#include "api/router.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "api/feed/change_feed.h"
#include "api/handlers.h"
#include "api/query/query_request.h"
#include "api/target.h"
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

using Handler = Async<http::Response> (*)(Services& services, Context& context);

/// A handler that never waits, as one that may.
template <Result<http::Response> (*handle)(Services&, Context&)>
Async<http::Response> at_once(Services& services, Context& context) {
  co_return handle(services, context);
}

/// Lists, and queries over what they list.
Result<Handler> list_handler(const Context& context) {
  switch (context.path.type) {
    case ResourceType::Databases:
      return at_once<databases::list>;
    case ResourceType::Containers:
      return at_once<containers::list>;
    case ResourceType::Ranges:
      return at_once<ranges::list>;
    case ResourceType::Conflicts:
      return at_once<conflicts::list>;
    case ResourceType::EncryptionKeys:
      return at_once<encryption_keys::list>;
    case ResourceType::Offers:
      return at_once<offers::list>;
    default:
      return wrong_verb(context);
  }
}

Result<Handler> create_handler(const Context& context) {
  switch (context.path.type) {
    case ResourceType::Databases:
      return databases::create;
    case ResourceType::Containers:
      return containers::create;
    case ResourceType::EncryptionKeys:
      return encryption_keys::create;
    case ResourceType::Documents:
      return documents::create;
    default:
      return wrong_verb(context);
  }
}

Result<Handler> post_handler(const Context& context) {
  ORRERY_TRY(const auto kind, post_kind(context));
  const bool is_documents = context.path.type == ResourceType::Documents;
  switch (kind) {
    case PostKind::Batch:
      if (is_documents) return documents::batch;
      return wrong_verb(context);
    case PostKind::QueryPlan:
      if (is_documents || context.path.type == ResourceType::Conflicts) {
        return documents::query_plan;
      }
      return wrong_verb(context);
    case PostKind::Query:
      // Not silently a query of what is, where one of what changes was asked for.
      if (!context.header(headers::kAIm).empty()) {
        return not_implemented("Queries of the change feed (use x-orrery-feed-filter) are");
      }
      if (is_documents) return documents::query;
      return list_handler(context);
    case PostKind::Create:
      return create_handler(context);
  }
  std::unreachable();
}

Result<Handler> handler_of_list(const Context& context) {
  const auto method = context.request.method;
  if (method == "POST") return post_handler(context);
  if (method != "GET") return wrong_verb(context);
  if (context.path.type != ResourceType::Documents) return list_handler(context);
  return context.header(headers::kAIm).empty() ? documents::read_feed : change_feed;
}

Result<Handler> handler_of_member(const Context& context) {
  const auto method = context.request.method;
  switch (context.path.type) {
    case ResourceType::Databases:
      if (method == "GET") return at_once<databases::read>;
      if (method == "DELETE") return databases::remove;
      break;
    case ResourceType::Containers:
      if (method == "GET") return at_once<containers::read>;
      if (method == "PUT") return containers::replace;
      if (method == "DELETE") return containers::remove;
      break;
    case ResourceType::Documents:
      if (method == "GET") return documents::read;
      if (method == "PUT") return documents::replace;
      if (method == "DELETE") return documents::remove;
      if (method == "PATCH") return documents::patch;
      break;
    case ResourceType::Ranges:
      if (method == "GET") return at_once<ranges::read>;
      break;
    case ResourceType::Conflicts:
      if (method == "GET" || method == "DELETE") return at_once<conflicts::find>;
      break;
    case ResourceType::EncryptionKeys:
      if (method == "GET") return at_once<encryption_keys::read>;
      if (method == "PUT") return encryption_keys::replace;
      break;
    case ResourceType::Offers:
      if (method == "GET") return at_once<offers::read>;
      if (method == "PUT") return offers::replace;
      break;
    case ResourceType::Split:
      if (method == "POST") return topology::split;
      break;
    case ResourceType::Merge:
      if (method == "POST") return topology::merge;
      break;
    case ResourceType::PartitionKeyDelete:
      if (method == "POST") return documents::remove_all_of_key;
      break;
    default:
      break;
  }
  return wrong_verb(context);
}

Result<Handler> handler_of(const Context& context) {
  const auto method = context.request.method;
  const ResourcePath& path = context.path;
  if (method == "HEAD" && path.is_feed && path.type == ResourceType::Documents &&
      !context.header(headers::kAIm).empty()) {
    return change_feed_lag;
  }
  if (method == "HEAD" || method == "OPTIONS") return wrong_verb(context);
  if (path.type == ResourceType::Account) {
    if (method != "GET") return wrong_verb(context);
    return at_once<read_account>;
  }
  if (path.type == ResourceType::Addresses) {
    return Error(ErrorCode::NotFound,
                 "Direct mode is not supported: connect with ConnectionMode.Gateway.");
  }
  if (const auto feature = missing_feature(path.type)) return not_implemented(*feature);
  return path.is_feed ? handler_of_list(context) : handler_of_member(context);
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

Result<Action> action_of(const Context& context) {
  const auto method = context.request.method;
  if (method == "GET" || method == "HEAD" || method == "OPTIONS") return Action::Read;
  if (method != "POST" || !context.path.is_feed) return Action::Write;
  ORRERY_TRY(const auto kind, post_kind(context));
  return kind == PostKind::Query || kind == PostKind::QueryPlan ? Action::Read : Action::Write;
}

Async<http::Response> dispatch(Services& services, Context& context, Action action) {
  const auto handler = handler_of(context);
  for (int attempt = 1;; ++attempt) {
    const auto resolved = handler ? resolve(services, context) : Result<>();
    // First of all: who may not do this is not told either what there is.
    ORRERY_CO_TRY(authorize(context.principal, action, context.target));
    if (!handler) co_return Error(handler.error());
    ORRERY_CO_TRY(resolved);
    auto response = co_await (*handler)(services, context);
    // A range was split or merged under the request: nothing was written, and it begins again with
    // the ranges that there are now. One that named its range hears that it is gone.
    const bool again = !response && response.error().code() == ErrorCode::RangeGone &&
                       attempt < kRangeGoneAttemptsMax && is_outdated(services, context.target);
    if (!again) co_return response;
    context.charge = kRefused;
  }
}

}  // namespace orrery::api
