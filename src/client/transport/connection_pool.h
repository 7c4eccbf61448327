// ConnectionPool: requests of threads that wait for the answer, over connections that are used
// again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

#include "client/exchange/outcome.h"
#include "client/transport/link.h"
#include "client/transport/response_parser.h"

namespace orrery::client {

/// Thread-safe. Opens nothing before it is asked to.
class ConnectionPool {
 public:
  ConnectionPool(LinkOptions options, std::size_t connections_max);
  ~ConnectionPool();

  /// Sends and waits. A connection that the server closed while it was idle is replaced without
  /// notice. Never throws because of the network.
  Outcome perform(const Outgoing& request, std::chrono::steady_clock::time_point deadline,
                  const std::stop_token& stop);

  struct Stats {
    std::size_t opened = 0;  ///< connections ever made
    std::size_t idle = 0;
    std::size_t busy = 0;
  };
  Stats stats() const;

 private:
  struct Connection;
  using ConnectionPtr = std::unique_ptr<Connection>;

  /// An idle one to `endpoint`, or one that is still to be opened; null with the reason in
  /// `outcome`.
  ConnectionPtr take(const EndpointPtr& endpoint, std::chrono::steady_clock::time_point deadline,
                     const std::stop_token& stop, Outcome& outcome);
  void give_back(ConnectionPtr connection);
  void drop(ConnectionPtr connection);
  Outcome open_and_talk(Connection& connection, const Outgoing& request,
                        std::chrono::steady_clock::time_point deadline,
                        const std::stop_token& stop);

  const LinkOptions options_;
  const std::size_t connections_max_;
  mutable std::mutex mutex_;
  std::condition_variable_any freed_;
  std::vector<ConnectionPtr> idle_;  // The last one used at the back: it is the warmest.
  std::size_t busy_ = 0;
  std::size_t waiting_ = 0;  // Threads, for one of those to end.
  std::size_t opened_ = 0;
};

}  // namespace orrery::client
