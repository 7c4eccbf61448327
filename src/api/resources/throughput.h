// Throughput as clients ask for it: headers on creation, offer bodies on replacement.
#pragma once

#include <optional>

#include "api/context.h"
#include "base/result.h"
#include "catalog/resources.h"
#include "protocol/container/container_definition.h"

namespace orrery::api {

inline constexpr std::int64_t kThroughputMin = 400;
inline constexpr std::int64_t kThroughputMax = 1'000'000;
inline constexpr std::int64_t kAutoscaleMin = 1000;

/// From x-ms-offer-throughput, x-ms-cosmos-offer-autopilot-settings or x-ms-offer-type; nothing
/// when none is there. BadRequest names the rule.
Result<std::optional<catalog::Throughput>> requested_throughput(const Context& context);

/// From the `content` of an offer that is put, or from the header that asks to migrate between
/// manual and autoscale. BadRequest names the rule.
Result<catalog::Throughput> replaced_throughput(const Context& context,
                                                const catalog::Offer& current, const Json& body);

/// The least that this offer may be set to.
std::int64_t minimum_throughput(const catalog::Offer& offer);

}  // namespace orrery::api
