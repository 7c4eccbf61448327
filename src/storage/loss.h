// Loss: acknowledged writes that a damaged store no longer has, as far as it can be known.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "protocol/ids.h"

namespace orrery::storage {

struct Loss {
  std::string damage;  ///< what is damaged, and where; empty: nothing is lost
  /// Whether the store can be opened without what is lost. Where some families are newer than the
  /// damage, no state without it is consistent.
  bool is_acceptable = false;
  std::uint64_t operations = 0;  ///< at least so many puts and erasures; 0: not known
  std::uint64_t commits = 0;     ///< whole ones behind the damage, which can still be read
  /// The highest head of each partition in them. A partition whose only lost writes are in what
  /// cannot be read is not here.
  std::map<PartitionNumber, Lsn> heads;

  bool is_empty() const { return damage.empty(); }
};

}  // namespace orrery::storage
