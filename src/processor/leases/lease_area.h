// Which part of the hash space a lease stands for, and where to read it now.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orrery/container.h"
#include "processor/hosting/feed_reader.h"
#include "processor/hosting/runtime.h"
#include "processor/leases/lease.h"

namespace orrery::processor {

using Ranges = std::vector<client::PartitionKeyRange>;

/// The area of the lease: its own range if it says so, else the bounds of the range that it names.
/// nullopt: it names a range that is not there any more, and does not say what that was.
std::optional<client::FeedRange> area_of(const Lease& lease, const Ranges& ranges);

/// Where a lease has to be read: a range, and which part of it.
struct FeedTarget {
  std::string range_id;
  std::optional<client::FeedRange> slice;  ///< none: the whole range
  friend bool operator==(const FeedTarget&, const FeedTarget&) = default;
};

/// One for each range that the lease overlaps, in order. A lease of a range that is there has
/// exactly one, without a slice; of one that is gone, those of its area or of its children. Several
/// mean that the lease has to be replaced before it can be read as one. Empty: nobody knows.
std::vector<FeedTarget> targets_of(const Lease& lease, const Ranges& ranges);

/// The parts of `range` that none of `covered` contains, in order.
std::vector<client::FeedRange> uncovered(client::FeedRange range,
                                         std::vector<client::FeedRange> covered);
/// The intersection of both; nullopt: it is empty.
std::optional<client::FeedRange> common_part(const client::FeedRange& a,
                                             const client::FeedRange& b);
inline bool contains(const client::FeedRange& outer, const client::FeedRange& inner) {
  return outer.min <= inner.min && inner.max <= outer.max;
}

/// Where reading begins, before there is a position.
struct StartPosition {
  enum class Kind { Beginning, Now, Time, Etag } kind = Kind::Now;
  WallTime time;
  std::string etag;

  /// By the precedence of the originals: continuation, time, beginning, now.
  static StartPosition of(const MonitoredFeedOptions& options);
};

/// The etag that stands for `start` in `target` now: fixed once, it never moves. nullopt
/// where the server gives none that could be kept (then the start has to be asked for again).
/// Throttling is waited out. RangeGone when the range is not there any more;
/// NotFound when the container is not; BadRequest for a start that the mode has not.
Async<std::optional<std::string>> resolve_start(FeedReader& reader, FeedTarget target,
                                                StartPosition start, client::ChangeFeedMode mode,
                                                std::string session_token, Runtime& runtime);

}  // namespace orrery::processor
