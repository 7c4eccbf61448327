#include "http/connection.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/diagnostics.h"

namespace orrery::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::milliseconds;

// Errors come back as values.

constexpr unsigned char kTlsHandshake = 0x16;

// A client that is refused may still be sending. Closing at once would make its kernel throw away
// our answer, so we listen to the rest for a while; many clients send all before they read.
constexpr std::size_t kLingerBytesMax = 8 * 1024 * 1024;
constexpr milliseconds kLingerTimeMax{2'000};
// How long a connection too many may take to show whether it speaks http or https.
constexpr milliseconds kTurnAwayTimeMax{1'000};

// Up to this the memory of a request does not count: it is what an idle connection may keep.
constexpr std::size_t kRequestBytesFree = 32 * 1024;
// An answer of this size is counted before it is sent, so that it can still be refused. A smaller
// one is counted only when it does not leave at once, which costs most requests nothing.
constexpr std::size_t kLargeAnswerBytes = 64 * 1024;
// How often a request that waits for memory looks whether there is some.
constexpr milliseconds kMemoryPoll{10};

Error out_of_memory(const MemoryBudget& memory) {
  return Error(ErrorCode::TooManyRequests,
               fmt::format("The server has its limit of {} MiB of requests and answers under way. "
                           "Try again, send or ask for less at a time, or raise "
                           "--request-memory-mb.",
                           memory.bytes_max() >> 20));
}

bool is_loopback(const asio::ip::address& address) {
  if (address.is_v4()) return address.to_v4().is_loopback();
  const auto v6 = address.to_v6();
  if (v6.is_v4_mapped()) return asio::ip::make_address_v4(asio::ip::v4_mapped, v6).is_loopback();
  return v6.is_loopback();
}

/// See Request::peer.
std::uint64_t number_of(const asio::ip::address& address) {
  constexpr std::uint64_t kV4 = std::uint64_t{1} << 32;
  if (address.is_v4()) return kV4 | address.to_v4().to_uint();
  const auto v6 = address.to_v6();
  if (v6.is_v4_mapped()) {
    return kV4 | asio::ip::make_address_v4(asio::ip::v4_mapped, v6).to_uint();
  }
  const auto bytes = v6.to_bytes();
  std::uint64_t network = 0;
  for (std::size_t i = 0; i < sizeof network; ++i) network = network << 8 | bytes[i];
  return network;
}

// Best effort: a connection works without any of them.
void set_options(Socket& socket) {
  error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  // A peer that vanished is noticed after two minutes, not after the system's two hours.
  const int idle_seconds = 60, probe_seconds = 15, probe_count = 4;
  const int fd = socket.native_handle();
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof idle_seconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &probe_seconds, sizeof probe_seconds);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probe_count, sizeof probe_count);
}

}  // namespace

// ── Life ──

void Connection::open(Service& service, EventLoop& loop, Socket socket, Admission admission,
                      std::uint64_t order) {
  std::unique_ptr<Connection> connection(
      new Connection(service, loop, std::move(socket), admission, order));
  if (loop.stopping()) return;
  const auto executor = loop.context().get_executor();
  // Detached, but not forgotten: the loop knows all its connections and ends them before itself.
  asio::co_spawn(executor, run(std::move(connection)), asio::detached);
}

Connection::Connection(Service& service, EventLoop& loop, Socket socket, Admission admission,
                       std::uint64_t order)
    : service_(service),
      loop_(loop),
      socket_(std::move(socket)),
      admission_(admission),
      order_(order),
      impatience_(std::max(milliseconds(0),
                           service.limits.send_time_max - service.limits.send_time_max_when_short)),
      parser_(service.limits.head_bytes_max, service.limits.body_bytes_max),
      request_memory_(service.memory),
      answer_memory_(service.memory),
      refusal_(ErrorCode::Internal, {}) {
  error_code error;
  socket_.non_blocking(true, error);
  set_options(socket_);
  peer_ = socket_.remote_endpoint(error);
  from_loopback_ = !error && is_loopback(peer_.address());
  peer_number_ = error ? 0 : number_of(peer_.address());
  loop_.add(*this);
}

