// DeliveryObserver: a BatchSink as an observer of the processor.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "orrery/processor.h"
#include "sinks/sink.h"

namespace orrery::sinks {

struct DeliveryPolicy {
  bool per_document = false;  ///< the sink gets documents one by one
  bool dead_letters = false;  ///< there is a place for them
  int attempts_max = 0;       ///< 0: as many as it takes
  /// With checkpoints that are rarer than batches: checkpoint when the feed has nothing left.
  bool checkpoint_when_idle = false;
  std::chrono::milliseconds backoff_min{1000};  ///< doubled with each attempt
  std::chrono::milliseconds backoff_max{60'000};
};

/// Turns deliveries into outcomes. Blocks, with backoff, while the destination is away or busy.
class DeliveryObserver final : public processor::ChangeFeedObserver {
 public:
  DeliveryObserver(std::unique_ptr<BatchSink> sink, DeliveryPolicy policy,
                   std::shared_ptr<SinkStats> stats, ReportProblem report_problem);

  processor::Outcome process(processor::ObserverContext& context,
                             const processor::Documents& changes) override;
  void idle(processor::ObserverContext& context) override;
  void close(processor::ObserverContext& context, processor::CloseReason reason) override;

 private:
  /// Delivers until the result is not Later. nullopt: the lease or the host ends.
  std::optional<Delivery> deliver_with_backoff(processor::ObserverContext& context,
                                               Changes changes);
  processor::Outcome process_batch(processor::ObserverContext& context, Changes changes);
  processor::Outcome process_one_by_one(processor::ObserverContext& context, Changes changes);
  std::chrono::milliseconds backoff(int attempts) const;

  std::unique_ptr<BatchSink> sink_;
  DeliveryPolicy policy_;
  std::shared_ptr<SinkStats> stats_;  // Shared by all sinks of the process, and its display.
  ReportProblem report_problem_;
};

}  // namespace orrery::sinks
