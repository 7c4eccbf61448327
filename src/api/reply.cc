#include "api/reply.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include "base/header_name.h"
#include "json/document_text.h"
#include "protocol/utf8.h"
#include "protocol/wire/headers.h"
#include "protocol/wire/wire_error.h"

namespace orrery::api {
namespace {

/// How long a client should wait before it tries again.
constexpr std::uint64_t kUnavailableRetryMs = 500;

constexpr std::string_view kSchemaVersion = "1.1";

void add_common_headers(http::Response& response, std::string_view activity_id, Charge charge) {
  response.add(headers::kActivityId.text, activity_id);
  std::string charge_text;
  charge.append_text(charge_text);
  response.add(headers::kRequestCharge.text, charge_text);
  response.add(headers::kServiceVersion.text, "version=2.14.0.0");
  response.add(headers::kGatewayVersion.text, "version=2.14.0");
  response.add(headers::kCacheControl.text, "no-store, no-cache");
  response.add(headers::kPragma.text, "no-cache");
}

/// Messages quote what clients send, which may be anything; a body is UTF-8.
std::string valid_utf8(const std::string& text) {
  if (is_valid_utf8(text)) return text;
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = decode_utf8(text, at).size;
    if (size == 0) {
      append_utf8(out, U'\uFFFD');
      ++at;
    } else {
      out.append(text, at, size);
      at += size;
    }
  }
  return out;
}

/// The service wraps some texts, and clients compare this one with what is in the list. Ours says
/// more, in a second entry.
std::string message_of(const Error& error) {
  constexpr std::string_view kTooLarge = "Request size is too large";
  constexpr std::string_view kSeparator = ": ";
  std::string_view text = error.message();
  if (error.code() != ErrorCode::RequestTooLarge || !text.starts_with(kTooLarge)) {
    return valid_utf8(error.message());
  }
  text.remove_prefix(kTooLarge.size());
  std::string message = R"(Message: {"Errors":[)";
  json::append_quoted(message, kTooLarge);
  if (text.starts_with(kSeparator)) {
    message.push_back(',');
    json::append_quoted(message, text.substr(kSeparator.size()));
  }
  return message + "]}";
}

/// `retry_after_ms` 0: what is usual for the error.
http::Response error_response(const Error& error, std::string_view activity_id, Charge charge,
                              std::uint64_t retry_after_ms = 0) {
  const WireError wire = wire_error(error.code());
  http::Response response;
  response.status = wire.status;
  response.body = "{\"code\":";
  if (error.code() == ErrorCode::NumberNotInJson) {
    response.body += wire.code;  // The one code that clients know as a number.
  } else {
    json::append_quoted(response.body, wire.code);
  }
  response.body += ",\"message\":";
  json::append_quoted(response.body, fmt::format("{}\r\nActivityId: {}, Orrery/1.0",
                                                 message_of(error), activity_id));
  response.body.push_back('}');
  response.add(headers::kContentType.text, "application/json");
  add_common_headers(response, activity_id, charge);
  if (wire.substatus != 0) {
    response.add(headers::kSubstatus.text, static_cast<std::uint64_t>(wire.substatus));
  }
  if (retry_after_ms == 0) {
    retry_after_ms = error.code() == ErrorCode::TooManyRequests ? kBusyRetryMs
                     : wire.status == 503                       ? kUnavailableRetryMs
                                                                : 0;
  }
  if (retry_after_ms != 0) response.add(headers::kRetryAfterMs.text, retry_after_ms);
  return response;
}

}  // namespace

http::Response reply(const Context& context, int status, std::string body,
                     std::string_view content_type) {
  http::Response response;
  response.status = status;
  response.body = std::move(body);
  if (status != 204 && status != 304) response.add(headers::kContentType.text, content_type);
  add_common_headers(response, context.activity_id, context.charge);
  return response;
}

namespace {

/// Errors of requests on a container, or on its ranges, carry nothing of it: clients take its path
/// for that of an item.
bool is_within_container(const ResourcePath& path) {
  return path.type != ResourceType::Containers && path.type != ResourceType::Ranges;
}

}  // namespace

