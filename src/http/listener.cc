#include "http/listener.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/diagnostics.h"
#include "http/connection.h"
#include "http/event_loop.h"

namespace orrery::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

using Acceptor = asio::basic_socket_acceptor<tcp, asio::io_context::executor_type>;

// When the process is out of file descriptors, accepting again at once would fail again.
constexpr milliseconds kAcceptRetry{50};
// How long stop() waits, beyond its grace, for handlers of connections that it has cut.
constexpr std::chrono::seconds kHandlerEndMax{2};

/// Everything a connection refers to. Behind a pointer because it may have to outlive the listener:
/// see keep_forever.
struct Machine {
  explicit Machine(const Limits& limits) : service(limits) {}

  Service service;
  std::vector<std::unique_ptr<EventLoop>> loops;
};

/// Keeps machines whose handlers did not come back until the process ends: the holder of such a
/// handler may still post to its loop, so the loop must exist.
void keep_forever(std::unique_ptr<Machine> machine) {
  static std::mutex mutex;
  static auto* kept = new std::vector<std::unique_ptr<Machine>>;
  const std::lock_guard lock(mutex);
  kept->push_back(std::move(machine));
}

std::string printable(const std::string& address, std::uint16_t port) {
  const bool v6 = address.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", address, port) : fmt::format("{}:{}", address, port);
}

Error cannot_listen(const ListenerOptions& options, const error_code& error) {
  auto message = fmt::format("cannot listen on {}: {}", printable(options.address, options.port),
                             error.message());
  if (error == asio::error::address_in_use) {
    message += ". Is another server running? Choose another with --listen";
  }
  return Error(ErrorCode::Unavailable, std::move(message));
}

error_code listen(Acceptor& acceptor, const tcp::endpoint& endpoint) {
  error_code error, ignored;
  acceptor.open(endpoint.protocol(), error);
  if (error) return error;
  // A restart must not wait for the connections of the process before it to time out.
  acceptor.set_option(asio::socket_base::reuse_address(true), ignored);
  if (endpoint.protocol() == tcp::v6()) {
    // "::" means every address, also the IPv4 ones; on any other it changes nothing.
    acceptor.set_option(asio::ip::v6_only(!endpoint.address().is_unspecified()), ignored);
  }
  acceptor.bind(endpoint, error);
  if (error) return error;
  acceptor.listen(asio::socket_base::max_listen_connections, error);
  return error;
}

class ListenerImpl final : public Listener {
 public:
  ListenerImpl(const ListenerOptions& options, Handler handler, RefusalHandler refuse,
               AdmissionHandler admit, std::shared_ptr<const TlsContext> tls)
      : machine_(std::make_unique<Machine>(options.limits)) {
    auto& service = machine_->service;
    service.handler = std::move(handler);
    service.refuse = std::move(refuse);
    service.admit = std::move(admit);
    service.set_tls(std::move(tls));
    legacy_tls_ = options.legacy_tls;
    for (unsigned i = 0; i < std::max(1u, options.threads); ++i) {
      machine_->loops.push_back(std::make_unique<EventLoop>(options.limits, service.memory));
    }
  }
  ~ListenerImpl() override {
    stop(milliseconds(0));
    if (abandoned_) keep_forever(std::move(machine_));
  }

  Result<> bind(const ListenerOptions& options);

  std::uint16_t port() const override { return port_; }
  const Stats& stats() const override { return machine_->service.stats; }
  const MemoryBudget& memory() const override { return machine_->service.memory; }
  void start() override;
  Result<> use_certificate(std::string_view certificate_pem, std::string_view key_pem) override {
    ORRERY_TRY(std::shared_ptr<const TlsContext> tls,
               TlsContext::make(certificate_pem, key_pem, legacy_tls_));
    machine_->service.set_tls(std::move(tls));
    return {};
  }
  void stop(milliseconds grace) override;

 private:
  asio::awaitable<void> accept_all(Acceptor& acceptor);
  void admit(Socket socket, EventLoop& loop);
  void make_room(std::size_t open, std::uint64_t newest);
  EventLoop& first_loop() { return *machine_->loops.front(); }
  EventLoop& next_loop();
  bool all_ended_by(EventLoop::Time time);

  std::unique_ptr<Machine> machine_;
  bool legacy_tls_ = false;
  // On the first loop. Several when the address is a name: localhost is 127.0.0.1 and ::1.
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  std::uint16_t port_ = 0;
  std::size_t next_loop_ = 0;
  // Loops that have yet to close idle connections of strangers.
  std::atomic<std::size_t> loops_making_room_{0};
  bool started_ = false;
  std::mutex stop_mutex_;
  bool stopped_ = false;
  bool abandoned_ = false;
};

Result<> ListenerImpl::bind(const ListenerOptions& options) {
  error_code error;
  tcp::resolver resolver(first_loop().context());
  const auto found = resolver.resolve(options.address, std::to_string(options.port),
                                      tcp::resolver::passive, error);
  if (error) return cannot_listen(options, error);
  port_ = options.port;
  for (const auto& entry : found) {
    auto endpoint = entry.endpoint();
    endpoint.port(port_);
    auto acceptor = std::make_unique<Acceptor>(first_loop().context().get_executor());
    if (error = listen(*acceptor, endpoint); error) {
      // A host without IPv6 may still have ::1 in its hosts file.
      if (found.size() > 1 && (error == boost::system::errc::address_family_not_supported ||
                               error == boost::system::errc::address_not_available)) {
        continue;
      }
      return cannot_listen(options, error);
    }
    port_ = acceptor->local_endpoint(error).port();
    acceptors_.push_back(std::move(acceptor));
  }
  if (acceptors_.empty()) return cannot_listen(options, error);
  return {};
}

