#include "maintenance/auto_split.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "protocol/keys/epk.h"

namespace orrery::maintenance {

using catalog::Container;
using catalog::ContainerPtr;
using catalog::DatabasePtr;
using catalog::OfferPtr;
using catalog::Range;

void AutoSplit::start() {
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      lock.unlock();
      const bool more = step();
      lock.lock();
      if (!more) wake_.wait_for(lock, options_.interval, [this] { return stopping_; });
    }
  });
}

void AutoSplit::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool AutoSplit::step() { return split_for_throughput() || split_for_size(); }

bool AutoSplit::split(const Container& container, const Range& range, std::string_view why) {
  auto change = changes_.begin_split(container.rid, range.id, {});
  if (!change) return false;  // Too narrow, or somebody is at it already.
  diagnostics::info("{}: range {} is being split because {}", container.alt_content_path,
                    range.id.value, why);
  const auto made = (*change)->run();
  if (!made) {
    diagnostics::warning("{}: range {} was not split: {}", container.alt_content_path,
                         range.id.value, made.error().message());
    return false;
  }
  return true;
}

bool AutoSplit::split_for_throughput() {
  for (const OfferPtr& offer : catalog_.offers().list({}, SIZE_MAX)) {
    if (!catalog::needs_more_ranges(catalog_, *offer)) continue;
    const auto container = catalog_.container(offer->owner);
    if (!container) continue;
    const auto& key = container->definition.partition_key();
    // The widest first.
    std::vector<std::pair<double, const Range*>> ranges;
    for (const Range& range : container->ranges.all()) {
      ranges.emplace_back(-share_of_space(key, range.epks), &range);
    }
    std::ranges::sort(ranges);
    for (const auto& [share, range] : ranges) {
      if (split(*container, *range, "the throughput was raised")) return true;
    }
  }
  return false;
}

bool AutoSplit::split_for_size() {
  for (const DatabasePtr& database : catalog_.databases({}, SIZE_MAX)) {
    for (const ContainerPtr& container : catalog_.containers(database->rid, {}, SIZE_MAX)) {
      if (split_for_size(*container)) return true;
    }
  }
  return false;
}

bool AutoSplit::split_for_size(const Container& container) {
  for (const Range& range : container.ranges.all()) {
    const std::uint64_t bytes = range.partition->text_bytes();
    if (bytes <= options_.range_bytes_max) continue;
    const auto held_back = not_before_.find(range.partition->number());
    if (held_back != not_before_.end() && bytes < held_back->second) continue;
    if (!split(container, range, "it has grown large")) continue;
    not_before_.erase(range.partition->number());
    // Where one key has nearly everything a split takes nothing away, nor would the next.
    const auto made = catalog_.container(container.rid);
    if (!made) return true;
    for (const Range& child : made->ranges.all()) {
      const bool is_child = std::ranges::find(child.parents, range.id) != child.parents.end();
      const std::uint64_t kept = child.partition->text_bytes();
      if (is_child && kept > bytes / 10 * 9) not_before_[child.partition->number()] = 2 * kept;
    }
    return true;
  }
  return false;
}

}  // namespace orrery::maintenance
