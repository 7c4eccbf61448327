#include "protocol/wire/range_gone.h"

#include <fmt/format.h>

namespace orrery {

Error range_gone(std::string_view reason) {
  return Error(ErrorCode::RangeGone,
               fmt::format("The requested resource is no longer available at the server: {}. Read "
                           "the ranges again.",
                           reason));
}

Error no_such_range(std::string_view name) {
  return range_gone(fmt::format("there is no partition key range '{}'", name));
}

Error range_replaced(RangeId range) {
  return range_gone(fmt::format("the partition key range '{}' was split or merged", range.text()));
}

}  // namespace orrery
