#include "sinks/delivery.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/stop_wait.h"
#include "orrery/exception.h"

namespace orrery::sinks {
namespace {

using processor::ObserverContext;
using processor::Outcome;
using Json = nlohmann::json;

constexpr std::array<std::string_view, 7> kReplyMembers = {
    "done", "done_until", "retry_after_ms", "reject", "failed", "stop", "reason"};

bool is_true(const Json& reply, const char* member) {
  return reply.contains(member) && reply[member].is_boolean() && reply[member].get<bool>();
}

std::optional<std::uint64_t> whole_number(const Json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<std::uint64_t>();
}

Handling not_meant(std::string_view why) {
  return Handling::failed(fmt::format("its reply can't be meant: {}", why));
}

Handling read_rejects(const Json& indices, std::size_t count, std::string reason) {
  if (!indices.is_array()) return not_meant("'reject' is no list of indices");
  std::vector<std::size_t> rejected;
  for (const Json& each : indices) {
    const auto index = whole_number(each);
    if (!index || *index >= count) {
      return not_meant(fmt::format("'reject' has {}, but the batch has documents 0 to {}",
                                   each.dump(), count - 1));
    }
    rejected.push_back(static_cast<std::size_t>(*index));
  }
  std::ranges::sort(rejected);
  const auto [first, last] = std::ranges::unique(rejected);
  rejected.erase(first, last);
  if (rejected.empty()) return Handling::done();
  return Handling::settled(Outcome::reject(std::move(rejected), std::move(reason)));
}

/// Nothing is settled: whoever has the lease next gets the batch again.
Outcome ending() { return Outcome::stop("the lease or the host ends"); }

/// Counts the calls that are under way.
class Running {
 public:
  explicit Running(std::atomic<int>& count) : count_(count) { ++count_; }
  ~Running() { --count_; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  std::atomic<int>& count_;
};

}  // namespace

std::optional<Handling> read_reply(std::string_view text, std::size_t count) {
  const Json reply = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!reply.is_object()) return std::nullopt;
  for (const auto& [name, value] : reply.items()) {
    if (std::ranges::find(kReplyMembers, name) == kReplyMembers.end()) return std::nullopt;
  }
  std::string reason;
  if (reply.contains("reason") && reply["reason"].is_string()) reason = reply["reason"];

  if (is_true(reply, "stop")) return Handling::settled(Outcome::stop(std::move(reason)));
  if (reply.contains("retry_after_ms")) {
    const auto time = whole_number(reply["retry_after_ms"]);
    if (!time) return not_meant("'retry_after_ms' is no whole number");
    return Handling::later(std::move(reason), std::chrono::milliseconds(*time));
  }
  if (is_true(reply, "failed")) return Handling::failed(std::move(reason));
  if (reply.contains("reject")) return read_rejects(reply["reject"], count, std::move(reason));
  if (reply.contains("done_until")) {
    const auto done = whole_number(reply["done_until"]);
    if (!done || *done > count) {
      return not_meant(fmt::format("'done_until' is {}, but the batch has {} documents",
                                   reply["done_until"].dump(), count));
    }
    if (*done == count) return Handling::done();
    if (*done == 0) return Handling::failed(reason.empty() ? "nothing was done" : reason);
    return Handling::settled(Outcome::done_until(static_cast<std::size_t>(*done)));
  }
  return Handling::done();
}

HandlingObserver::HandlingObserver(std::unique_ptr<BatchHandler> handler, HandlingPolicy policy,
                                   std::shared_ptr<Tally> tally, Complain complain)
    : handler_(std::move(handler)),
      policy_(policy),
      tally_(std::move(tally)),
      complain_(std::move(complain)) {}

Outcome HandlingObserver::process(ObserverContext& context, const processor::Documents& changes) {
  const Running running(tally_->calls_running);
  Outcome outcome = policy_.per_document ? process_one_by_one(context, changes.items())
                                         : process_batch(context, changes.items());
  switch (outcome.kind) {
    case Outcome::Kind::Done:
      tally_->documents += changes.size();
      break;
    case Outcome::Kind::DoneUntil:
      tally_->documents += outcome.count;
      break;
    case Outcome::Kind::Reject:
      tally_->documents += changes.size() - outcome.rejected.size();
      break;
    case Outcome::Kind::Retry:
    case Outcome::Kind::Stop:
      break;
  }
  return outcome;
}

void HandlingObserver::idle(ObserverContext& context) {
  if (!policy_.checkpoint_when_idle) return;
  try {
    context.checkpoint();
  } catch (const client::CosmosException& refusal) {
    complain_(context.lease_token(), refusal.what());
  }
}

void HandlingObserver::close(ObserverContext&, processor::CloseReason) {
  const Running running(tally_->calls_running);
  handler_->close();
}

std::optional<Handling> HandlingObserver::insist(ObserverContext& context, Changes changes) {
  for (int times = 1;; ++times) {
    Handling handling = handler_->handle(context, changes);
    if (context.stop().stop_requested() && !handling.is_done()) return std::nullopt;
    if (handling.kind != Handling::Kind::Later) return handling;
    const auto time = handling.after.count() > 0 ? handling.after : back_off(times);
    complain_(context.lease_token(),
              fmt::format("{}; trying again in {} ms", handling.reason, time.count()));
    if (!wait_unless_stopped(context.stop(), time)) return std::nullopt;
  }
}

Outcome HandlingObserver::process_batch(ObserverContext& context, Changes changes) {
  auto handling = insist(context, changes);
  if (!handling) return ending();
  if (handling->kind == Handling::Kind::Settled) return std::move(handling->outcome);
  complain_(context.lease_token(),
            fmt::format("a batch of {} failed: {}", counted(changes.size(), "document"),
                        handling->reason));
  // Alone, it needs no further attempts to be found guilty.
  if (handling->kind == Handling::Kind::Refused && policy_.dead_letters && changes.size() == 1) {
    return Outcome::reject({0}, std::move(handling->reason));
  }
  return Outcome::retry(std::chrono::milliseconds(0), std::move(handling->reason));
}

/// Attempts are counted here, since each document has its own.
Outcome HandlingObserver::process_one_by_one(ObserverContext& context, Changes changes) {
  std::vector<std::size_t> rejected;
  std::string reasons;
  for (std::size_t index = 0; index < changes.size(); ++index) {
    for (int attempts = 1;; ++attempts) {
      auto handling = insist(context, changes.subspan(index, 1));
      if (!handling) return ending();
      if (handling->is_done()) break;
      const bool settled = handling->kind == Handling::Kind::Settled;
      if (settled && handling->outcome.kind == Outcome::Kind::Stop) {
        return std::move(handling->outcome);
      }
      const std::string& reason = settled ? handling->outcome.reason : handling->reason;
      const bool used_up = policy_.attempts_max > 0 && attempts >= policy_.attempts_max;
      const bool hopeless = settled || handling->kind == Handling::Kind::Refused;
      if (policy_.dead_letters && (used_up || hopeless)) {
        rejected.push_back(index);
        reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", reason);
        break;
      }
      complain_(context.lease_token(), fmt::format("a document failed: {}", reason));
      if (!wait_unless_stopped(context.stop(), back_off(attempts))) return ending();
    }
  }
  if (rejected.empty()) return Outcome::done();
  return Outcome::reject(std::move(rejected), std::move(reasons));
}

std::chrono::milliseconds HandlingObserver::back_off(int times) const {
  return std::min(policy_.first_wait * (1 << std::min(times - 1, 20)), policy_.wait_max);
}

}  // namespace orrery::sinks
