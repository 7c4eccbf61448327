// AsyncTransport: requests without a thread that waits for each: thousands of long polls at once
// cost one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "client/exchange/outcome.h"
#include "client/transport/link.h"

namespace orrery::client {

/// A loop on a thread of its own, which starts with the first post(). All but post() and shutdown()
/// must be called on that thread, that is, by posted work or by callbacks; these must not block.
class AsyncTransport {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Ticket = std::uint64_t;  ///< of a request or a timer; never used again

  /// Requests that wait for news have connections of their own, beyond `connections_max`.
  AsyncTransport(LinkOptions options, std::size_t connections_max);
  /// As shutdown().
  ~AsyncTransport();

  /// Runs `work` on the thread of the loop, soon. False, and it never runs, after shutdown().
  /// Thread-safe.
  bool post(std::function<void()> work);

  /// `request` must stay as it is until `done` is called, which it is once, and never before this
  /// returns.
  using Done = std::function<void(Outcome outcome)>;
  Ticket send(const Outgoing& request, TimePoint deadline, Done done);

  /// Calls `done` at that time; with true when it was cancelled, by shutdown() or cancel().
  using Elapsed = std::function<void(bool cancelled)>;
  Ticket wait_until(TimePoint time, Elapsed done);

  /// Ends a request with NoAnswer::Cancelled, or a wait. Nothing happens if it has ended.
  void cancel(Ticket ticket);

  /// Ends everything as cancel() does, and the thread. May be called by a callback: then the thread
  /// ends after it, and drops `keep` when the last one was told. Thread-safe.
  void shutdown(std::shared_ptr<const void> keep = nullptr);

 private:
  class Loop;
  std::shared_ptr<Loop> loop_;  // Shared with its thread, which may outlive this by one callback.
};

}  // namespace orrery::client
