// Which part of a container a query or a feed reads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "catalog/range_map.h"
#include "catalog/resources.h"
#include "partition/read/scan.h"
#include "protocol/keys/epk.h"

namespace orrery::executor {

/// The documents of one partition key.
struct KeyScope {
  const catalog::Range* range;
  EpkRange epks;          ///< those that the key hashes to
  std::string canonical;  ///< see PartitionKey
};

struct ContainerScope {
  std::vector<const catalog::Range*> ranges;  ///< in order; all of one container
  std::optional<EpkRange> epks;               ///< only documents within
  std::optional<std::string> partition_key;   ///< only documents of this key (canonical)
  /// Only documents of these keys, in the order of their EPKs; the two above are empty then. A
  /// filter that names zero selects two keys, since 0 and -0 hash differently.
  std::vector<KeyScope> keys = {};

  /// Whether it is no more than single keys.
  bool is_of_keys() const { return partition_key || !keys.empty(); }
};

/// All documents that have not expired, whatever the scope.
partition::ScanFilter live_documents(const Clock& clock, const catalog::Container& container);

}  // namespace orrery::executor