Connection::~Connection() {
  if (watch_) watch_->detach();
  error_code ignored;
  socket_.close(ignored);
  loop_.remove(*this);
  if (admission_ == Admission::Welcome) {
    --service_.stats.connections_open;
  } else {
    --service_.turning_away;
  }
}

void Connection::expire() {
  expired_ = true;
  error_code ignored;
  socket_.cancel(ignored);
}

bool Connection::is_idle_stranger() const {
  return !known_ && !leaving_ && admission_ == Admission::Welcome &&
         (phase_ == Phase::Fresh || phase_ == Phase::Idle || phase_ == Phase::Receiving);
}

void Connection::close_idle() {
  leaving_ = true;
  ++service_.stats.strangers_closed;
  error_code ignored;
  socket_.cancel(ignored);
}

void Connection::begin_stop() {
  if (phase_ == Phase::Handling && watch_) watch_->tell_gone();
  if (phase_ != Phase::Fresh && phase_ != Phase::Idle) return;
  error_code ignored;
  socket_.cancel(ignored);
}

void Connection::cut() {
  error_code ignored;
  socket_.close(ignored);
}

asio::awaitable<void> Connection::run(std::unique_ptr<Connection> self) {
  try {
    if (self->admission_ == Admission::Welcome) {
      co_await self->serve();
    } else {
      co_await self->reject_over_limit();
    }
  } catch (const std::exception& exception) {
    // Only memory can be short here: I/O reports its errors as values.
    diagnostics::error("a connection is closed: {}", exception.what());
  }
}

asio::awaitable<void> Connection::serve() {
  set_deadline(loop_.deadline(service_.limits.request_time_max));
  while (true) {
    switch (advance()) {
      case Step::NeedInput: {
        if (tls_ && !tls_->output().empty() && !co_await send_handshake()) co_return;
        if (!prepare_to_wait()) co_return;
        const auto space = tls_ ? tls_->input_space() : parser_.space();
        const auto [error, size] =
            co_await socket_.async_read_some(asio::buffer(space.data(), space.size()), kToken);
        // An idle connection may expire in the moment in which a request arrives: that counts.
        if (error || leaving_ || (expired_ && phase_ == Phase::Receiving)) {
          if (expired_) co_await time_out();
          co_return;
        }
        arrived(size);
        break;
      }
      case Step::Admit:
        if (!co_await admit()) co_return;
        break;
      case Step::AwaitMemory:
        if (!co_await await_memory()) co_return;
        break;
      case Step::Handle: {
        phase_ = Phase::Handling;
        set_deadline(EventLoop::Time::max());
        bool close = false;
        std::unique_ptr<BodyStream> stream;
        {
          auto response = co_await handle();
          settle_answer(response);
          close = start_response(response);
          stream = std::move(response.stream);
        }
        if (!start_sending()) co_return;
        // Not send(): a response that fits needs no coroutine of its own.
        if (const auto sent = send_now();
            sent == Sent::Failed || (sent == Sent::Part && !co_await send_rest())) {
          co_return;
        }
        payload_ = {};
        free_memory(body_);
        shared_ = nullptr;
        if (stream) {
          if (!co_await send_stream(std::move(stream))) co_return;
          close = close || loop_.stopping();
        }
        answer_memory_.hold(0);
        if (watch_) watch_->forget();
        if (close) {
          co_await say_goodbye();
          co_return;
        }
        parser_.next();
        request_memory_.hold(0);
        phase_ = Phase::Idle;
        set_deadline(loop_.deadline(service_.limits.idle_time_max));
        break;
      }
      case Step::Refuse:
        co_await refuse(make_refusal(std::move(refusal_)));
        co_return;
      case Step::Close:
        co_return;
    }
  }
}

// ── Receiving ──

Connection::Step Connection::advance() {
  while (true) {
    auto progress = parser_.advance();
    if (!progress) {
      refusal_ = std::move(progress).error();
      return Step::Refuse;
    }
    if (*progress == RequestParser::Progress::HeadComplete) return Step::Admit;
    const bool complete = *progress == RequestParser::Progress::Complete;
    const auto space = complete ? std::span<char>() : parser_.space();
    if (!hold_request()) return Step::AwaitMemory;
    if (complete) return Step::Handle;
    if (!tls_) return Step::NeedInput;

    const auto read = tls_->read(space);
    switch (read.status) {
      case TlsSession::Status::Data:
        parser_.commit(read.size);
        break;
      case TlsSession::Status::NeedInput:
        return Step::NeedInput;
      case TlsSession::Status::Closed:
        return Step::Close;
      case TlsSession::Status::Failed:
        if (!tls_->handshake_done()) ++service_.stats.tls_handshakes_failed;
        // The alert tells the client why. If it does not fit into the socket, so be it.
        send_what_fits(tls_->output());
        return Step::Close;
    }
  }
}

