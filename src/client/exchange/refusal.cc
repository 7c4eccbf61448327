#include "client/exchange/refusal.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol/wire/headers.h"
#include "protocol/wire/wire_error.h"

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

/// The service wraps texts of its back end: `Message: {"Errors":["…"]}`; and of a query that is
/// wrong, `Message: {"errors":[{"location":{"start":7,"end":11},"message":"…"}]}`. Returns that
/// list, or nothing when the message is not of these forms.
nlohmann::json wrapped_errors(std::string_view message) {
  constexpr std::string_view kPrefix = "Message: {";
  if (!message.starts_with(kPrefix)) return {};
  const auto inner = parse_quietly(message.substr(kPrefix.size() - 1));
  if (!inner.is_object()) return {};
  for (const char* name : {"Errors", "errors"}) {
    const auto errors = inner.find(name);
    if (errors != inner.end() && errors->is_array()) return *errors;
  }
  return {};
}

std::string unwrapped(std::string_view message) {
  std::string words;
  for (const auto& error : wrapped_errors(message)) {
    const std::string each =
        error.is_string() ? error.get<std::string>() : string_member(error, "message");
    if (each.empty()) continue;
    if (!words.empty()) words += " ";
    words += each;
  }
  return words.empty() ? std::string(message) : words;
}

/// The text of an answer without what follows it: "<text>\r\nActivityId: <guid>, Orrery/1.0".
std::string own_text_of(const Reply& reply) {
  const std::string message = string_member(parse_quietly(reply.body), "message");
  std::string_view text = message;
  text = text.substr(0, text.find("ActivityId:"));
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= 0x20) text.remove_suffix(1);
  return std::string(text);
}

/// Of the first mistake that has one.
std::optional<TextLocation> location_of(const Reply& reply) {
  for (const auto& error : wrapped_errors(own_text_of(reply))) {
    if (!error.is_object()) continue;
    const auto location = error.find("location");
    if (location == error.end() || !location->is_object()) continue;
    const auto start = location->find("start");
    const auto end = location->find("end");
    if (start == location->end() || !start->is_number_unsigned()) continue;
    const auto first = start->get<std::size_t>();
    const bool has_end = end != location->end() && end->is_number_unsigned();
    return TextLocation{first, has_end ? std::max(first, end->get<std::size_t>()) : first};
  }
  return std::nullopt;
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
  const std::string text = own_text_of(reply);
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
  details.location = location_of(reply);
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
