// The forms in which the service's gateway writes continuation tokens of queries. Clients hand them
// on as they are, also those of another server.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/ids.h"
#include "protocol/keys/epk.h"

namespace orrery {

/// How far one range has been read.
struct RangeToken {
  std::string token;  ///< empty: it has not been begun
  EpkRange range;
  bool operator==(const RangeToken&) const = default;
};

/// `{"token":"…","range":{"min":"…","max":"…"}}`. The token needs no escapes.
std::string wrap_token(std::string_view token, const EpkRange& range);
/// Whether a token is meant to be JSON.
bool is_wrapped_token(std::string_view text);
/// One such object, or an array of them in the order of their ranges. BadRequest for anything else.
Result<std::vector<RangeToken>> unwrap_token(std::string_view text);

/// `-RID:~<rid>#RT:<pages>#TRC:<rows>#…`: the service's own token of a range whose rows are not
/// sorted.
struct ServiceToken {
  Rid rid;                    ///< of a document
  bool is_inclusive = false;  ///< `+RID`: go on with the document; `-RID`: after it
  std::uint64_t rows = 0;     ///< that earlier pages have shown
  bool operator==(const ServiceToken&) const = default;
};
/// Whether a token is meant to be one.
bool is_service_token(std::string_view text);
/// BadRequest for anything else, and for tokens with sort values (`#RTD:…`), which only the service
/// can read.
Result<ServiceToken> parse_service_token(std::string_view text);

/// BadRequest, with what the service says of a token that it can't read, and what to mend.
Error malformed_query_continuation();

}  // namespace orrery
