// A batch as text, for commands and webhooks.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/processor.h"
#include "sinks/sink.h"

namespace orrery::sinks {

/// {"lease":…,"range":…,"epoch":…,"from":…,"to":…,"documents":[…]}, on one line without its end.
std::string envelope(const processor::ObserverContext& context, Changes changes);

/// The facts of the envelope by name, in lower case: lease, range, epoch, from, to and count.
std::vector<std::pair<std::string, std::string>> facts_of(const processor::ObserverContext& context,
                                                          std::size_t count);

/// Equal when the same documents come again under the same epoch of a lease, and different for
/// other documents: a batch that failed may come again in parts.
std::string idempotency_key(const processor::ObserverContext& context, Changes changes);

}  // namespace orrery::sinks
