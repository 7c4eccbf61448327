#include "processor/group/group_operations.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "json/document_text.h"
#include "json/value.h"
#include "processor/errors.h"
#include "processor/group/estimator.h"
#include "processor/leases/lease_manager.h"

namespace orrery::processor {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kGroupAttemptsMax = 6;

/// One lease of a snapshot.
struct KeptPosition {
  std::string token;
  std::optional<client::FeedRange> area;
  std::optional<std::string> position;
};

Error no_snapshot(std::string_view why) {
  return Error(ErrorCode::BadRequest, fmt::format("this is no snapshot of leases: {}", why));
}

Result<std::vector<KeptPosition>> read_snapshot(const std::string& text,
                                                const std::string& container_rid) {
  const Json snapshot = Json::parse(text, nullptr, false);
  if (!snapshot.is_object() || !snapshot.contains("leases") || !snapshot["leases"].is_array()) {
    return no_snapshot("it has no leases");
  }
  if (snapshot.value("container", "") != container_rid) {
    return Error(ErrorCode::BadRequest,
                 "the snapshot is one of another container: its positions mean nothing here");
  }
  std::vector<KeptPosition> kept;
  for (const Json& each : snapshot["leases"]) {
    if (!each.is_object() || !each.contains("token") || !each["token"].is_string()) {
      return no_snapshot("a lease has no token");
    }
    KeptPosition entry;
    entry.token = each["token"].get<std::string>();
    if (each.contains("min") && each["min"].is_string() && each.contains("max") &&
        each["max"].is_string()) {
      entry.area =
          client::FeedRange{each["min"].get<std::string>(), each["max"].get<std::string>()};
    }
    if (each.contains("position") && each["position"].is_string()) {
      entry.position = each["position"].get<std::string>();
    }
    kept.push_back(std::move(entry));
  }
  return kept;
}

/// Where a lease goes on after a restore: where the one of its token stood, or if ranges were split
/// or merged since, the least far of those that it overlaps.
Result<std::optional<std::string>> position_in(const std::vector<KeptPosition>& kept,
                                               const Lease& lease, const Ranges& ranges) {
  const auto same = std::ranges::find(kept, lease.token, &KeptPosition::token);
  if (same != kept.end()) return same->position;
  const auto area = area_of(lease, ranges);
  std::vector<client::FeedRange> covered;
  std::optional<std::string> lowest;
  for (const KeptPosition& each : kept) {
    if (!area || !each.area || !each.area->overlaps(*area)) continue;
    lowest = covered.empty() ? each.position : lowest_position(lowest, each.position);
    covered.push_back(*each.area);
  }
  if (!area || !uncovered(*area, covered).empty()) {
    return Error(ErrorCode::BadRequest,
                 fmt::format("the snapshot does not say where the lease '{}' stood", lease.token));
  }
  return lowest;
}

}  // namespace

// ── what holds for the group ─────────────────────────────────────────────────────────────────────

Async<GroupControl> read_control(AsyncLeaseStore& store, LeaseIds ids) {
  GroupControl control;
  const auto document = co_await store.read(ids.control());
  if (!document && has_code(document.error(), ErrorCode::NotFound)) co_return control;
  if (!document) co_return document.error();
  const auto value = json::Value::parse(document->text);
  if (!value) co_return value.error();
  control.paused = value->member("paused").is_true();
  std::string buffer;
  const json::Value reason = value->member("reason");
  if (reason.is_string()) control.reason = reason.as_string(buffer);
  co_return control;
}

