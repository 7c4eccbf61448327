// Continuation tokens of queries: where the next page begins, apart from the query itself, which
// the client sends again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/ids.h"
#include "protocol/tokens/continuation.h"

namespace orrery {

/// Where the rows of a page ended, apart from where its documents are.
struct RowPosition {
  std::uint64_t skipped = 0;  ///< rows that OFFSET has passed over
  std::uint64_t emitted = 0;  ///< rows that count against TOP and LIMIT
  /// Ordered: the sort key of the last row; Grouped: the key of the last group. Strictly after it,
  /// or at it and after the place.
  std::optional<std::string> key;
  static constexpr std::size_t kKeyBytesMax = 256;
  /// Ordered, when not 0: the key is only the beginning of that row's, which was too long, and so
  /// many rows with this beginning have been emitted.
  std::uint64_t cut_rows = 0;
  std::uint64_t cut_hash = 0;  ///< of the whole key of an Ordered query's row
  /// A document whose rows have been emitted in part, and how many.
  struct Partial {
    DocumentNumber number;
    std::uint32_t rows = 0;
    bool operator==(const Partial&) const = default;
  };
  Partial partial;
  /// Others, in slices further on: there are some where ranges were split in between. Where there
  /// were more, their rows come again, and none is left out.
  std::vector<Partial> others;
  static constexpr std::size_t kOthersMax = 3;
  bool operator==(const RowPosition&) const = default;
};

/// A position that holds in every later division of the container: documents are told by keys and
/// numbers, rows by sort keys.
struct QueryPosition {
  std::uint64_t query = 0;  ///< a hash of text and parameters
  ReadFeedPosition at;      ///< up to where documents were read; with a key: its ties
  RowPosition rows;
  /// The suspended query on the server, unless it was evicted; 0: none.
  std::uint64_t suspended = 0;
  bool operator==(const QueryPosition&) const = default;
};

/// The key has at most RowPosition::kKeyBytesMax bytes.
std::string encode_continuation(const QueryPosition& position);
/// The same as the service's gateway writes it, with told_range(): see wrap_token(). Bare where
/// that would be too long for clients.
std::string encode_gateway_continuation(const QueryPosition& position);
/// The range that is read next; of rows that are sorted or grouped, all of the space.
EpkRange told_range(const QueryPosition& position);
/// Of a bare token. BadRequest for whatever we did not make.
Result<QueryPosition> decode_query_continuation(std::string_view token);

}  // namespace orrery
