#include "protocol/tokens/gateway_continuation.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "json/value.h"

namespace orrery {
namespace {

std::optional<std::string> text_of(const json::Value& value) {
  if (!value.is_string()) return std::nullopt;
  std::string buffer;
  return std::string(value.as_string(buffer));
}

std::optional<Epk> epk_of(const json::Value& value) {
  const auto hex = text_of(value);
  if (!hex) return std::nullopt;
  auto epk = Epk::from_hex(*hex);
  return epk ? std::optional(std::move(*epk)) : std::nullopt;
}

std::optional<RangeToken> range_token(const json::Value& value) {
  const json::Value token = value.member("token");
  const json::Value range = value.member("range");
  const auto text = token.is_null() ? std::string() : text_of(token);
  auto min = epk_of(range.member("min"));
  auto max = epk_of(range.member("max"));
  if (!text || !min || !max || *max <= *min) return std::nullopt;
  return RangeToken{*text, {std::move(*min), std::move(*max)}};
}

std::optional<std::uint64_t> count_in(std::string_view digits) {
  std::uint64_t count = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, count);
  if (error != std::errc() || stop != end) return std::nullopt;
  return count;
}

/// Takes what comes before the next `#`.
std::string_view take_part(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('#'), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

}  // namespace

Error malformed_query_continuation() {
  return Error(ErrorCode::BadRequest,
               "Invalid Continuation Token. Send back x-ms-continuation exactly as it was "
               "received, with the same query.");
}

std::string wrap_token(std::string_view token, const EpkRange& range) {
  std::string text = R"({"token":")";
  text.append(token).append(R"(","range":{"min":")").append(range.min.hex());
  return text.append(R"(","max":")").append(range.max.hex()).append(R"("}})");
}

bool is_wrapped_token(std::string_view text) {
  return text.starts_with('{') || text.starts_with('[');
}

Result<std::vector<RangeToken>> unwrap_token(std::string_view text) {
  const auto parsed = json::Value::parse(text);
  if (!parsed) return malformed_query_continuation();
  std::vector<RangeToken> tokens;
  const auto add = [&](const json::Value& value) {
    auto token = range_token(value);
    const bool is_next = token && (tokens.empty() || tokens.back().range.max <= token->range.min);
    if (is_next) tokens.push_back(std::move(*token));
    return is_next;
  };
  if (!parsed->is_array()) {
    if (!add(*parsed)) return malformed_query_continuation();
    return tokens;
  }
  for (json::Reader reader(*parsed); reader.next();) {
    if (!add(reader.value())) return malformed_query_continuation();
  }
  if (tokens.empty()) return malformed_query_continuation();
  return tokens;
}

bool is_service_token(std::string_view text) {
  return text.starts_with("-RID:") || text.starts_with("+RID:");
}

Result<ServiceToken> parse_service_token(std::string_view text) {
  if (!is_service_token(text)) return malformed_query_continuation();
  constexpr std::string_view kName = "-RID:";
  std::string_view rest = text.substr(kName.size());
  std::string rid(take_part(rest));
  if (rid.starts_with('~')) rid.erase(0, 1);
  std::ranges::replace(rid, '/', '-');
  const auto parsed = Rid::parse(rid);
  if (!parsed || parsed->kind() != RidKind::Document) return malformed_query_continuation();
  ServiceToken token{.rid = *parsed, .is_inclusive = text.starts_with('+'), .rows = 0};
  while (!rest.empty()) {
    const std::string_view part = take_part(rest);
    if (part.starts_with("RTD:")) return malformed_query_continuation();
    if (!part.starts_with("TRC:")) continue;
    const auto rows = count_in(part.substr(4));
    if (!rows) return malformed_query_continuation();
    token.rows = *rows;
  }
  return token;
}

}  // namespace orrery
