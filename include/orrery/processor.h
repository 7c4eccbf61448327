// The change feed processor: any number of hosts share the ranges of one container among
// themselves, remember in a lease container how far each range was processed, and hand changes to
// an observer, each at least once.
//
//   struct Printer : orrery::processor::ChangeFeedObserver {
//     void process_changes(ObserverContext& context, const Documents& changes) override {
//       for (std::string_view document : changes) std::cout << document << '\n';
//     }
//   };
//   orrery::processor::ChangeFeedProcessorHost host("host-1", monitored, leases);
//   run_until_signal(host, [] { return std::make_unique<Printer>(); });
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/client.h"
#include "orrery/lease_store.h"

namespace orrery::processor {

using std::chrono::milliseconds;

// ── options ──────────────────────────────────────────────────────────────────────────────────────

/// When a position is written to its lease. Neither count nor interval: after every batch.
struct CheckpointFrequency {
  std::optional<std::uint64_t> processed_document_count = {};  ///< or as soon as so many were done
  std::optional<milliseconds> time_interval = {};              ///< or so long after the last one
  bool explicit_checkpoint = false;  ///< only when ObserverContext::checkpoint() asks for it
};

/// Where a feed begins, and how it is read. Where it begins matters only for leases that have no
/// position yet; it becomes theirs when they are made.
struct MonitoredFeedOptions {
  std::optional<std::uint32_t> max_item_count = {};  ///< in a batch; a transaction is never cut
  bool start_from_beginning = false;
  std::optional<std::chrono::system_clock::time_point> start_time = {};  ///< after this second
  std::string start_continuation = {};  ///< an etag, for containers of one range
  std::string session_token = {};
  client::ChangeFeedMode mode = client::ChangeFeedMode::LatestVersion;
};

/// The lease documents of which library, so that its hosts can share the work.
enum class LeaseFormat {
  Detect,   ///< that of the leases that are there; without any, Net3
  Net2,     ///< .NET Change Feed Processor 2.x
  Net3,     ///< .NET SDK v3
  JavaPk,   ///< Java SDK v4, handleChanges
  JavaEpk,  ///< Java SDK v4, handleLatestVersionChanges and handleAllVersionsAndDeletesChanges
};

enum class Balancing {
  Equal,     ///< so many leases each, as the originals do it
  Weighted,  ///< so much work each; for hosts of this library only
};

/// The retry policy for a batch that its observer refuses or throws at.
struct RetryPolicy {
  int max_attempts = 0;  ///< 0: as the originals; the lease is given up and taken again, for ever
  milliseconds first_wait{1000};  ///< doubled from attempt to attempt, with jitter
  milliseconds wait_max{60'000};
  bool bisect = true;  ///< halve until the guilty document is alone; transactions stay together
  /// After the last attempt:
  enum class Then { DeadLetter, HaltRange, HaltGroup } then = Then::DeadLetter;
  /// Later changes of a dead letter's key follow it, so that their order is kept.
  bool park_key = false;
};

/// A change that could not be processed.
struct DeadLetter {
  std::string document = {};
  std::string range = {};
  std::string etag_before = {};
  int attempts = 0;
  std::string error = {};
  std::string host = {};
  std::chrono::system_clock::time_point time = {};

