// Which part of a container a feed or query is about.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/context.h"
#include "api/services.h"
#include "base/result.h"
#include "catalog/range_map.h"
#include "partition/read/document_cursor.h"
#include "protocol/keys/epk.h"

namespace orrery::api {

/// One partition key.
struct FeedKey {
  const catalog::Range* range;
  EpkRange epks;          ///< those that the key hashes to
  std::string canonical;  ///< see PartitionKey
};

struct FeedScope {
  std::vector<const catalog::Range*> ranges;  ///< in order; of the context's container
  std::optional<EpkRange> epks;               ///< only documents within
  std::optional<std::string> partition_key;   ///< only documents of this key (canonical)
  /// Only documents of these keys, in the order of their EPKs; then there is nothing in the two
  /// above. A query whose filter names zero is about two.
  std::vector<FeedKey> keys = {};

  /// Whether it is no more than single keys.
  bool is_of_keys() const { return partition_key || !keys.empty(); }
};

/// The range of x-ms-documentdb-partitionkeyrangeid, `<id>` or `<container rid>,<id>`; null when
/// the request has none. RangeGone, NameCacheStale.
Result<const catalog::Range*> named_range(const Context& context,
                                          const catalog::Container& container);

/// By the key header (full or prefix), the range id, and the EPK bounds of the request. RangeGone
/// when the range is not there, NameCacheStale when it is another container's, BadRequest for what
/// is malformed.
Result<FeedScope> feed_scope(Context& context, const catalog::Container& container);

/// All documents that have not expired, whatever the scope.
partition::ScanFilter live_documents(const Services& services, const catalog::Container& container);

}  // namespace orrery::api
