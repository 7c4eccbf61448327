#include "maintenance/check_runner.h"

#include <sys/resource.h>

#include <stop_token>

#include "base/background_pool.h"
#include "base/diagnostics.h"

namespace orrery::maintenance {

Result<std::uint64_t> CheckRunner::start() {
  return job_.start([this](std::stop_token stop) { return run(std::move(stop)); });
}

Result<CheckReport> CheckRunner::run(std::stop_token stop) {
  // Of this thread alone, which ends with the check.
  ::setpriority(PRIO_PROCESS, 0, BackgroundPool::kNiceness);
  auto report = StoreCheck(store_, make_rules_, {.rests = true, .stop = std::move(stop)}).run();
  if (report.is_stopped) return Error(ErrorCode::Unavailable, "the check was stopped");
  for (const Finding& finding : report.findings) {
    diagnostics::error("check of the store: {}: {}", finding.where, finding.what);
  }
  findings_.fetch_add(report.finding_count, std::memory_order_relaxed);
  return report;
}

}  // namespace orrery::maintenance
