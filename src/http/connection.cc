#include "http/connection.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "base/diagnostics.h"
#include "http/response_head.h"

namespace orrery::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::milliseconds;

// Errors come back as values.
constexpr auto kToken = asio::as_tuple(asio::use_awaitable);

constexpr unsigned char kTlsHandshake = 0x16;

// Copying a small body behind its head is cheaper than a gather write of two buffers.
constexpr std::size_t kFlatBytesMax = 4 * 1024;
// A TLS record takes 16 KiB; head and start of the body share the first.
constexpr std::size_t kTlsRecordBytes = 16 * 1024;
// How much of a body is encrypted, and thereby held twice, at a time.
constexpr std::size_t kTlsPieceBytes = 256 * 1024;
constexpr std::size_t kTlsOutputBytesKept = 32 * 1024;
// Asio would hand the kernel 64 KiB at a time.
constexpr std::size_t kWriteBytesMax = 4 * 1024 * 1024;

// A client that is refused may still be sending. Closing at once would make its kernel throw away
// our answer, so we listen to the rest for a while; many clients send all before they read.
constexpr std::size_t kLingerBytesMax = 8 * 1024 * 1024;
constexpr milliseconds kLingerTimeMax{2'000};
constexpr std::size_t kLingerBufferBytes = 64 * 1024;
// How long a connection too many may take to show whether it speaks http or https.
constexpr milliseconds kTurnAwayTimeMax{1'000};

bool is_loopback(const asio::ip::address& address) {
  if (address.is_v4()) return address.to_v4().is_loopback();
  const auto v6 = address.to_v6();
  if (v6.is_v4_mapped()) return asio::ip::make_address_v4(asio::ip::v4_mapped, v6).is_loopback();
  return v6.is_loopback();
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

void Connection::open(Service& service, EventLoop& loop, Socket socket, Admission admission) {
  std::unique_ptr<Connection> connection(
      new Connection(service, loop, std::move(socket), admission));
  if (loop.stopping()) return;
  const auto executor = loop.context().get_executor();
  // Detached, but not forgotten: the loop knows all its connections and ends them before itself.
  asio::co_spawn(executor, run(std::move(connection)), asio::detached);
}

Connection::Connection(Service& service, EventLoop& loop, Socket socket, Admission admission)
    : service_(service),
      loop_(loop),
      socket_(std::move(socket)),
      admission_(admission),
      parser_(service.limits.head_bytes_max, service.limits.body_bytes_max),
      refusal_(ErrorCode::Internal, {}) {
  error_code error;
  socket_.non_blocking(true, error);
  set_options(socket_);
  const auto peer = socket_.remote_endpoint(error);
  from_loopback_ = !error && is_loopback(peer.address());
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
      co_await self->turn_away();
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
        if (error || (expired_ && phase_ == Phase::Receiving)) {
          if (expired_) co_await time_out();
          co_return;
        }
        arrived(size);
        break;
      }
      case Step::SendContinue:
        head_ = "HTTP/1.1 100 Continue\r\n\r\n";
        if (!co_await send()) co_return;
        break;
      case Step::Handle: {
        phase_ = Phase::Handling;
        set_deadline(EventLoop::Time::max());
        bool close = false;
        std::unique_ptr<BodyStream> stream;
        {
          auto response = co_await handle();
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
        body_ = std::string();
        shared_ = nullptr;
        if (stream) {
          if (!co_await send_stream(std::move(stream))) co_return;
          close = close || loop_.stopping();
        }
        if (watch_) watch_->forget();
        if (close) {
          co_await say_goodbye();
          co_return;
        }
        parser_.next();
        phase_ = Phase::Idle;
        set_deadline(loop_.deadline(service_.limits.idle_time_max));
        break;
      }
      case Step::Refuse:
        co_await refuse(std::move(refusal_));
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
    if (*progress == RequestParser::Progress::Complete) return Step::Handle;
    if (*progress == RequestParser::Progress::HeadComplete && parser_.expects_continue()) {
      return Step::SendContinue;
    }
    if (!tls_) return Step::NeedInput;

    const auto space = parser_.space();
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
  if (service_.tls && static_cast<unsigned char>(first.front()) == kTlsHandshake) {
    tls_ = std::make_unique<TlsSession>(*service_.tls, first);
    parser_.discard();
  }
}

// ── Handling ──

asio::awaitable<Response> Connection::handle() {
  service_.stats.requests.fetch_add(1, std::memory_order_relaxed);
  auto& request = parser_.request();
  request.secure = tls_ != nullptr;
  request.from_loopback = from_loopback_;
  request.client = this;
  std::optional<Response> response;
  try {
    response = co_await service_.handler(request);
  } catch (const std::exception& exception) {
    diagnostics::error("{} {} failed: {}", request.method, request.target, exception.what());
  } catch (...) {
    diagnostics::error("{} {} failed", request.method, request.target);
  }
  if (!at_home()) co_await come_home();
  if (!response) {
    response = service_.refuse(Error(ErrorCode::Internal, "The request failed unexpectedly."));
  }
  co_return std::move(*response);
}

// A handler may have come back on a thread of somebody else's.
bool Connection::at_home() const { return loop_.context().get_executor().running_in_this_thread(); }

asio::awaitable<void> Connection::come_home() {
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

// ── Sending ──

// Writes the head, takes the body, and returns whether the connection ends with this response.
// Leaves a stream where it is, unless nobody wants it.
bool Connection::start_response(Response& response) {
  const bool complete = phase_ == Phase::Handling;
  // Before HTTP/1.1 nothing but the end of the connection can tell the end of a stream.
  const bool chunked = response.stream && !parser_.is_http_1_0();
  const bool close = response.close || !complete || !parser_.keep_alive() || loop_.stopping() ||
                     (response.stream && !chunked);
  head_.clear();
  append_head(head_, response,
              {.close = close,
               .keep_alive = complete && parser_.is_http_1_0(),
               .chunked = chunked,
               .date = loop_.date()});
  body_.clear();
  shared_ = nullptr;
  if (!status_has_body(response.status) || (complete && parser_.request().method == "HEAD")) {
    response.stream = nullptr;
  } else if (!response.stream) {
    body_ = std::move(response.body);
    shared_ = std::move(response.shared_body);
  }
  payload_ = shared_ ? std::string_view(*shared_) : std::string_view(body_);
  return close;
}

asio::awaitable<bool> Connection::send() {
  if (!start_sending()) co_return false;
  const auto sent = send_now();
  co_return sent == Sent::All || (sent == Sent::Part && co_await send_rest());
}

// False when the client is gone, or when the stream broke and the client must be able to tell.
asio::awaitable<bool> Connection::send_stream(std::unique_ptr<BodyStream> stream) {
  const bool chunked = !parser_.is_http_1_0();
  while (true) {
    try {
      shared_ = co_await stream->next();
    } catch (const std::exception& exception) {
      const auto& request = parser_.request();
      diagnostics::error("{} {} broke off: {}", request.method, request.target, exception.what());
      co_return false;
    }
    if (!at_home()) co_await come_home();
    if (!shared_) break;
    if (shared_->empty()) continue;  // A chunk of nothing would be the end.
    head_.clear();
    if (chunked) {
      fmt::format_to(std::back_inserter(head_), "{:x}\r\n", shared_->size());
      tail_ = "\r\n";
    }
    payload_ = *shared_;
    if (!start_sending()) co_return false;
    if (const auto sent = send_now();
        sent == Sent::Failed || (sent == Sent::Part && !co_await send_rest())) {
      co_return false;
    }
  }
  stream.reset();
  payload_ = {};
  if (!chunked) co_return true;
  head_ = "0\r\n\r\n";
  co_return co_await send();
}

// Makes head_, payload_ and tail_, or what TLS makes of them, ready to be sent.
bool Connection::start_sending() {
  const auto share = tls_ ? kTlsRecordBytes : kFlatBytesMax;
  payload_taken_ = 0;
  if (tls_ || payload_.size() <= share) {
    payload_taken_ = std::min(payload_.size(), share - std::min(share, head_.size()));
    head_.append(payload_, 0, payload_taken_);
  }
  if (payload_taken_ == payload_.size()) head_.append(std::exchange(tail_, {}));
  if (tls_) {
    if (!tls_->write(head_)) return false;
    unsent_ = {asio::buffer(tls_->output())};
  } else {
    unsent_ = {asio::buffer(head_), asio::buffer(payload_) + payload_taken_, asio::buffer(tail_)};
    payload_taken_ = payload_.size();
    tail_ = {};
  }
  return true;
}

// Called when all of unsent_ has left.
Connection::Sent Connection::take_next_piece() {
  if (!tls_) return Sent::All;
  tls_->output().clear();
  if (payload_taken_ == payload_.size()) {
    if (tls_->output().capacity() > kTlsOutputBytesKept) tls_->output() = std::string();
    return Sent::All;
  }
  const auto piece = payload_.substr(payload_taken_, kTlsPieceBytes);
  payload_taken_ += piece.size();
  if (!tls_->write(piece)) return Sent::Failed;
  if (payload_taken_ == payload_.size() && !tls_->write(std::exchange(tail_, {}))) {
    return Sent::Failed;
  }
  unsent_ = {asio::buffer(tls_->output())};
  return Sent::Part;
}

// Most responses fit into the socket's buffer: those need no trip through the event loop.
Connection::Sent Connection::send_now() {
  while (true) {
    error_code error;
    // A plain send is a little cheaper than one that gathers.
    auto size = unsent_[1].size() + unsent_[2].size() == 0 ? socket_.write_some(unsent_[0], error)
                                                           : socket_.write_some(unsent_, error);
    if (error == asio::error::would_block || error == asio::error::try_again) return Sent::Part;
    if (error) return Sent::Failed;
    bool all = true;
    for (auto& buffer : unsent_) {
      const auto sent = std::min(size, buffer.size());
      buffer += sent;
      size -= sent;
      all = all && buffer.size() == 0;
    }
    if (!all) return Sent::Part;
    if (const auto next = take_next_piece(); next != Sent::Part) return next;
  }
}

asio::awaitable<bool> Connection::send_rest() {
  const auto deadline_before = deadline_;
  Sent sent = Sent::Part;
  while (sent == Sent::Part) {
    // Asked before every write: each time there was progress, or there is about to be some.
    const auto allow = [this](const error_code& error, std::size_t) -> std::size_t {
      if (error) return 0;
      set_deadline(loop_.deadline(service_.limits.send_time_max));
      return kWriteBytesMax;
    };
    const auto [error, size] = co_await asio::async_write(socket_, unsent_, allow, kToken);
    if (error) co_return false;
    sent = take_next_piece();
  }
  set_deadline(deadline_before);
  co_return sent == Sent::All;
}

asio::awaitable<bool> Connection::send_handshake() {
  payload_ = {};
  payload_taken_ = 0;
  unsent_ = {asio::buffer(tls_->output())};
  const auto sent = send_now();
  co_return sent == Sent::All || (sent == Sent::Part && co_await send_rest());
}

void Connection::send_what_fits(std::string_view text) {
  error_code ignored;
  if (!text.empty()) socket_.write_some(asio::buffer(text), ignored);
}

// ── Ending ──

asio::awaitable<void> Connection::refuse(Error error) {
  phase_ = Phase::Closing;
  auto response = service_.refuse(error);
  start_response(response);
  if (co_await send()) co_await linger();
}

// Only a client that has begun to say something is owed an answer.
asio::awaitable<void> Connection::time_out() {
  if (phase_ != Phase::Receiving) co_return;
  ++service_.stats.requests_timed_out;
  co_await refuse(
      Error(ErrorCode::RequestTimeout, fmt::format("The request was not complete after {} ms.",
                                                   service_.limits.request_time_max.count())));
}

asio::awaitable<void> Connection::turn_away() {
  if (service_.tls) {
    set_deadline(loop_.deadline(kTurnAwayTimeMax));
    const auto space = parser_.space();
    const auto [error, size] =
        co_await socket_.async_read_some(asio::buffer(space.data(), space.size()), kToken);
    // To say it in TLS would take a handshake, which is what an overloaded server cannot afford.
    if (size > 0 && static_cast<unsigned char>(space.front()) == kTlsHandshake) co_return;
    if (error && !expired_) co_return;
  }
  co_await refuse(Error(ErrorCode::Unavailable,
                        fmt::format("The server has its limit of {} connections open. Close some, "
                                    "or share them: one connection serves many requests.",
                                    service_.limits.connections_max)));
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
  const auto scrap = std::make_unique_for_overwrite<char[]>(kLingerBufferBytes);
  std::size_t dropped = 0;
  while (!error && !expired_ && dropped < kLingerBytesMax) {
    std::size_t size = 0;
    std::tie(error, size) =
        co_await socket_.async_read_some(asio::buffer(scrap.get(), kLingerBufferBytes), kToken);
    dropped += size;
  }
}

}  // namespace orrery::http
