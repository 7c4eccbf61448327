// Which items of a change feed a reader wants, and what of them: x-orrery-feed-filter and
// x-orrery-feed-select.
#pragma once

#include <memory>

#include "api/context.h"
#include "base/result.h"
#include "feed/page.h"

namespace orrery::api {

/// Null when the request has neither header. The names are `c` for the document, and in
/// all-versions mode `p` for the one before. `c` is what it is in a query over the context's
/// container: computed properties, geometry, languages and vectors are as it defines them now.
/// BadRequest as queries tell of errors in their text; the filter itself fails with what ends a
/// query.
Result<std::unique_ptr<const feed::ItemFilter>> feed_filter(const Context& context,
                                                            feed::Mode mode);

}  // namespace orrery::api
