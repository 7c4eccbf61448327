// Controller: a host without its threads. Looks at the leases of its group every so often, takes
// what is its share, and keeps a supervisor for each that it has.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "orrery/processor.h"
#include "processor/hosting/balancer.h"
#include "processor/hosting/bootstrap.h"
#include "processor/hosting/feed_reader.h"
#include "processor/hosting/observer_calls.h"
#include "processor/hosting/rate_limit.h"
#include "processor/hosting/runtime.h"
#include "processor/hosting/supervisor.h"
#include "processor/leases/expiry_watch.h"
#include "processor/leases/lease_manager.h"
#include "processor/leases/lease_store.h"
#include "processor/leases/renewal_pacer.h"

namespace orrery::processor {

/// The statistics of a host. Thread-safe.
class StatsBoard {
 public:
  HostStats read() const;
  void change(const std::function<void(HostStats&)>& how);
  void publish(const LeaseStats& lease);
  void withdraw(const std::string& lease_token);

 private:
  mutable std::mutex mutex_;  // Guards what follows.
  HostStats stats_;
  std::map<std::string, LeaseStats> leases_;
};

/// For the host's thread, its constructor and destructor excepted.
class Controller {
 public:
  struct Setup {
    Runtime& runtime;
    AsyncLeaseStore& store;
    FeedReader& reader;
    Executor executor;
    std::string host;
    MonitoredFeedOptions feed_options;
    ChangeFeedHostOptions options;
    ObserverFactory factory;
    HealthMonitor monitor;
    StatsBoard& stats;
    std::function<void(const DeadLetter&)> keep_dead_letter;
  };
  explicit Controller(Setup setup);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  /// Finds or makes the leases, takes the first, and begins. Once. The errors of find_group and
  /// bootstrap; those of a store or feed that can't be reached only after some attempts.
  Async<> start();
  /// Ends everything that start() began: waits for observers, at the longest until the deadline of
  /// the options, and gives the leases back. False: some observers have not returned; whatever this
  /// refers to has to stay until they have.
  asio::awaitable<bool> stop();

  std::size_t lease_count() const { return supervisors_.size(); }
  /// Whether it works on that lease, as far as it knows.
  bool has(const std::string& lease_id) const { return supervisors_.contains(lease_id); }

 private:
  Async<> prepare();
  asio::awaitable<void> acquire_loop();
  asio::awaitable<void> renew_loop();
  asio::awaitable<void> control_loop();
  asio::awaitable<void> acquire_cycle();
  asio::awaitable<BalancingChoice> choose(const std::vector<Lease>& leases);
  asio::awaitable<void> acquire(Lease lease, bool steal);
  asio::awaitable<void> adopt(std::vector<Lease> leases);
  asio::awaitable<void> supervise(std::shared_ptr<Supervisor> supervisor);
  asio::awaitable<bool> give_up_late_ones();
  asio::awaitable<void> give_back_the_rest(MonotonicTime deadline);
  void look_for_neglected(const std::vector<Lease>& leases);
  asio::awaitable<void> join_supervisors(std::shared_ptr<Signal> joined);
  asio::awaitable<void> renew(std::shared_ptr<Supervisor> supervisor);
  asio::awaitable<void> announce();
  asio::awaitable<std::vector<std::string>> members();
  asio::awaitable<void> withdraw_announcement();
  asio::awaitable<void> pause_group(std::string reason);
  bool ask_first(const Lease& lease);
  void report(HealthEvent event) const;
  void report(Severity severity, std::string operation, std::string token,
              std::string message) const;

  /// A lease that nobody works on, as far as this host can see.
  struct Neglected {
    MonotonicTime since;
    bool reported = false;
  };

  Setup setup_;
  ObserverCalls calls_;
  RateLimiter limiter_;
  RenewalPacer pacer_;
  ExpiryWatch watch_;
  ExpiryWatch member_watch_;
  std::optional<LeaseGroupKey> group_;
  std::unique_ptr<LeaseManager> manager_;
  std::unique_ptr<HostEnvironment> environment_;
  bool paused_ = false;
  Stop stop_;
  TaskGroup loops_;
  TaskGroup acquiring_;
  TaskGroup lives_;  // Of supervisors.
  Signal pacer_changed_;
  std::map<std::string, std::shared_ptr<Supervisor>> supervisors_;  // By id of the lease.
  std::set<std::string> being_acquired_;                            // Likewise.
  std::map<std::string, MonotonicTime> asked_for_;                  // Likewise.
  std::map<std::string, Neglected> neglected_;                      // Likewise.
  std::optional<StoredDocument> announcement_;
};

}  // namespace orrery::processor
