#include "client/exchange/discovery.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "client/handles/account.h"
#include "protocol/wire/headers.h"
#include "protocol/wire/http_date.h"

namespace orrery::client {
namespace {

using std::chrono::steady_clock;

/// An account answers at once; an endpoint that does not is not waited for long.
constexpr std::chrono::seconds kAnswerTimeMax{5};

/// `GET /`, signed.
Outgoing account_request(Surroundings& surroundings, const EndpointPtr& endpoint) {
  const std::string date = format_http_date(surroundings.clock.unix_seconds());
  Outgoing request;
  request.endpoint = endpoint;
  std::string& head = request.head;
  const auto add = [&head](HeaderName name, std::string_view value) {
    head.append(name.text).append(": ").append(value).append("\r\n");
  };
  head.append("GET ").append(endpoint->base_path).append("/ HTTP/1.1\r\n");
  add(headers::kHost, endpoint->authority);
  head.append(surroundings.standing_headers);
  add(headers::kXDate, date);
  add(headers::kAuthorization, surroundings.account.authorization("GET", "", "", date));
  add(headers::kVersion, kApiVersion);
  add(headers::kActivityId, surroundings.chance.uuid());
  head.append("\r\n");
  return request;
}

}  // namespace

void Discovery::ensure(bool again, std::function<void()> then) {
  const auto now = steady_clock::now();
  const bool is_known = surroundings_.regions.known();
  if (!running_ && ((!again && is_known) || now < paused_until_)) return then();
  waiting_.push_back(std::move(then));
  if (!running_) begin();
}

void Discovery::begin() {
  running_ = true;
  candidates_ = surroundings_.regions.all();
  std::ranges::reverse(candidates_);
  ask_next();
}

void Discovery::ask_next() {
  if (candidates_.empty()) return finish(false);
  const EndpointPtr endpoint = std::move(candidates_.back());
  candidates_.pop_back();
  request_ = account_request(surroundings_, endpoint);
  transport_.send(request_, steady_clock::now() + kAnswerTimeMax,
                  [self = shared_from_this()](Outcome outcome) {
                    if (outcome.no_answer == NoAnswer::Cancelled) {
                      self->candidates_.clear();
                      return self->finish(false);
                    }
                    if (outcome.no_answer == NoAnswer::None && outcome.reply.status == 200) {
                      if (const auto account = parse_account(outcome.reply.body)) {
                        self->surroundings_.regions.update(*account);
                        return self->finish(true);
                      }
                    }
                    self->ask_next();
                  });
}

void Discovery::finish(bool succeeded) {
  running_ = false;
  const auto now = steady_clock::now();
  if (!succeeded) paused_until_ = now + kPause;
  old_at_.store((now + kInterval).time_since_epoch().count(), std::memory_order_relaxed);
  for (auto& then : std::exchange(waiting_, {})) then();
}

Discovery::Waited Discovery::wait(bool again, TimePoint deadline, const std::stop_token& stop) {
  struct Signal {
    std::mutex mutex;
    std::condition_variable_any changed;
    bool done = false;
  };
  const auto signal = std::make_shared<Signal>();  // Outlives a caller that gives up.
  const auto then = [signal] {
    const std::lock_guard lock(signal->mutex);
    signal->done = true;
    signal->changed.notify_all();
  };
  const bool posted =
      transport_.post([self = shared_from_this(), again, then] { self->ensure(again, then); });
  if (!posted) return Waited::Cancelled;
  std::unique_lock lock(signal->mutex);
  const auto is_done = [&] { return signal->done; };
  if (deadline == TimePoint::max()) {
    signal->changed.wait(lock, stop, is_done);
  } else {
    signal->changed.wait_until(lock, stop, deadline, is_done);
  }
  if (signal->done) return Waited::Done;
  return stop.stop_requested() ? Waited::Cancelled : Waited::TooLate;
}

void Discovery::refresh_if_old(TimePoint now) {
  auto old_at = old_at_.load(std::memory_order_relaxed);
  if (now.time_since_epoch().count() < old_at) return;
  // One of many threads does it.
  const auto next = (now + kInterval).time_since_epoch().count();
  if (!old_at_.compare_exchange_strong(old_at, next)) return;
  transport_.post([self = shared_from_this()] { self->ensure(true, [] {}); });
}

}  // namespace orrery::client
