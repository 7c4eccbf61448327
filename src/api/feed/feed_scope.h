// Which part of a container the headers of a request name.
#pragma once

#include "api/context.h"
#include "base/result.h"
#include "catalog/range_map.h"
#include "executor/scope.h"

namespace orrery::api {

/// The range of x-ms-documentdb-partitionkeyrangeid, `<id>` or `<container rid>,<id>`; null when
/// the request has none. RangeGone, NameCacheStale.
Result<const catalog::Range*> named_range(const Context& context,
                                          const catalog::Container& container);

/// By the key header (full or prefix), the range id, and the EPK bounds of the request. RangeGone
/// when the range is not there, NameCacheStale when it is another container's, BadRequest for what
/// is malformed.
Result<executor::ContainerScope> feed_scope(Context& context, const catalog::Container& container);

}  // namespace orrery::api
