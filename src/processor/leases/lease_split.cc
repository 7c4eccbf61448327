#include "processor/leases/lease_split.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace orrery::processor {
namespace {

using client::FeedRange;
using client::PartitionKeyRange;

/// Plans what replaces one lease.
class Planner {
 public:
  Planner(const LeaseIds& ids, const Lease& gone, std::optional<std::string> position,
          const Ranges& ranges, const std::vector<Lease>& existing)
      : ids_(ids),
        gone_(gone),
        position_(std::move(position)),
        ranges_(ranges),
        existing_(existing) {
    for (const Lease& lease : existing) {
      if (lease.id == gone.id || lease.generation() <= gone.generation()) continue;
      // Leases only rely on later ones: two that relied on each other could both be deleted.
      if (auto area = area_of(lease, ranges)) later_.push_back(std::move(*area));
    }
  }

  Result<ReplacementPlan> plan() {
    ReplacementPlan plan;
    const bool there = std::ranges::any_of(
        ranges_, [&](const PartitionKeyRange& range) { return range.id == gone_.token; });
    if (!gone_.is_epk() && there) {
      plan.keep = true;
      return plan;
    }
    // .NET 2.x and Java's handleChanges know no leases of a part of a range, and their leases do
    // not say what they cover. That this host happens to know it is not enough: the hosts that
    // replace the neighbours may not, and all have to come to the same leases.
    if (!gone_.range || gone_.format == LeaseFormat::Net2 || gone_.format == LeaseFormat::JavaPk) {
      ORRERY_TRY(plan.leases, by_parents());
      return plan;
    }
    std::vector<FeedRange> areas;
    for (const PartitionKeyRange& range : ranges_) {
      if (range.range.overlaps(*gone_.range)) areas.push_back(range.range);
    }
    if (areas.empty() || !uncovered(*gone_.range, areas).empty()) return not_told();
    const bool untouched = uncovered(*gone_.range, later_) == std::vector{*gone_.range};
    if (gone_.is_epk() && areas.size() == 1 && untouched) {
      plan.keep = true;
      return plan;
    }
    for (const PartitionKeyRange& range : ranges_) {
      if (const auto part = common_part(*gone_.range, range.range)) {
        ORRERY_TRY(cover(*part, range, plan.leases));
      }
    }
    return plan;
  }

 private:
  Error not_told() const {
    return Error(ErrorCode::Unavailable,
                 fmt::format("the range of lease '{}' is gone, but the ranges do not tell yet what "
                             "has become of it",
                             gone_.id));
  }

  /// Apart from the one that is to be replaced.
  bool exists(const std::string& id) const {
    return id != gone_.id && std::ranges::find(existing_, id, &Lease::id) != existing_.end();
  }

  Result<Lease> lease(std::string token, std::optional<FeedRange> range,
                      std::optional<std::string> position) const {
    ORRERY_TRY(
        auto made,
        new_lease(ids_, gone_.format, std::move(token), std::move(range), std::move(position),
                  gone_.mode.value_or(client::ChangeFeedMode::LatestVersion), gone_.container_rid));
    made.properties = gone_.properties;
    made.properties.erase(std::string(kWantedByProperty));
    made.properties.insert_or_assign(std::string(kGenerationProperty),
                                     std::to_string(gone_.generation() + 1));
    return made;
  }

  /// Leases for `part` of `range`, except for what later ones cover.
  Result<> cover(const FeedRange& part, const PartitionKeyRange& range,
                 std::vector<Lease>& leases) {
    const bool whole = part == range.range && !gone_.is_epk();
    ORRERY_TRY(auto simple, lease(whole ? range.id : std::string(), part, position_));
    const auto left = uncovered(part, later_);
    if (exists(simple.id) || (left.size() == 1 && left[0] == part)) {
      leases.push_back(std::move(simple));
      return {};
    }
    for (const FeedRange& piece : left) {
      ORRERY_TRY(auto made, lease({}, piece, position_));
      leases.push_back(std::move(made));
    }
    return {};
  }

