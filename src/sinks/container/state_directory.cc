#include "sinks/container/state_directory.h"

#include <fcntl.h>
#include <sys/file.h>

#include <system_error>

#include <fmt/format.h>

#include "sinks/container/copy_failure.h"

namespace orrery::sinks {
namespace {

namespace fs = std::filesystem;

}  // namespace

StateDirectory::StateDirectory(const fs::path& directory, OldLeases old) {
  std::error_code failure;
  fs::create_directories(directory, failure);
  const fs::path lock = directory / "running";
  lock_ = FileDescriptor(::open(lock.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  if (!lock_.is_open()) {
    throw CopyFailure(fmt::format("the state directory {} can't be used", directory.string()));
  }
  if (::flock(lock_.number(), LOCK_EX | LOCK_NB) != 0) {
    throw CopyFailure(
        fmt::format("another 'orrery copy' works with the state in {}", directory.string()),
        CopyFailure::Remedy::SharedLeases);
  }
  const fs::path leases = directory / "leases";
  if (old == OldLeases::Remove) fs::remove_all(leases, failure);
  // A process that was killed while it made the leases has left the lock that keeps others from it.
  for (const auto& entry : fs::directory_iterator(leases, failure)) {
    if (entry.path().filename().string().ends_with("%2Elock.json")) {
      std::error_code ignored;
      fs::remove(entry.path(), ignored);
    }
  }
  leases_ = processor::file_lease_store(leases.string());
}

}  // namespace orrery::sinks
