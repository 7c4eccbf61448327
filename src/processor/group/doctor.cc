// GroupOperations::doctor: what is wrong with the leases of a group, in words.
#include <algorithm>

#include <fmt/format.h>

#include "json/value.h"
#include "processor/group/group_operations.h"

namespace orrery::processor {
namespace {

using Finding = LeaseGroup::Finding;

/// How long an owner may be silent: the expiration interval of the originals, and so long without
/// any owner that nobody can be about to take the lease.
constexpr UnixSeconds kSilentMax = 60;
constexpr UnixSeconds kUnownedMax = 2 * kSilentMax;
constexpr UnixSeconds kLockTtl = 30;

void look_at_owner(const Lease& lease, std::vector<Finding>& findings) {
  const UnixSeconds age = lease.store_now > lease.ts ? lease.store_now - lease.ts : 0;
  if (lease.owner.empty()) {
    findings.push_back(
        {age > kUnownedMax ? Severity::Error : Severity::Informational,
         fmt::format("nobody owns the lease '{}'; it was last written {} seconds ago", lease.token,
                     age)});
  } else if (age > kSilentMax) {
    findings.push_back(
        {Severity::Error,
         fmt::format("the owner of the lease '{}', host '{}', has not renewed it for {} seconds: "
                     "if it is gone, release its leases",
                     lease.token, lease.owner, age)});
  }
}

void look_at_range(const Lease& lease, const Ranges& ranges, std::vector<Finding>& findings) {
  const bool there = std::ranges::any_of(
      ranges, [&](const client::PartitionKeyRange& range) { return range.id == lease.token; });
  const auto targets = targets_of(lease, ranges);
  if (targets.empty()) {
    findings.push_back(
        {Severity::Error, fmt::format("the lease '{}' is of a range that is not there, and nobody "
                                      "knows what has become of it",
                                      lease.token)});
  } else if (lease.is_epk() ? targets.size() > 1 : !there) {
    findings.push_back({Severity::Informational,
                        fmt::format("the range of the lease '{}' was split or merged; whoever "
                                    "acquires it replaces it",
                                    lease.token)});
  }
  if (!lease.position) {
    findings.push_back(
        {Severity::Informational, fmt::format("the lease '{}' has no position yet", lease.token)});
  }
}

void look_at_coverage(const std::vector<Lease>& leases, const Ranges& ranges,
                      std::vector<Finding>& findings) {
  struct Area {
    client::FeedRange range;
    const Lease* lease;
  };
  std::vector<Area> areas;
  std::vector<client::FeedRange> covered;
  for (const Lease& lease : leases) {
    if (auto area = area_of(lease, ranges)) {
      covered.push_back(*area);
      // One of a range that is gone is not read any more.
      if (targets_of(lease, ranges).size() == 1) areas.push_back({std::move(*area), &lease});
      continue;
    }
    for (const FeedTarget& target : targets_of(lease, ranges)) {
      const auto child = std::ranges::find(ranges, target.range_id, &client::PartitionKeyRange::id);
      covered.push_back(child->range);
    }
  }
  for (const auto& gap : uncovered(client::FeedRange{}, covered)) {
    findings.push_back({Severity::Critical,
                        fmt::format("no lease covers the keys from '{}' to '{}': their changes are "
                                    "not processed. A host that is started makes the lease",
                                    gap.min, gap.max)});
  }
  std::ranges::sort(areas, {}, [](const Area& area) { return area.range.min; });
  const Area* widest = nullptr;  // Of those so far, the one that reaches furthest.
  for (const Area& area : areas) {
    if (widest != nullptr && widest->range.overlaps(area.range)) {
      findings.push_back({Severity::Error,
                          fmt::format("the leases '{}' and '{}' cover the same keys, whose changes "
                                      "are processed twice",
                                      widest->lease->token, area.lease->token)});
    }
    if (widest == nullptr || widest->range.max < area.range.max) widest = &area;
  }
}

UnixSeconds ttl_of(const StoredDocument& lock) {
  const auto value = json::Value::parse(lock.text);
  if (!value || !value->member("ttl").is_number()) return kLockTtl;
  return value->member("ttl").as_number().integer;
}

}  // namespace

Async<std::vector<Finding>> GroupOperations::doctor() {
  std::vector<Finding> findings;
  ORRERY_CO_TRY(const auto ranges, co_await reader_.ranges());
  ORRERY_CO_TRY(const auto documents, co_await store_.list(group_.ids.lease_prefix()));
  std::vector<Lease> parsed;
  for (const StoredDocument& document : documents) {
    auto lease = parse_lease(document);
    if (lease) {
      parsed.push_back(std::move(*lease));
    } else {
      findings.push_back({Severity::Critical, lease.error().message()});
    }
  }
  const auto distinct = distinct_leases(std::move(parsed));
  for (const Lease& twin : distinct.doubles) {
    findings.push_back(
        {Severity::Error, fmt::format("the lease '{}' is there more than once; the one that is "
                                      "furthest counts. A host that is started removes the others",
                                      twin.token)});
  }
  const auto format = store_format(distinct.leases, LeaseFormat::Detect);
  if (!format) findings.push_back({Severity::Critical, format.error().message()});
  look_at_coverage(distinct.leases, ranges, findings);
  for (const Lease& lease : distinct.leases) {
    look_at_range(lease, ranges, findings);
    look_at_owner(lease, findings);
  }

  const auto marker = co_await store_.read(group_.ids.marker());
  if (!marker && marker.error().code() != ErrorCode::NotFound) co_return marker.error();
  if (!marker) {
    findings.push_back({Severity::Error,
                        "the leases were never completed: there is no marker. A host that is "
                        "started completes them"});
  }
  const auto lock = co_await store_.read(group_.ids.lock());
  if (!lock && lock.error().code() != ErrorCode::NotFound) co_return lock.error();
  if (lock) {
    const UnixSeconds age = lock->store_now > lock->ts ? lock->store_now - lock->ts : 0;
    const bool stayed = age > ttl_of(*lock);
    findings.push_back({stayed ? Severity::Error : Severity::Informational,
                        fmt::format("the lock '{}' is {} seconds old{}", lock->id, age,
                                    stayed ? ": whoever made leases has died. It may be deleted"
                                           : ": somebody is making leases")});
  }
  ORRERY_CO_TRY(const auto control, co_await read_control(store_, group_.ids));
  if (control.paused) {
    findings.push_back(
        {Severity::Informational, fmt::format("the group is paused: {}", control.reason)});
  }
  co_return findings;
}

}  // namespace orrery::processor
