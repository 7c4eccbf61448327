#include "catalog/retention_sync.h"

#include <utility>

#include "catalog/retention.h"

namespace orrery::catalog {

namespace {

/// How often the ranges of a container may change while their settings are applied.
constexpr int kRangeChangesMax = 10;

}  // namespace

void RetentionSync::apply_later(const Rid& container) {
  std::lock_guard lock(pending_mutex_);
  pending_.insert(container);
}

std::vector<Rid> RetentionSync::take_pending() {
  std::lock_guard lock(pending_mutex_);
  std::vector<Rid> taken(pending_.begin(), pending_.end());
  pending_.clear();
  return taken;
}

Result<> RetentionSync::apply(const Rid& rid) {
  std::lock_guard lock(apply_mutex_);
  for (int attempt = 0; attempt < kRangeChangesMax; ++attempt) {
    const auto current = definitions_.container(rid);
    if (!current) return {};
    bool range_gone = false;
    for (const Range& range : current->ranges.all()) {
      const auto kept = range.partition->submit_and_wait(
          {.work = partition::RetentionChange{retention_of(current->definition)}});
      if (kept) continue;
      switch (kept.error().code()) {
        case ErrorCode::RangeGone:
          range_gone = true;
          continue;
        case ErrorCode::OwnerNotFound:
          return {};  // It is being deleted.
        default:
          return Error(kept.error());
      }
    }
    if (!range_gone) return {};
  }
  return Error(ErrorCode::Unavailable, "the ranges of the container change too fast");
}

}  // namespace orrery::catalog
