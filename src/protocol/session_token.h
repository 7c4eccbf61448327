// Session tokens: how far a client has read or written in each range.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "protocol/ids.h"

namespace orrery {

/// `0:42` before API version 2018-06-18, `0:-1#42` from then on. The wrong form crashes clients of
/// the other kind.
enum class SessionTokenForm { Simple, Vector };

/// The form that a request of this x-ms-version wants; an absent (empty) version is the newest.
SessionTokenForm session_token_form(std::string_view api_version);

struct SessionEntry {
  RangeId range;
  Lsn lsn;
  bool operator==(const SessionEntry&) const = default;
};

/// Reads both forms, whatever the version: `id:lsn` or `id:version#lsn[#region=lsn]…`, separated by
/// commas. An empty header is no entries; entries whose id is not a number are skipped; BadRequest
/// for what does not have that shape.
Result<std::vector<SessionEntry>> parse_session_token(std::string_view header);

/// Appends one entry. The comma between two is the caller's.
void append_session_entry(std::string& out, SessionTokenForm form, RangeId range, Lsn lsn);

}  // namespace orrery
