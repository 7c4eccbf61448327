#include "client/exchange/pipeline.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>
#include <utility>

#include "base/clock.h"
#include "client/exchange/discovery.h"
#include "client/exchange/exchange.h"
#include "client/exchange/refusal.h"
#include "client/exchange/routing_cache.h"
#include "client/transport/async_transport.h"
#include "client/transport/connection_pool.h"

namespace orrery::client {
namespace {

using std::chrono::steady_clock;

LinkOptions link_options(const ClientOptions& options) {
  return {.certificate_file = options.certificate_file,
          .verify_certificate = options.verify_certificate,
          .connect_time_max = options.connect_timeout};
}

std::uint64_t random_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

/// Everything that calls need. Calls that are under way keep it.
struct Core {
  Core(std::string endpoint, const Credential& credential, ClientOptions client_options)
      : surroundings(std::move(endpoint), credential, std::move(client_options), clock,
                     random_seed()),
        pool(link_options(surroundings.options), surroundings.options.connections_max),
        async(link_options(surroundings.options), surroundings.options.connections_max),
        discovery(std::make_shared<Discovery>(surroundings, async)) {}

  SystemClock clock;
  Surroundings surroundings;
  ConnectionPool pool;
  AsyncTransport async;
  std::shared_ptr<Discovery> discovery;  // Shared with what it has under way.
};
using CorePtr = std::shared_ptr<Core>;

/// Waits so long; false when the call shall end before.
bool pause(std::chrono::milliseconds wait, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, wait, [] { return false; });
  return !stop.stop_requested();
}

/// A call without a thread that waits for it. Everything but its beginning, and the request to
/// stop, happens on the thread of the transport.
class AsyncCall : public std::enable_shared_from_this<AsyncCall> {
 public:
  AsyncCall(CorePtr core, Call call, RequestOptions options, Pipeline::Done done)
      : core_(std::move(core)),
        call_(std::move(call)),
        options_(std::move(options)),
        done_(std::move(done)),
        exchange_(core_->surroundings, call_, options_, steady_clock::now()) {}

  void begin() {
    if (options_.stop.stop_possible()) {
      stopped_.emplace(options_.stop, OnStop{weak_from_this()});
    }
    const bool posted = core_->async.post([self = shared_from_this()] { self->go_on(); });
    if (!posted) {
      stopped_.reset();
      done_({}, std::make_exception_ptr(failure_of(Failure::Cancelled, "the client is closed")));
    }
  }

 private:
  struct OnStop {
    std::weak_ptr<AsyncCall> call;
    void operator()() const {
      const auto self = call.lock();
      if (self) self->core_->async.post([self] { self->stop(); });
    }
  };

  void go_on() {
    if (options_.stop.stop_requested()) exchange_.cancel(steady_clock::now());
    switch (exchange_.step()) {
      case Exchange::Step::Discover:
        return discover();
      case Exchange::Step::Send:
        return send();
      case Exchange::Step::Wait:
        ticket_ = core_->async.wait_until(
            steady_clock::now() + exchange_.wait(), [self = shared_from_this()](bool cancelled) {
              self->ticket_ = 0;
              const auto now = steady_clock::now();
              cancelled ? self->exchange_.cancel(now) : self->exchange_.waited(now);
              self->go_on();
            });
        return;
      case Exchange::Step::Answered:
        return finish(exchange_.take_answer(), nullptr);
      case Exchange::Step::Failed:
        return finish({}, exchange_.take_failure());
    }
  }

  void discover() {
    const bool again = exchange_.must_rediscover();
    // The account has its own time limit; this call may have less patience.
    is_discovering_ = true;
    if (exchange_.deadline() != Exchange::TimePoint::max()) {
      ticket_ = core_->async.wait_until(
          exchange_.deadline(), [self = shared_from_this()](bool cancelled) {
            self->ticket_ = 0;
            if (!cancelled)
              self->leave_discovery([&] { self->exchange_.time_out(steady_clock::now()); });
          });
    }
    core_->discovery->ensure(again, [self = shared_from_this()] {
      self->leave_discovery([&] { self->exchange_.discovered(steady_clock::now()); });
    });
  }

  template <typename Next>
  void leave_discovery(Next next) {
    if (!is_discovering_) return;
    is_discovering_ = false;
    if (const auto ticket = std::exchange(ticket_, 0); ticket != 0) core_->async.cancel(ticket);
    next();
    go_on();
  }

