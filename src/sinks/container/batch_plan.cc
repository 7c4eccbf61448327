#include "sinks/container/batch_plan.h"

#include <algorithm>

namespace orrery::sinks {
namespace {

/// `{"operationType":"Upsert","resourceBody":…},`, and an id and etag where there are some.
constexpr std::size_t kOperationBytes = 64;

}  // namespace

std::size_t operation_bytes(std::size_t text_bytes) { return text_bytes + kOperationBytes; }

BatchPlan plan_batch(const std::vector<const SourceChange*>& changes, const BatchLimits& limits) {
  BatchPlan plan;
  std::size_t bytes = 0;
  const auto fits = [&](const std::vector<const SourceChange*>& more) {
    std::size_t more_bytes = 0;
    for (const SourceChange* change : more) more_bytes += operation_bytes(change->text.size());
    return plan.changes.size() + more.size() <= limits.operations_max &&
           bytes + more_bytes <= limits.bytes_max;
  };
  const auto add = [&](const SourceChange* change) {
    plan.changes.push_back(change);
    bytes += operation_bytes(change->text.size());
  };
  for (auto begin = changes.begin(); begin != changes.end();) {
    const std::uint64_t lsn = (*begin)->lsn;
    const auto end = std::find_if(begin, changes.end(),
                                  [&](const SourceChange* each) { return each->lsn != lsn; });
    std::vector<const SourceChange*> transaction(begin, end);
    if (fits(transaction)) {
      for (const SourceChange* change : transaction) add(change);
      plan.applied = {lsn, {}};
      begin = end;
      continue;
    }
    if (!plan.changes.empty()) return plan;
    // It has to be cut. When it is read again, some of its documents may have been changed and be
    // elsewhere in the feed: a count would mean others then, but the order of rids stays.
    std::ranges::sort(transaction, {}, &SourceChange::rid);
    for (const SourceChange* change : transaction) {
      if (!fits({change})) break;
      add(change);
      plan.applied = {lsn, change->rid};
    }
    if (plan.changes.empty()) {
      plan.too_large = true;
      plan.changes.push_back(transaction.front());
      plan.applied = {lsn, transaction.front()->rid};
    }
    if (plan.changes.size() == transaction.size()) plan.applied.within.clear();
    return plan;
  }
  return plan;
}

}  // namespace orrery::sinks
