// Building responses: the headers that every answer has, that items have, and error bodies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/context.h"
#include "base/error.h"
#include "catalog/resources.h"
#include "http/message.h"
#include "http/refusal.h"
#include "protocol/ids.h"

namespace orrery::api {

/// How long a client should wait before it tries again what a full queue refused.
inline constexpr std::uint32_t kBusyRetryMs = 20;

/// A response with the headers that every answer carries. No body goes with 204 and 304.
http::Response reply(const Context& context, int status, std::string body = {},
                     std::string_view content_type = "application/json");

/// The error as the service writes it, with the headers that clients read from failures. Sets the
/// context's charge to what a failure costs.
http::Response error_reply(Context& context, const Error& error);
/// For requests that never became one: too slow, too large, broken.
http::Response refusal_reply(const http::Refusal& refusal, std::string_view activity_id);

/// content-location: the URL of the request, as the service has it on all that succeeds. Nothing
/// when the request does not say which host it was sent to.
void add_content_location(http::Response& response, const Context& context,
                          std::string_view advertised_endpoint);

/// x-ms-session-token for one range at `lsn`, and the group of LSN headers.
void add_range_headers(http::Response& response, const Context& context,
                       const catalog::Range& range, Lsn lsn);
/// The same for all ranges that an answer is from, with their heads: one of them; or of several a
/// session token of all, without what is of one only.
void add_head_headers(http::Response& response, const Context& context,
                      const std::vector<std::pair<const catalog::Range*, Lsn>>& heads);
/// The LSN of the item itself.
void add_item_lsn(http::Response& response, Lsn lsn);
/// x-ms-cosmos-query-execution-info, which every answer to a query has.
void add_query_execution_info(http::Response& response);
/// x-ms-alt-content-path and x-ms-content-path of a container's children.
void add_container_paths(http::Response& response, const catalog::Container& container);
/// x-ms-resource-quota and x-ms-resource-usage.
void add_quota(http::Response& response, const catalog::Container& container);

/// A random GUID.
std::string make_activity_id();

/// Whether a session token from the request names a position that the range has not reached.
/// SessionNotAvailable; BadRequest for a broken token.
Result<> check_session(const Context& context, const catalog::Range& range);
/// Consistency level of a read: BadRequest when unknown or stronger than the account's.
Result<> check_consistency(const Context& context);

/// Opens and closes `{"_rid":…,"<array>":[…],"_count":n}`; the members go in between.
void open_feed(std::string& out, std::string_view parent_rid, std::string_view array);
void close_feed(std::string& out, std::size_t count);

}  // namespace orrery::api