  std::string to_json() const;
};

/// At the most so much per second; none: no bound.
struct RateLimits {
  std::optional<double> documents = {};
  std::optional<double> bytes = {};
  std::optional<double> request_units = {};
};

/// How hosts share the work. The defaults are those of the originals.
struct ChangeFeedHostOptions {
  milliseconds lease_renew_interval{17'000};
  milliseconds lease_acquire_interval{13'000};
  milliseconds lease_expiration_interval{60'000};
  milliseconds feed_poll_delay{5'000};
  CheckpointFrequency checkpoint_frequency = {};
  int min_partition_count = 0;  ///< it takes free leases up to so many; robs nobody for it
  int max_partition_count = 0;  ///< and at the most; 0: no bound
  bool discard_existing_leases = false;
  std::string lease_prefix = {};
  milliseconds change_feed_timeout{600'000};  ///< of one read
  int degree_of_parallelism = 25;             ///< when leases are made
  int query_partitions_max_batch_size = 100;

  // Beyond the originals.
  LeaseFormat lease_format = LeaseFormat::Detect;
  Balancing balancing = Balancing::Equal;
  std::string feed_host = {};  ///< in the ids of leases, instead of the host in the endpoint
  bool long_poll = true;       ///< where the server offers it, instead of the poll delay
  milliseconds long_poll_wait{30'000};
  RetryPolicy retry = {};
  /// Where dead letters go; one of the two.
  std::optional<client::Container> dead_letter_container = {};
  std::function<void(const DeadLetter&)> dead_letter_callback = {};
  std::optional<milliseconds> batch_deadline = {};  ///< longer, and a health event is raised
  bool close_after_deadline = false;                ///< and the lease is given up
  milliseconds shutdown_deadline{30'000};
  int lanes = 1;  ///< batches of different keys at once, within a lease
  bool read_ahead = true;
  RateLimits limits = {};
  /// Hears every health event in words, and of options that are unwise. None: the log of the client
  /// of the monitored container, which is silent unless one is set there.
  client::Log log = {};
};

// ── observers ────────────────────────────────────────────────────────────────────────────────────

/// Why an observer was closed. The numbers are those of the originals.
enum class CloseReason {
  Unknown = 0,
  Shutdown = 1,
  ResourceGone = 2,
  LeaseLost = 3,
  ObserverError = 4,
  LeaseGone = 5,
  ReadSessionNotAvailable = 6,
  CosmosException = 7,
};

/// The changes of a batch: views into text that lives as long as any copy of this.
using Documents = client::ItemPage;

/// The lease and the batch of an observer's call. For the thread of that call.
class ObserverContext {
 public:
  virtual ~ObserverContext() = default;
  /// The range id or "{min}-{max}".
  virtual const std::string& lease_token() const = 0;
  virtual const std::string& partition_key_range_id() const = 0;
  /// Rises with every acquisition, for fencing: a sink that stores it with the data can refuse a
  /// host that has lost its lease without knowing it.
  virtual std::uint64_t epoch() const = 0;
  /// The positions before and after this batch.
  virtual const std::string& from() const = 0;
  virtual const std::string& to() const = 0;
  /// Asks for a return soon: the lease is lost, or the host stops.
  virtual std::stop_token stop() const = 0;
  /// Asks for the position after this batch to be written. That happens when the outcome of the
  /// batch is settled, and before the next one comes: never before every change of it is done, or
  /// kept as a dead letter. A call that fails, or that is followed by one for the rest of the
  /// batch, asks for nothing. Throws CosmosException (412) when the lease is not this host's any
  /// more.
  virtual void checkpoint() = 0;
};

/// The outcome of a batch.
struct Outcome {
  enum class Kind { Done, DoneUntil, Retry, Reject, Stop };
  Kind kind = Kind::Done;
  std::size_t count = 0;                   ///< of DoneUntil: so many from the front
  milliseconds after{0};                   ///< of Retry
  std::vector<std::size_t> rejected = {};  ///< of Reject: these go to the dead letters
  std::string reason = {};

  static Outcome done() { return {}; }
  /// The first `count` are done; the others come again.
  static Outcome done_until(std::size_t count) { return {Kind::DoneUntil, count, {}, {}, {}}; }
  static Outcome retry(milliseconds after, std::string reason = {}) {
    return {Kind::Retry, 0, after, {}, std::move(reason)};
  }
  static Outcome reject(std::vector<std::size_t> indices, std::string reason = {}) {
    return {Kind::Reject, 0, {}, std::move(indices), std::move(reason)};
  }
  /// Give the lease up.
  static Outcome stop(std::string reason = {}) {
    return {Kind::Stop, 0, {}, {}, std::move(reason)};
  }
};

/// One for each lease that a host owns. Its calls never overlap (unless there are lanes); those of
/// different leases do.
class ChangeFeedObserver {
 public:
  virtual ~ChangeFeedObserver() = default;
  /// Once, before the first batch.
  virtual void open(ObserverContext& context) { (void)context; }
  /// Never called with an empty batch. An exception that it throws is an observer error.
  virtual Outcome process(ObserverContext& context, const Documents& changes) {
    process_changes(context, changes);
    return Outcome::done();
  }
  /// The simple form of process(): returned means done.
  virtual void process_changes(ObserverContext& context, const Documents& changes) {
    (void)context, (void)changes;
  }
  /// Nothing new up to this position. At most once per poll.
  virtual void idle(ObserverContext& context) { (void)context; }
  /// Once, after the last batch, if open() succeeded.
  virtual void close(ObserverContext& context, CloseReason reason) { (void)context, (void)reason; }
};

using ObserverFactory = std::function<std::unique_ptr<ChangeFeedObserver>()>;
/// The simplest observer: a function.
using Handler = std::function<Outcome(ObserverContext&, const Documents&)>;

// ── watching ─────────────────────────────────────────────────────────────────────────────────────

enum class Severity { Critical = 10, Error = 20, Informational = 30 };

/// The operation of an event that is raised once when the data of the monitored container went back
/// to an earlier state, as when a server's data directory was put back from a copy, and a lease is
/// from before that. The lease goes on and misses nothing new; what was delivered since the copy
/// was made may differ from what is there. Only Orrery's servers tell.
inline constexpr const char* kDataRestored = "DataRestored";

struct HealthEvent {
  Severity severity = Severity::Informational;
  std::string operation = {};  ///< "AcquireLease", "ReadChangeFeed", "ProcessChanges", …
  std::string lease_token = {};
  std::string message = {};
};
/// Exceptions that it throws are swallowed.
using HealthMonitor = std::function<void(const HealthEvent&)>;

/// The lag of one lease.
struct LeaseLag {
  std::string lease_token;
  std::string owner;  ///< empty: nobody
  std::uint64_t documents = 0;
  std::optional<std::uint64_t> bytes;       ///< where the server can tell
  std::optional<std::chrono::seconds> age;  ///< likewise
  bool exact = false;  ///< false: an estimate that counts transactions, as the originals do
};

struct LeaseStats {
  std::string lease_token;
  std::string position;
  std::uint64_t epoch = 0;
  std::uint64_t batches = 0;
  std::uint64_t documents = 0;
  std::uint64_t retries = 0;
  std::uint64_t dead_letters = 0;
  std::chrono::microseconds handler_time{0};
};

struct HostStats {
  bool live = false;   ///< the loops turn
  bool ready = false;  ///< the lease store answers
  bool paused = false;
  std::vector<LeaseStats> leases;  ///< those that this host owns
  std::uint64_t acquired = 0, renewed = 0, released = 0, lost = 0, stolen = 0;
};

// ── the host ─────────────────────────────────────────────────────────────────────────────────────

/// Runs what it is given on some thread, soon. Observers are called there.
using Executor = std::function<void(std::function<void()>)>;

class ChangeFeedProcessorHost {
 public:
  /// `host_name` must be unique among the hosts that share leases. Throws CosmosException
  /// (Argument) when the options contradict each other.
  ChangeFeedProcessorHost(std::string host_name, client::Container monitored,
                          client::Container leases, MonitoredFeedOptions feed_options = {},
                          ChangeFeedHostOptions host_options = {});
  ChangeFeedProcessorHost(std::string host_name, client::Container monitored,
                          std::shared_ptr<LeaseStore> leases,
                          MonitoredFeedOptions feed_options = {},
                          ChangeFeedHostOptions host_options = {});
  /// Stops, as stop() does.
  ~ChangeFeedProcessorHost();
  ChangeFeedProcessorHost(ChangeFeedProcessorHost&&) noexcept;
  ChangeFeedProcessorHost& operator=(ChangeFeedProcessorHost&&) noexcept;

  /// Where observers are called. Before they are registered; otherwise threads of the host's own.
  void set_executor(Executor executor);
  void set_health_monitor(HealthMonitor monitor);

  /// Makes the leases if need be, and begins. Returns when this host takes part.
  void start(ObserverFactory factory);
  void start(Handler handler);
  /// No new batch; waits for those that run, up to the shutdown deadline; gives leases back. The
  /// host may be started again afterwards.
  void stop();

  // The same under the names of the originals.
  void register_observer_factory(ObserverFactory factory) { start(std::move(factory)); }
  void register_observer(ObserverFactory factory) { start(std::move(factory)); }
  void register_handler(Handler handler) { start(std::move(handler)); }
  void unregister_observers() { stop(); }

  HostStats stats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Starts the host, waits for SIGINT or SIGTERM, and stops it. Returns the number of the signal; 0
/// when `done`, which is asked five times a second, has said that there is nothing left to wait
/// for. As soon as a signal has come, both have their default actions, whatever they had before: a
/// second Ctrl-C ends a program whose observers do not return. For one thread of a program at a
/// time.
int run_until_signal(ChangeFeedProcessorHost& host, ObserverFactory factory,
                     const std::function<bool()>& done = {});
int run_until_signal(ChangeFeedProcessorHost& host, Handler handler,
                     const std::function<bool()>& done = {});

/// Looks at the leases of a group and moves them, without being a host.
class LeaseGroup {
 public:
  LeaseGroup(client::Container monitored, std::shared_ptr<LeaseStore> leases,
             std::string lease_prefix = {}, std::string feed_host = {});
  ~LeaseGroup();
  LeaseGroup(LeaseGroup&&) noexcept;
  LeaseGroup& operator=(LeaseGroup&&) noexcept;

  struct Lease {
    std::string id;
    std::string token;
    std::string owner;
    std::string position;
    std::optional<std::chrono::system_clock::time_point> renewed;
    std::uint64_t epoch = 0;
  };
  std::vector<Lease> leases() const;
  /// One for each lease. Also for scalers: the sum is 0 only when nothing is left to do.
  std::vector<LeaseLag> lag() const;

  /// Hosts of this library begin no batch after one renew interval, until resume().
  void pause();
  void resume();
  bool paused() const;

  /// Where all leases, or the one of `token`, begin anew. The group must be paused or without
  /// hosts.
  struct Position {
    enum class Kind { Beginning, Now, Time, Etag } kind = Kind::Beginning;
    std::chrono::system_clock::time_point time = {};
    std::string etag = {};
  };
  void reset(const Position& to, const std::string& token = {});

  /// All positions as one JSON text, and back.
  std::string snapshot() const;
  void restore(std::string_view snapshot);

  /// Takes leases away from a host that is known to be gone.
  std::size_t release(const std::string& host);

  struct Finding {
    Severity severity = Severity::Informational;
    std::string message;
  };
  /// Checks the leases, and says in words what is wrong: missing or doubled ones, gaps, dead
  /// owners, a lock that stayed.
  std::vector<Finding> doctor() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace orrery::processor
