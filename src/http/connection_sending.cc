// The sending half of a connection: from a response, or a piece of one, to bytes in the socket.
#include "http/connection.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "base/diagnostics.h"
#include "http/memory_budget.h"
#include "http/response_head.h"

namespace orrery::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Errors come back as values.

// Copying a small body behind its head is cheaper than a gather write of two buffers.
constexpr std::size_t kFlatBytesMax = 4 * 1024;
// A TLS record takes 16 KiB; head and start of the body share the first.
constexpr std::size_t kTlsRecordBytes = 16 * 1024;
// How much of a body is encrypted, and thereby held twice, at a time.
constexpr std::size_t kTlsPieceBytes = 256 * 1024;
constexpr std::size_t kTlsOutputBytesKept = 32 * 1024;
// Asio would hand the kernel 64 KiB at a time.
constexpr std::size_t kWriteBytesMax = 4 * 1024 * 1024;

}  // namespace

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
    if (!is_on_loop()) co_await resume_on_loop();
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
    if (tls_->output().capacity() > kTlsOutputBytesKept) free_memory(tls_->output());
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

// Connections that send the same text share its memory.
std::size_t Connection::payload_bytes() const {
  const auto bytes = head_.size() + payload_.size();
  return shared_ ? bytes / static_cast<std::size_t>(shared_.use_count()) : bytes;
}

asio::awaitable<bool> Connection::send_rest() {
  const auto deadline_before = deadline_;
  const auto held = answer_memory_.bytes();
  answer_memory_.hold(std::max(held, payload_bytes()) + (tls_ ? tls_->output().capacity() : 0));
  sending_ = true;
  Sent sent = Sent::Part;
  while (sent == Sent::Part) {
    // Asked before every write: each time there was progress, or there is about to be some.
    const auto allow = [this](const error_code& error, std::size_t) -> std::size_t {
      if (error) return 0;
      set_deadline(loop_.deadline(service_.limits.send_time_max));
      return kWriteBytesMax;
    };
    const auto [error, size] = co_await asio::async_write(socket_, unsent_, allow, kToken);
    if (error) {
      if (expired_ && service_.memory.is_short()) ++service_.stats.slow_readers_dropped;
      co_return false;
    }
    sent = take_next_piece();
  }
  sending_ = false;
  answer_memory_.hold(held);
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

}  // namespace orrery::http
