// ChangeFeedProcessorHost: a Controller with threads of its own, for callers that block.
#include <future>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>

#include "client/exchange/refusal.h"
#include "client/handles/container_access.h"
#include "client/log.h"
#include "orrery/exception.h"
#include "orrery/processor.h"
#include "processor/errors.h"
#include "processor/hosting/container_feed_reader.h"
#include "processor/hosting/controller.h"
#include "processor/hosting/dead_letters.h"
#include "processor/hosting/observer_calls.h"
#include "processor/hosting/options.h"
#include "processor/hosting/runtime.h"
#include "processor/leases/blocking_lease_store.h"

namespace orrery::processor {

namespace {

class HandlerObserver final : public ChangeFeedObserver {
 public:
  explicit HandlerObserver(Handler handler) : handler_(std::move(handler)) {}
  Outcome process(ObserverContext& context, const Documents& changes) override {
    return handler_(context, changes);
  }

 private:
  Handler handler_;
};

/// A host without a log of its own speaks to its client's.
ChangeFeedHostOptions with_log(ChangeFeedHostOptions options, const client::Container& monitored) {
  if (!options.log) options.log = client::ContainerAccess::pipeline(monitored).options().log;
  return options;
}

/// Nothing here outlives the controller, except for observers that do not return.
asio::awaitable<Result<>> start_controller(Controller& controller) {
  co_return co_await controller.start();
}
asio::awaitable<bool> stop_controller(Controller& controller) {
  co_return co_await controller.stop();
}

}  // namespace

class ChangeFeedProcessorHost::Impl {
 public:
  Impl(std::string host_name, client::Container monitored, std::shared_ptr<LeaseStore> leases,
       MonitoredFeedOptions feed_options, ChangeFeedHostOptions options)
      : name_(std::move(host_name)),
        options_(with_log(std::move(options), monitored)),
        reader_(std::make_shared<ContainerFeedReader>(std::move(monitored),
                                                      options_.query_partitions_max_batch_size)),
        store_(async_lease_store(std::move(leases))),
        feed_options_(std::move(feed_options)) {
    if (store_ == nullptr)
      throw client::failure_of(client::Failure::Argument, "a host needs a lease store");
    for (const std::string& warning : check_options(name_, feed_options_, options_)) {
      client::say(options_.log, client::LogLevel::Warning,
                  fmt::format("processor {}: {}", name_, warning));
    }
  }
  ~Impl() { stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void set_executor(Executor executor) { executor_ = std::move(executor); }
  void set_health_monitor(HealthMonitor monitor) { monitor_ = std::move(monitor); }

  void start(ObserverFactory factory) {
    if (!factory) throw client::failure_of(client::Failure::Argument, "there is no observer");
    if (running_)
      throw client::failure_of(client::Failure::Argument, "observers are registered already");
    auto running = std::make_unique<Running>(*this, std::move(factory));
    std::promise<Result<>> begun;
    asio::co_spawn(running->runtime.executor(), start_controller(running->controller),
                   [&begun](const std::exception_ptr& failure, const Result<>& result) {
                     failure ? begun.set_exception(failure) : begun.set_value(result);
                   });
    if (const auto result = begun.get_future().get(); !result) throw_error(result.error());
    running_ = std::move(running);
  }

  void stop() {
    if (!running_) return;
    auto running = std::move(running_);
    std::promise<bool> ended;
    asio::co_spawn(running->runtime.executor(), stop_controller(running->controller),
                   [&ended](const std::exception_ptr& failure, bool all_returned) {
                     failure ? ended.set_exception(failure) : ended.set_value(all_returned);
                   });
    const bool all_returned = ended.get_future().get();
    // An observer that has not returned still has its batch, its context and the way back to its
    // supervisor: they stay, and so does what they stand on.
    if (!all_returned) (void)running.release();
  }

  HostStats stats() const { return stats_->read(); }

 private:
  /// From registration to the end.
  struct Running {
    Running(Impl& host, ObserverFactory factory)
        : reader(host.reader_),
          store(host.store_),
          stats(host.stats_),
          runtime(std::random_device()()),
          controller(Controller::Setup{
              runtime, *store, *reader,
              host.executor_ ? host.executor_
                             : [this](std::function<void()> work) { threads.run(std::move(work)); },
              host.name_, host.feed_options_, host.options_, std::move(factory), host.monitor_,
              *stats, dead_letter_keeper(host.options_)}) {}

    std::shared_ptr<FeedReader> reader;  // These three are shared with the host.
    std::shared_ptr<AsyncLeaseStore> store;
    std::shared_ptr<StatsBoard> stats;
    ThreadRuntime runtime;
    ObserverThreads threads;
    Controller controller;
  };

  std::string name_;
  ChangeFeedHostOptions options_;
  std::shared_ptr<FeedReader> reader_;
  std::shared_ptr<AsyncLeaseStore> store_;  // Shared with its maker, and other hosts.
  MonitoredFeedOptions feed_options_;
  Executor executor_;
  HealthMonitor monitor_;
  std::shared_ptr<StatsBoard> stats_ = std::make_shared<StatsBoard>();
  std::unique_ptr<Running> running_;
};

ChangeFeedProcessorHost::ChangeFeedProcessorHost(std::string host_name, client::Container monitored,
                                                 client::Container leases,
                                                 MonitoredFeedOptions feed_options,
                                                 ChangeFeedHostOptions host_options)
    : ChangeFeedProcessorHost(std::move(host_name), std::move(monitored),
                              container_lease_store(std::move(leases)), std::move(feed_options),
                              std::move(host_options)) {}

ChangeFeedProcessorHost::ChangeFeedProcessorHost(std::string host_name, client::Container monitored,
                                                 std::shared_ptr<LeaseStore> leases,
                                                 MonitoredFeedOptions feed_options,
                                                 ChangeFeedHostOptions host_options)
    : impl_(std::make_unique<Impl>(std::move(host_name), std::move(monitored), std::move(leases),
                                   std::move(feed_options), std::move(host_options))) {}

ChangeFeedProcessorHost::~ChangeFeedProcessorHost() = default;
ChangeFeedProcessorHost::ChangeFeedProcessorHost(ChangeFeedProcessorHost&&) noexcept = default;
ChangeFeedProcessorHost& ChangeFeedProcessorHost::operator=(ChangeFeedProcessorHost&&) noexcept =
    default;

void ChangeFeedProcessorHost::set_executor(Executor executor) {
  impl_->set_executor(std::move(executor));
}

void ChangeFeedProcessorHost::set_health_monitor(HealthMonitor monitor) {
  impl_->set_health_monitor(std::move(monitor));
}

void ChangeFeedProcessorHost::start(ObserverFactory factory) { impl_->start(std::move(factory)); }

void ChangeFeedProcessorHost::start(Handler handler) {
  if (!handler) throw client::failure_of(client::Failure::Argument, "there is no handler");
  impl_->start([handler = std::move(handler)]() -> std::unique_ptr<ChangeFeedObserver> {
    return std::make_unique<HandlerObserver>(handler);
  });
}

void ChangeFeedProcessorHost::stop() { impl_->stop(); }

HostStats ChangeFeedProcessorHost::stats() const { return impl_->stats(); }

}  // namespace orrery::processor
