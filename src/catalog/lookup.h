// Looking up in the maps of resources. Callers hold the lock of the map.
#pragma once

#include <cstddef>
#include <map>
#include <string_view>
#include <vector>

#include "protocol/ids.h"

namespace orrery::catalog {

/// Null when there is none.
template <typename Map, typename Key>
typename Map::mapped_type find_in(const Map& map, const Key& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : found->second;
}

/// In the order of creation, up to `count_max` of those after the rid whose bytes are `after`; of
/// one database, unless that is null.
template <typename Value>
std::vector<Value> list_after(const std::map<Rid, Value>& map, std::string_view after,
                              std::size_t count_max, const Rid* database) {
  std::vector<Value> found;
  auto at = map.begin();
  if (database != nullptr) at = map.lower_bound(*database);
  if (const auto last = Rid::from_bytes(after)) at = map.upper_bound(*last);
  for (; at != map.end() && found.size() < count_max; ++at) {
    if (database != nullptr && at->first.database_part() != database->database_part()) break;
    found.push_back(at->second);
  }
  return found;
}

}  // namespace orrery::catalog
