#include "client/exchange/routing.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "client/exchange/refusal.h"
#include "protocol/keys/epk.h"

namespace orrery::client {

RoutingMap::RoutingMap(std::string container_rid, PartitionKeyDefinition definition,
                       std::vector<PartitionKeyRange> ranges, std::string etag)
    : container_rid_(std::move(container_rid)),
      keys_(std::move(definition)),
      ranges_(std::move(ranges)),
      etag_(std::move(etag)) {
  std::set<std::string> parents;
  for (const PartitionKeyRange& range : ranges_) {
    parents.insert(range.parents.begin(), range.parents.end());
  }
  std::erase_if(ranges_,
                [&](const PartitionKeyRange& range) { return parents.contains(range.id); });
  const auto before = [](const PartitionKeyRange& a, const PartitionKeyRange& b) {
    return a.range.min < b.range.min;
  };
  std::sort(ranges_.begin(), ranges_.end(), before);
  const auto same = [](const PartitionKeyRange& a, const PartitionKeyRange& b) {
    return a.id == b.id;
  };
  ranges_.erase(std::unique(ranges_.begin(), ranges_.end(), same), ranges_.end());
}

bool RoutingMap::is_complete() const {
  std::string_view covered = "";
  for (const PartitionKeyRange& range : ranges_) {
    if (range.range.min != covered || range.range.max <= range.range.min) return false;
    covered = range.range.max;
  }
  return covered == "FF";
}

std::vector<PartitionKeyRange> RoutingMap::overlapping(const FeedRange& range) const {
  // The first one that ends after the range begins.
  auto at = std::ranges::upper_bound(ranges_, range.min, {},
                                     [](const PartitionKeyRange& each) { return each.range.max; });
  std::vector<PartitionKeyRange> result;
  for (; at != ranges_.end() && at->range.min < range.max; ++at) result.push_back(*at);
  return result;
}

FeedRange RoutingMap::slice_of(const PartitionKey& key) const {
  const auto parsed = orrery::PartitionKey::parse(key.json());
  if (!parsed) throw failure_of(Failure::Argument, parsed.error().message());
  const std::size_t levels = std::max<std::size_t>(definition().paths.size(), 1);
  if (parsed->size() > levels) {
    throw failure_of(Failure::Argument,
                     fmt::format("the partition key {} has {} components; the container's has {}",
                                 key.json(), parsed->size(), levels));
  }
  // The start of the hash space, which is where documents without any key lie.
  const bool is_everything = parsed->empty() && !definition().paths.empty();
  if (is_everything) {
    throw failure_of(Failure::Argument, "the partition key has no components");
  }
  const EpkRange slice = effective_key_range(definition(), *parsed);
  return {.min = slice.min.hex(), .max = slice.max.hex()};
}

}  // namespace orrery::client
