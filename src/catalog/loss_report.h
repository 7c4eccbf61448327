// Which containers the writes belong to that a damaged store has lost.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "storage/loss.h"
#include "storage/store.h"

namespace orrery::catalog {

/// One line for each range that has lost writes, or may have: "shop/orders, range 0: LSNs 682 to
/// 951". `remains` is the store without them. Blocks. Unavailable when it cannot be read.
Result<std::vector<std::string>> describe_loss(const storage::Store& remains,
                                               const storage::Loss& loss);

}  // namespace orrery::catalog
