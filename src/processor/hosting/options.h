// Validates the options of a host, before it does anything.
#pragma once

#include <string>
#include <vector>

#include "orrery/processor.h"

namespace orrery::processor {

/// Throws CosmosException (Argument) when options contradict each other or can't be meant. Returns
/// warnings about options that are only unwise.
std::vector<std::string> check_options(const std::string& host_name,
                                       const MonitoredFeedOptions& feed_options,
                                       const ChangeFeedHostOptions& host_options);

}  // namespace orrery::processor
