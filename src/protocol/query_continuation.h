// Continuation tokens of queries: where the next page begins, apart from the query itself, which
// the client sends again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "protocol/continuation.h"
#include "protocol/ids.h"

namespace orrery {

/// A position that holds in every later division of the container: documents are told by keys and
/// numbers, rows by sort keys.
struct QueryPosition {
  std::uint64_t query = 0;  ///< a hash of text and parameters
  ReadFeedPosition at;      ///< up to where documents were read; with a key: its ties
  std::uint64_t skipped = 0;
  std::uint64_t emitted = 0;
  std::optional<std::string> key;  ///< of the last row or group
  std::uint64_t cut_rows = 0;  ///< the key is only a beginning, which so many rows have
  std::uint64_t cut_hash = 0;  ///< of the whole key
  DocumentNumber partial;  ///< of this document so many rows were shown
  std::uint32_t partial_rows = 0;
  DocumentNumber other_partial;  ///< the same
  std::uint32_t other_partial_rows = 0;
  /// What the server keeps of the work that was done, if it still does; 0: nothing.
  std::uint64_t suspended = 0;
  bool operator==(const QueryPosition&) const = default;
};

/// Within the same bound as all tokens.
inline constexpr std::size_t kQueryKeyBytesMax = 256;

/// The key has at most kQueryKeyBytesMax bytes.
std::string encode_continuation(const QueryPosition& position);
/// BadRequest for whatever we did not make.
Result<QueryPosition> decode_query_continuation(std::string_view token);

}  // namespace orrery