// Half of the budget is out of reach for heads: nobody knows yet whether they come with a key.
bool Connection::hold_request() {
  const auto bytes = parser_.memory_bytes();
  const auto ceiling =
      parser_.has_head() ? service_.memory.bytes_max() : service_.memory.bytes_max() / 2;
  return request_memory_.try_hold(bytes > kRequestBytesFree ? bytes : 0, ceiling);
}

// Nothing is read meanwhile, which holds the client back. False when the request was refused.
asio::awaitable<bool> Connection::await_memory() {
  const auto end = std::chrono::steady_clock::now() + service_.limits.memory_time_max;
  asio::steady_timer timer(loop_.context());
  while (!hold_request()) {
    if (loop_.stopping() || std::chrono::steady_clock::now() >= end) {
      ++service_.stats.memory_refusals;
      co_await refuse(make_refusal(out_of_memory(service_.memory), kMemoryRetryAfter));
      co_return false;
    }
    timer.expires_after(kMemoryPoll);
    co_await timer.async_wait(kToken);
  }
  co_return true;
}

// Decides on a body that is still on its way. False when the request was refused.
asio::awaitable<bool> Connection::admit() {
  if (service_.admit) {
    auto& request = describe_request();
    if (auto refusal = service_.admit(request)) {
      co_await refuse(std::move(*refusal));
      co_return false;
    }
    known_ = known_ || request.authorized;
  }
  if (!hold_request() && !co_await await_memory()) co_return false;
  if (!parser_.expects_continue()) co_return true;
  head_ = "HTTP/1.1 100 Continue\r\n\r\n";
  co_return co_await send();
}

// False when nobody is interested in a further request.
bool Connection::prepare_to_wait() {
  if (parser_.started()) {
    if (phase_ == Phase::Idle) set_deadline(loop_.deadline(service_.limits.request_time_max));
    phase_ = Phase::Receiving;
  }
  return phase_ == Phase::Receiving || !loop_.stopping();
}

void Connection::arrived(std::size_t size) {
  if (tls_) {
    tls_->commit_input(size);
    return;
  }
  parser_.commit(size);
  if (protocol_known_ || size == 0) return;
  protocol_known_ = true;
  const auto first = parser_.unparsed();
  if (static_cast<unsigned char>(first.front()) != kTlsHandshake) return;
  if (const auto tls = service_.tls()) {
    tls_ = std::make_unique<TlsSession>(*tls, first);
    parser_.discard();
  }
}

// ── Handling ──

Request& Connection::describe_request() {
  auto& request = parser_.request();
  request.secure = tls_ != nullptr;
  request.from_loopback = from_loopback_;
  request.peer = peer_number_;
  request.client = this;
  return request;
}

asio::awaitable<Response> Connection::handle() {
  service_.stats.requests.fetch_add(1, std::memory_order_relaxed);
  auto& request = describe_request();
  std::optional<Response> response;
  try {
    response = co_await service_.handler(request);
  } catch (const std::exception& exception) {
    diagnostics::error("{} {} failed: {}", request.method, request.target, exception.what());
  } catch (...) {
    diagnostics::error("{} {} failed", request.method, request.target);
  }
  if (!is_on_loop()) co_await resume_on_loop();
  if (!response) {
    response = make_refusal(Error(ErrorCode::Internal, "The request failed unexpectedly."));
  }
  known_ = known_ || request.authorized;
  co_return std::move(*response);
}

// The handler is the only one who calls it, and this connection waits for the handler.
Result<> Connection::hold_answer(std::size_t bytes) {
  const auto counted = bytes < kLargeAnswerBytes ? 0 : bytes;
  if (answer_memory_.try_hold(counted, service_.memory.bytes_max())) return {};
  ++service_.stats.memory_refusals;
  return out_of_memory(service_.memory);
}

