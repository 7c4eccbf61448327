#include "sinks/delivery.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/stop_wait.h"
#include "orrery/exception.h"

namespace orrery::sinks {
namespace {

using processor::ObserverContext;
using processor::Outcome;

/// The batch is not settled: the next owner of the lease gets it again.
Outcome stopped() { return Outcome::stop("the lease or the host ends"); }

/// Counts a call for as long as it runs.
class CallCount {
 public:
  explicit CallCount(std::atomic<int>& count) : count_(count) { ++count_; }
  ~CallCount() { --count_; }
  CallCount(const CallCount&) = delete;
  CallCount& operator=(const CallCount&) = delete;

 private:
  std::atomic<int>& count_;
};

}  // namespace

DeliveryObserver::DeliveryObserver(std::unique_ptr<BatchSink> sink, DeliveryPolicy policy,
                                   std::shared_ptr<SinkStats> stats, ReportProblem report_problem)
    : sink_(std::move(sink)),
      policy_(policy),
      stats_(std::move(stats)),
      report_problem_(std::move(report_problem)) {}

Outcome DeliveryObserver::process(ObserverContext& context, const processor::Documents& changes) {
  const CallCount call(stats_->calls_running);
  Outcome outcome = policy_.per_document ? process_one_by_one(context, changes.items())
                                         : process_batch(context, changes.items());
  switch (outcome.kind) {
    case Outcome::Kind::Done:
      stats_->documents += changes.size();
      break;
    case Outcome::Kind::DoneUntil:
      stats_->documents += outcome.count;
      break;
    case Outcome::Kind::Reject:
      stats_->documents += changes.size() - outcome.rejected.size();
      break;
    case Outcome::Kind::Retry:
    case Outcome::Kind::Stop:
      break;
  }
  return outcome;
}

void DeliveryObserver::idle(ObserverContext& context) {
  if (!policy_.checkpoint_when_idle) return;
  try {
    context.checkpoint();
  } catch (const client::CosmosException& refusal) {
    report_problem_(context.lease_token(), refusal.what());
  }
}

void DeliveryObserver::close(ObserverContext&, processor::CloseReason) {
  const CallCount call(stats_->calls_running);
  sink_->close();
}

std::optional<Delivery> DeliveryObserver::deliver_with_backoff(ObserverContext& context,
                                                               Changes changes) {
  for (int attempts = 1;; ++attempts) {
    Delivery delivery = sink_->deliver(context, changes);
    if (context.stop().stop_requested() && !delivery.is_done()) return std::nullopt;
    if (delivery.kind != Delivery::Kind::Later) return delivery;
    const auto time = delivery.after.count() > 0 ? delivery.after : backoff(attempts);
    report_problem_(context.lease_token(),
                    fmt::format("{}; trying again in {} ms", delivery.reason, time.count()));
    if (!wait_unless_stopped(context.stop(), time)) return std::nullopt;
  }
}

Outcome DeliveryObserver::process_batch(ObserverContext& context, Changes changes) {
  auto delivery = deliver_with_backoff(context, changes);
  if (!delivery) return stopped();
  if (delivery->kind == Delivery::Kind::Settled) return std::move(delivery->outcome);
  report_problem_(context.lease_token(),
                  fmt::format("a batch of {} failed: {}", counted(changes.size(), "document"),
                              delivery->reason));
  // A document that is refused alone is the poison one: further attempts would tell no more.
  if (delivery->kind == Delivery::Kind::Refused && policy_.dead_letters && changes.size() == 1) {
    return Outcome::reject({0}, std::move(delivery->reason));
  }
  return Outcome::retry(std::chrono::milliseconds(0), std::move(delivery->reason));
}

/// Attempts are counted here, since each document has its own.
Outcome DeliveryObserver::process_one_by_one(ObserverContext& context, Changes changes) {
  std::vector<std::size_t> rejected;
  std::string reasons;
  for (std::size_t index = 0; index < changes.size(); ++index) {
    for (int attempts = 1;; ++attempts) {
      auto delivery = deliver_with_backoff(context, changes.subspan(index, 1));
      if (!delivery) return stopped();
      if (delivery->is_done()) break;
      const bool settled = delivery->kind == Delivery::Kind::Settled;
      if (settled && delivery->outcome.kind == Outcome::Kind::Stop) {
        return std::move(delivery->outcome);
      }
      const std::string& reason = settled ? delivery->outcome.reason : delivery->reason;
      const bool used_up = policy_.attempts_max > 0 && attempts >= policy_.attempts_max;
      const bool hopeless = settled || delivery->kind == Delivery::Kind::Refused;
      if (policy_.dead_letters && (used_up || hopeless)) {
        rejected.push_back(index);
        reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", reason);
        break;
      }
      report_problem_(context.lease_token(), fmt::format("a document failed: {}", reason));
      if (!wait_unless_stopped(context.stop(), backoff(attempts))) return stopped();
    }
  }
  if (rejected.empty()) return Outcome::done();
  return Outcome::reject(std::move(rejected), std::move(reasons));
}

std::chrono::milliseconds DeliveryObserver::backoff(int attempts) const {
  return std::min(policy_.backoff_min * (1 << std::min(attempts - 1, 20)), policy_.backoff_max);
}

}  // namespace orrery::sinks