void ListenerImpl::start() {
  if (std::exchange(started_, true)) return;
  for (const auto& acceptor : acceptors_) {
    asio::co_spawn(first_loop().context(), accept_all(*acceptor), asio::detached);
  }
  for (const auto& loop : machine_->loops) loop->start();
}

EventLoop& ListenerImpl::next_loop() {
  return *machine_->loops[next_loop_++ % machine_->loops.size()];
}

asio::awaitable<void> ListenerImpl::accept_all(Acceptor& acceptor) {
  bool failed = false;
  while (acceptor.is_open()) {
    auto& loop = next_loop();
    auto [error, socket] = co_await acceptor.async_accept(loop.context().get_executor(), kToken);
    if (!error) {
      failed = false;
      admit(std::move(socket), loop);
      continue;
    }
    if (error == asio::error::operation_aborted || !acceptor.is_open()) co_return;
    if (error == asio::error::connection_aborted) continue;
    if (!std::exchange(failed, true)) {
      diagnostics::warning("cannot accept connections for now: {}", error.message());
    }
    asio::steady_timer timer(first_loop().context(), kAcceptRetry);
    co_await timer.async_wait(kToken);
  }
}

void ListenerImpl::admit(Socket socket, EventLoop& loop) {
  auto& service = machine_->service;
  const std::uint64_t order = ++service.stats.connections_accepted;
  auto admission = Connection::Admission::Welcome;
  const std::size_t open = ++service.stats.connections_open;
  const std::size_t open_max = service.limits.connections_max;
  if (open > open_max - open_max / 8) make_room(open, order);
  if (open > open_max) {
    --service.stats.connections_open;
    ++service.stats.connections_refused;
    if (++service.turning_away > service.limits.turning_away_max) {
      --service.turning_away;
      return;
    }
    admission = Connection::Admission::TooMany;
  }
  asio::dispatch(loop.context(),
                 [&service, &loop, socket = std::move(socket), admission, order]() mutable {
                   Connection::open(service, loop, std::move(socket), admission, order);
                 });
}

// Clients with a key must find a place, however many others hold connections and say nothing.
void ListenerImpl::make_room(std::size_t open, std::uint64_t newest) {
  if (loops_making_room_ > 0) return;
  const auto& loops = machine_->loops;
  const std::size_t open_max = machine_->service.limits.connections_max;
  const std::size_t wanted = open - (open_max - open_max / 4);
  const std::size_t share = (wanted + loops.size() - 1) / loops.size();
  loops_making_room_ = loops.size();
  for (const auto& loop : loops) {
    asio::post(loop->context(), [this, &loop = *loop, share, newest] {
      loop.close_strangers(share, newest);
      --loops_making_room_;
    });
  }
}

bool ListenerImpl::all_ended_by(EventLoop::Time time) {
  bool all = true;
  for (const auto& loop : machine_->loops) all = loop->ended_by(time) && all;
  return all;
}

void ListenerImpl::stop(milliseconds grace) {
  const std::lock_guard lock(stop_mutex_);
  if (std::exchange(stopped_, true)) return;
  if (!started_) return;
  const auto grace_end = std::chrono::steady_clock::now() + grace;
  asio::post(first_loop().context(), [this] {
    error_code ignored;
    for (const auto& acceptor : acceptors_) acceptor->close(ignored);
  });
  for (const auto& loop : machine_->loops) {
    asio::post(loop->context(), [&loop = *loop] { loop.begin_stop(); });
  }
  bool ended = all_ended_by(grace_end);
  if (!ended) {
    for (const auto& loop : machine_->loops) {
      asio::post(loop->context(), [&loop = *loop] { loop.cut_connections(); });
    }
    ended = all_ended_by(std::max(grace_end, std::chrono::steady_clock::now()) + kHandlerEndMax);
  }
  if (!ended) {
    for (const auto& loop : machine_->loops) loop->abandon();
  }
  for (const auto& loop : machine_->loops) loop->join();
  acceptors_.clear();
  if (!ended) {
    diagnostics::warning(
        "stopped while requests were still being handled; their clients hear nothing");
    abandoned_ = true;
  }
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::open(ListenerOptions options, Handler handler,
                                                 RefusalHandler refuse, AdmissionHandler admit) {
  std::shared_ptr<const TlsContext> tls;
  if (!options.tls_certificate_pem.empty()) {
    ORRERY_TRY(tls, TlsContext::make(options.tls_certificate_pem, options.tls_key_pem,
                                     options.legacy_tls));
  }
  auto listener = std::make_unique<ListenerImpl>(options, std::move(handler), std::move(refuse),
                                                 std::move(admit), std::move(tls));
  ORRERY_TRY(listener->bind(options));
  return Result<std::unique_ptr<Listener>>(std::move(listener));
}

}  // namespace orrery::http
