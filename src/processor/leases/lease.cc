#include "processor/leases/lease.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "json/document_text.h"
#include "json/value.h"
#include "processor/leases/lease_java.h"

namespace orrery::processor {
namespace {

constexpr std::string_view kIncrementalMode = "Incremental Feed";
constexpr std::string_view kFullFidelityMode = "Full-Fidelity Feed";
/// A lease of JavaPk has no `properties`, and one of an early .NET v3 is known by having them.
/// Where we add them to the former, we say so.
constexpr std::string_view kFormatProperty = "orrery.format";
constexpr std::string_view kJavaPkName = "jp";

bool is_java(LeaseFormat format) {
  return format == LeaseFormat::JavaPk || format == LeaseFormat::JavaEpk;
}

std::string_view name_of(LeaseFormat format) {
  switch (format) {
    case LeaseFormat::Detect:
      return "any library";
    case LeaseFormat::Net2:
      return ".NET Change Feed Processor 2.x";
    case LeaseFormat::Net3:
      return ".NET SDK v3";
    case LeaseFormat::JavaPk:
      return "Java SDK v4 handleChanges";
    case LeaseFormat::JavaEpk:
      return "Java SDK v4 handleLatestVersionChanges or handleAllVersionsAndDeletesChanges";
  }
  return "";
}

Error unfit(const StoredDocument& document, std::string_view why) {
  return Error(ErrorCode::BadRequest, fmt::format("the lease '{}' {}", document.id, why));
}

std::optional<std::string> string_of(const json::Value& value) {
  if (!value.is_string()) return std::nullopt;
  std::string buffer;
  return std::string(value.as_string(buffer));
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::uint64_t number_property(const Lease& lease, std::string_view key, std::uint64_t otherwise) {
  const auto found = lease.properties.find(std::string(key));
  if (found == lease.properties.end()) return otherwise;
  return number_of(found->second).value_or(otherwise);
}

// ── reading ──────────────────────────────────────────────────────────────────────────────────────

LeaseFormat format_of(const json::Value& document) {
  const auto has = [&](std::string_view name) { return !document.member(name).is_undefined(); };
  if (has("feedRange")) return LeaseFormat::JavaEpk;
  if (has("FeedRange") || has("version") || has("Mode")) return LeaseFormat::Net3;
  if (!has("LeaseToken")) return LeaseFormat::Net2;
  const json::Value properties = document.member("properties");
  if (properties.member(kFormatProperty).is_string(kJavaPkName)) return LeaseFormat::JavaPk;
  return properties.is_undefined() && !has("PartitionId") ? LeaseFormat::JavaPk : LeaseFormat::Net3;
}

/// {"Range":{"min":…,"max":…}}; other kinds of feed ranges say nothing about the hash space.
std::optional<client::FeedRange> range_of(const json::Value& feed_range) {
  const json::Value range = feed_range.member("Range");
  auto min = string_of(range.member("min"));
  auto max = string_of(range.member("max"));
  if (!min || !max) return std::nullopt;
  return client::FeedRange{std::move(*min), std::move(*max)};
}

Result<> read_position(Lease& lease, const json::Value& document, const StoredDocument& stored) {
  auto token = string_of(document.member("ContinuationToken"));
  if (lease.format == LeaseFormat::JavaEpk) lease.mode = std::nullopt;
  if (!token || token->empty()) return {};

  auto state = parse_java_state(*token);
  if (lease.format != LeaseFormat::JavaEpk) {
    if (state) {
      return unfit(stored,
                   "is one of .NET or of Java's handleChanges, but its position was written by a "
                   "Java host that uses handleLatestVersionChanges or "
                   "handleAllVersionsAndDeletesChanges. The two must not share leases: give one of "
                   "them another lease prefix");
    }
    lease.position = std::move(*token);
    return {};
  }
  if (!state) {
    return unfit(
        stored,
        "is one of Java's handleLatestVersionChanges or handleAllVersionsAndDeletesChanges, "
        "but its position is not the base64 text that those write. Has a .NET host written "
        "it? The two must not share leases: give one of them another lease prefix");
  }
  lease.position = std::move(state->position);
  lease.start_time = state->start_time;
  lease.mode = state->mode;
  lease.container_rid = std::move(state->container_rid);
  return {};
}

Result<> read_range(Lease& lease, const json::Value& document, const StoredDocument& stored) {
  lease.range =
      range_of(document.member(lease.format == LeaseFormat::JavaEpk ? "feedRange" : "FeedRange"));
  const auto version = document.member("version");
  const bool says_epk = version.is_number() && version.as_number().real == 1;
  if (!lease.is_epk()) {
    if (!says_epk && lease.format != LeaseFormat::JavaEpk) return {};
    return unfit(stored,
                 fmt::format("is one of a part of the hash space, but its token '{}' is not of the "
                             "form min-max",
                             lease.token));
  }
  if (lease.range) return {};
  const auto hyphen = lease.token.find('-');
  lease.range = client::FeedRange{lease.token.substr(0, hyphen), lease.token.substr(hyphen + 1)};
  return {};
}

std::string partition_key_of(const Lease& lease) {
  return string_of(json::Value::of_checked(lease.text).member("partitionKey")).value_or("");
}

// ── writing ──────────────────────────────────────────────────────────────────────────────────────

json::Value text_or_null(const std::string& text) {
  return text.empty() ? json::Value::null() : json::Value::string(text);
}

json::Value feed_range_value(const client::FeedRange& range) {
  json::Value bounds = json::Value::object();
  bounds.set_member("min", json::Value::string(range.min));
  bounds.set_member("max", json::Value::string(range.max));
  json::Value value = json::Value::object();
  value.set_member("Range", std::move(bounds));
  return value;
}

json::Value timestamp_value(const Lease& lease) {
  if (!lease.timestamp) return json::Value::null();
  return json::Value::string(format_timestamp(*lease.timestamp, is_java(lease.format) ? 3 : 7));
}

json::Value position_value(const Lease& lease, std::string_view before) {
  if (!lease.position) return json::Value::null();
  if (lease.format != LeaseFormat::JavaEpk) return json::Value::string(*lease.position);
  return json::Value::string(write_java_state(
      before, lease.range.value_or(client::FeedRange{}), *lease.position,
      lease.mode.value_or(client::ChangeFeedMode::LatestVersion), lease.container_rid));
}

/// Members that are no strings are none of ours, and stay.
void write_properties(json::Value& document, const Lease& lease, const Lease& before) {
  auto wanted = lease.properties;
  if (lease.format == LeaseFormat::JavaPk && !wanted.empty()) {
    wanted.emplace(kFormatProperty, kJavaPkName);
  }
  if (wanted == before.properties) return;
  json::Value* found = document.find("properties");
  if (found == nullptr || !found->is_object()) {
    document.set_member("properties", json::Value::object());
    found = document.find("properties");
  }
  for (const auto& [key, value] : before.properties) {
    if (!wanted.contains(key)) found->erase_member(key);
  }
  for (const auto& [key, value] : wanted) {
    const auto old = before.properties.find(key);
    if (old != before.properties.end() && old->second == value) continue;
    found->set_member(key, json::Value::string(value));
  }
}

std::string write_new(const Lease& lease) {
  json::Value document = json::Value::object();
  document.set_member("id", json::Value::string(lease.id));
  const bool net3 = lease.format == LeaseFormat::Net3;
  if (net3) document.set_member("version", json::Value::number(std::int64_t{lease.is_epk()}));
  document.set_member(lease.format == LeaseFormat::Net2 ? "PartitionId" : "LeaseToken",
                      json::Value::string(lease.token));
  if (net3 && lease.range) document.set_member("FeedRange", feed_range_value(*lease.range));
  if (is_java(lease.format)) {
    document.set_member("ContinuationToken", position_value(lease, {}));
    document.set_member("timestamp", timestamp_value(lease));
    document.set_member("Owner", text_or_null(lease.owner));
    if (lease.format == LeaseFormat::JavaEpk) {
      document.set_member("version", json::Value::number(std::int64_t{1}));
      document.set_member("feedRange", feed_range_value(*lease.range));
    }
  } else {
    document.set_member("Owner", text_or_null(lease.owner));
    document.set_member("ContinuationToken", position_value(lease, {}));
    document.set_member("properties", json::Value::object());
    document.set_member("timestamp", timestamp_value(lease));
  }
  if (net3) {
    const bool full = lease.mode == client::ChangeFeedMode::AllVersionsAndDeletes;
    document.set_member(
        "Mode", json::Value::string(std::string(full ? kFullFidelityMode : kIncrementalMode)));
  }
  write_properties(document, lease, Lease{});
  return document.to_text();
}

}  // namespace

std::uint64_t Lease::epoch() const {
  return number_property(*this, kEpochProperty, ts > 0 ? static_cast<std::uint64_t>(ts) : 0);
}

std::uint64_t Lease::generation() const { return number_property(*this, kGenerationProperty, 0); }

std::string Lease::wanted_by() const {
  const auto found = properties.find(std::string(kWantedByProperty));
  return found == properties.end() ? std::string() : found->second;
}

Result<Lease> parse_lease(const StoredDocument& document) {
  const auto value = json::Value::parse(document.text);
  if (!value || !value->is_object()) return unfit(document, "is no JSON object");
  if (value->member("state").is_number() && value->member("SequenceNumber").is_number()) {
    return unfit(document,
                 "was written by .NET Change Feed Processor 1.x, which can't share leases with "
                 "others. Stop its hosts and let version 2.x take the leases over, or choose "
                 "another lease prefix");
  }
  Lease lease;
  lease.id = document.id;
  lease.etag = document.etag;
  lease.ts = document.ts;
  lease.store_now = document.store_now;
  lease.text = document.text;
  lease.format = format_of(*value);
  auto token = string_of(value->member("LeaseToken"));
  if (!token) token = string_of(value->member("PartitionId"));
  if (!token || token->empty()) return unfit(document, "has neither LeaseToken nor PartitionId");
  lease.token = std::move(*token);

  lease.owner = string_of(value->member("Owner")).value_or("");
  if (lease.owner.find_first_not_of(" \t\r\n") == std::string::npos) lease.owner.clear();
  if (const auto timestamp = string_of(value->member("timestamp"))) {
    lease.timestamp = parse_timestamp(*timestamp);
  }
  const json::Value properties = value->member("properties");
  for (json::Reader reader(properties); reader.next();) {
    auto text = string_of(reader.value());
    if (text) lease.properties.emplace(*string_of(reader.name()), std::move(*text));
  }
  if (value->member("Mode").is_string(kFullFidelityMode)) {
    lease.mode = client::ChangeFeedMode::AllVersionsAndDeletes;
  }
  ORRERY_TRY(read_range(lease, *value, document));
  ORRERY_TRY(read_position(lease, *value, document));
  return lease;
}

std::string write_lease(const Lease& lease) {
  if (lease.text.empty()) return write_new(lease);
  StoredDocument stored;
  stored.id = lease.id;
  stored.text = lease.text;
  const auto before = parse_lease(stored);
  // A lease with a text came out of parse_lease.
  if (!before) return write_new(lease);

  json::Value document = json::Value::of_checked(lease.text);
  if (lease.owner != before->owner) document.set_member("Owner", text_or_null(lease.owner));
  if (lease.position != before->position) {
    const std::string old = string_of(document.member("ContinuationToken")).value_or("");
    document.set_member("ContinuationToken", position_value(lease, old));
  }
  if (lease.timestamp != before->timestamp) {
    document.set_member("timestamp", timestamp_value(lease));
  }
  if (lease.format == LeaseFormat::Net3 && lease.range &&
      document.member("FeedRange").is_undefined()) {
    document.set_member("FeedRange", feed_range_value(*lease.range));
  }
  write_properties(document, lease, *before);
  return document.to_text();
}

Result<LeaseFormat> store_format(std::span<const Lease> leases, LeaseFormat wanted) {
  const auto is_net = [](LeaseFormat format) {
    return format == LeaseFormat::Net2 || format == LeaseFormat::Net3;
  };
  LeaseFormat found = LeaseFormat::Detect;
  const Lease* first = nullptr;
  for (const Lease& lease : leases) {
    if (first == nullptr) {
      first = &lease;
      found = lease.format;
    } else if (is_net(found) && is_net(lease.format)) {
      if (lease.format == LeaseFormat::Net3) found = LeaseFormat::Net3;
    } else if (found != lease.format) {
      return Error(ErrorCode::BadRequest,
                   fmt::format("the leases are mixed: '{}' is one of {}, '{}' one of {}. Stop the "
                               "hosts of one of them and delete its leases, or give each a lease "
                               "prefix of its own",
                               first->id, name_of(first->format), lease.id, name_of(lease.format)));
    }
  }
  if (found == LeaseFormat::Detect) {
    return wanted == LeaseFormat::Detect ? LeaseFormat::Net3 : wanted;
  }
  if (wanted == LeaseFormat::Detect || wanted == found) return found;
  if (is_net(wanted) && is_net(found)) return wanted;
  return Error(ErrorCode::BadRequest,
               fmt::format("leases as those of {} are asked for, but '{}' is one of {}",
                           name_of(wanted), first->id, name_of(found)));
}

Result<> check_mode(std::span<const Lease> leases, client::ChangeFeedMode mode) {
  for (const Lease& lease : leases) {
    if (!lease.mode || *lease.mode == mode) continue;
    const bool full = mode == client::ChangeFeedMode::AllVersionsAndDeletes;
    return Error(ErrorCode::BadRequest,
                 fmt::format("the lease '{}' is one of the {} feed; switching the mode of a group "
                             "is not allowed. Choose another lease prefix",
                             lease.id, full ? "latest-version" : "all-versions"));
  }
  return {};
}

DistinctLeases distinct_leases(std::vector<Lease> leases) {
  std::ranges::sort(leases, {}, &Lease::id);
  DistinctLeases distinct;
  for (Lease& lease : leases) {
    if (distinct.leases.empty() || distinct.leases.back().id != lease.id) {
      distinct.leases.push_back(std::move(lease));
      continue;
    }
    Lease& kept = distinct.leases.back();
    const auto order = compare_positions(lease.position, kept.position);
    // All hosts must choose alike, whatever the order of the listing and whatever was written
    // since.
    const bool preferred =
        order > 0 || (!(order < 0) && partition_key_of(lease) < partition_key_of(kept));
    if (preferred) std::swap(lease, kept);
    distinct.doubles.push_back(std::move(lease));
  }
  return distinct;
}

LeaseIds LeaseIds::make(std::string_view prefix, std::string_view feed_host,
                        std::string_view database, std::string_view container) {
  return {fmt::format("{}{}_{}_{}", prefix, feed_host, database, container)};
}

std::string epk_token(const client::FeedRange& range) { return range.min + "-" + range.max; }

Result<Lease> new_lease(const LeaseIds& ids, LeaseFormat format, std::string token,
                        std::optional<client::FeedRange> range, std::optional<std::string> position,
                        client::ChangeFeedMode mode, std::string container_rid) {
  Lease lease;
  const bool part = token.empty() || format == LeaseFormat::JavaEpk;
  if (part && format == LeaseFormat::JavaPk) {
    return Error(ErrorCode::BadRequest,
                 "leases of Java's handleChanges are of whole ranges, and can't be of a part of "
                 "one");
  }
  if (part && !range) {
    return Error(ErrorCode::BadRequest,
                 fmt::format("the bounds of range '{}' are not known", token));
  }
  lease.format = part && format == LeaseFormat::Net2 ? LeaseFormat::Net3 : format;
  lease.token = part ? epk_token(*range) : std::move(token);
  lease.id = ids.lease(lease.token);
  lease.range = std::move(range);
  lease.position = std::move(position);
  lease.mode = mode;
  lease.container_rid = std::move(container_rid);
  return lease;
}

}  // namespace orrery::processor
