#include "storage/heads.h"

#include <string>

#include "base/assert.h"
#include "storage/keys.h"

namespace orrery::storage {

Result<std::optional<Head>> find_head(const Snapshot& snapshot, PartitionNumber partition) {
  std::string value;
  switch (snapshot.get(Family::Heads, partition_prefix(partition), value)) {
    case Lookup::Found: {
      auto head = Head::parse(value);
      ORRERY_ASSERT(head.has_value());
      return head;
    }
    case Lookup::Missing:
      return std::optional<Head>();
    case Lookup::Unknown:
    case Lookup::Failed:
      break;
  }
  return Error(ErrorCode::Unavailable, "the head of a range could not be read from the store");
}

}  // namespace orrery::storage
