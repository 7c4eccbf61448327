// Which leases a host should take: a pure function of what it sees.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace orrery::processor {

/// A lease, as far as balancing is concerned.
struct BalancedLease {
  std::string token;
  std::string owner;     ///< empty: nobody
  bool expired = false;  ///< its owner has not been heard of for too long
  double cost = 0;       ///< of processing it, by its owner's account; 0: unknown
};

struct BalancingRequest {
  std::string host;
  std::vector<BalancedLease> leases;
  int min_count = 0;
  int max_count = 0;  ///< 0: no bound
};

struct BalancingChoice {
  std::vector<std::string> take;  ///< free ones
  std::vector<std::string> steal;
  friend bool operator==(const BalancingChoice&, const BalancingChoice&) = default;
};

/// As many leases for each host: .NET's algorithm. At most one is stolen.
BalancingChoice balance_equally(const BalancingRequest& request);

/// As much work for each host: `members` are all that are alive, also those without leases. Nothing
/// moves unless somebody has 15 % more than the mean.
BalancingChoice balance_by_weight(const BalancingRequest& request,
                                  const std::vector<std::string>& members);

}  // namespace orrery::processor
