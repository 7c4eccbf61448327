// Discovery: asks the account which regions it has, in a single flight for all callers.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "client/exchange/exchange.h"
#include "client/transport/async_transport.h"

namespace orrery::client {

class Discovery : public std::enable_shared_from_this<Discovery> {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  static constexpr std::chrono::minutes kInterval{5};
  /// An account that did not answer is not asked by every call anew.
  static constexpr std::chrono::seconds kPause{1};

  /// Both must outlive it, and all that it was asked.
  Discovery(Surroundings& surroundings, AsyncTransport& transport)
      : surroundings_(surroundings), transport_(transport) {}

  /// Calls `then` as soon as the regions are known, or it has turned out that they can't be; with
  /// `again`, as they are now. On the thread of the transport.
  void ensure(bool again, std::function<void()> then);

  enum class Waited { Done, Cancelled, TooLate };
  /// The same for a thread that waits.
  Waited wait(bool again, TimePoint deadline, const std::stop_token& stop);

  /// Asks in the background when the last answer is old. Thread-safe, and cheap when it is not.
  void refresh_if_old(TimePoint now);

 private:
  void begin();
  void ask_next();
  void finish(bool succeeded);

  Surroundings& surroundings_;
  AsyncTransport& transport_;
  std::atomic<TimePoint::rep> old_at_{TimePoint::max().time_since_epoch().count()};

  // Of the transport's thread only.
  bool running_ = false;
  TimePoint paused_until_;
  std::vector<std::function<void()>> waiting_;
  std::vector<EndpointPtr> candidates_;  // Still to be asked, the next one at the back.
  Outgoing request_;
};

}  // namespace orrery::client