Async<> write_control(AsyncLeaseStore& store, LeaseIds ids, GroupControl control) {
  const std::string id = ids.control();
  for (int attempt = 0; attempt < kGroupAttemptsMax; ++attempt) {
    const auto document = co_await store.read(id);
    if (!document && !has_code(document.error(), ErrorCode::NotFound)) co_return document.error();
    json::Value value = json::Value::object();
    if (document) {
      auto parsed = json::Value::parse(document->text);
      if (parsed && parsed->is_object()) value = std::move(*parsed);
    }
    value.set_member("id", json::Value::string(id));
    value.set_member("paused", json::Value::boolean(control.paused));
    value.set_member("reason", json::Value::string(control.reason));
    std::string text = value.to_text();
    auto written = document ? co_await store.replace(id, std::move(text), document->etag)
                            : co_await store.create(id, std::move(text));
    if (written) co_return Result<>{};
    if (!has_code(written.error(), ErrorCode::PreconditionFailed) &&
        !has_code(written.error(), ErrorCode::Conflict) &&
        !has_code(written.error(), ErrorCode::NotFound)) {
      co_return written.error();
    }
  }
  co_return Error(ErrorCode::Conflict,
                  fmt::format("'{}' changes faster than it can be written", id));
}

Async<> GroupOperations::pause(bool paused) {
  GroupControl control;
  control.paused = paused;
  if (paused) control.reason = "paused by command";
  return write_control(store_, group_.ids, std::move(control));
}

Async<bool> GroupOperations::paused() {
  ORRERY_CO_TRY(const auto control, co_await read_control(store_, group_.ids));
  co_return control.paused;
}

// ── looking ──────────────────────────────────────────────────────────────────────────────────────

Async<std::vector<Lease>> GroupOperations::leases() { return list_leases(store_, group_.ids); }

Async<std::vector<LeaseLag>> GroupOperations::lag() {
  ORRERY_CO_TRY(const auto ranges, co_await reader_.ranges());
  ORRERY_CO_TRY(const auto found, co_await leases());
  std::vector<LeaseLag> lags;
  for (const Lease& lease : found) {
    ORRERY_CO_TRY(auto lag, co_await lease_lag(reader_, lease, ranges));
    lags.push_back(std::move(lag));
  }
  co_return lags;
}

// ── moving ───────────────────────────────────────────────────────────────────────────────────────

Async<> GroupOperations::check_idle(std::vector<Lease> leases) {
  const auto owned =
      std::ranges::find_if(leases, [](const Lease& lease) { return !lease.owner.empty(); });
  if (owned == leases.end()) co_return Result<>{};
  ORRERY_CO_TRY(const bool is_paused, co_await paused());
  if (is_paused) co_return Result<>{};
  co_return Error(
      ErrorCode::Conflict,
      fmt::format("'{}' owns the lease '{}'. Pause the group, or stop its hosts, before "
                  "positions are moved",
                  owned->owner, owned->token));
}

Async<bool> GroupOperations::edit(Lease lease, Change change) {
  for (int attempt = 0; attempt < kGroupAttemptsMax; ++attempt) {
    if (!change(lease)) co_return false;
    lease.timestamp = runtime_.wall_now();
    if (lease.format == LeaseFormat::JavaEpk && lease.container_rid.empty()) {
      lease.container_rid = group_.identity.container_rid;
    }
    const auto written = co_await store_.replace(lease.id, write_lease(lease), lease.etag);
    if (written) co_return true;
    if (!has_code(written.error(), ErrorCode::PreconditionFailed)) co_return written.error();
    ORRERY_CO_TRY(const auto found, co_await store_.read(lease.id));
    ORRERY_CO_TRY(lease, parse_lease(found));
  }
  co_return Error(ErrorCode::Conflict,
                  fmt::format("the lease '{}' changes faster than it can be written", lease.id));
}

Async<> GroupOperations::move(Lease lease, std::optional<std::string> position) {
  ORRERY_CO_TRY(co_await edit(std::move(lease), [position = std::move(position)](Lease& each) {
    // Its owner, if there is one, reads on from what it remembers. It has to lose the lease, and
    // the next owner begins here.
    each.owner.clear();
    each.position = position;
    return true;
  }));
  co_return Result<>{};
}

