// Continuation tokens of read feeds and resource lists: where the next page begins, so that nothing
// about a client needs to be remembered between its pages, or over a restart.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "protocol/epk.h"
#include "protocol/ids.h"

namespace orrery {

/// Go on in the range that holds `range_min` (inclusive), after that document.
struct ReadFeedPosition {
  Epk range_min;
  DocumentNumber after;
  bool operator==(const ReadFeedPosition&) const = default;
};

/// Go on after the resource with these rid bytes.
struct ListPosition {
  std::string after;
  bool operator==(const ListPosition&) const = default;
};

/// Clients let us send no more than 1 KiB (JS4 says so on every request).
inline constexpr std::size_t kContinuationSizeMax = 1023;

/// Tokens are opaque ASCII without spaces. `range_min` and `after` have at most Epk::kBytesMax
/// bytes.
std::string encode_continuation(const ReadFeedPosition& position);
std::string encode_continuation(const ListPosition& position);

/// BadRequest for whatever we did not make, or made for the other kind of feed.
Result<ReadFeedPosition> decode_read_feed_continuation(std::string_view token);
Result<ListPosition> decode_list_continuation(std::string_view token);

}  // namespace orrery
