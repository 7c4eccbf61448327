// Session tokens: how far a client has read or written in each range.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "protocol/ids.h"

namespace orrery {

/// `0:42` before API version 2018-06-18, `0:<version>#42` from then on. The wrong form crashes
/// clients of the other kind.
enum class SessionTokenForm { Simple, Vector };

/// The form that a request of this x-ms-version wants; an absent (empty) version is the newest.
SessionTokenForm session_token_form(std::string_view api_version);

/// Tokens of no known container: what other servers than this one write, and the first of ours.
inline constexpr std::int64_t kSessionVersionUnknown = -1;

/// The version in the tokens of a container: unlike those of all other containers, and of its own
/// in another life of the store, and higher in a later life, since clients that merge two tokens
/// keep the higher version. Below 2^53, for JavaScript.
std::int64_t session_version(std::uint64_t life, const Rid& container);

struct SessionEntry {
  RangeId range;
  Lsn lsn;
  std::int64_t version = kSessionVersionUnknown;  ///< also of the simple form, which has none
  bool operator==(const SessionEntry&) const = default;
};

/// Reads both forms, whatever the version: `id:lsn` or `id:version#lsn[#region=lsn]…`, separated by
/// commas. An empty header is no entries; entries whose id is not a number are skipped; BadRequest
/// for what does not have that shape.
Result<std::vector<SessionEntry>> parse_session_token(std::string_view header);

/// Appends one entry. The comma between two is the caller's.
void append_session_entry(std::string& out, SessionTokenForm form, std::int64_t version,
                          RangeId range, Lsn lsn);

}  // namespace orrery
