// Partial updates: from the body of a request to what the writer does with the stored document.
#pragma once

#include <functional>
#include <string_view>

#include "base/result.h"
#include "catalog/catalog.h"
#include "partition/writer/transaction.h"

namespace orrery::api {

/// As partition::Write::change. PreconditionFailed when the patch's condition does not hold, or the
/// error that query::Predicate::is_true_of has; BadRequest when an operation cannot be done or
/// touches what may not be patched (`id`, system properties, the partition key), RequestTooLarge
/// when the document would become too large; in this order.
using Change = std::function<Result<partition::NewVersion>(std::string_view text)>;

/// Reads `{"operations":[…],"condition":"from c where …"}`, or only the array. BadRequest when it
/// is neither, or what is in it cannot be read. The change depends on nothing but the container,
/// which it holds.
Result<Change> read_patch(const catalog::ContainerPtr& container, std::string_view body);

}  // namespace orrery::api
