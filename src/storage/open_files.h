// How many files the store keeps open.
#pragma once

#include <algorithm>
#include <cstddef>

namespace orrery::storage {

/// Tables that the store keeps open in a process that may have `process_max` files open: up to half
/// of them, and no more than pay.
inline std::size_t table_files_max(std::size_t process_max) {
  constexpr std::size_t kTableFilesMax = 512;
  return std::min(kTableFilesMax, process_max / 2);
}

}  // namespace orrery::storage