http::Response error_reply(Context& context, const Error& error) {
  const bool failed_write =
      error.code() == ErrorCode::Conflict || error.code() == ErrorCode::PreconditionFailed;
  context.charge = failed_write ? kFailedWrite : kRefused;
  auto response = error_response(error, context.activity_id, context.charge,
                                 static_cast<std::uint64_t>(context.retry_after.count()));
  if (context.target.container && is_within_container(context.path)) {
    response.add(headers::kAltContentPath.text, context.target.container->alt_content_path);
    // Not on a 404: clients take the path there for that of an item.
    if (response.status != 404 && !context.is_batch) {
      response.add(headers::kContentPath.text, context.target.container->rid_text);
    }
    if (context.target.range != nullptr) {
      add_range_headers(response, context, *context.target.range,
                        context.target.range->partition->head());
    }
  }
  return response;
}

http::Response refusal_reply(const http::Refusal& refusal, std::string_view activity_id) {
  return error_response(refusal.error, activity_id, kRefused,
                        static_cast<std::uint64_t>(refusal.retry_after.count()));
}

void add_content_location(http::Response& response, const Context& context,
                          std::string_view advertised_endpoint) {
  const std::string_view target = context.request.target;
  const std::string_view host = context.header(headers::kHost);
  const std::string_view slash = target.starts_with('/') ? "" : "/";
  if (!advertised_endpoint.empty()) {
    if (advertised_endpoint.ends_with('/')) advertised_endpoint.remove_suffix(1);
    response.add("content-location", {advertised_endpoint, slash, target});
  } else if (!host.empty()) {
    response.add("content-location",
                 {context.request.secure ? "https://" : "http://", host, slash, target});
  }
}

void add_range_headers(http::Response& response, const Context& context,
                       const catalog::Range& range, Lsn lsn) {
  std::string token;
  append_session_entry(token, context.token_form, context.target.container->session_version,
                       range.id, lsn);
  response.add(headers::kSessionToken.text, token);
  response.add(headers::kPartitionKeyRangeId.text, range.id.value);
  response.add(headers::kLsn.text, lsn.value);
  response.add(headers::kLocalLsn.text, lsn.value);
  response.add(headers::kQuorumAckedLsn.text, lsn.value);
  response.add(headers::kQuorumAckedLocalLsn.text, lsn.value);
  response.add(headers::kGlobalCommittedLsn.text, lsn.value);
  response.add(headers::kNumberOfReadRegions.text, "0");
  response.add(headers::kCurrentWriteQuorum.text, "1");
  response.add(headers::kCurrentReplicaSetSize.text, "1");
  response.add(headers::kTransportRequestId.text, "1");
  response.add(headers::kXpRole.text, "1");
  response.add(headers::kSchemaVersion.text, kSchemaVersion);
}

void add_head_headers(http::Response& response, const Context& context,
                      const std::vector<std::pair<const catalog::Range*, Lsn>>& heads) {
  if (heads.size() == 1) {
    add_range_headers(response, context, *heads.front().first, heads.front().second);
    return;
  }
  std::string token;
  for (const auto& [range, head] : heads) {
    if (!token.empty()) token.push_back(',');
    append_session_entry(token, context.token_form, context.target.container->session_version,
                         range->id, head);
  }
  response.add(headers::kSessionToken.text, token);
  response.add(headers::kSchemaVersion.text, kSchemaVersion);
}

void add_item_lsn(http::Response& response, Lsn lsn) {
  response.add(headers::kItemLsn.text, lsn.value);
  response.add(headers::kItemLocalLsn.text, lsn.value);
}

void add_query_execution_info(http::Response& response) {
  response.add(headers::kQueryExecutionInfo.text,
               R"({"reverseRidEnabled":false,"reverseIndexScan":false})");
}

void add_container_paths(http::Response& response, const catalog::Container& container) {
  response.add(headers::kAltContentPath.text, container.alt_content_path);
  response.add(headers::kContentPath.text, container.rid_text);
}

