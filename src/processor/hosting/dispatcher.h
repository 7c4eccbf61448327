// Dispatcher: hands batches to the observer of one lease, and sees to it that each is done, sent
// again, cut down to the document at fault, or put aside.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "orrery/processor.h"
#include "processor/hosting/lanes.h"
#include "processor/hosting/observer_calls.h"
#include "processor/hosting/runtime.h"

namespace orrery::processor {

/// The lease, as its observers see it.
struct LeaseScope {
  std::string token;
  std::string range_id;
  std::uint64_t epoch = 0;
};

struct Batch {
  Documents documents;
  std::string from;
  std::string to;
};

/// Some documents of a page as a page of their own, without a copy of them.
Documents pick(const Documents& page, std::span<const std::size_t> indices);

/// The final outcome of a batch, after retries.
struct Verdict {
  enum class Kind {
    Done,           ///< every document was processed or put aside
    ObserverError,  ///< the observer threw, and nobody wants to try again here
    Stop,           ///< the observer wants to give the lease up
    HaltRange,      ///< attempts are used up; nobody shall go on with this range
    HaltGroup,      ///< or with any
    Interrupted,    ///< the lease or the host ended before it was done
  };
  Kind kind = Kind::Done;
  std::string reason;
  /// Every document is processed or put aside, and the observer asks for the position behind them.
  bool checkpoint_requested = false;
};

/// The counters of a lease, since it was acquired.
struct DispatchCounters {
  std::uint64_t batches = 0;
  std::uint64_t documents = 0;
  std::uint64_t retries = 0;
  std::uint64_t dead_letters = 0;
  std::chrono::microseconds handler_time{0};
};

/// For the host's thread. Calls of process() may overlap where there are lanes.
class Dispatcher {
 public:
  struct Setup {
    Runtime& runtime;
    ObserverCalls& calls;
    Stop& stop;
    std::string host;
    LeaseScope scope;
    std::shared_ptr<ChangeFeedObserver> observer;  // Shared with calls that are under way.
    std::shared_ptr<const DocumentReader> reader;  // Shared by all leases of the host.
    RetryPolicy retry;
    std::optional<std::chrono::milliseconds> batch_deadline;
    /// Where observers are called; blocks, and throws when it could not be kept. None: there is no
    /// place for dead letters.
    std::function<void(const DeadLetter&)> keep_dead_letter;
    /// True once the lease is not of this host any more. Shared with calls that are under way.
    std::shared_ptr<const std::atomic<bool>> lease_over;
    std::function<void(HealthEvent)> report;
    std::function<void()> overdue;                         ///< a call has passed its deadline
    std::function<void(const DispatchCounters&)> publish;  ///< they have changed
  };
  explicit Dispatcher(Setup setup);
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  /// The error, if it threw one.
  asio::awaitable<std::optional<std::string>> open(std::string position);
  asio::awaitable<Verdict> process(Batch batch);
  /// Whether the observer asks for `position` to be written.
  asio::awaitable<bool> idle(std::string position);
  asio::awaitable<void> close(std::string position, CloseReason reason);

  /// The range that the lease is read from now, for what observers are told.
  void set_range_id(std::string id) { setup_.scope.range_id = std::move(id); }
  const DispatchCounters& counters() const { return counters_; }

 private:
  struct SubBatch;
  class Context;

  std::shared_ptr<Context> context(std::string from, std::string to) const;
  struct Called {
    CallResult result;
    bool checkpoint_requested = false;
  };
  asio::awaitable<Called> call(const Batch& batch, const SubBatch& part);
  /// nullopt: go on.
  asio::awaitable<std::optional<Verdict>> settle(const Batch& batch, SubBatch part,
                                                 CallResult result, std::vector<SubBatch>& todo);
  asio::awaitable<std::optional<Verdict>> failed(const Batch& batch, SubBatch part,
                                                 std::string error,
                                                 std::chrono::milliseconds wait_min,
                                                 std::vector<SubBatch>& todo);
  asio::awaitable<std::optional<Verdict>> put_aside(const Batch& batch,
                                                    std::vector<std::size_t> indices, int attempts,
                                                    std::string error);
  asio::awaitable<std::optional<Verdict>> put_parked_aside(const Batch& batch, SubBatch& part);
  std::chrono::milliseconds back_off(int attempts);
  void report(Severity severity, std::string message) const;

  Setup setup_;
  DispatchCounters counters_;
  std::set<std::string> parked_keys_;
};

}  // namespace orrery::processor
