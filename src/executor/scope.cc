#include "executor/scope.h"

namespace orrery::executor {

partition::ScanFilter live_documents(const Clock& clock, const catalog::Container& container) {
  partition::ScanFilter filter;
  filter.default_ttl = container.rules.default_ttl;
  filter.now = clock.unix_seconds();
  return filter;
}

}  // namespace orrery::executor
