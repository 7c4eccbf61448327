// StateDirectory: where a copy that runs alone on a machine keeps its leases.
#pragma once

#include <filesystem>
#include <memory>

#include "base/file_descriptor.h"
#include "orrery/processor.h"

namespace orrery::sinks {

/// Locked against other processes for as long as it lives, so that a copy may take over the leases
/// of one that was killed before, without waiting until they expire.
class StateDirectory {
 public:
  enum class OldLeases { Keep, Remove };

  /// Makes the directory if need be. Throws CopyFailure when it can't be used, or when another
  /// process has it.
  StateDirectory(const std::filesystem::path& directory, OldLeases old);

  std::shared_ptr<processor::LeaseStore> leases() const { return leases_; }

 private:
  FileDescriptor lock_;
  std::shared_ptr<processor::LeaseStore> leases_;  // Shared with the hosts that use it.
};

}  // namespace orrery::sinks
