// Sinks: where the changes of a container go.
//
// A sink delivers the changes of a lease to a destination: another container, a webhook, a command,
// files. It is, or is wrapped into, a processor::ChangeFeedObserver, one for each lease; the
// processor reads, balances and retries. All sinks promise:
//
//   Delivery  At least once. A position is checkpointed after its batch was settled, so a batch
//             comes again after a crash, a lost lease, or an answer that got lost. The sinks for
//             containers and files make it exactly once: they keep the position with the data.
//   Order     Changes of one partition key are delivered in the order of the feed.
//   Retries   A destination that is away or busy is retried with backoff, for as long as the lease
//             is held; that costs no attempt. A failed batch is retried as the processor's
//             RetryPolicy says.
//   Poison    A change that the destination refuses becomes a dead letter, where there is a place
//             for them. Elsewhere it is retried for ever and holds up its lease, except that it
//             ends a copy into a container.
//   Stop      ObserverContext::stop() ends every wait. A batch that is not settled by then goes to
//             the next owner of the lease.
//
// Sinks neither print nor parse options: they count in SinkStats and report to callbacks, on any
// thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "orrery/processor.h"

namespace orrery::sinks {

/// The documents of a batch, in the order of the feed.
using Changes = std::span<const std::string_view>;

/// Counts of all sinks of a process.
struct SinkStats {
  std::atomic<std::uint64_t> documents = 0;  ///< delivered
  std::atomic<std::uint64_t> dead_letters = 0;
  std::atomic<int> calls_running = 0;  ///< at this moment
};

/// Gets each problem in words, with the token of the lease that has it.
using ReportProblem = std::function<void(const std::string& lease, const std::string& problem)>;

/// How the delivery of one batch went.
struct Delivery {
  enum class Kind {
    Settled,  ///< as `outcome` says
    Later,    ///< the destination is away or busy; no fault of any document
    Failed,   ///< another attempt may succeed
    Refused,  ///< another attempt would fail too
  };
  Kind kind = Kind::Settled;
  processor::Outcome outcome;
  std::chrono::milliseconds after{0};  ///< of Later: the least time to wait
  std::string reason;

  static Delivery settled(processor::Outcome outcome) {
    return {Kind::Settled, std::move(outcome), {}, {}};
  }
  static Delivery done() { return settled(processor::Outcome::done()); }
  static Delivery later(std::string reason, std::chrono::milliseconds after = {}) {
    return {Kind::Later, {}, after, std::move(reason)};
  }
  static Delivery failed(std::string reason) { return {Kind::Failed, {}, {}, std::move(reason)}; }
  static Delivery refused(std::string reason) { return {Kind::Refused, {}, {}, std::move(reason)}; }

  bool is_done() const {
    return kind == Kind::Settled && outcome.kind == processor::Outcome::Kind::Done;
  }
};

/// A destination that takes a batch in one call and answers. DeliveryObserver makes an observer of
/// it. One for each lease; with lanes, several threads call it at once.
class BatchSink {
 public:
  virtual ~BatchSink() = default;
  /// Blocks. Returns soon after context.stop() asks for it; the result does not count then, unless
  /// it is done.
  virtual Delivery deliver(processor::ObserverContext& context, Changes changes) = 0;
  /// No batch will follow.
  virtual void close() {}
};

}  // namespace orrery::sinks
