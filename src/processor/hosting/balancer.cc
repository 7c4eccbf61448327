#include "processor/hosting/balancer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

namespace orrery::processor {

namespace {

bool is_free(const BalancedLease& lease) { return lease.owner.empty() || lease.expired; }

/// Those without an owner, then those whose owner is silent; each in the order of the listing.
std::vector<const BalancedLease*> free_leases(const BalancingRequest& request) {
  std::vector<const BalancedLease*> free;
  for (const BalancedLease& lease : request.leases) {
    if (lease.owner.empty()) free.push_back(&lease);
  }
  for (const BalancedLease& lease : request.leases) {
    if (!lease.owner.empty() && lease.expired) free.push_back(&lease);
  }
  return free;
}

/// An owner and what it has, in the order in which owners are met in the listing.
struct Worker {
  std::string_view name;
  int count = 0;
  double cost = 0;
};

std::vector<Worker> living_owners(const BalancingRequest& request) {
  std::vector<Worker> workers;
  for (const BalancedLease& lease : request.leases) {
    if (is_free(lease)) continue;
    auto worker = std::ranges::find(workers, lease.owner, &Worker::name);
    if (worker == workers.end()) worker = workers.insert(worker, Worker{lease.owner});
    ++worker->count;
  }
  return workers;
}

Worker& worker_named(std::vector<Worker>& workers, std::string_view name) {
  auto worker = std::ranges::find(workers, name, &Worker::name);
  if (worker == workers.end()) worker = workers.insert(worker, Worker{name});
  return *worker;
}

int bounded(int target, const BalancingRequest& request) {
  if (request.max_count > 0) target = std::min(target, request.max_count);
  if (request.min_count > 0) target = std::max(target, request.min_count);
  return target;
}

/// Costs as the owners report them. A lease that nobody has reported on yet counts as an average
/// one; where nobody has reported anything, all are alike.
std::map<std::string_view, double> costs_of(const BalancingRequest& request) {
  double sum = 0;
  int known = 0;
  for (const BalancedLease& lease : request.leases) {
    if (lease.cost <= 0) continue;
    sum += lease.cost;
    ++known;
  }
  const double average = known > 0 ? sum / known : 1;
  std::map<std::string_view, double> costs;
  for (const BalancedLease& lease : request.leases) {
    costs[lease.token] = lease.cost > 0 ? lease.cost : average;
  }
  return costs;
}

}  // namespace

BalancingChoice balance_equally(const BalancingRequest& request) {
  const std::vector<const BalancedLease*> free = free_leases(request);
  std::vector<Worker> workers = living_owners(request);
  const int mine = worker_named(workers, request.host).count;
  const int lease_count = static_cast<int>(request.leases.size());
  const int worker_count = static_cast<int>(workers.size());
  const int target = bounded(
      lease_count > worker_count ? (lease_count + worker_count - 1) / worker_count : 1, request);
  const int need = target - mine;

  BalancingChoice choice;
  if (need <= 0) return choice;
  if (!free.empty()) {
    for (const BalancedLease* lease : free) {
      if (static_cast<int>(choice.take.size()) == need) break;
      choice.take.push_back(lease->token);
    }
    return choice;
  }
  const Worker* victim = nullptr;
  for (const Worker& worker : workers) {
    if (victim == nullptr || worker.count >= victim->count) victim = &worker;
  }
  // A host that lacks more than one also steals from a host that has just enough: one of them has
  // to have less when the leases can't be divided evenly.
  if (victim->name == request.host || victim->count <= target - (need > 1 ? 1 : 0)) return choice;
  const auto stolen = std::ranges::find_if(request.leases, [&](const BalancedLease& lease) {
    return !is_free(lease) && lease.owner == victim->name;
  });
  choice.steal.push_back(stolen->token);
  return choice;
}

BalancingChoice balance_by_weight(const BalancingRequest& request,
                                  const std::vector<std::string>& members) {
  constexpr double kImbalanceMin = 1.15;
  const std::map<std::string_view, double> costs = costs_of(request);
  std::vector<Worker> workers = living_owners(request);
  for (const std::string& member : members) worker_named(workers, member);
  worker_named(workers, request.host);
  double total = 0;
  for (const BalancedLease& lease : request.leases) {
    total += costs.at(lease.token);
    if (!is_free(lease)) worker_named(workers, lease.owner).cost += costs.at(lease.token);
  }
  const double mean = total / static_cast<double>(workers.size());
  // Only now: the vector no longer moves.
  Worker& me = worker_named(workers, request.host);

  BalancingChoice choice;
  const int limit = request.max_count > 0 ? request.max_count : static_cast<int>(costs.size());
  const auto below_min = [&] { return request.min_count > 0 && me.count < request.min_count; };

  // Free ones, the most expensive first, as long as they fit under the mean. The host with the
  // least takes one in any case, so that nothing stays without an owner.
  std::vector<const BalancedLease*> free = free_leases(request);
  std::ranges::sort(free, std::greater(), [&](const BalancedLease* lease) {
    return std::pair(costs.at(lease->token), lease);
  });
  const bool least = std::ranges::none_of(workers, [&](const Worker& worker) {
    return worker.name != me.name && worker.cost < me.cost;
  });
  for (const BalancedLease* lease : free) {
    if (me.count >= limit) break;
    const double cost = costs.at(lease->token);
    const bool fits = me.cost + cost <= mean * kImbalanceMin;
    if (!fits && !below_min() && !(least && choice.take.empty())) continue;
    choice.take.push_back(lease->token);
    ++me.count;
    me.cost += cost;
  }
  if (!free.empty()) return choice;

  // Then steal from the most loaded host: each time the lease that brings both nearest to the mean.
  while (me.count < limit) {
    const auto victim = std::ranges::max_element(workers, {}, &Worker::cost);
    if (victim->name == me.name || (victim->cost <= mean * kImbalanceMin && !below_min())) break;
    const BalancedLease* best = nullptr;
    double best_gap = victim->cost - me.cost;
    for (const BalancedLease& lease : request.leases) {
      if (is_free(lease) || lease.owner != victim->name) continue;
      if (std::ranges::find(choice.steal, lease.token) != choice.steal.end()) continue;
      const double cost = costs.at(lease.token);
      const double gap = std::abs((victim->cost - cost) - (me.cost + cost));
      if (gap < best_gap) {
        best = &lease;
        best_gap = gap;
      }
    }
    if (best == nullptr) break;
    choice.steal.push_back(best->token);
    const double cost = costs.at(best->token);
    --victim->count;
    victim->cost -= cost;
    ++me.count;
    me.cost += cost;
  }
  return choice;
}

}  // namespace orrery::processor