void add_quota(http::Response& response, const catalog::Container& container) {
  response.add(headers::kResourceQuota.text,
               "functions=50;storedProcedures=100;triggers=25;documentSize=10240;"
               "documentsSize=10485760;documentsCount=-1;collectionSize=10485760;");
  std::uint64_t documents = 0;
  std::uint64_t bytes = 0;
  for (const catalog::Range& range : container.ranges.all()) {
    documents += range.partition->documents();
    bytes += range.partition->text_bytes();
  }
  char usage[160];
  const auto end = fmt::format_to_n(usage, sizeof usage,
                                    "functions=0;storedProcedures=0;triggers=0;documentSize=0;"
                                    "documentsSize={};documentsCount={};collectionSize={};",
                                    bytes / 1024, documents, bytes / 1024);
  response.add(headers::kResourceUsage.text, std::string_view(usage, end.out));
}

std::string make_activity_id() {
  // Names a request in diagnostics; need not be unpredictable.
  thread_local std::mt19937_64 generator{std::random_device{}()};
  const std::uint64_t high = generator();
  const std::uint64_t low = generator();
  std::string id(36, '-');
  constexpr char kDigits[] = "0123456789abcdef";
  std::size_t nibble = 0;
  for (std::size_t at = 0; at < id.size(); ++at) {
    if (at == 8 || at == 13 || at == 18 || at == 23) continue;
    const std::uint64_t word = nibble < 16 ? high : low;
    id[at] = kDigits[(word >> ((nibble % 16) * 4)) & 0xF];
    ++nibble;
  }
  id[14] = '4';
  id[19] = kDigits[8 + (low & 3)];
  return id;
}

Result<> check_session(const Context& context, const catalog::Range& range) {
  const auto header = context.header(headers::kSessionToken);
  if (header.empty()) return {};
  ORRERY_TRY(const auto entries, parse_session_token(header));
  const auto level = context.header(headers::kConsistencyLevel);
  if (!level.empty() && !equal_ignoring_case(level, "Session")) return {};
  for (const SessionEntry& entry : entries) {
    const bool concerns = entry.range == range.id ||
                          std::ranges::find(range.parents, entry.range) != range.parents.end();
    // That of another container, which newer Python clients send after writes with minimal answers,
    // or of this one in another life of the store says nothing about it.
    const bool ours = entry.version == kSessionVersionUnknown ||
                      entry.version == context.target.container->session_version;
    if (concerns && ours && entry.lsn > range.partition->head()) {
      return Error(ErrorCode::SessionNotAvailable,
                   fmt::format("The read session is not available for the input session token: it "
                               "names LSN {} of range {}, which stands at {}. It comes from "
                               "another server or container, or from a container of this name that "
                               "was deleted; drop the token.",
                               entry.lsn.value, range.id.text(), range.partition->head().value));
    }
  }
  return {};
}

Result<> check_consistency(const Context& context) {
  const auto level = context.header(headers::kConsistencyLevel);
  if (level.empty()) return {};
  for (const auto weaker : {"Session", "ConsistentPrefix", "Eventual"}) {
    if (equal_ignoring_case(level, weaker)) return {};
  }
  for (const auto stronger : {"Strong", "BoundedStaleness", "Bounded"}) {
    if (equal_ignoring_case(level, stronger)) {
      return Error(ErrorCode::BadRequest,
                   fmt::format("The consistency level {} is stronger than the account's, Session. "
                               "Ask for Session, ConsistentPrefix or Eventual, or for none.",
                               level));
    }
  }
  return Error(
      ErrorCode::BadRequest,
      fmt::format("'{}' is not a consistency level. x-ms-consistency-level is one of Strong, "
                  "BoundedStaleness, Session, ConsistentPrefix, Eventual.",
                  level));
}

void open_feed(std::string& out, std::string_view parent_rid, std::string_view array) {
  out.append("{\"_rid\":\"").append(parent_rid).append("\",\"").append(array).append("\":[");
}

void close_feed(std::string& out, std::size_t count) {
  fmt::format_to(std::back_inserter(out), "],\"_count\":{}}}", count);
}

}  // namespace orrery::api
