#include "sinks/lag_watch.h"

#include <algorithm>

namespace orrery::sinks {
namespace {

/// Ages are the difference of two times that were each cut to a second.
constexpr std::chrono::seconds kAgeDoubt{2};

}  // namespace

void LagWatch::refresh() {
  std::uint64_t documents = 0;
  std::optional<std::chrono::seconds> oldest = std::chrono::seconds(0);
  for (const processor::LeaseLag& lag : group_.lag()) {
    documents += lag.documents;
    if (lag.documents == 0) continue;
    oldest = oldest && lag.age ? std::optional(std::max(*oldest, *lag.age)) : std::nullopt;
  }
  documents_left_ = documents;
  // Changes that are left count as newer than the start only if that is beyond doubt. Where ages
  // are not told, none may be left.
  const auto since_begin = std::chrono::steady_clock::now() - begin_;
  caught_up_ = documents == 0 || (oldest && *oldest + kAgeDoubt <= since_begin);
}

}  // namespace orrery::sinks
