// Handling: what a program that was given a batch made of it. The observer that asks such programs
// turns it into an outcome for the processor.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "orrery/processor.h"
#include "sinks/batch_text.h"

namespace orrery::sinks {

struct Handling {
  enum class Kind {
    Settled,  ///< as `outcome` says
    Later,    ///< not now: whoever should do it is away or busy. No fault of any document
    Failed,   ///< tried, and failed; another attempt may succeed
    Refused,  ///< another attempt would not change anything
  };
  Kind kind = Kind::Settled;
  processor::Outcome outcome;
  std::chrono::milliseconds after{0};  ///< of Later: at least so long
  std::string reason;

  static Handling settled(processor::Outcome outcome) {
    return {Kind::Settled, std::move(outcome), {}, {}};
  }
  static Handling done() { return settled(processor::Outcome::done()); }
  static Handling later(std::string reason, std::chrono::milliseconds after = {}) {
    return {Kind::Later, {}, after, std::move(reason)};
  }
  static Handling failed(std::string reason) { return {Kind::Failed, {}, {}, std::move(reason)}; }
  static Handling refused(std::string reason) { return {Kind::Refused, {}, {}, std::move(reason)}; }

  bool is_done() const {
    return kind == Kind::Settled && outcome.kind == processor::Outcome::Kind::Done;
  }
};

/// What a program answers about a batch of `count` documents: a JSON object with nothing in it but
/// done, done_until, retry_after_ms, reject, failed, stop and reason. nullopt: it is none of that.
/// One that can't be meant is a failure.
std::optional<Handling> read_reply(std::string_view text, std::size_t count);

/// Asks somebody to process a batch. One for each lease; with lanes, called by several threads.
class BatchHandler {
 public:
  virtual ~BatchHandler() = default;
  /// Blocks. Returns soon after context.stop() asks for it, whatever it then says.
  virtual Handling handle(processor::ObserverContext& context, Changes changes) = 0;
  /// No batch will follow.
  virtual void close() {}
};

/// What all observers of a process have done so far.
struct Tally {
  std::atomic<std::uint64_t> documents = 0;
  std::atomic<std::uint64_t> dead_letters = 0;
  std::atomic<int> calls_running = 0;  ///< at this moment
};

/// What went wrong, in words; the lease first.
using Complain = std::function<void(const std::string& lease, const std::string& problem)>;

struct HandlingPolicy {
  bool per_document = false;  ///< the handler gets documents one by one
  bool dead_letters = false;  ///< there is a place for them
  int attempts_max = 0;       ///< 0: as many as it takes
  /// With checkpoints that are rarer than batches: what is done is written when nothing is left.
  bool checkpoint_when_idle = false;
  std::chrono::milliseconds first_wait{1000};  ///< doubled from time to time
  std::chrono::milliseconds wait_max{60'000};
};

/// Turns what a handler says into outcomes. Waits in place, with back-off, for whoever is away.
class HandlingObserver final : public processor::ChangeFeedObserver {
 public:
  HandlingObserver(std::unique_ptr<BatchHandler> handler, HandlingPolicy policy,
                   std::shared_ptr<Tally> tally, Complain complain);

  processor::Outcome process(processor::ObserverContext& context,
                             const processor::Documents& changes) override;
  void idle(processor::ObserverContext& context) override;
  void close(processor::ObserverContext& context, processor::CloseReason reason) override;

 private:
  /// Not Later: that is waited for here. nullopt: the lease or the host ends.
  std::optional<Handling> insist(processor::ObserverContext& context, Changes changes);
  processor::Outcome process_batch(processor::ObserverContext& context, Changes changes);
  processor::Outcome process_one_by_one(processor::ObserverContext& context, Changes changes);
  std::chrono::milliseconds back_off(int times) const;

  std::unique_ptr<BatchHandler> handler_;
  HandlingPolicy policy_;
  std::shared_ptr<Tally> tally_;  // Shared by all observers, and whoever shows it.
  Complain complain_;
};

}  // namespace orrery::sinks
