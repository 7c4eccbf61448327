// Between LeaseStore, which blocks and throws, and AsyncLeaseStore, which is what hosts use.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/thread_pool.hpp>

#include "orrery/lease_store.h"
#include "processor/leases/lease_store.h"

namespace orrery::processor {

/// One of our stores, as users see it. Thread-safe.
class BlockingLeaseStore final : public LeaseStore {
 public:
  explicit BlockingLeaseStore(std::unique_ptr<AsyncLeaseStore> store);
  ~BlockingLeaseStore() override;

  AsyncLeaseStore& store() { return *store_; }

  std::vector<StoredDocument> list(const std::string& prefix) override;
  StoredDocument read(const std::string& id) override;
  StoredDocument create(const std::string& id, const std::string& text) override;
  StoredDocument replace(const std::string& id, const std::string& text,
                         const std::string& etag) override;
  void remove(const std::string& id, const std::string& etag) override;

 private:
  template <typename T>
  T wait_for(Async<T> task);

  // Where calls are resumed that wait; made by the first of them, since hosts make none. The store
  // goes before it: its threads post to it.
  std::once_flag made_;
  std::optional<asio::thread_pool> resumed_on_;
  std::unique_ptr<AsyncLeaseStore> store_;
};

/// A user's store, for hosts. Thread-safe, as the store is. Errors that are none of a
/// CosmosException are Unavailable.
class PooledLeaseStore final : public AsyncLeaseStore {
 public:
  explicit PooledLeaseStore(std::shared_ptr<LeaseStore> store);

  Async<std::vector<StoredDocument>> list(std::string prefix) override;
  Async<StoredDocument> read(std::string id) override;
  Async<StoredDocument> create(std::string id, std::string text) override;
  Async<StoredDocument> replace(std::string id, std::string text, std::string etag) override;
  Async<> remove(std::string id, std::string etag) override;

 private:
  std::shared_ptr<LeaseStore> store_;  // Shared with the user.
  asio::thread_pool pool_;             // Last: its threads use what is above.
};

/// The store as hosts use it: one of ours directly, another through a pool. Null stays null.
std::shared_ptr<AsyncLeaseStore> async_lease_store(std::shared_ptr<LeaseStore> store);

}  // namespace orrery::processor