Async<std::optional<std::string>> GroupOperations::resolve(Lease lease, Ranges ranges,
                                                           StartPosition to) {
  std::optional<std::string> lowest;
  bool first = true;
  for (const FeedTarget& target : targets_of(lease, ranges)) {
    ORRERY_CO_TRY(auto position,
                  co_await resolve_start(reader_, target, to,
                                         lease.mode.value_or(client::ChangeFeedMode::LatestVersion),
                                         {}, runtime_));
    lowest = first ? std::move(position) : lowest_position(lowest, position);
    first = false;
  }
  if (!lowest) {
    co_return Error(
        ErrorCode::Unavailable,
        fmt::format("the server does not tell which position of '{}' that is", lease.token));
  }
  co_return lowest;
}

Async<> GroupOperations::reset(LeaseGroup::Position to, std::string token) {
  ORRERY_CO_TRY(const auto ranges, co_await reader_.ranges());
  ORRERY_CO_TRY(auto found, co_await leases());
  if (!token.empty()) {
    std::erase_if(found, [&](const Lease& lease) { return lease.token != token; });
    if (found.empty()) {
      co_return Error(ErrorCode::NotFound, fmt::format("there is no lease '{}'", token));
    }
  }
  ORRERY_CO_TRY(co_await check_idle(found));
  StartPosition start;
  start.time = to.time;
  start.etag = to.etag;
  using Kind = LeaseGroup::Position::Kind;
  start.kind = to.kind == Kind::Beginning ? StartPosition::Kind::Beginning
               : to.kind == Kind::Now     ? StartPosition::Kind::Now
               : to.kind == Kind::Time    ? StartPosition::Kind::Time
                                          : StartPosition::Kind::Etag;
  // All positions are known before the first is written.
  std::vector<std::optional<std::string>> positions;
  for (const Lease& lease : found) {
    ORRERY_CO_TRY(auto position, co_await resolve(lease, ranges, start));
    positions.push_back(std::move(position));
  }
  for (std::size_t index = 0; index < found.size(); ++index) {
    ORRERY_CO_TRY(co_await move(std::move(found[index]), std::move(positions[index])));
  }
  co_return Result<>{};
}

Async<std::string> GroupOperations::snapshot() {
  ORRERY_CO_TRY(const auto ranges, co_await reader_.ranges());
  ORRERY_CO_TRY(const auto found, co_await leases());
  Json text;
  text["group"] = group_.ids.group;
  text["container"] = group_.identity.container_rid;
  text["time"] = format_timestamp(runtime_.wall_now(), 3);
  text["leases"] = Json::array();
  for (const Lease& lease : found) {
    Json entry;
    entry["token"] = lease.token;
    if (const auto area = area_of(lease, ranges)) {
      entry["min"] = area->min;
      entry["max"] = area->max;
    }
    entry["position"] = lease.position ? Json(*lease.position) : Json();
    text["leases"].push_back(std::move(entry));
  }
  co_return text.dump(2);
}

Async<> GroupOperations::restore(std::string snapshot) {
  ORRERY_CO_TRY(const auto kept, read_snapshot(snapshot, group_.identity.container_rid));
  ORRERY_CO_TRY(const auto ranges, co_await reader_.ranges());
  ORRERY_CO_TRY(auto found, co_await leases());
  ORRERY_CO_TRY(co_await check_idle(found));
  std::vector<std::optional<std::string>> positions;
  for (const Lease& lease : found) {
    ORRERY_CO_TRY(auto position, position_in(kept, lease, ranges));
    positions.push_back(std::move(position));
  }
  for (std::size_t index = 0; index < found.size(); ++index) {
    ORRERY_CO_TRY(co_await move(std::move(found[index]), std::move(positions[index])));
  }
  co_return Result<>{};
}

Async<std::size_t> GroupOperations::release(std::string host) {
  ORRERY_CO_TRY(auto found, co_await leases());
  std::size_t released = 0;
  for (Lease& lease : found) {
    ORRERY_CO_TRY(const bool changed, co_await edit(std::move(lease), [host](Lease& each) {
                    if (!same_host(each.owner, host)) return false;
                    each.owner.clear();
                    return true;
                  }));
    if (changed) ++released;
  }
  co_return released;
}

}  // namespace orrery::processor
