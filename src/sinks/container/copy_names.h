// Names under which a copy keeps its leases and positions. They are the same on every machine and
// in every version, or a copy would not find them again.
#pragma once

#include <string>

namespace orrery::sinks {

/// The containers of a copy.
struct CopyEnds {
  std::string source_endpoint;
  std::string source;  ///< DATABASE/CONTAINER
  std::string source_rid;
  std::string destination_endpoint;
  std::string destination;  ///< DATABASE/CONTAINER
  std::string destination_rid;
};

/// The group of a copy that was given no name.
std::string default_group(const CopyEnds& ends);

/// In the prefix of leases: differs for a destination that was deleted and made again, which has
/// nothing of the changes before the positions of older leases.
std::string destination_generation(const CopyEnds& ends);

}  // namespace orrery::sinks
