// Supervisor: the life of one lease on this host, from its acquisition to its end. Couples the feed
// loop with the renewals, and opens and closes the observer.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orrery/processor.h"
#include "processor/hosting/dispatcher.h"
#include "processor/hosting/feed_loop.h"
#include "processor/hosting/observer_calls.h"
#include "processor/hosting/rate_limit.h"
#include "processor/hosting/runtime.h"
#include "processor/leases/lease_manager.h"
#include "processor/leases/renewal_pacer.h"

namespace orrery::processor {

/// Shared by all leases of a host. References outlive every supervisor.
struct HostEnvironment {
  Runtime& runtime;
  FeedReader& reader;
  LeaseManager& manager;
  ObserverCalls& calls;
  RateLimiter& limiter;
  RenewalPacer& pacer;
  const MonitoredFeedOptions& feed_options;
  const ChangeFeedHostOptions& options;
  std::shared_ptr<const DocumentReader> documents;
  ObserverFactory factory;
  std::function<void(const DeadLetter&)> keep_dead_letter;
  std::function<bool()> paused;
  std::function<void(HealthEvent)> report;
  std::function<void(const LeaseStats&)> publish;
  /// Takes leases that have replaced another one, if this host still wants any.
  std::function<asio::awaitable<void>(std::vector<Lease>)> adopt;
  std::function<asio::awaitable<void>(std::string reason)> pause_group;
};

/// For the host's thread.
class Supervisor : public std::enable_shared_from_this<Supervisor> {
 public:
  /// `lease` as it was acquired.
  Supervisor(const HostEnvironment& host, Lease lease);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Returns when the observer is closed and the lease is released, replaced or lost.
  asio::awaitable<void> run();
  /// Asks for that.
  void stop() { end(CloseReason::Shutdown); }
  /// Leases that replace this one are there already: ends it, and completes that.
  void supersede();
  /// Shows that the owner is alive; notices when it is no longer this host.
  asio::awaitable<void> renew();
  /// Releases the lease although its observer has not returned. Nothing is written any more.
  asio::awaitable<void> give_up(CloseReason reason);

  const std::string& id() const { return lease_.id; }
  const std::string& token() const { return lease_.token; }
  bool lost() const { return state_ == State::Lost; }
  /// Processor seconds per second that the observer has taken of late.
  double cost() const;

 private:
  enum class State { Ours, Lost, GivenUp, Replacing, Replaced };

  bool is_stuck(MonotonicTime now) const;
  asio::awaitable<bool> open();
  asio::awaitable<void> finish(const FeedEnding& ending);
  asio::awaitable<void> replace();
  asio::awaitable<void> release();
  asio::awaitable<bool> checkpoint(std::string position);
  void end(CloseReason reason);
  void lose(const std::string& reason);
  void written(MonotonicTime when);
  void publish(const DispatchCounters& counters);
  CloseReason close_reason(const FeedEnding& ending) const;
  void report(Severity severity, std::string operation, std::string message) const;
  std::string position() const;

  const HostEnvironment& host_;
  Lease lease_;
  State state_ = State::Ours;
  std::optional<CloseReason> close_reason_;  // When somebody asked for the end.
  std::string hand_over_to_;
  bool superseded_ = false;
  // True once the lease is lost or given up. Shared with calls that are under way.
  std::shared_ptr<std::atomic<bool>> lease_over_ = std::make_shared<std::atomic<bool>>(false);
  Stop stop_;
  std::optional<Dispatcher> dispatcher_;
  std::optional<FeedLoop> feed_loop_;
  TaskGroup tasks_;  // Calls of the observer's, and a release before the end.
  MonotonicTime acquired_at_;
  MonotonicTime last_written_;
  std::chrono::microseconds handler_time_{0};
  std::string published_cost_;  // Where others that share by weight can see it.
};

}  // namespace orrery::processor
