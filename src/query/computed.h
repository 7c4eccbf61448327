// What a computed property of a container may be.
#pragma once

#include "base/result.h"
#include "query/settings.h"

namespace orrery::query {

/// BadRequest, naming the property and the rule, unless the query of each is `SELECT VALUE
/// expression FROM alias` over the document alone, always with the same value for the same
/// document.
Result<> check_computed(const Settings& settings);

}  // namespace orrery::query
