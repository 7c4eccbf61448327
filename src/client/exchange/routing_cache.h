// RoutingCache: the ranges of containers, fetched in a single flight for all callers.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "client/exchange/pipeline.h"
#include "client/exchange/routing.h"

namespace orrery::client {

/// Thread-safe.
class RoutingCache {
 public:
  /// A list of ranges that is not whole is asked for again so often.
  static constexpr int kAttemptsMax = 5;

  /// Sends over `pipeline`, which must outlive it.
  explicit RoutingCache(Pipeline& pipeline) : pipeline_(pipeline) {}

  /// From memory, or fetched by the first caller, for all that wait. Throws CosmosException.
  RoutingMapPtr get(const std::string& container, const RequestOptions& options);
  /// The next get() fetches, unless somebody has already fetched something newer than `known`.
  void forget(const std::string& container, const RoutingMapPtr& known);
  /// Only from memory; null when there is nothing.
  RoutingMapPtr peek(const std::string& container) const;

 private:
  struct Entry {
    RoutingMapPtr current;
    RoutingMapPtr former;  // The forgotten map: only newer ranges are fetched.
    bool loading = false;
  };

  RoutingMapPtr load(const std::string& container, const RoutingMapPtr& former,
                     const RequestOptions& options);

  Pipeline& pipeline_;
  mutable std::mutex mutex_;
  std::condition_variable_any loaded_;
  std::map<std::string, Entry> entries_;
};

}  // namespace orrery::client
