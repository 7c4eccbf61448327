// What is wrong with the options of a host, before it does anything.
#pragma once

#include <string>
#include <vector>

#include "orrery/processor.h"

namespace orrery::processor {

/// Throws CosmosException (Argument) when options contradict each other or can't be meant. What is
/// only unwise comes back, in words.
std::vector<std::string> check_options(const std::string& host_name,
                                       const MonitoredFeedOptions& feed_options,
                                       const ChangeFeedHostOptions& host_options);

}  // namespace orrery::processor
