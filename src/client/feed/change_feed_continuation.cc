#include "client/feed/change_feed_continuation.h"

#include <algorithm>

#include <fmt/format.h>

#include "client/exchange/refusal.h"
#include "json/document_text.h"
#include "json/value.h"
#include "protocol/keys/epk.h"
#include "protocol/keys/partition_key.h"

namespace orrery::client {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::string_view kLatest = "latest";
constexpr std::string_view kAll = "all";
/// Bounds of values that go into a header.
constexpr std::size_t kEtagBytesMax = 4096;
constexpr std::size_t kRidBytesMax = 64;
/// Times that a date in a header can tell: up to the end of the year 9999.
constexpr UnixSeconds kSecondsMax = 253'402'300'799;

[[noreturn]] void refuse(std::string_view why) {
  throw failure_of(Failure::Argument,
                   fmt::format("This is no continuation of a change feed: {}.", why));
}

/// The characters of a string; refused when it is none, or longer.
std::string string_of(const json::Value& value, std::string_view name, std::size_t bytes_max) {
  if (!value.is_string()) refuse(fmt::format("'{}' is not a string", name));
  std::string buffer;
  const std::string_view text = value.as_string(buffer);
  if (text.size() > bytes_max) refuse(fmt::format("'{}' is too long", name));
  return std::string(text);
}

/// Text that may stand in a header: a line break in it would begin another one.
std::string header_text(const json::Value& value, std::string_view name, std::size_t bytes_max) {
  std::string text = string_of(value, name, bytes_max);
  const bool printable = std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
  if (text.empty() || !printable) refuse(fmt::format("'{}' is empty or not printable", name));
  return text;
}

std::optional<std::int64_t> integer_of(const json::Value& value) {
  if (!value.is_number()) return std::nullopt;
  const json::Number number = value.as_number();
  return number.is_integer ? std::optional(number.integer) : std::nullopt;
}

FeedSlice parse_slice(const json::Value& value) {
  if (!value.is_object()) refuse("one of its slices is not an object");
  FeedSlice slice;
  slice.range.min = string_of(value.member("min"), "min", 2 * Epk::kBytesMax);
  slice.range.max = string_of(value.member("max"), "max", 2 * Epk::kBytesMax);
  if (checked_range(slice.range) != slice.range) refuse("the bounds of a slice are not as written");
  if (const auto etag = value.member("etag"); !etag.is_undefined()) {
    slice.etag = header_text(etag, "etag", kEtagBytesMax);
  }
  if (const auto since = value.member("since"); !since.is_undefined()) {
    slice.since = integer_of(since);
    if (!slice.since || *slice.since < 0 || *slice.since > kSecondsMax) {
      refuse("'since' is not a time");
    }
  }
  return slice;
}

ChangeFeedMode parse_mode(const json::Value& value) {
  if (value.is_string(kLatest)) return ChangeFeedMode::LatestVersion;
  if (value.is_string(kAll)) return ChangeFeedMode::AllVersionsAndDeletes;
  refuse("its mode is not known");
}

PartitionKey parse_key(const json::Value& value) {
  // The server checks what is inside; here it must only be harmless as a header.
  std::string text = header_text(value, "key", std::size_t{16} << 10);
  if (!orrery::PartitionKey::parse(text)) refuse("'key' is not a partition key");
  return PartitionKey::from_json(std::move(text));
}

}  // namespace

FeedRange checked_range(const FeedRange& range) {
  const auto min = Epk::from_hex(range.min);
  const auto max = Epk::from_hex(range.max);
  if (!min || !max || *min >= *max) {
    throw failure_of(
        Failure::Argument,
        fmt::format("'{}' to '{}' is no range: its bounds are hexadecimal, the lower one first.",
                    range.min, range.max));
  }
  return {min->hex(), max->hex()};
}

std::string FeedContinuation::to_text() const {
  std::string out = fmt::format("{{\"v\":{},\"rid\":", kVersion);
  json::append_quoted(out, container_rid);
  out += ",\"mode\":";
  json::append_quoted(out, mode == ChangeFeedMode::LatestVersion ? kLatest : kAll);
  if (key) {
    out += ",\"key\":";
    json::append_quoted(out, key->json());
  }
  out += ",\"slices\":[";
  for (const FeedSlice& slice : slices) {
    if (&slice != &slices.front()) out += ',';
    out += "{\"min\":";
    json::append_quoted(out, slice.range.min);
    out += ",\"max\":";
    json::append_quoted(out, slice.range.max);
    if (!slice.etag.empty()) {
      out += ",\"etag\":";
      json::append_quoted(out, slice.etag);
    }
    if (slice.since) out += fmt::format(",\"since\":{}", *slice.since);
    out += '}';
  }
  out += "]}";
  return out;
}

FeedContinuation FeedContinuation::parse(std::string_view text) {
  const auto value = json::Value::parse(text);
  if (!value || !value->is_object()) refuse("it is not a JSON object");
  const auto version = integer_of(value->member("v"));
  if (!version) refuse("it says no version");
  if (*version != kVersion) refuse(fmt::format("version {} is not known here", *version));

  FeedContinuation continuation;
  continuation.container_rid = header_text(value->member("rid"), "rid", kRidBytesMax);
  continuation.mode = parse_mode(value->member("mode"));
  if (const auto key = value->member("key"); !key.is_undefined()) {
    continuation.key = parse_key(key);
  }
  const auto slices = value->member("slices");
  if (!slices.is_array()) refuse("it has no slices");
  for (json::Reader reader(slices); reader.next();) {
    FeedSlice slice = parse_slice(reader.value());
    // A gap would be a part that nobody ever reads, and an overlap one that is read twice.
    if (!continuation.slices.empty() && continuation.slices.back().range.max != slice.range.min) {
      refuse("its slices do not follow each other");
    }
    continuation.slices.push_back(std::move(slice));
  }
  if (continuation.slices.empty()) refuse("it has no slices");
  return continuation;
}

}  // namespace orrery::client
