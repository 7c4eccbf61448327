#include "api/query/query_request.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/header_name.h"
#include "executor/range_slice.h"
#include "json/sort_key.h"
#include "protocol/container/index_path.h"
#include "protocol/container/search_policies.h"
#include "protocol/tokens/gateway_continuation.h"
#include "protocol/wire/headers.h"
#include "query/bind/computed.h"

namespace orrery::api {
namespace {

/// From a token that we have made.
Result<QueryPosition> own_position(std::string_view token, const query::PreparedQuery& query) {
  ORRERY_TRY(auto position, decode_query_continuation(token));
  if (position.query != query.hash()) {
    return Error(ErrorCode::BadRequest,
                 "Invalid Continuation Token. It belongs to another query: text and parameters "
                 "must be those that it was given for.");
  }
  return position;
}

/// From the service's tokens of some ranges, in order. Documents between them and after them have
/// not been read.
Result<QueryPosition> position_in_ranges(const std::vector<RangeToken>& tokens,
                                         const query::PreparedQuery& query, const Rid* container) {
  if (container == nullptr) return malformed_query_continuation();
  QueryPosition position;
  position.query = query.hash();
  position.at.range_min = tokens.front().range.min;
  position.at.range_max = tokens.front().range.max;
  for (const RangeToken& each : tokens) {
    DocumentNumber after;
    if (!each.token.empty()) {
      if (query.shape() != query::PreparedQuery::Shape::Stream) {
        return malformed_query_continuation();
      }
      ORRERY_TRY(const auto token, parse_service_token(each.token));
      if (token.rid.container_rid() == *container) {
        after = DocumentNumber{token.rid.counter() - (token.is_inclusive ? 1 : 0)};
        position.rows.emitted += token.rows;
      }
    }
    if (&each == &tokens.front()) {
      position.at.after = after;
      continue;
    }
    auto& rests = position.at.rests;
    const Epk& end = rests.empty() ? *position.at.range_max : rests.back().max;
    if (end < each.range.min) rests.push_back({each.range.min, {}});
    rests.push_back({each.range.max, after});
  }
  if (position.rows.emitted > 0 && query.tree().offset) {
    position.rows.skipped = query.tree().offset->value;
  }
  return position;
}

}  // namespace

bool is_media_type(std::string_view content_type, std::string_view type) {
  std::string_view name = content_type.substr(0, content_type.find(';'));
  name = name.substr(0, name.find_last_not_of(" \t") + 1);
  return equal_ignoring_case(name, type);
}

Result<QueryBody> parse_query_body(const Context& context) {
  QueryBody body;
  if (is_media_type(context.header(headers::kContentType), kSqlContent)) {
    body.text = context.request.body;
    return body;
  }
  ORRERY_TRY(const auto parsed, json::Value::parse(context.request.body));
  const json::Value text = parsed.member("query");
  if (!text.is_string()) {
    return Error(ErrorCode::BadRequest,
                 "The body of a query is {\"query\":\"…\",\"parameters\":[…]}.");
  }
  std::string buffer;
  body.text = text.as_string(buffer);
  ORRERY_TRY(body.parameters, query::Parameters::parse(parsed.member("parameters")));
  body.resume_filter = parsed.member("resumeFilter");
  body.resume_filter.own();
  return body;
}

Result<QueryPosition> query_position(const Context& context, const query::PreparedQuery& query,
                                     const Rid* container) {
  const auto text = context.header(headers::kContinuation);
  if (text.empty()) return QueryPosition();
  if (is_service_token(text))
    return position_in_ranges({{std::string(text), {}}}, query, container);
  if (!is_wrapped_token(text)) return own_position(text, query);
  ORRERY_TRY(const auto tokens, unwrap_token(text));
  const bool is_ours = tokens.size() == 1 && !tokens.front().token.empty() &&
                       !is_service_token(tokens.front().token);
  if (!is_ours) return position_in_ranges(tokens, query, container);
  ORRERY_TRY(auto position, own_position(tokens.front().token, query));
  if (told_range(position) != tokens.front().range) return malformed_query_continuation();
  return position;
}

Result<std::optional<QueryPosition>> resume_position(const json::Value& filter,
                                                     const query::PreparedQuery& query) {
  if (filter.is_undefined() || filter.is_null()) return std::optional<QueryPosition>();
  // Rows that are not sorted have no place that values could name.
  if (query.shape() != query::PreparedQuery::Shape::Ordered) return std::optional<QueryPosition>();
  const json::Value values = filter.member("value");
  const query::Query& tree = query.tree();
  if (!values.is_array() || values.size() > tree.order_by.size()) {
    return Error(ErrorCode::BadRequest,
                 "resumeFilter must have a value for each item of the query's ORDER BY.");
  }
  QueryPosition position;
  position.query = query.hash();
  std::string key;
  std::size_t item = 0;
  for (json::Reader reader(values); reader.next(); ++item) {
    const json::Value value = reader.value();
    const bool is_descending = tree.order_by[item].is_descending.value_or(false);
    if (value.is_object()) {
      // Known by its hash only, which is not ours: all of its type are taken for later ones, and
      // the client drops what it has seen.
      const auto tag =
          value.member("type").is_string("array") ? json::SortTag::Array : json::SortTag::Object;
      const auto byte = static_cast<unsigned>(tag);
      key.push_back(static_cast<char>(is_descending ? ~byte : byte));
      break;
    }
    const json::Value sorted = value.is_array() ? json::Value() : json::Value::referring_to(value);
    if (is_descending) {
      json::append_sort_key_descending(key, sorted);
    } else {
      json::append_sort_key(key, sorted);
    }
  }
  position.rows.key = std::move(key);
  if (filter.member("exclude").is_true()) {
    position.at = {Epk::min(), executor::kAllDocuments, Epk::max(), {}};
  } else if (const json::Value rid = filter.member("rid"); rid.is_string()) {
    std::string buffer;
    const auto parsed = Rid::parse(rid.as_string(buffer));
    if (!parsed || parsed->kind() != RidKind::Document) {
      return Error(ErrorCode::BadRequest, "The rid of resumeFilter is not that of a document.");
    }
    // Inclusive: what comes before it is passed over.
    position.at = {Epk::min(), DocumentNumber{parsed->counter() - 1}, Epk::max(), {}};
  }
  return std::optional(std::move(position));
}

}  // namespace orrery::api
