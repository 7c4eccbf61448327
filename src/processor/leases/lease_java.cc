#include "processor/leases/lease_java.h"

#include <algorithm>

#include <fmt/format.h>

#include "json/document_text.h"
#include "json/value.h"
#include "processor/leases/lease.h"
#include "protocol/base64.h"

namespace orrery::processor {
namespace {

/// Beyond it WallTime, which counts nanoseconds, has no room.
constexpr std::int64_t kPointInTimeMsMax = 9'000'000'000'000;
constexpr std::string_view kFullFidelity = "FULL_FIDELITY";

/// Java's encoder writes the URL alphabet with padding, one of its decoders reads the other one.
std::optional<std::string> decoded(std::string_view text) {
  std::string standard(text);
  std::ranges::replace(standard, '-', '+');
  std::ranges::replace(standard, '_', '/');
  while (standard.ends_with('=')) standard.pop_back();
  while (standard.size() % 4 != 0) standard += '=';
  return base64_decode(standard);
}

std::string encoded(std::string_view json) {
  std::string text = base64_encode(json, Base64Alphabet::Url);
  while (text.size() % 4 != 0) text += '=';
  return text;
}

/// The etag that all ranges of the state have passed; nullopt while one of them has none.
std::optional<std::string> java_position_in(const json::Value& state) {
  const json::Value continuation = state.member("Continuation");
  const json::Value ranges = continuation.member("Continuation");
  std::optional<std::string> lowest;
  bool first = true;
  for (json::Reader reader(ranges); reader.next();) {
    const json::Value range = reader.value();
    const json::Value token = range.member("token");
    std::optional<std::string> position;
    if (token.is_string()) position = token.string_or_empty();
    lowest = first ? position : lowest_position(lowest, position);
    first = false;
  }
  return lowest;
}

}  // namespace

std::optional<JavaState> parse_java_state(std::string_view base64) {
  JavaState state;
  auto json = decoded(base64);
  if (!json || !json->starts_with('{')) return std::nullopt;
  state.json = std::move(*json);
  const auto parsed = json::Value::parse(state.json);
  if (!parsed || !parsed->member("StartFrom").is_object()) return std::nullopt;

  state.container_rid = parsed->member("Rid").string_or_empty();
  if (parsed->member("Mode").is_string(kFullFidelity)) {
    state.mode = client::ChangeFeedMode::AllVersionsAndDeletes;
  }
  state.position = java_position_in(*parsed);
  if (state.position) return state;

  const json::Value start = parsed->member("StartFrom");
  if (start.member("Type").is_string("BEGINNING")) {
    state.position = "\"0\"";
  } else if (start.member("Type").is_string("LEASE") && start.member("Etag").is_string()) {
    state.position = start.member("Etag").string_or_empty();
  } else if (start.member("Type").is_string("POINT_IN_TIME") &&
             start.member("PointInTimeMs").is_number()) {
    const auto number = start.member("PointInTimeMs").as_number();
    if (number.is_integer && number.integer > -kPointInTimeMsMax &&
        number.integer < kPointInTimeMsMax) {
      state.start_time = WallTime(std::chrono::milliseconds(number.integer));
    }
  }
  return state;
}

std::string write_java_state(std::string_view before, const client::FeedRange& range,
                             std::string_view position, client::ChangeFeedMode mode,
                             std::string_view container_rid) {
  std::string bounds = "{\"min\":";
  json::append_quoted(bounds, range.min);
  bounds += ",\"max\":";
  json::append_quoted(bounds, range.max);
  bounds += '}';
  std::string token;
  json::append_quoted(token, position);
  const std::string ranges = fmt::format("[{{\"token\":{},\"range\":{}}}]", token, bounds);
  std::string rid;
  json::append_quoted(rid, container_rid);
  const std::string continuation =
      fmt::format("{{\"V\":1,\"Rid\":{},\"Continuation\":{},\"Range\":{}}}", rid, ranges, bounds);

  if (const auto state = parse_java_state(before)) {
    json::Value value = json::Value::of_checked(state->json);
    json::Value* kept = value.find("Continuation");
    if (kept != nullptr && kept->is_object()) {
      kept->set_member("Continuation", json::Value::of_checked(ranges));
    } else {
      value.set_member("Continuation", json::Value::of_checked(continuation));
    }
    return encoded(value.to_text());
  }
  const std::string_view mode_name =
      mode == client::ChangeFeedMode::AllVersionsAndDeletes ? kFullFidelity : "INCREMENTAL";
  return encoded(
      fmt::format("{{\"V\":1,\"Rid\":{},\"Mode\":\"{}\",\"StartFrom\":{{\"Type\":\"BEGINNING\"}},"
                  "\"Continuation\":{}}}",
                  rid, mode_name, continuation));
}

}  // namespace orrery::processor
