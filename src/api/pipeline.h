// Pipeline: the path of a request, readable from top to bottom. Authenticate, route, handle,
// answer.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "api/authenticator.h"
#include "api/context.h"
#include "api/services.h"
#include "http/message.h"

namespace orrery::api {

/// Plain counters, published by server/metrics.cc. Indexed by status / 100.
struct PipelineStats {
  std::array<std::atomic<std::uint64_t>, 6> responses{};
  std::atomic<std::uint64_t> throttled{0};
  std::atomic<std::uint64_t> charge_hundredths{0};
};

class Pipeline {
 public:
  Pipeline(Services& services, const Authenticator& authenticator)
      : services_(services), authenticator_(authenticator) {}

  /// Answers a request. Never fails: what goes wrong is an answer too.
  boost::asio::awaitable<http::Response> handle(http::Request& request);

  /// The answer to a request that never became one.
  http::Response refuse(const Error& error);

  const PipelineStats& stats() const { return stats_; }

 private:
  Async<http::Response> respond(Context& context);
  Async<http::Response> respond_own(Context& context);
  void count(const http::Response& response, Charge charge);

  Services& services_;
  const Authenticator& authenticator_;
  PipelineStats stats_;
};

}  // namespace orrery::api
