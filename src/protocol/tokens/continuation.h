// Continuation tokens of read feeds and resource lists: where the next page begins, so that nothing
// about a client needs to be remembered between its pages, or over a restart.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/ids.h"
#include "protocol/keys/epk.h"

namespace orrery {

/// Go on with the documents of these keys after that one; then with the keys beyond. It says which
/// keys it is about, since ranges may be split and merged between two pages.
struct ReadFeedPosition {
  Epk range_min;
  DocumentNumber after;
  /// Up to where `after` counts. Not in tokens of earlier versions, which meant the range that
  /// holds `range_min`.
  std::optional<Epk> range_max;
  /// Parts that splits have left: from range_max, or the rest before, up to here, read up to
  /// another document.
  struct Rest {
    Epk max;
    DocumentNumber after;
    bool operator==(const Rest&) const = default;
  };
  std::vector<Rest> rests;
  bool operator==(const ReadFeedPosition&) const = default;
};

/// No boundary of ranges is longer, so that a position of three of them fits into a token.
inline constexpr std::size_t kBoundaryBytesMax = 128;

/// Go on after the resource with these rid bytes.
struct ListPosition {
  std::string after;
  bool operator==(const ListPosition&) const = default;
};

/// Clients let us send no more than 1 KiB (JS4 says so on every request).
inline constexpr std::size_t kContinuationSizeMax = 1023;

/// Tokens are opaque ASCII without spaces. Boundaries have at most kBoundaryBytesMax bytes. Where
/// there are more rests than a token has room for, some documents come again, and none is left out.
std::string encode_continuation(const ReadFeedPosition& position);
std::string encode_continuation(const ListPosition& position);

/// BadRequest for whatever we did not make, or made for the other kind of feed.
Result<ReadFeedPosition> decode_read_feed_continuation(std::string_view token);
Result<ListPosition> decode_list_continuation(std::string_view token);

}  // namespace orrery
