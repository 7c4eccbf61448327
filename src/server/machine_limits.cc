#include "server/machine_limits.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include <fmt/format.h>

#include "storage/open_files.h"

namespace orrery::server {
namespace {

// Event loops, logs and manifests of the store, its tables while they are written, and what
// libraries open for a moment.
constexpr std::size_t kOtherFilesMax = 128;
constexpr std::size_t kTurningAwayMax = 256;
constexpr std::size_t kFilesMin = 128;

constexpr std::size_t kRequestMemoryMin = std::size_t{64} << 20;
constexpr std::size_t kRequestMemoryMax = std::size_t{1} << 30;

/// Nothing when the file is not there or says "max".
std::size_t number_in(const char* path) {
  std::ifstream file(path);
  std::size_t number = 0;
  return file >> number ? number : std::numeric_limits<std::size_t>::max();
}

}  // namespace

std::size_t raise_descriptor_limit() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return 1024;
  if (files.rlim_cur < files.rlim_max) {
    const auto before = files.rlim_cur;
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) != 0) files.rlim_cur = before;
  }
  return files.rlim_cur;
}

Result<DescriptorPlan> plan_descriptors(std::size_t limit, std::size_t connections_wanted) {
  if (limit < kFilesMin) {
    return Error(ErrorCode::BadRequest,
                 fmt::format("the limit of open files is {}, and the server needs at least {}: "
                             "raise it (ulimit -n, or LimitNOFILE= of systemd)",
                             limit, kFilesMin));
  }
  const std::size_t store = storage::table_files_max(limit);
  const std::size_t sockets = limit - store - std::min(kOtherFilesMax, limit / 4);
  const std::size_t turning_away = std::min(kTurningAwayMax, sockets / 8);
  return DescriptorPlan{.connections = std::min(connections_wanted, sockets - turning_away),
                        .turning_away = turning_away,
                        .store_files = store};
}

std::size_t request_memory_of(std::size_t machine_bytes) {
  return std::clamp(machine_bytes / 8, kRequestMemoryMin, kRequestMemoryMax);
}

std::size_t default_request_memory() {
  const auto machine = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
                       static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  // A container's limit, in both generations of control groups.
  return request_memory_of(std::min({machine, number_in("/sys/fs/cgroup/memory.max"),
                                     number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes")}));
}

}  // namespace orrery::server
