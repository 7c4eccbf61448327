#include "client/refusal.h"

#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol/headers.h"
#include "protocol/wire_error.h"

namespace orrery::client {
namespace {

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop == text.data()) return std::nullopt;
  return value;
}

nlohmann::json parse_quietly(std::string_view text) {
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::string string_member(const nlohmann::json& object, const char* name) {
  if (!object.is_object()) return {};
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// The service wraps texts of its back end: `Message: {"Errors":["…"]}`.
std::string unwrapped(std::string_view message) {
  constexpr std::string_view kPrefix = "Message: {";
  if (!message.starts_with(kPrefix)) return std::string(message);
  const auto inner = parse_quietly(message.substr(kPrefix.size() - 1));
  if (!inner.is_object()) return std::string(message);
  const auto errors = inner.find("Errors");
  if (errors == inner.end() || !errors->is_array() || errors->empty() ||
      !errors->front().is_string()) {
    return std::string(message);
  }
  return errors->front().get<std::string>();
}

}  // namespace

int sub_status_of(const Reply& reply) {
  return parse_number<int>(reply.header(headers::kSubstatus)).value_or(0);
}

std::optional<std::chrono::milliseconds> retry_after_of(const Reply& reply) {
  const auto count = parse_number<double>(reply.header(headers::kRetryAfterMs));
  constexpr double kHourMs = 3'600'000;
  if (!count || !(*count >= 0) || *count > kHourMs) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(*count));
}

ResponseInfo info_of(Reply& reply, Diagnostics diagnostics) {
  ResponseInfo info;
  info.status = reply.status;
  info.request_charge = parse_number<double>(reply.header(headers::kRequestCharge)).value_or(0);
  info.activity_id = reply.header(headers::kActivityId);
  info.etag = reply.header(headers::kEtag);
  info.session_token = reply.header(headers::kSessionToken);
  info.headers = std::move(reply.headers);
  info.diagnostics = std::move(diagnostics);
  return info;
}

std::string message_of(const Reply& reply) {
  std::string message = string_member(parse_quietly(reply.body), "message");
  std::string_view text = message;
  // "<text>\r\nActivityId: <guid>, Orrery/1.0"
  text = text.substr(0, text.find("ActivityId:"));
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= 0x20) text.remove_suffix(1);
  if (text.empty()) {
    return fmt::format("the server answered {} {}", reply.status, reason_phrase(reply.status));
  }
  return unwrapped(text);
}

CosmosException refusal_of(const Reply& reply, const Diagnostics& diagnostics,
                           std::string_view advice) {
  CosmosException::Details details;
  details.failure = Failure::Response;
  details.status = reply.status;
  details.sub_status = sub_status_of(reply);
  details.code = string_member(parse_quietly(reply.body), "code");
  details.activity_id = reply.header(headers::kActivityId);
  details.etag = reply.header(headers::kEtag);
  details.session_token = reply.header(headers::kSessionToken);
  details.request_charge = parse_number<double>(reply.header(headers::kRequestCharge)).value_or(0);
  details.retry_after = retry_after_of(reply);
  details.diagnostics = diagnostics.to_string();
  std::string message = message_of(reply);
  if (!advice.empty()) message.append(" ").append(advice);
  return CosmosException(message, std::move(details));
}

CosmosException failure_of(Failure failure, const std::string& words,
                           const Diagnostics& diagnostics) {
  CosmosException::Details details;
  details.failure = failure;
  if (!diagnostics.attempts.empty()) {
    details.activity_id = diagnostics.attempts.back().activity_id;
    details.diagnostics = diagnostics.to_string();
  }
  return CosmosException(words, std::move(details));
}

}  // namespace orrery::client
