// Replaces a lease whose range was split or merged.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/async.h"
#include "processor/leases/lease.h"
#include "processor/leases/lease_area.h"
#include "processor/leases/lease_manager.h"

namespace orrery::processor {

/// The leases that take the place of `gone`, none of them in the store yet. Pure.
struct ReplacementPlan {
  /// The lease still fits one range: read on under that range's id, replace nothing ("redirect").
  bool keep = false;
  std::vector<Lease> leases;
};

/// `ranges` as they are now, read after the range was found gone and before `existing`, all leases
/// of the group. `position` is the last one that is safe: up to it everything has been processed
/// and, where checkpoints are not written after every batch, checkpointed.
///
/// A range lease becomes one lease for each new range inside its area, and for new ranges that
/// reach beyond it (merges) one for the part that was its own. A lease of a part is cut where the
/// ranges are. Parts that leases of a later generation cover already are left to them: such are
/// there when a host crashed halfway through.
///
/// Where the area of a range lease is not known (Net2, JavaPk), its children are those that name
/// it as a parent; a range merged of several gets the lowest of their positions.
///
/// Unavailable when the ranges do not tell what became of it (try again with newer ones).
Result<ReplacementPlan> plan_replacement(const LeaseIds& ids, const Lease& gone,
                                         std::optional<std::string> position, const Ranges& ranges,
                                         const std::vector<Lease>& existing);

/// The ids of leases of which leases of a later generation cover a part: a host began to replace
/// them and did not finish. The owner of one must not read on, even where its area is one range
/// again meanwhile, but replace the parts that are not covered.
std::set<std::string> superseded_leases(const std::vector<Lease>& leases);

struct Replacement {
  bool lost = false;          ///< the lease is not this host's any more; nothing was done
  bool kept = false;          ///< nothing to do: read on as targets_of() says
  std::vector<Lease> leases;  ///< that took its place, as they are in the store: acquire them
};

/// Creates the leases that replace `gone`, then deletes it: in that order, so that a crash anywhere
/// leaves a lease for everything, and the next host that meets it completes the work. Only for its
/// owner, and only after its last batch is done, or the order within a key is lost: writes
/// `position` into it first, and so learns whether it still is. Reads ranges and leases itself.
/// Unavailable, and what else store and feed say: try again.
Async<Replacement> replace_lease(LeaseManager& manager, FeedReader& reader, Lease gone,
                                 std::optional<std::string> position);

}  // namespace orrery::processor
