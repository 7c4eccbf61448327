#include "processor/hosting/controller.h"

#include <algorithm>

#include <fmt/format.h>

#include "client/log.h"
#include "processor/group/group_operations.h"
#include "processor/leases/lease_split.h"

namespace orrery::processor {

namespace {

constexpr int kStartAttemptsMax = 10;
constexpr std::chrono::milliseconds kStartRetryWait{1000};
constexpr std::chrono::milliseconds kLockWaitMax{1000};
constexpr int kGiveBackAttemptsMax = 10;
// After the deadline of a stop: for those that end by themselves when their lease is given up, and
// for the store to hear of it.
constexpr std::chrono::milliseconds kLateGrace{500};
constexpr std::chrono::milliseconds kReleaseGrace{5000};
constexpr std::chrono::milliseconds kLateLookInterval{20};

bool may_pass(const Error& error) {
  return error.code() == ErrorCode::Unavailable || error.code() == ErrorCode::TooManyRequests ||
         error.code() == ErrorCode::Internal || error.code() == ErrorCode::RequestTimeout ||
         error.code() == ErrorCode::RangeGone;
}

double cost_of(const Lease& lease) {
  const auto cost = lease.properties.find(std::string(kCostProperty));
  return cost == lease.properties.end() ? 0 : std::strtod(cost->second.c_str(), nullptr);
}

client::LogLevel level_of(Severity severity) {
  switch (severity) {
    case Severity::Critical:
      return client::LogLevel::Error;
    case Severity::Error:
      return client::LogLevel::Warning;
    case Severity::Informational:
      return client::LogLevel::Debug;
  }
  return client::LogLevel::Warning;
}

}  // namespace

// ── StatsBoard ───────────────────────────────────────────────────────────────────────────────────

HostStats StatsBoard::read() const {
  const std::scoped_lock lock(mutex_);
  HostStats stats = stats_;
  for (const auto& [_, lease] : leases_) stats.leases.push_back(lease);
  return stats;
}

void StatsBoard::change(const std::function<void(HostStats&)>& how) {
  const std::scoped_lock lock(mutex_);
  how(stats_);
}

void StatsBoard::publish(const LeaseStats& lease) {
  const std::scoped_lock lock(mutex_);
  leases_.insert_or_assign(lease.lease_token, lease);
}

void StatsBoard::withdraw(const std::string& lease_token) {
  const std::scoped_lock lock(mutex_);
  leases_.erase(lease_token);
}

// ── start and stop ───────────────────────────────────────────────────────────────────────────────

Controller::Controller(Setup setup)
    : setup_(std::move(setup)),
      calls_(setup_.runtime, setup_.executor),
      limiter_(setup_.options.limits, setup_.runtime.now()),
      pacer_(setup_.options.lease_renew_interval),
      watch_(setup_.options.lease_expiration_interval),
      member_watch_(setup_.options.lease_expiration_interval),
      stop_(setup_.runtime),
      loops_(setup_.runtime),
      acquiring_(setup_.runtime),
      lives_(setup_.runtime),
      pacer_changed_(setup_.runtime) {}

Controller::~Controller() = default;

void Controller::report(HealthEvent event) const {
  if (setup_.options.log) {
    client::say(setup_.options.log, level_of(event.severity),
                fmt::format("processor {}: {} of lease {}: {}", setup_.host, event.operation,
                            event.lease_token, event.message));
  }
  if (!setup_.monitor) return;
  try {
    setup_.monitor(event);
  } catch (...) {  // Exceptions of a monitor are swallowed.
  }
}

void Controller::report(Severity severity, std::string operation, std::string token,
                        std::string message) const {
  report({severity, std::move(operation), std::move(token), std::move(message)});
}

Async<> Controller::start() {
  for (int attempt = 1;; ++attempt) {
    const auto prepared = co_await prepare();
    if (prepared) break;
    if (attempt == kStartAttemptsMax || !may_pass(prepared.error())) co_return prepared.error();
    report(Severity::Error, "Start", {}, prepared.error().message());
    if (co_await stop_.pause_for(kStartRetryWait)) co_return prepared.error();
  }
  setup_.stats.change([](HostStats& stats) { stats.live = stats.ready = true; });
  const auto control = co_await read_control(setup_.store, group_->ids);
  paused_ = control && control->paused;
  setup_.stats.change([&](HostStats& stats) { stats.paused = paused_; });
  co_await acquire_cycle();
  acquiring_.spawn(acquire_loop());
  loops_.spawn(renew_loop());
  loops_.spawn(control_loop());
  co_return Result<>();
}

Async<> Controller::prepare() {
  const ChangeFeedHostOptions& options = setup_.options;
  ORRERY_CO_TRY(group_, co_await find_group(setup_.store, setup_.reader, options.lease_prefix,
                                            options.feed_host, options.lease_format));
  BootstrapOptions bootstrap_options;
  bootstrap_options.feed = setup_.feed_options;
  bootstrap_options.discard_existing_leases = options.discard_existing_leases;
  bootstrap_options.degree_of_parallelism = options.degree_of_parallelism;
  // The leases are made in a moment: hosts that start together should begin together.
  bootstrap_options.lock_wait = std::min(options.lease_acquire_interval, kLockWaitMax);
  Runtime& runtime = setup_.runtime;
  ORRERY_CO_TRY(const auto report, co_await bootstrap(setup_.store, setup_.reader, *group_,
                                                      bootstrap_options, runtime));
  (void)report;
  ORRERY_CO_TRY(const auto key_paths, co_await setup_.reader.partition_key_paths());

  manager_ = std::make_unique<LeaseManager>(setup_.store, group_->ids, setup_.host, runtime);
  manager_->set_feed(setup_.feed_options.mode, group_->identity.container_rid);
  environment_ = std::unique_ptr<HostEnvironment>(new HostEnvironment{
      runtime, setup_.reader, *manager_, calls_, limiter_, pacer_, setup_.feed_options, options,
      std::make_shared<const DocumentReader>(key_paths, setup_.feed_options.mode), setup_.factory,
      setup_.keep_dead_letter, [this] { return paused_; },
      [this](HealthEvent event) { this->report(std::move(event)); },
      [this](const LeaseStats& stats) { setup_.stats.publish(stats); },
      [this](std::vector<Lease> leases) { return adopt(std::move(leases)); },
      [this](std::string reason) { return pause_group(std::move(reason)); }});
  co_return Result<>();
}

asio::awaitable<bool> Controller::stop() {
  stop_.request();
  pacer_changed_.notify();
  for (const auto& [_, supervisor] : supervisors_) supervisor->stop();
  auto joined = std::make_shared<Signal>(setup_.runtime);
  loops_.spawn(join_supervisors(joined));
  const MonotonicTime deadline = setup_.runtime.now() + setup_.options.shutdown_deadline;
  bool all_returned = co_await joined->wait_until(deadline);
  if (!all_returned) all_returned = co_await give_up_late_ones();
  co_await give_back_the_rest(deadline);
  co_await withdraw_announcement();
  if (all_returned) co_await loops_.join();
  setup_.stats.change([](HostStats& stats) { stats.live = stats.ready = false; });
  co_return all_returned;
}

/// Releases leases although their observers have not returned, which go on at their own risk.
/// Leases that were only held up by the store end soon now: returns whether none is left.
asio::awaitable<bool> Controller::give_up_late_ones() {
  report(Severity::Error, "Stop", {},
         fmt::format("{} leases were not closed in time", supervisors_.size()));
  TaskGroup giving_up(setup_.runtime);
  for (const auto& [_, supervisor] : supervisors_)
    giving_up.spawn(supervisor->give_up(CloseReason::Shutdown));
  const MonotonicTime soon = setup_.runtime.now() + kLateGrace;
  const MonotonicTime latest = setup_.runtime.now() + kReleaseGrace;
  while (lives_.running() > 0 && setup_.runtime.now() < latest &&
         (setup_.runtime.now() < soon || giving_up.running() > 0)) {
    co_await pause_until(setup_.runtime, setup_.runtime.now() + kLateLookInterval);
  }
  co_return lives_.running() == 0 && acquiring_.running() == 0;
}

/// Releases leases that others have handed over to this host, or that it has acquired without
/// hearing of it: otherwise they would stay idle until they expire. Tries once even when observers
/// have used up the time.
asio::awaitable<void> Controller::give_back_the_rest(MonotonicTime deadline) {
  for (int attempt = 1;; ++attempt) {
    bool all_done = true;
    auto listing = co_await manager_->list();
    if (!listing) {
      report(Severity::Error, "Stop", {}, listing.error().message());
      all_done = false;
    }
    for (Lease& lease : listing.value_or(std::vector<Lease>())) {
      if (supervisors_.contains(lease.id)) continue;
      if (lease.owner != setup_.host && lease.wanted_by() != setup_.host) continue;
      const auto change = co_await manager_->withdraw(std::move(lease));
      if (!change || !change->done()) all_done = false;
    }
    if (all_done || attempt == kGiveBackAttemptsMax || setup_.runtime.now() >= deadline) co_return;
    // Its owner writes it, too, and may be about to hand it over: a moment later it holds still.
    co_await pause_until(setup_.runtime, setup_.runtime.now() + attempt * kLateLookInterval);
  }
}

asio::awaitable<void> Controller::join_supervisors(std::shared_ptr<Signal> joined) {
  co_await acquiring_.join();  // It may be about to begin another life.
  co_await lives_.join();
  joined->notify();
}

// ── taking leases ────────────────────────────────────────────────────────────────────────────────

asio::awaitable<void> Controller::acquire_loop() {
  const std::chrono::milliseconds interval = setup_.options.lease_acquire_interval;
  MonotonicTime next = setup_.runtime.now() + interval;
  // A lease that falls silent is looked at again when it expires, not an interval later.
  while (!co_await stop_.pause_until(
      std::min(next, watch_.next_expiry(setup_.host, setup_.runtime.now())))) {
    co_await acquire_cycle();
    const MonotonicTime now = setup_.runtime.now();
    if (now >= next) next = std::max(next, now - interval) + interval;
  }
}

asio::awaitable<void> Controller::acquire_cycle() {
  co_await announce();
  auto listing = co_await manager_->list();
  setup_.stats.change([&](HostStats& stats) { stats.ready = listing.has_value(); });
  if (!listing) {
    report(Severity::Error, "ListLeases", {}, listing.error().message());
    co_return;
  }
  watch_.observe(*listing, setup_.runtime.now());
  std::erase_if(asked_for_, [&](const auto& asked) {
    return std::ranges::find(*listing, asked.first, &Lease::id) == listing->end();
  });

  look_for_neglected(*listing);
  const std::set<std::string> superseded = superseded_leases(*listing);
  const BalancingChoice choice = co_await choose(*listing);
  for (Lease& lease : *listing) {
    if (stop_.requested()) co_return;
    const auto running = supervisors_.find(lease.id);
    if (running != supervisors_.end()) {
      // The owner that is named there may have it: the next renewal tells, and it should come soon.
      if (lease.owner != setup_.host) {
        pacer_.hasten(lease.id, setup_.runtime.now());
        pacer_changed_.notify();
      } else if (superseded.contains(lease.id)) {
        running->second->supersede();
      }
      continue;
    }
    const std::string id = lease.id;
    const bool take = std::ranges::find(choice.take, lease.token) != choice.take.end();
    const bool steal = std::ranges::find(choice.steal, lease.token) != choice.steal.end();
    if (lease.owner == setup_.host || take) {
      co_await acquire(std::move(lease), false);
    } else if (steal && !ask_first(lease)) {
      co_await acquire(std::move(lease), true);
    } else if (steal) {
      const auto asked = co_await manager_->ask_for(std::move(lease));
      if (!asked) report(Severity::Error, "AskForLease", {}, asked.error().message());
    }
    const auto taken = supervisors_.find(id);
    if (taken != supervisors_.end() && superseded.contains(id)) taken->second->supersede();
  }
}

/// Somebody should know when nobody works on a lease for long: too few hosts, or none that may take
/// another one.
void Controller::look_for_neglected(const std::vector<Lease>& leases) {
  const MonotonicTime now = setup_.runtime.now();
  std::map<std::string, Neglected> neglected;
  for (const Lease& lease : leases) {
    const bool alone = lease.owner.empty() || watch_.expired(lease.id, now);
    if (!alone || supervisors_.contains(lease.id)) continue;
    const auto known = neglected_.find(lease.id);
    Neglected& each = neglected[lease.id];
    each = known == neglected_.end() ? Neglected{now, false} : known->second;
    if (each.reported || now - each.since <= 2 * setup_.options.lease_expiration_interval) continue;
    each.reported = true;
    report(Severity::Error, "AcquireLease", lease.token,
           fmt::format("the lease has been without a living owner for more than {} s",
                       std::chrono::floor<std::chrono::seconds>(now - each.since).count()));
  }
  neglected_ = std::move(neglected);
}

asio::awaitable<BalancingChoice> Controller::choose(const std::vector<Lease>& leases) {
  BalancingRequest request;
  request.host = setup_.host;
  request.min_count = setup_.options.min_partition_count;
  request.max_count = setup_.options.max_partition_count;
  const MonotonicTime now = setup_.runtime.now();
  for (const Lease& lease : leases) {
    const bool mine = same_host(lease.owner, setup_.host);
    request.leases.push_back({lease.token, mine ? setup_.host : lease.owner,
                              !mine && watch_.expired(lease.id, now), cost_of(lease)});
  }
  if (setup_.options.balancing == Balancing::Equal) co_return balance_equally(request);
  const std::vector<std::string> alive = co_await members();
  co_return balance_by_weight(request, alive);
}

/// Hosts of this library hand over a lease when asked. One that does not within two renew intervals
/// is no such host, or too busy: then the lease is stolen.
bool Controller::ask_first(const Lease& lease) {
  if (setup_.options.balancing != Balancing::Weighted) return false;
  const MonotonicTime now = setup_.runtime.now();
  const auto [asked, first] = asked_for_.try_emplace(lease.id, now);
  if (first) return true;
  if (now - asked->second < 2 * setup_.options.lease_renew_interval) return true;
  asked_for_.erase(asked);
  return false;
}

asio::awaitable<void> Controller::acquire(Lease lease, bool steal) {
  const std::string id = lease.id;
  const std::string token = lease.token;
  // A supervisor that replaces a lease may acquire the new ones while the acquire loop finds them.
  if (supervisors_.contains(id) || !being_acquired_.insert(id).second) co_return;
  auto change = co_await manager_->acquire(std::move(lease));
  being_acquired_.erase(id);
  if (!change) {
    report(Severity::Error, "AcquireLease", token, change.error().message());
    co_return;
  }
  if (!change->done()) {
    report(Severity::Informational, "AcquireLease", token, change->reason);
    co_return;
  }
  asked_for_.erase(id);
  watch_.observe(change->lease, setup_.runtime.now());
  setup_.stats.change([&](HostStats& stats) {
    ++stats.acquired;
    if (steal) ++stats.stolen;
  });
  report(Severity::Informational, "AcquireLease", token, steal ? "stolen" : "acquired");
  auto supervisor = std::make_shared<Supervisor>(*environment_, std::move(change->lease));
  supervisors_.emplace(id, supervisor);
  pacer_.acquired(id, setup_.runtime.now());
  pacer_changed_.notify();
  if (stop_.requested()) supervisor->stop();
  lives_.spawn(supervise(std::move(supervisor)));
}

asio::awaitable<void> Controller::adopt(std::vector<Lease> leases) {
  for (Lease& lease : leases) {
    if (stop_.requested()) co_return;
    const bool free = lease.owner.empty() || lease.owner == setup_.host;
    if (free && !supervisors_.contains(lease.id)) co_await acquire(std::move(lease), false);
  }
}

asio::awaitable<void> Controller::supervise(std::shared_ptr<Supervisor> supervisor) {
  co_await supervisor->run();
  supervisors_.erase(supervisor->id());
  pacer_.remove(supervisor->id());
  setup_.stats.withdraw(supervisor->token());
  setup_.stats.change(
      [&](HostStats& stats) { ++(supervisor->lost() ? stats.lost : stats.released); });
  report(Severity::Informational, "ReleaseLease", supervisor->token(),
         supervisor->lost() ? "lost" : "released");
}

// ── keeping them ─────────────────────────────────────────────────────────────────────────────────

asio::awaitable<void> Controller::renew_loop() {
  // Renewals go on while observers are being closed: until nobody has a lease any more.
  while (!stop_.requested() || acquiring_.running() > 0 || lives_.running() > 0) {
    if (auto id = pacer_.take(setup_.runtime.now())) {
      const auto supervisor = supervisors_.find(*id);
      if (supervisor != supervisors_.end()) loops_.spawn(renew(supervisor->second));
      continue;
    }
    MonotonicTime next = pacer_.next();
    if (stop_.requested()) {
      next = std::min(next, setup_.runtime.now() + std::chrono::milliseconds(100));
    }
    co_await pacer_changed_.wait_until(next);
  }
}

asio::awaitable<void> Controller::renew(std::shared_ptr<Supervisor> supervisor) {
  co_await supervisor->renew();
  setup_.stats.change([](HostStats& stats) { ++stats.renewed; });
  pacer_changed_.notify();
}

asio::awaitable<void> Controller::control_loop() {
  while (!co_await stop_.pause_for(setup_.options.lease_renew_interval)) {
    const auto control = co_await read_control(setup_.store, group_->ids);
    // A store that does not answer does not change anything.
    if (!control) continue;
    paused_ = control->paused;
    setup_.stats.change([&](HostStats& stats) { stats.paused = paused_; });
  }
}

asio::awaitable<void> Controller::pause_group(std::string reason) {
  paused_ = true;
  setup_.stats.change([](HostStats& stats) { stats.paused = true; });
  report(Severity::Critical, "ProcessChanges", {}, "the group is paused: " + reason);
  const auto written =
      co_await write_control(setup_.store, group_->ids, GroupControl{true, std::move(reason)});
  if (!written) report(Severity::Critical, "PauseGroup", {}, written.error().message());
}

// ── hosts without leases ─────────────────────────────────────────────────────────────────────────

/// Hosts that share by weight count those that have nothing, too. They announce themselves where
/// the originals do not look.
asio::awaitable<void> Controller::announce() {
  if (setup_.options.balancing != Balancing::Weighted) co_return;
  const std::string id = group_->ids.member(setup_.host);
  const auto ttl =
      std::chrono::ceil<std::chrono::seconds>(setup_.options.lease_expiration_interval).count();
  const std::string text = fmt::format(R"({{"id":"{}","ttl":{},"seen":{}}})", id, ttl,
                                       setup_.runtime.wall_now().time_since_epoch().count());
  if (!announcement_) {
    auto before = co_await setup_.store.read(id);
    if (before) announcement_ = *std::move(before);
  }
  auto written = announcement_ ? co_await setup_.store.replace(id, text, announcement_->etag)
                               : co_await setup_.store.create(id, text);
  announcement_.reset();
  if (written) announcement_ = *std::move(written);
}

asio::awaitable<std::vector<std::string>> Controller::members() {
  std::vector<std::string> names{setup_.host};
  const std::string prefix = group_->ids.member_prefix();
  auto documents = co_await setup_.store.list(prefix);
  if (!documents) co_return names;
  std::vector<Lease> seen;
  for (const StoredDocument& document : *documents) {
    Lease& lease = seen.emplace_back();
    lease.id = document.id;
    lease.etag = document.etag;
    lease.ts = document.ts;
  }
  const MonotonicTime now = setup_.runtime.now();
  member_watch_.observe(seen, now);
  for (const StoredDocument& document : *documents) {
    std::string name = document.id.substr(prefix.size());
    if (name != setup_.host && !member_watch_.expired(document.id, now)) {
      names.push_back(std::move(name));
    }
  }
  co_return names;
}

asio::awaitable<void> Controller::withdraw_announcement() {
  if (!announcement_) co_return;
  const auto removed =
      co_await setup_.store.remove(group_->ids.member(setup_.host), announcement_->etag);
  if (!removed) report(Severity::Informational, "Stop", {}, removed.error().message());
}

}  // namespace orrery::processor
