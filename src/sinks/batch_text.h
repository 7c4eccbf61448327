// The changes of a batch, and what is known of it, as texts for programs in other languages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/processor.h"

namespace orrery::sinks {

using Changes = std::span<const std::string_view>;

/// {"lease":…,"range":…,"epoch":…,"from":…,"to":…,"documents":[…]}, on one line without its end.
std::string envelope(const processor::ObserverContext& context, Changes changes);

/// The same facts by name, in lower case: lease, range, epoch, from, to and count.
std::vector<std::pair<std::string, std::string>> facts_of(const processor::ObserverContext& context,
                                                          std::size_t count);

/// The same text whenever the same documents come again from the same acquisition of a lease, and
/// another one for other documents: a batch that failed may come again in parts.
std::string idempotency_key(const processor::ObserverContext& context, Changes changes);

}  // namespace orrery::sinks
