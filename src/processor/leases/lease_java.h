// Positions of Java's EPK processor: the whole state of its reader, as JSON, in base64.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "orrery/change_feed.h"
#include "orrery/options.h"
#include "processor/hosting/runtime.h"

namespace orrery::processor {

///   {"V":1,"Rid":"<container>","Mode":"INCREMENTAL","StartFrom":{"Type":"BEGINNING"},
///    "Continuation":{"V":1,"Rid":"<container>",
///                    "Continuation":[{"token":"\"12\"","range":{"min":"","max":"FF"}}],
///                    "Range":{"min":"","max":"FF"}}}
///
/// `StartFrom` is BEGINNING, NOW, POINT_IN_TIME with PointInTimeMs, or LEASE with Etag; it counts
/// while there is no token.
struct JavaState {
  std::string json;  ///< all of it
  std::string container_rid;
  client::ChangeFeedMode mode = client::ChangeFeedMode::LatestVersion;
  std::optional<std::string> position;  ///< of several ranges the one that is least far
  std::optional<WallTime> start_time;   ///< of POINT_IN_TIME, while there is no position
};

/// nullopt when it is none. Both alphabets, with or without padding.
std::optional<JavaState> parse_java_state(std::string_view base64);

/// The state in `before` (empty: none yet) moved to `position`; what else is in it stays.
std::string write_java_state(std::string_view before, const client::FeedRange& range,
                             std::string_view position, client::ChangeFeedMode mode,
                             std::string_view container_rid);

}  // namespace orrery::processor
