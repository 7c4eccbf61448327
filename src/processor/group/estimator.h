// The lag of a lease, computed without being a host.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/async.h"
#include "orrery/processor.h"
#include "processor/hosting/feed_reader.h"
#include "processor/leases/lease.h"
#include "processor/leases/lease_area.h"

namespace orrery::processor {

/// Exact where the server can tell; else the estimate of .NET's estimator: the LSN of the
/// session minus that of the first change that is left. It counts transactions, also ones that will
/// never be shown. Without a position, or when the range is gone and nobody knows what has
/// become of it, 1: somebody should look.
Async<LeaseLag> lease_lag(FeedReader& reader, Lease lease, Ranges ranges);

/// The formula: `session_token` as in a response, `first` the first change that is left, if there
/// is one. 1 when they can't be understood.
std::uint64_t estimate_lag(std::string_view session_token,
                           const std::optional<std::string_view>& first);

}  // namespace orrery::processor
