#include "index/advisor.h"

#include <algorithm>

namespace orrery::index {
namespace {

/// Forgets the one that was not seen for the longest time.
template <typename Map>
void forget_oldest(Map& map) {
  map.erase(
      std::ranges::min_element(map, {}, [](const auto& entry) { return entry.second.seen_at; }));
}

}  // namespace

std::vector<IndexSpec> Advisor::saw(const Observation& observation) {
  std::vector<IndexSpec> wanted;
  // A container that is small is read faster than an index is kept.
  if (observation.documents < limits_.documents_min || observation.helpful.empty()) return wanted;
  // A query whose rows are a good part of what it reads has no use for an index.
  if (observation.documents_read < observation.rows * limits_.documents_per_row_min) return wanted;

  const UnixSeconds now = clock_.unix_seconds();
  const std::lock_guard lock(mutex_);
  forget_old(now);
  Container& container = containers_[std::string(observation.container)];
  container.seen_at = now;
  std::size_t room = limits_.indexes_max - std::min(limits_.indexes_max, observation.indexes);
  for (const IndexSpec& spec : observation.helpful) {
    Wish& wish = container.wishes[spec];
    wish.seen_at = now;
    wish.documents_read += observation.documents_read;
    const bool is_too_much = observation.documents_read >= limits_.documents_min ||
                             wish.documents_read >= limits_.documents_sum_min;
    const bool was_told = wish.told_at != 0 && now < wish.told_at + limits_.patience.count();
    if (!is_too_much || was_told || room == 0) continue;
    wish.documents_read = 0;
    wish.told_at = now;
    wanted.push_back(spec);
    --room;
  }
  while (container.wishes.size() > limits_.wishes_max) forget_oldest(container.wishes);
  while (containers_.size() > limits_.containers_max) forget_oldest(containers_);
  return wanted;
}

void Advisor::forget(std::string_view container) {
  const std::lock_guard lock(mutex_);
  if (const auto found = containers_.find(container); found != containers_.end()) {
    containers_.erase(found);
  }
}

void Advisor::forget_old(UnixSeconds now) {
  const auto is_old = [&](const auto& entry) {
    return entry.second.seen_at + limits_.memory.count() <= now;
  };
  std::erase_if(containers_, is_old);
  for (auto& [name, container] : containers_) std::erase_if(container.wishes, is_old);
}

}  // namespace orrery::index