// A large answer that does not fit is thrown away, and its client told to ask again. The answer to
// a write is sent in any case: it tells what has happened.
void Connection::settle_answer(Response& response) {
  auto bytes = response.body_size();
  if (bytes < kLargeAnswerBytes) {
    answer_memory_.hold(0);
    return;
  }
  // Connections that send the same text share its memory.
  if (response.shared_body) {
    bytes /= static_cast<std::size_t>(std::max(1L, response.shared_body.use_count()));
  }
  if (answer_memory_.try_hold(bytes, service_.memory.bytes_max())) return;
  if (!response.repeatable) {
    answer_memory_.hold(bytes);
    return;
  }
  ++service_.stats.memory_refusals;
  response = make_refusal(out_of_memory(service_.memory), kMemoryRetryAfter);
}

// A handler may have come back on a thread of somebody else's.
bool Connection::is_on_loop() const {
  return loop_.context().get_executor().running_in_this_thread();
}

asio::awaitable<void> Connection::resume_on_loop() {
  co_await asio::post(loop_.context().get_executor(), asio::use_awaitable);
}

void Connection::when_gone(std::move_only_function<void()> leave) {
  if (!watch_) {
    if (!leave) return;
    watch_ = std::make_shared<ClientWatch>(socket_);
  }
  if (loop_.stopping()) watch_->tell_gone();
  watch_->when_gone(std::move(leave));
}

std::string Connection::address() const {
  const auto text = peer_.address().to_string();
  return peer_.address().is_v6() ? fmt::format("[{}]:{}", text, peer_.port())
                                 : fmt::format("{}:{}", text, peer_.port());
}

// ── Ending ──

Response Connection::make_refusal(Error error, milliseconds retry_after) {
  const auto& request = parser_.request();
  return service_.refuse(
      {std::move(error), address(), request.method, request.target, retry_after});
}

asio::awaitable<void> Connection::refuse(Response response) {
  phase_ = Phase::Closing;
  start_response(response);
  if (co_await send()) co_await linger();
}

// Only a client that has begun to say something is owed an answer.
asio::awaitable<void> Connection::time_out() {
  if (phase_ != Phase::Receiving) co_return;
  ++service_.stats.requests_timed_out;
  co_await refuse(make_refusal(
      Error(ErrorCode::RequestTimeout, fmt::format("The request was not complete after {} ms.",
                                                   service_.limits.request_time_max.count()))));
}

asio::awaitable<void> Connection::reject_over_limit() {
  auto refusal = make_refusal(
      Error(ErrorCode::Unavailable,
            fmt::format("The server has its limit of {} connections open. Close some, or share "
                        "them: one connection serves many requests.",
                        service_.limits.connections_max)));
  if (service_.tls()) {
    set_deadline(loop_.deadline(kTurnAwayTimeMax));
    const auto space = parser_.space();
    const auto [error, size] =
        co_await socket_.async_read_some(asio::buffer(space.data(), space.size()), kToken);
    // To say it in TLS would take a handshake, which is what an overloaded server cannot afford.
    if (size > 0 && static_cast<unsigned char>(space.front()) == kTlsHandshake) co_return;
    if (error && !expired_) co_return;
  }
  co_await refuse(std::move(refusal));
}

// Behind the last response of a connection whose client agreed to the end.
asio::awaitable<void> Connection::say_goodbye() {
  error_code error;
  if (parser_.has_leftover() || socket_.available(error) > 0) {
    co_await linger();
  } else if (tls_) {
    tls_->close();
    send_what_fits(tls_->output());
  }
}

asio::awaitable<void> Connection::linger() {
  phase_ = Phase::Closing;
  if (tls_) {
    tls_->close();
    send_what_fits(tls_->output());
  }
  error_code error;
  socket_.shutdown(asio::socket_base::shutdown_send, error);
  set_deadline(loop_.deadline(kLingerTimeMax));
  const auto scrap = loop_.scrap();
  std::size_t dropped = 0;
  while (!error && !expired_ && dropped < kLingerBytesMax) {
    std::size_t size = 0;
    std::tie(error, size) =
        co_await socket_.async_read_some(asio::buffer(scrap.data(), scrap.size()), kToken);
    dropped += size;
  }
}

}  // namespace orrery::http
