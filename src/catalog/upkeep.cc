// The part of Catalog that knows which containers have to be looked after, and makes their
// partitions keep what they ask for.
#include <utility>

#include "catalog/catalog.h"
#include "catalog/retention.h"

namespace orrery::catalog {

namespace {

/// How often a container's ranges may change while we run after them.
constexpr int kRangeChangesMax = 10;

}  // namespace

std::vector<ContainerPtr> Catalog::containers_with_upkeep() const {
  std::shared_lock lock(state_mutex_);
  std::vector<ContainerPtr> found;
  found.reserve(state_.with_upkeep.size());
  for (const auto& [rid, container] : state_.with_upkeep) found.push_back(container);
  return found;
}

std::vector<Rid> Catalog::take_unreconciled() {
  std::lock_guard lock(unreconciled_mutex_);
  std::vector<Rid> taken(unreconciled_.begin(), unreconciled_.end());
  unreconciled_.clear();
  return taken;
}

void Catalog::reconcile_later(const Rid& container) {
  std::lock_guard lock(unreconciled_mutex_);
  unreconciled_.insert(container);
}

Result<> Catalog::reconcile_keeping(const Rid& rid) {
  // The newest definition comes last, whoever of two is first here.
  std::lock_guard lock(keeping_mutex_);
  for (int attempt = 0; attempt < kRangeChangesMax; ++attempt) {
    const auto current = container(rid);
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
