// A lease store in a container, shared with hosts of other processes and libraries.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/thread_pool.hpp>

#include "orrery/container.h"
#include "processor/leases/lease_store.h"

namespace orrery::processor {

/// The container exists already. Keyed by /id, by /partitionKey, or not at all (old containers);
/// others are refused with BadRequest. Thread-safe.
class ContainerLeaseStore final : public AsyncLeaseStore {
 public:
  explicit ContainerLeaseStore(client::Container container);

  Async<std::vector<StoredDocument>> list(std::string prefix) override;
  Async<StoredDocument> read(std::string id) override;
  Async<StoredDocument> create(std::string id, std::string text) override;
  Async<StoredDocument> replace(std::string id, std::string text, std::string etag) override;
  Async<> remove(std::string id, std::string etag) override;

 private:
  enum class KeyedBy { Id, PartitionKey, Nothing };

  // These block, and throw CosmosException where they do not return an Error.
  Result<KeyedBy> keyed_by();
  Result<std::vector<StoredDocument>> list_now(const std::string& prefix);
  Result<StoredDocument> read_now(const std::string& id);
  Result<StoredDocument> create_now(const std::string& id, const std::string& text);
  Result<StoredDocument> replace_now(const std::string& id, const std::string& text,
                                     const std::string& etag);
  Result<> remove_now(const std::string& id, const std::string& etag);

  std::vector<StoredDocument> query(const std::string& prefix);
  std::vector<StoredDocument> read_feed(const std::string& prefix);
  Result<client::PartitionKey> key_of(const std::string& id, const std::string& etag);
  Result<std::string> with_key(const std::string& id, const std::string& text);
  void remember(const std::string& id, const std::string& etag, const std::string& key);

  client::Container container_;
  std::mutex mutex_;  // Guards what follows, up to the pool.
  std::optional<KeyedBy> keyed_by_;
  bool can_query_ = true;
  /// Where the key is /partitionKey: the key of each document that was seen. Others may have drawn
  /// it at random, and there may be several documents of one id.
  struct Keys {
    std::string current;                         // Of the one that was read or written last.
    std::map<std::string, std::string> by_etag;  // Only while there are several.
  };
  std::map<std::string, Keys> keys_;
  asio::thread_pool pool_;  // Last: its threads use what is above.
};

}  // namespace orrery::processor
