// The network side of the server: one port that speaks http and https, event loops, and limits.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include "base/error.h"
#include "base/result.h"
#include "http/memory_budget.h"
#include "http/message.h"
#include "http/refusal.h"

namespace orrery::http {

struct Limits {
  std::size_t connections_max = 10'000;
  /// Connections above the limit that hear so at the same time; those beyond are closed unheard.
  std::size_t turning_away_max = 256;
  /// For the bodies of requests and for answers, of all connections together. A connection's
  /// buffers of up to some 32 KiB do not count: their number is bounded by that of connections.
  std::size_t memory_bytes_max = 256 * 1024 * 1024;
  /// A request that does not fit waits for so long, unread, before it is refused.
  std::chrono::milliseconds memory_time_max{500};
  std::size_t head_bytes_max = 128 * 1024;
  std::size_t body_bytes_max = 2 * 1024 * 1024;
  /// From the first byte of a request (or from accept) until it is complete.
  std::chrono::milliseconds request_time_max{30'000};
  /// A kept-alive connection without a request is closed after this.
  std::chrono::milliseconds idle_time_max{300'000};
  /// A client that does not read its response is dropped after this without progress.
  std::chrono::milliseconds send_time_max{60'000};
  /// The same while memory is short.
  std::chrono::milliseconds send_time_max_when_short{2'000};
};

struct ListenerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 8081;  ///< 0: any free one
  unsigned threads = 1;       ///< event loops, one thread each
  Limits limits{};
  std::string tls_certificate_pem{};  ///< chain; empty: plain http only
  std::string tls_key_pem{};
  bool legacy_tls = false;  ///< additionally TLS 1.0 at security level 0
};

/// Plain counters, published by server/metrics.cc.
struct Stats {
  std::atomic<std::uint64_t> connections_accepted{0};
  std::atomic<std::uint64_t> connections_open{0};
  std::atomic<std::uint64_t> connections_refused{0};
  std::atomic<std::uint64_t> requests{0};
  std::atomic<std::uint64_t> requests_timed_out{0};
  std::atomic<std::uint64_t> tls_handshakes_failed{0};
  /// Closed to make room for others: they were idle, and no key had been seen on them.
  std::atomic<std::uint64_t> strangers_closed{0};
  /// Requests and answers that did not fit into the memory budget.
  std::atomic<std::uint64_t> memory_refusals{0};
  /// Clients that did not read their answers while memory was short.
  std::atomic<std::uint64_t> slow_readers_dropped{0};
};

class Listener {
 public:
  /// Answers one request. Called on an event loop; must not block it. The request outlives the
  /// call.
  using Handler = std::function<boost::asio::awaitable<Response>(Request&)>;
  /// Looks at a request whose head is there and whose body is still on its way; an answer refuses
  /// it, and the body is not read. Must not block.
  using AdmissionHandler = std::function<std::optional<Response>(Request&)>;
  /// Makes the response to a request that never became one: too slow, too large, malformed, or one
  /// connection too many. Also called where nobody can hear it, for the trace. Must not block.
  using RefusalHandler = std::function<Response(const Refusal&)>;

  /// Binds and listens, but serves nothing until start(). Unavailable with a message naming address
  /// and port when that fails; BadRequest for a bad certificate or key.
  static Result<std::unique_ptr<Listener>> open(ListenerOptions options, Handler handler,
                                                RefusalHandler refuse, AdmissionHandler admit = {});
  virtual ~Listener() = default;

  virtual std::uint16_t port() const = 0;
  virtual const Stats& stats() const = 0;
  virtual const MemoryBudget& memory() const = 0;
  virtual void start() = 0;
  /// New connections have this certificate, a chain in PEM, from now on. BadRequest for a bad
  /// certificate or key: then nothing changes. Thread-safe.
  virtual Result<> use_certificate(std::string_view certificate_pem, std::string_view key_pem) = 0;
  /// Stops accepting, lets requests that are running finish for at most `grace`, closes idle
  /// connections at once and the rest then, and joins the threads. Safe to call twice.
  virtual void stop(std::chrono::milliseconds grace) = 0;
};

}  // namespace orrery::http
