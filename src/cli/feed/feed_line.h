// FeedLine: one line of a streamed change feed, or one page of a polled one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace orrery::cli {

struct FeedLine {
  std::string etag;                     ///< where to go on; pages have it in a header instead
  std::vector<std::string_view> items;  ///< the texts of the changes, in `line`
  std::string event;                    ///< "gone" or "lagging": the last line of a stream
  std::string detail;                   ///< of an event, for people

  /// Unavailable when it is not what the server should send.
  static Result<FeedLine> parse(std::string_view line);
};

}  // namespace orrery::cli
