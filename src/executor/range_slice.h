// Parts of ranges in the order in which their documents are read, and positions in them that hold
// in every later division of the container.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "catalog/range_map.h"
#include "executor/scope.h"
#include "protocol/ids.h"
#include "protocol/keys/epk.h"
#include "protocol/tokens/continuation.h"

namespace orrery::executor {

/// Documents of one range.
struct RangeSlice {
  const catalog::Range* range;
  EpkRange epks;
  DocumentNumber after;                                     ///< those up to it have been dealt with
  std::optional<std::string> partition_key = std::nullopt;  ///< only those of this key (canonical)
};

/// Greater than that of any document.
inline constexpr DocumentNumber kAllDocuments{UINT64_MAX};

/// The slices that a position leaves, in order. Its ranges may have changed since: one that was
/// split has been read to the same document in each part, one that was merged only in its own.
std::vector<RangeSlice> slices_from(const ReadFeedPosition& at, const catalog::RangeMap& map,
                                    const ContainerScope& scope);
/// The same with what lies before the position, too, of which all documents have been dealt with.
std::vector<RangeSlice> all_slices(const ReadFeedPosition& at, const catalog::RangeMap& map,
                                   const ContainerScope& scope);

/// The position after `last` in slices[at], with nothing read of the slices after it.
ReadFeedPosition position_in(const std::vector<RangeSlice>& slices, std::size_t at,
                             DocumentNumber last);

/// Only what lies in the slice, if that is not the whole range anyway.
std::optional<EpkRange> keys_within(const RangeSlice& slice, const ContainerScope& scope);

}  // namespace orrery::executor
