// ExpiryWatch: whether the owner of a lease is alive, judged by what this host has seen and on its
// own steady clock. No clocks of different machines are compared.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "processor/hosting/runtime.h"
#include "processor/leases/lease.h"

namespace orrery::processor {

/// Fed with every listing. For one thread.
class ExpiryWatch {
 public:
  explicit ExpiryWatch(std::chrono::milliseconds expiration) : expiration_(expiration) {}

  /// Notes which versions are there now. Leases that are missing are forgotten. That somebody asked
  /// for a lease is no sign of life of its owner.
  ///
  /// A lease that is seen for the first time is taken to be as old as the store says, if it tells:
  /// its `_ts` against the store's own clock, never this host's.
  void observe(const std::vector<Lease>& leases, MonotonicTime now);
  /// The same for one lease, and keeps the others: after an update of one's own.
  void observe(const Lease& lease, MonotonicTime now);

  /// Whether the lease, as it was last observed, has not changed for the expiration interval. A
  /// lease that was never observed has not expired.
  bool expired(const std::string& lease_id, MonotonicTime now) const;

  /// When the next lease of somebody other than `host` expires if it does not change until then;
  /// never, when there is none.
  MonotonicTime next_expiry(std::string_view host, MonotonicTime now) const;

  /// For how long it has not changed; zero when it was never observed.
  std::chrono::milliseconds unchanged_for(const std::string& lease_id, MonotonicTime now) const;

 private:
  struct Seen {
    std::string etag;
    std::string owner;
    std::optional<std::string> position;
    std::optional<WallTime> timestamp;
    std::string wanted_by;
    MonotonicTime since;
  };

  std::chrono::milliseconds expiration_;
  std::map<std::string, Seen> seen_;  // By id of the lease.
};

}  // namespace orrery::processor
