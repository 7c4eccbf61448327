// Target: what a request is about. Resolving is the first of the three steps of every request:
// resolve, authorise, handle.
#pragma once

#include <optional>

#include "base/result.h"
#include "catalog/resources.h"
#include "partition/read/point_read.h"
#include "protocol/wire/resource_path.h"

namespace orrery::api {

struct Context;
struct Services;

/// The resources that the path and the key header of a request name, as they were when it was
/// resolved. Those that a request does not name are null.
struct Target {
  catalog::DatabasePtr database;  ///< only where no container is named
  catalog::ContainerPtr container;
  /// Where the request turned out to be about one range. Lives as long as the container.
  const catalog::Range* range = nullptr;
  /// By its id, or by its number where the path is one of rids.
  std::optional<partition::DocumentAddress> document;
};

/// Sets the context's target from its path and headers, anew each time. NotFound when the addressed
/// database or container does not exist, OwnerNotFound when one above it does not;
/// ContainerRidMismatch when the client means another container of the same name. Of requests on
/// one document also BadRequest, PartitionKeyMismatch and NotFound by its key and rid.
Result<> resolve(const Services& services, Context& context);

/// Whether the ranges of the target's container have changed since it was resolved.
bool is_outdated(const Services& services, const Target& target);

/// A request whose ranges were split or merged under it begins again with the ranges that there are
/// now, at most so many times.
inline constexpr int kRangeGoneAttemptsMax = 10;

/// Whether the path is one of rids. The test that clients apply to sign, and a database with that
/// rid.
bool is_rid_path(const Services& services, const ResourcePath& path);

}  // namespace orrery::api
