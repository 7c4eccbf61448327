// The one error for a partition key range that is not there any more.
#pragma once

#include <string_view>

#include "base/error.h"
#include "protocol/ids.h"

namespace orrery {

/// RangeGone: "The requested resource is no longer available at the server: <reason>. Read the
/// ranges again." Clients look for its beginning.
Error range_gone(std::string_view reason);
/// The request names a range that is not there.
Error no_such_range(std::string_view name);
/// Others have taken the place of a range that the request was sent to.
Error range_replaced(RangeId range);

}  // namespace orrery
