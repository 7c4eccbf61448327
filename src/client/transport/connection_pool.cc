#include "client/transport/connection_pool.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace orrery::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Bodies up to this size are sent together with their head.
constexpr std::size_t kJoinedBytesMax = 32 << 10;

Outcome too_late(const Endpoint& endpoint, bool sent) {
  return Outcome::failed(NoAnswer::TimedOut, fmt::format("no answer from {} in time", endpoint.url),
                         sent);
}

Outcome broken(const Endpoint& endpoint, std::string_view why) {
  return Outcome::failed(NoAnswer::Broken, fmt::format("no answer from {}: {}", endpoint.url, why),
                         true);
}

}  // namespace

struct ConnectionPool::Connection {
  Connection(EndpointPtr endpoint, const LinkOptions& options)
      : link(std::move(endpoint), options) {}

  Link link;
  ResponseParser parser;
  std::optional<Wake> wake;  // Made when a call first can be cancelled.
  bool is_open = false;
  bool is_cancellable = false;  // The call that is under way.

  enum class Waited { Ready, Cancelled, TooLate };
  Waited wait(short events, steady_clock::time_point deadline) {
    std::array<pollfd, 2> sockets{
        {{.fd = link.descriptor(), .events = events, .revents = 0},
         {.fd = is_cancellable ? wake->descriptor() : -1, .events = POLLIN, .revents = 0}}};
    for (;;) {
      const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
      if (left <= milliseconds(0)) return Waited::TooLate;
      const int timeout = static_cast<int>(std::min(left, milliseconds(3'600'000)).count());
      const int count = ::poll(sockets.data(), is_cancellable ? 2 : 1, timeout);
      if (count <= 0) continue;  // Interrupted, or the time is over.
      if (is_cancellable && sockets[1].revents != 0) return Waited::Cancelled;
      return Waited::Ready;
    }
  }

  /// Sends all of `bytes`. `closed` is set when the server no longer listens, which may be because
  /// it has answered already. An outcome that has no answer if it is not to go on.
  Outcome send_all(std::string_view bytes, steady_clock::time_point deadline, bool& sent,
                   bool& closed) {
    while (!bytes.empty() && !closed) {
      const auto progress = link.send(bytes);
      sent |= progress.count > 0;
      bytes.remove_prefix(progress.count);
      closed = progress.closed;
      if (closed || bytes.empty() || progress.count > 0) continue;
      const Waited waited = wait(POLLOUT, deadline);
      if (waited == Waited::Cancelled) return Outcome::cancelled(sent);
      if (waited == Waited::TooLate) return too_late(*link.endpoint(), sent);
    }
    return {};
  }

  Outcome talk(const Outgoing& request, steady_clock::time_point deadline) {
    bool sent = false;
    bool closed = false;
    Outcome outcome;
    if (request.body.size() <= kJoinedBytesMax && !request.body.empty()) {
      std::string joined;
      joined.reserve(request.head.size() + request.body.size());
      joined.append(request.head).append(request.body);
      outcome = send_all(joined, deadline, sent, closed);
    } else {
      outcome = send_all(request.head, deadline, sent, closed);
      if (outcome.no_answer == NoAnswer::None) {
        outcome = send_all(request.body, deadline, sent, closed);
      }
    }
    if (outcome.no_answer != NoAnswer::None) return outcome;
    if (!sent) {
      outcome = broken(*link.endpoint(), "the connection was closed");
      outcome.sent = false;
      outcome.broke_idle = link.used;
      return outcome;
    }
    return receive(request, deadline);
  }

  Outcome receive(const Outgoing& request, steady_clock::time_point deadline) {
    parser.reset(request.head_only);
    while (!parser.complete()) {
      const auto progress = link.receive(parser.room());
      Result<> taken;
      if (progress.count > 0) {
        taken = parser.received(progress.count);
      } else if (progress.closed) {
        taken = parser.closed();
      } else {
        const Waited waited = wait(POLLIN, deadline);
        if (waited == Waited::Cancelled) return Outcome::cancelled(true);
        if (waited == Waited::TooLate) return too_late(*link.endpoint(), true);
      }
      if (!taken) {
        Outcome outcome = broken(*link.endpoint(), taken.error().message());
        outcome.broke_idle = link.used && !parser.begun();
        return outcome;
      }
    }
    Outcome outcome;
    outcome.reply = parser.take();
    link.used = true;
    return outcome;
  }
};

