// LeaseGroup: a synchronous front of GroupOperations.
#include <future>
#include <utility>

#include <boost/asio/co_spawn.hpp>

#include "client/exchange/refusal.h"
#include "orrery/exception.h"
#include "orrery/processor.h"
#include "processor/errors.h"
#include "processor/group/group_operations.h"
#include "processor/hosting/bootstrap.h"
#include "processor/hosting/container_feed_reader.h"
#include "processor/hosting/runtime.h"
#include "processor/leases/blocking_lease_store.h"

namespace orrery::processor {
/// Nothing of it runs between calls, and each call waits for all that it has begun.
class LeaseGroup::Impl {
 public:
  Impl(client::Container monitored, std::shared_ptr<LeaseStore> store, std::string prefix,
       std::string feed_host)
      : reader_(std::move(monitored)),
        store_(async_lease_store(std::move(store))),
        prefix_(std::move(prefix)),
        feed_host_(std::move(feed_host)) {}

  /// Runs `operation` on the group as it is now, and returns its result. Throws CosmosException.
  template <typename T>
  T run(std::function<Async<T>(GroupOperations&)> operation) {
    std::promise<Result<T>> outcome;
    asio::co_spawn(runtime_.executor(), on_group(std::move(operation)),
                   [&outcome](const std::exception_ptr& failure, Result<T> result) {
                     if (failure) {
                       outcome.set_exception(failure);
                     } else {
                       outcome.set_value(std::move(result));
                     }
                   });
    Result<T> result = outcome.get_future().get();
    if (!result) throw_error(result.error());
    if constexpr (!std::is_void_v<T>) return std::move(*result);
  }

 private:
  template <typename T>
  Async<T> on_group(std::function<Async<T>(GroupOperations&)> operation) {
    // Looked for each time: the first host may have come since, and chosen the format.
    ORRERY_CO_TRY(auto group,
                  co_await find_group(*store_, reader_, prefix_, feed_host_, LeaseFormat::Detect));
    GroupOperations operations(*store_, reader_, std::move(group), runtime_);
    co_return co_await operation(operations);
  }

  ContainerFeedReader reader_;
  std::shared_ptr<AsyncLeaseStore> store_;  // Shared with hosts of this process.
  std::string prefix_;
  std::string feed_host_;
  // Draws nothing.
  ThreadRuntime runtime_{0};
};

LeaseGroup::LeaseGroup(client::Container monitored, std::shared_ptr<LeaseStore> leases,
                       std::string lease_prefix, std::string feed_host) {
  if (!leases) {
    throw client::failure_of(client::Failure::Argument, "a group of leases needs a lease store");
  }
  impl_ = std::make_unique<Impl>(std::move(monitored), std::move(leases), std::move(lease_prefix),
                                 std::move(feed_host));
}

LeaseGroup::~LeaseGroup() = default;
LeaseGroup::LeaseGroup(LeaseGroup&&) noexcept = default;
LeaseGroup& LeaseGroup::operator=(LeaseGroup&&) noexcept = default;

std::vector<LeaseGroup::Lease> LeaseGroup::leases() const {
  const auto found = impl_->run<std::vector<processor::Lease>>(
      [](GroupOperations& group) { return group.leases(); });
  std::vector<Lease> shown;
  for (const processor::Lease& lease : found) {
    Lease each;
    each.id = lease.id;
    each.token = lease.token;
    each.owner = lease.owner;
    each.position = lease.position.value_or("");
    each.renewed = lease.timestamp;
    each.epoch = lease.epoch();
    shown.push_back(std::move(each));
  }
  return shown;
}

std::vector<LeaseLag> LeaseGroup::lag() const {
  return impl_->run<std::vector<LeaseLag>>([](GroupOperations& group) { return group.lag(); });
}

void LeaseGroup::pause() {
  impl_->run<void>([](GroupOperations& group) { return group.pause(true); });
}

void LeaseGroup::resume() {
  impl_->run<void>([](GroupOperations& group) { return group.pause(false); });
}

bool LeaseGroup::paused() const {
  return impl_->run<bool>([](GroupOperations& group) { return group.paused(); });
}

void LeaseGroup::reset(const Position& to, const std::string& token) {
  impl_->run<void>([&](GroupOperations& group) { return group.reset(to, token); });
}

std::string LeaseGroup::snapshot() const {
  return impl_->run<std::string>([](GroupOperations& group) { return group.snapshot(); });
}

void LeaseGroup::restore(std::string_view snapshot) {
  impl_->run<void>([&](GroupOperations& group) { return group.restore(std::string(snapshot)); });
}

std::size_t LeaseGroup::release(const std::string& host) {
  return impl_->run<std::size_t>([&](GroupOperations& group) { return group.release(host); });
}

std::vector<LeaseGroup::Finding> LeaseGroup::doctor() const {
  return impl_->run<std::vector<Finding>>([](GroupOperations& group) { return group.doctor(); });
}

}  // namespace orrery::processor
