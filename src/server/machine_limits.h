// Limits of the machine: open files and memory.
#pragma once

#include <cstddef>

#include "base/result.h"

namespace orrery::server {

/// How the files that a process may have open are shared out, so that the store never finds none
/// left because of connections.
struct DescriptorPlan {
  std::size_t connections;   ///< served at the same time
  std::size_t turning_away;  ///< connections beyond these that are told so
  std::size_t store_files;   ///< tables that the store keeps open
};

/// Raises the limit of open files as far as the system allows, and returns it.
std::size_t raise_descriptor_limit();

/// Shares `limit` open files out; no more than `connections_wanted` go to connections. BadRequest
/// when there are too few to work at all.
Result<DescriptorPlan> plan_descriptors(std::size_t limit, std::size_t connections_wanted);

/// An eighth of the memory that this process may use, in bounds that suit a laptop and a server.
std::size_t default_request_memory();

/// The same for a machine of so many bytes.
std::size_t request_memory_of(std::size_t machine_bytes);

}  // namespace orrery::server