ConnectionPool::ConnectionPool(LinkOptions options, std::size_t connections_max)
    : options_(std::move(options)), connections_max_(std::max<std::size_t>(connections_max, 1)) {
  // Initialised first, so destroyed last: a client may be one of the program's globals.
  init_libcurl();
}

ConnectionPool::~ConnectionPool() = default;

ConnectionPool::Stats ConnectionPool::stats() const {
  const std::lock_guard lock(mutex_);
  return {.opened = opened_, .idle = idle_.size(), .busy = busy_};
}

ConnectionPool::ConnectionPtr ConnectionPool::take(const EndpointPtr& endpoint,
                                                   steady_clock::time_point deadline,
                                                   const std::stop_token& stop, Outcome& outcome) {
  std::unique_lock lock(mutex_);
  if (busy_ >= connections_max_) {
    ++waiting_;
    const bool free =
        freed_.wait_until(lock, stop, deadline, [this] { return busy_ < connections_max_; });
    --waiting_;
    if (!free) {
      outcome =
          stop.stop_requested()
              ? Outcome::cancelled(false)
              : Outcome::failed(NoAnswer::TimedOut,
                                fmt::format("no connection became free in time; {} are in use",
                                            connections_max_),
                                false);
      return nullptr;
    }
  }
  ++busy_;
  const auto same = [&](const ConnectionPtr& each) {
    return each->link.endpoint() == endpoint || each->link.endpoint()->url == endpoint->url;
  };
  if (const auto found = std::find_if(idle_.rbegin(), idle_.rend(), same); found != idle_.rend()) {
    ConnectionPtr connection = std::move(*found);
    idle_.erase(std::next(found).base());
    return connection;
  }
  ConnectionPtr oldest;
  if (busy_ + idle_.size() > connections_max_) {
    oldest = std::move(idle_.front());
    idle_.erase(idle_.begin());
  }
  ++opened_;
  lock.unlock();  // Closing and making take their time.
  oldest.reset();
  return std::make_unique<Connection>(endpoint, options_);
}

void ConnectionPool::give_back(ConnectionPtr connection) {
  bool is_awaited = false;
  {
    const std::lock_guard lock(mutex_);
    --busy_;
    idle_.push_back(std::move(connection));
    is_awaited = waiting_ > 0;
  }
  if (is_awaited) freed_.notify_one();
}

void ConnectionPool::drop(ConnectionPtr connection) {
  connection.reset();
  bool is_awaited = false;
  {
    const std::lock_guard lock(mutex_);
    --busy_;
    is_awaited = waiting_ > 0;
  }
  if (is_awaited) freed_.notify_one();
}

Outcome ConnectionPool::perform(const Outgoing& request, steady_clock::time_point deadline,
                                const std::stop_token& stop) {
  for (;;) {
    Outcome outcome;
    ConnectionPtr connection = take(request.endpoint, deadline, stop, outcome);
    if (!connection) return outcome;
    const bool is_old = connection->is_open;
    if (is_old && !connection->link.is_quiet()) {
      drop(std::move(connection));
      continue;
    }
    outcome = open_and_talk(*connection, request, deadline, stop);
    if (outcome.no_answer == NoAnswer::None && connection->parser.keep_alive()) {
      give_back(std::move(connection));
      return outcome;
    }
    drop(std::move(connection));
    // The server closed it in the moment after it was looked at. Nothing of the request got out.
    if (is_old && outcome.no_answer == NoAnswer::Broken && !outcome.sent) continue;
    return outcome;
  }
}

Outcome ConnectionPool::open_and_talk(Connection& connection, const Outgoing& request,
                                      steady_clock::time_point deadline,
                                      const std::stop_token& stop) {
  connection.is_cancellable = stop.stop_possible();
  if (connection.is_cancellable) {
    if (!connection.wake) connection.wake.emplace();
    connection.wake->silence();
  }
  const auto ring = [&connection] { connection.wake->ring(); };
  std::optional<std::stop_callback<decltype(ring)>> callback;
  if (connection.is_cancellable) callback.emplace(stop, ring);
  if (!connection.is_open) {
    Outcome opened =
        connection.link.open(deadline, connection.is_cancellable ? &*connection.wake : nullptr);
    if (opened.no_answer != NoAnswer::None) return opened;
    connection.is_open = true;
  }
  return connection.talk(request, deadline);
}

}  // namespace orrery::client
