// Pipeline: the path of a request, readable from top to bottom. Authenticate, route, handle,
// answer.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "api/authenticator.h"
#include "api/context.h"
#include "api/refusal_log.h"
#include "api/services.h"
#include "http/message.h"
#include "http/refusal.h"

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
      : services_(services), authenticator_(authenticator), refusals_(services.clock) {}

  /// Answers a request. Never fails: what goes wrong is an answer too.
  boost::asio::awaitable<http::Response> handle(http::Request& request);

  /// Looks at a request whose body is still on its way, and refuses those without a valid key, and
  /// own routes, which take none: nobody makes the server hold megabytes without one.
  std::optional<http::Response> admit(http::Request& request);

  /// The answer to a request that never became one.
  http::Response refuse(const http::Refusal& refusal);

  const PipelineStats& stats() const { return stats_; }

 private:
  Result<> check_host(const http::Request& request) const;
  bool is_open_to_all(const http::Request& request, const Result<ResourcePath>& path) const;
  Result<> check_key(http::Request& request, const Result<ResourcePath>& path);
  Async<http::Response> respond(Context& context);
  Async<http::Response> respond_own(Context& context);
  http::Response refusal_of(Context& context, const Error& error);
  void count(const http::Response& response, Charge charge);

  Services& services_;
  const Authenticator& authenticator_;
  PipelineStats stats_;
  RefusalLog refusals_;
};

}  // namespace orrery::api
