#include "processor/leases/blocking_lease_store.h"

#include <future>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>

#include "processor/errors.h"

namespace orrery::processor {
namespace {

/// Calls of a user's store at the same time. Leases are written seldom and quickly.
constexpr std::size_t kUserCallsMax = 8;

client::CosmosException refusal(int status, std::string code, const std::string& message) {
  client::CosmosException::Details details;
  details.status = status;
  details.code = std::move(code);
  return client::CosmosException(message, std::move(details));
}

/// The result of `call`, or an Error for an exception: none may leave a thread of the pool.
template <typename Call>
auto call_user(const Call& call) -> Result<std::invoke_result_t<Call>> {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Call>>) {
      call();
      return {};
    } else {
      return call();
    }
  } catch (const client::CosmosException& exception) {
    return error_of(exception);
  } catch (const std::exception& exception) {
    return Error(ErrorCode::Unavailable, fmt::format("the lease store: {}", exception.what()));
  } catch (...) {
    return Error(ErrorCode::Unavailable, "the lease store threw what is no std::exception");
  }
}

}  // namespace

client::CosmosException LeaseStore::not_found(const std::string& id) {
  return refusal(404, "NotFound", fmt::format("there is no document '{}'", id));
}

client::CosmosException LeaseStore::conflict(const std::string& id) {
  return refusal(409, "Conflict", fmt::format("the id '{}' is taken", id));
}

client::CosmosException LeaseStore::precondition_failed(const std::string& id) {
  return refusal(412, "PreconditionFailed", fmt::format("the document '{}' has another etag", id));
}

// ── BlockingLeaseStore ───────────────────────────────────────────────────────────────────────────

BlockingLeaseStore::BlockingLeaseStore(std::unique_ptr<AsyncLeaseStore> store)
    : store_(std::move(store)) {}

BlockingLeaseStore::~BlockingLeaseStore() = default;

template <typename T>
T BlockingLeaseStore::wait_for(Async<T> task) {
  std::call_once(made_, [this] { resumed_on_.emplace(1); });
  std::promise<Result<T>> outcome;
  auto future = outcome.get_future();
  asio::co_spawn(
      *resumed_on_, std::move(task),
      [outcome = std::move(outcome)](const std::exception_ptr& failure, Result<T> result) mutable {
        if (failure) {
          outcome.set_exception(failure);
        } else {
          outcome.set_value(std::move(result));
        }
      });
  Result<T> result = future.get();
  if (!result) throw_error(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

std::vector<StoredDocument> BlockingLeaseStore::list(const std::string& prefix) {
  return wait_for(store_->list(prefix));
}

StoredDocument BlockingLeaseStore::read(const std::string& id) {
  return wait_for(store_->read(id));
}

StoredDocument BlockingLeaseStore::create(const std::string& id, const std::string& text) {
  return wait_for(store_->create(id, text));
}

StoredDocument BlockingLeaseStore::replace(const std::string& id, const std::string& text,
                                           const std::string& etag) {
  return wait_for(store_->replace(id, text, etag));
}

void BlockingLeaseStore::remove(const std::string& id, const std::string& etag) {
  wait_for(store_->remove(id, etag));
}

// ── PooledLeaseStore ─────────────────────────────────────────────────────────────────────────────

PooledLeaseStore::PooledLeaseStore(std::shared_ptr<LeaseStore> store)
    : store_(std::move(store)), pool_(kUserCallsMax) {}

Async<std::vector<StoredDocument>> PooledLeaseStore::list(std::string prefix) {
  co_return co_await run_blocking(
      pool_, [this, prefix] { return call_user([&] { return store_->list(prefix); }); });
}

Async<StoredDocument> PooledLeaseStore::read(std::string id) {
  co_return co_await run_blocking(
      pool_, [this, id] { return call_user([&] { return store_->read(id); }); });
}

Async<StoredDocument> PooledLeaseStore::create(std::string id, std::string text) {
  co_return co_await run_blocking(
      pool_, [this, id, text] { return call_user([&] { return store_->create(id, text); }); });
}

Async<StoredDocument> PooledLeaseStore::replace(std::string id, std::string text,
                                                std::string etag) {
  co_return co_await run_blocking(pool_, [this, id, text, etag] {
    return call_user([&] { return store_->replace(id, text, etag); });
  });
}

Async<> PooledLeaseStore::remove(std::string id, std::string etag) {
  co_return co_await run_blocking(
      pool_, [this, id, etag] { return call_user([&] { store_->remove(id, etag); }); });
}

std::shared_ptr<AsyncLeaseStore> async_lease_store(std::shared_ptr<LeaseStore> store) {
  if (store == nullptr) return nullptr;
  if (auto ours = std::dynamic_pointer_cast<BlockingLeaseStore>(store)) {
    return {ours, &ours->store()};
  }
  return std::make_shared<PooledLeaseStore>(std::move(store));
}

}  // namespace orrery::processor
