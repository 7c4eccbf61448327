#include "processor/leases/expiry_watch.h"

#include <algorithm>
#include <set>

namespace orrery::processor {

void ExpiryWatch::observe(const std::vector<Lease>& leases, MonotonicTime now) {
  std::set<std::string_view> present;
  for (const Lease& lease : leases) {
    present.insert(lease.id);
    observe(lease, now);
  }
  std::erase_if(seen_, [&](const auto& each) { return !present.contains(each.first); });
}

void ExpiryWatch::observe(const Lease& lease, MonotonicTime now) {
  const auto found = seen_.find(lease.id);
  Seen latest{lease.etag, lease.owner, lease.position, lease.timestamp, lease.wanted_by(), now};
  if (found == seen_.end()) {
    if (lease.ts > 0 && lease.store_now > lease.ts) {
      // Both are cut to whole seconds, so the age may be almost one less.
      latest.since -= std::chrono::seconds(lease.store_now - lease.ts - 1);
    }
    seen_.emplace(lease.id, std::move(latest));
    return;
  }
  const Seen& before = found->second;
  const bool only_wanted = latest.wanted_by != before.wanted_by && latest.owner == before.owner &&
                           latest.position == before.position &&
                           latest.timestamp == before.timestamp;
  if (latest.etag == before.etag || only_wanted) latest.since = before.since;
  found->second = std::move(latest);
}

bool ExpiryWatch::expired(const std::string& lease_id, MonotonicTime now) const {
  return seen_.contains(lease_id) && unchanged_for(lease_id, now) > expiration_;
}

MonotonicTime ExpiryWatch::next_expiry(std::string_view host, MonotonicTime now) const {
  auto next = MonotonicTime::max();
  for (const auto& [_, seen] : seen_) {
    if (seen.owner.empty() || same_host(seen.owner, host)) continue;
    // Ages are counted in whole milliseconds: the one after it is the first that is beyond.
    const MonotonicTime expiry = seen.since + expiration_ + std::chrono::milliseconds(1);
    if (expiry > now) next = std::min(next, expiry);
  }
  return next;
}

std::chrono::milliseconds ExpiryWatch::unchanged_for(const std::string& lease_id,
                                                     MonotonicTime now) const {
  const auto found = seen_.find(lease_id);
  if (found == seen_.end()) return std::chrono::milliseconds(0);
  return std::chrono::duration_cast<std::chrono::milliseconds>(now - found->second.since);
}

}  // namespace orrery::processor
