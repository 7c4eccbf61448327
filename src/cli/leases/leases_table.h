// The leases of a group, for people and for programs.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "orrery/processor.h"

namespace orrery::cli {

struct GroupStatus {
  std::string group;
  bool paused = false;
  std::vector<processor::LeaseGroup::Lease> leases;
  std::vector<processor::LeaseLag> lag;  ///< of the same leases, in any order
};

using WallTime = std::chrono::system_clock::time_point;

/// Columns as wide as they need to be, and a line with the sum.
std::string status_table(const GroupStatus& status, WallTime now);
std::string status_json(const GroupStatus& status);

}  // namespace orrery::cli