  /// Where nobody knows what area the range had: all of each range that came of it, from the lowest
  /// position of all leases that it came of; except for what leases cover that say so themselves.
  Result<std::vector<Lease>> by_parents() const {
    std::vector<Lease> leases;
    bool any = false;
    for (const PartitionKeyRange& range : ranges_) {
      const auto is_parent = [&](const Lease& each) {
        return !each.is_epk() &&
               std::ranges::find(range.parents, each.token) != range.parents.end();
      };
      if (!is_parent(gone_)) continue;
      any = true;
      auto position = position_;
      std::vector<FeedRange> covered;
      for (const Lease& other : existing_) {
        if (other.id == gone_.id) continue;
        if (auto area = area_of(other, ranges_)) {
          covered.push_back(std::move(*area));
        } else if (is_parent(other)) {
          position = lowest_position(position, other.position);
        }
      }
      ORRERY_TRY(auto whole, lease(range.id, range.range, position));
      const auto left = uncovered(range.range, covered);
      if (exists(whole.id) || (left.size() == 1 && left[0] == range.range)) {
        leases.push_back(std::move(whole));
        continue;
      }
      for (const FeedRange& piece : left) {
        ORRERY_TRY(auto made, lease({}, piece, position));
        leases.push_back(std::move(made));
      }
    }
    if (!any) return not_told();
    return leases;
  }

  const LeaseIds& ids_;
  const Lease& gone_;
  std::optional<std::string> position_;
  const Ranges& ranges_;
  const std::vector<Lease>& existing_;
  std::vector<FeedRange> later_;
};

}  // namespace

Result<ReplacementPlan> plan_replacement(const LeaseIds& ids, const Lease& gone,
                                         std::optional<std::string> position, const Ranges& ranges,
                                         const std::vector<Lease>& existing) {
  return Planner(ids, gone, std::move(position), ranges, existing).plan();
}

std::set<std::string> superseded_leases(const std::vector<Lease>& leases) {
  std::vector<const Lease*> by_area;
  for (const Lease& lease : leases) {
    if (lease.range) by_area.push_back(&lease);
  }
  std::ranges::sort(by_area, {},
                    [](const Lease* lease) -> const std::string& { return lease->range->min; });
  std::set<std::string> superseded;
  for (auto lease = by_area.begin(); lease != by_area.end(); ++lease) {
    for (auto next = lease + 1; next != by_area.end(); ++next) {
      if ((*lease)->range->max <= (*next)->range->min) break;
      if ((*lease)->generation() < (*next)->generation()) superseded.insert((*lease)->id);
      if ((*next)->generation() < (*lease)->generation()) superseded.insert((*next)->id);
    }
  }
  return superseded;
}

Async<Replacement> replace_lease(LeaseManager& manager, FeedReader& reader, Lease gone,
                                 std::optional<std::string> position) {
  Replacement replacement;
  ORRERY_CO_TRY(auto renewed, co_await manager.renew(gone.id, position));
  if (renewed.lost()) {
    replacement.lost = true;
    co_return replacement;
  }
  if (!renewed.lease.range) renewed.lease.range = gone.range;
  gone = std::move(renewed.lease);
  if (!gone.mode) gone.mode = manager.mode();
  if (gone.container_rid.empty()) gone.container_rid = manager.container_rid();

  // Ranges before leases: what another host replaces in between is then seen with its new leases.
  ORRERY_CO_TRY(auto ranges, co_await reader.ranges());
  ORRERY_CO_TRY(auto existing, co_await manager.list());
  ORRERY_CO_TRY(auto plan,
                plan_replacement(manager.ids(), gone, std::move(position), ranges, existing));
  if (plan.keep) {
    replacement.kept = true;
    co_return replacement;
  }
  for (Lease& lease : plan.leases) {
    const auto range = lease.range;
    ORRERY_CO_TRY(auto created, co_await manager.create(std::move(lease)));
    if (!created.done()) continue;
    if (!created.lease.range) created.lease.range = range;
    replacement.leases.push_back(std::move(created.lease));
  }
  ORRERY_CO_TRY(co_await manager.remove(gone.id));
  co_return replacement;
}

}  // namespace orrery::processor
