#include "processor/hosting/supervisor.h"

#include <algorithm>

#include <fmt/format.h>

#include "processor/leases/lease_split.h"

namespace orrery::processor {

namespace {

/// Between attempts to write when the store does not answer.
constexpr std::chrono::milliseconds kStoreRetryWait{1000};
constexpr int kReleaseAttemptsMax = 3;
/// In renew intervals: how long a read may last, beyond what the server may wait.
constexpr int kStuckIntervals = 25;

}  // namespace

Supervisor::Supervisor(const HostEnvironment& host, Lease lease)
    : host_(host),
      lease_(std::move(lease)),
      stop_(host.runtime),
      tasks_(host.runtime),
      acquired_at_(host.runtime.now()),
      last_written_(acquired_at_) {}

void Supervisor::report(Severity severity, std::string operation, std::string message) const {
  host_.report({severity, std::move(operation), lease_.token, std::move(message)});
}

std::string Supervisor::position() const {
  const Lease* owned = host_.manager.owned(lease_.id);
  return (owned != nullptr ? owned->position : lease_.position).value_or("");
}

void Supervisor::end(CloseReason reason) {
  if (!close_reason_) close_reason_ = reason;
  stop_.request();
}

void Supervisor::lose(const std::string& reason) {
  if (state_ != State::Ours) return;
  state_ = State::Lost;
  *lease_over_ = true;
  report(Severity::Informational, "RenewLease", "the lease is lost: " + reason);
  end(CloseReason::LeaseLost);
}

void Supervisor::written(MonotonicTime when) {
  last_written_ = std::max(last_written_, when);
  host_.pacer.written(lease_.id, when);
}

// ── from open to close ───────────────────────────────────────────────────────────────────────────

asio::awaitable<void> Supervisor::run() {
  const auto self = shared_from_this();
  if (superseded_) {
    co_await replace();
  } else if (co_await open()) {
    feed_loop_.emplace(
        FeedLoop::Setup{host_.runtime, host_.reader, *dispatcher_, host_.limiter, stop_,
                        host_.feed_options, host_.options, *host_.documents, host_.paused,
                        [this](std::string to) { return checkpoint(std::move(to)); }, host_.report},
        lease_);
    if (superseded_) feed_loop_->supersede();
    const FeedEnding ending = co_await feed_loop_->run();
    co_await finish(ending);
  } else {
    co_await release();
  }
  co_await tasks_.join();
}

void Supervisor::supersede() {
  superseded_ = true;
  if (feed_loop_) feed_loop_->supersede();
}

asio::awaitable<bool> Supervisor::open() {
  auto observer = std::make_shared<std::shared_ptr<ChangeFeedObserver>>();
  const CallResult made = co_await host_.calls.run([factory = host_.factory, observer] {
    *observer = factory();
    return Outcome::done();
  });
  if (made.error || *observer == nullptr) {
    report(Severity::Error, "AcquireLease",
           "there is no observer: " + made.error.value_or("the factory gave none"));
    co_return false;
  }
  dispatcher_.emplace(Dispatcher::Setup{
      host_.runtime, host_.calls, stop_, host_.manager.host(),
      LeaseScope{lease_.token, lease_.token, lease_.epoch()}, std::move(*observer), host_.documents,
      host_.options.retry, host_.options.batch_deadline, host_.keep_dead_letter, lease_over_,
      host_.report,
      [this] {
        if (host_.options.close_after_deadline) {
          tasks_.spawn(give_up(CloseReason::ObserverError));
        }
      },
      [this](const DispatchCounters& counters) { publish(counters); }});
  publish({});
  if (const auto error = co_await dispatcher_->open(position())) {
    report(Severity::Error, "AcquireLease", "the observer threw in open(): " + *error);
    co_return false;
  }
  co_return true;
}

CloseReason Supervisor::close_reason(const FeedEnding& ending) const {
  if (close_reason_) return *close_reason_;
  switch (ending.kind) {
    case FeedEnding::Kind::Stopped:
      return CloseReason::Shutdown;
    case FeedEnding::Kind::ObserverError:
    case FeedEnding::Kind::ObserverStop:
    case FeedEnding::Kind::HaltRange:
    case FeedEnding::Kind::HaltGroup:
      return CloseReason::ObserverError;
    case FeedEnding::Kind::Gone:
      return CloseReason::LeaseGone;
    case FeedEnding::Kind::NotFound:
      return CloseReason::ResourceGone;
    case FeedEnding::Kind::SessionNotAvailable:
      return CloseReason::ReadSessionNotAvailable;
    case FeedEnding::Kind::Failed:
      return CloseReason::Unknown;
  }
  return CloseReason::Unknown;
}

asio::awaitable<void> Supervisor::finish(const FeedEnding& ending) {
  const CloseReason reason = close_reason(ending);
  if (ending.kind != FeedEnding::Kind::Stopped && ending.kind != FeedEnding::Kind::Gone) {
    report(Severity::Error, "ReadChangeFeed", "the lease is given up: " + ending.message);
  }
  co_await dispatcher_->close(position(), reason);
  if (ending.kind == FeedEnding::Kind::HaltGroup) co_await host_.pause_group(ending.message);
  if (ending.kind == FeedEnding::Kind::HaltRange) {
    report(Severity::Critical, "ProcessChanges",
           "the range stands still until this host is started anew: " + ending.message);
    // Kept, so that nobody else meets the same document.
    while (!co_await stop_.pause_until(MonotonicTime::max())) {
    }
  }
  if (ending.kind == FeedEnding::Kind::Gone && state_ == State::Ours) {
    co_await replace();
  } else {
    co_await release();
  }
}

asio::awaitable<void> Supervisor::release() {
  if (state_ == State::Lost) {
    host_.manager.forget(lease_.id);
    co_return;
  }
  if (state_ != State::Ours) co_return;
  state_ = State::GivenUp;
  *lease_over_ = true;
  host_.pacer.remove(lease_.id);
  for (int attempt = 1; attempt <= kReleaseAttemptsMax; ++attempt) {
    const auto released = co_await host_.manager.release(lease_.id, hand_over_to_);
    if (released) co_return;
    report(Severity::Error, "ReleaseLease", released.error().message());
    co_await pause_until(host_.runtime, host_.runtime.now() + kStoreRetryWait);
  }
  host_.manager.forget(lease_.id);
}

asio::awaitable<void> Supervisor::give_up(CloseReason reason) {
  const auto self = shared_from_this();
  end(reason);
  co_await release();
}

/// The range was split or merged: hands the position on to the leases that take its place. Only the
/// checkpoint counts, since the rest was not confirmed by anybody.
asio::awaitable<void> Supervisor::replace() {
  while (state_ == State::Ours) {
    // A host that was cut off for a while may have lost it meanwhile, and would hand on a position
    // that the new owner has left behind.
    auto renewed = co_await host_.manager.renew(lease_.id);
    if (renewed && renewed->lost()) {
      lose(renewed->reason);
      break;
    }
    if (!renewed) {
      report(Severity::Error, "ReplaceLease", renewed.error().message());
      if (co_await stop_.pause_for(host_.options.feed_poll_delay)) break;
      continue;
    }
    state_ = State::Replacing;
    const auto position = renewed->lease.position;
    auto replacement =
        co_await replace_lease(host_.manager, host_.reader, std::move(renewed->lease), position);
    if (replacement && replacement->kept) {
      state_ = State::Ours;
      break;
    }
    if (replacement) {
      state_ = State::Replaced;
      host_.pacer.remove(lease_.id);
      co_await host_.adopt(std::move(replacement->leases));
      co_return;
    }
    state_ = State::Ours;
    report(Severity::Error, "ReplaceLease", replacement.error().message());
    if (co_await stop_.pause_for(host_.options.feed_poll_delay)) break;
  }
  co_await release();
}

// ── writing ──────────────────────────────────────────────────────────────────────────────────────

asio::awaitable<bool> Supervisor::checkpoint(std::string position) {
  while (state_ == State::Ours) {
    const MonotonicTime begin = host_.runtime.now();
    const auto change = co_await host_.manager.checkpoint(lease_.id, position);
    if (!change) {
      report(Severity::Error, "Checkpoint", change.error().message());
      co_await pause_until(host_.runtime, host_.runtime.now() + kStoreRetryWait);
      continue;
    }
    if (change->lost()) {
      lose(change->reason);
      co_return false;
    }
    if (change->kind == LeaseChange::Kind::Older) {
      report(Severity::Error, "Checkpoint",
             "a later batch has been checkpointed already: " + change->reason);
      co_return true;
    }
    written(begin);
    co_return true;
  }
  co_return false;
}

bool Supervisor::is_stuck(MonotonicTime now) const {
  if (!feed_loop_ || !feed_loop_->reading_since()) return false;
  return now - *feed_loop_->reading_since() >
         kStuckIntervals * host_.options.lease_renew_interval + host_.options.long_poll_wait;
}

asio::awaitable<void> Supervisor::renew() {
  const auto self = shared_from_this();
  if (state_ != State::Ours) co_return;
  const MonotonicTime begin = host_.runtime.now();
  if (begin - last_written_ > host_.options.lease_expiration_interval) {
    // Others see it as expired: the next owner must not find this host still at work.
    lose("it could not be renewed in time");
    co_return;
  }
  if (is_stuck(begin)) {
    // The renewals go on while a read hangs: nobody else would ever get the lease.
    report(Severity::Error, "ReadChangeFeed", "a read does not end: the lease is given up");
    tasks_.spawn(give_up(CloseReason::Unknown));
    co_return;
  }
  std::optional<std::string> idle;
  if (feed_loop_) idle = feed_loop_->take_idle_position();
  Result<LeaseChange> change = LeaseChange();
  std::string cost_now = fmt::format("{:.2f}", cost());
  if (host_.options.balancing == Balancing::Weighted && !idle && cost_now != published_cost_) {
    change = co_await host_.manager.update_properties(lease_.id,
                                                      {{std::string(kCostProperty), cost_now}});
    published_cost_ = std::move(cost_now);
  } else {
    change = co_await host_.manager.renew(lease_.id, idle);
  }
  if (state_ != State::Ours) co_return;
  if (!change) {
    report(Severity::Error, "RenewLease", change.error().message());
    host_.pacer.failed(lease_.id, host_.runtime.now());
    co_return;
  }
  if (change->lost()) {
    lose(change->reason);
    co_return;
  }
  written(begin);
  const auto wanted = change->lease.properties.find(std::string(kWantedByProperty));
  if (wanted != change->lease.properties.end() && !wanted->second.empty() &&
      wanted->second != host_.manager.host()) {
    hand_over_to_ = wanted->second;
    end(CloseReason::LeaseLost);
  }
}

// ── telling ──────────────────────────────────────────────────────────────────────────────────────

double Supervisor::cost() const {
  const auto lived = std::chrono::duration<double>(host_.runtime.now() - acquired_at_).count();
  if (lived < 1) return 0;
  return std::chrono::duration<double>(handler_time_).count() / lived;
}

void Supervisor::publish(const DispatchCounters& counters) {
  handler_time_ = counters.handler_time;
  host_.publish({lease_.token, position(), lease_.epoch(), counters.batches, counters.documents,
                 counters.retries, counters.dead_letters, counters.handler_time});
}

}  // namespace orrery::processor