  void send() {
    const auto now = steady_clock::now();
    exchange_.prepare(now);
    if (exchange_.step() != Exchange::Step::Send) return go_on();
    core_->discovery->refresh_if_old(now);
    ticket_ = core_->async.send(exchange_.outgoing(), exchange_.attempt_deadline(),
                                [self = shared_from_this()](Outcome outcome) {
                                  self->ticket_ = 0;
                                  self->exchange_.judge(std::move(outcome), steady_clock::now());
                                  self->go_on();
                                });
  }

  void stop() {
    if (is_discovering_) {
      leave_discovery([this] { exchange_.cancel(steady_clock::now()); });
    } else if (ticket_ != 0) {
      core_->async.cancel(ticket_);
    }
  }

  void finish(Answer answer, std::exception_ptr failure) {
    stopped_.reset();
    // The callback may drop the client, and this with it.
    const auto self = shared_from_this();
    auto done = std::exchange(done_, nullptr);
    if (done) done(std::move(answer), std::move(failure));
  }

  CorePtr core_;  // Shared by all calls of one client.
  const Call call_;
  const RequestOptions options_;
  Pipeline::Done done_;
  Exchange exchange_;
  AsyncTransport::Ticket ticket_ = 0;  // Of the pending request or timer; 0: none.
  bool is_discovering_ = false;
  std::optional<std::stop_callback<OnStop>> stopped_;
};

class PipelineOverHttp final : public Pipeline {
 public:
  PipelineOverHttp(std::string endpoint, const Credential& credential, ClientOptions options)
      : core_(std::make_shared<Core>(std::move(endpoint), credential, std::move(options))),
        routing_(*this) {}

  ~PipelineOverHttp() override { core_->async.shutdown(core_); }

  Answer send(const Call& call, const RequestOptions& options) override {
    Exchange exchange(core_->surroundings, call, options, steady_clock::now());
    if (options.stop.stop_requested()) exchange.cancel(steady_clock::now());
    for (;;) {
      switch (exchange.step()) {
        case Exchange::Step::Discover:
          discover(exchange, options.stop);
          break;
        case Exchange::Step::Send: {
          const auto now = steady_clock::now();
          exchange.prepare(now);
          if (exchange.step() != Exchange::Step::Send) break;
          core_->discovery->refresh_if_old(now);
          Outcome outcome =
              core_->pool.perform(exchange.outgoing(), exchange.attempt_deadline(), options.stop);
          exchange.judge(std::move(outcome), steady_clock::now());
          break;
        }
        case Exchange::Step::Wait:
          if (pause(exchange.wait(), options.stop)) {
            exchange.waited(steady_clock::now());
          } else {
            exchange.cancel(steady_clock::now());
          }
          break;
        case Exchange::Step::Answered:
          return exchange.take_answer();
        case Exchange::Step::Failed:
          std::rethrow_exception(exchange.take_failure());
      }
    }
  }

  void send_async(Call call, RequestOptions options, Done done) override {
    std::make_shared<AsyncCall>(core_, std::move(call), std::move(options), std::move(done))
        ->begin();
  }

  RoutingMapPtr routing(const std::string& container, const RequestOptions& options) override {
    if (auto known = routing_.peek(container)) return known;
    auto loaded = routing_.get(container, options);
    core_->surroundings.sessions.learn_parents(container, loaded->ranges());
    return loaded;
  }

  void forget_routing(const std::string& container, const RoutingMapPtr& known) override {
    routing_.forget(container, known);
  }

  const std::string& endpoint() const override { return core_->surroundings.account.endpoint(); }
  const ClientOptions& options() const override { return core_->surroundings.options; }

 private:
  void discover(Exchange& exchange, const std::stop_token& stop) {
    const auto waited =
        core_->discovery->wait(exchange.must_rediscover(), exchange.deadline(), stop);
    const auto now = steady_clock::now();
    switch (waited) {
      case Discovery::Waited::Done:
        return exchange.discovered(now);
      case Discovery::Waited::Cancelled:
        return exchange.cancel(now);
      case Discovery::Waited::TooLate:
        return exchange.time_out(now);
    }
  }

  CorePtr core_;  // Shared with calls that are under way.
  RoutingCache routing_;
};

}  // namespace

std::shared_ptr<Pipeline> Pipeline::make(std::string endpoint, const Credential& credential,
                                         ClientOptions options) {
  return std::make_shared<PipelineOverHttp>(std::move(endpoint), credential, std::move(options));
}

}  // namespace orrery::client
