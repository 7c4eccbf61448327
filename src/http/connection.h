// One client's connection: reads requests, has them handled, sends the responses.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/error.h"
#include "http/client_watch.h"
#include "http/event_loop.h"
#include "http/listener.h"
#include "http/memory_budget.h"
#include "http/request_parser.h"
#include "http/tls.h"

namespace orrery::http {

/// Awaits an operation and gives its error code instead of throwing.
inline constexpr auto kToken = boost::asio::as_tuple(boost::asio::use_awaitable);

/// Shared by the connections of a listener. Outlives them.
struct Service {
  explicit Service(const Limits& given) : limits(given), memory(given.memory_bytes_max) {}

  const Limits limits;
  Listener::Handler handler;
  Listener::RefusalHandler refuse;
  Listener::AdmissionHandler admit;  ///< may be empty
  Stats stats;
  MemoryBudget memory;
  /// Connections above the limit that are being told so.
  std::atomic<std::size_t> turning_away{0};

  /// For new connections; null: plain http only. Thread-safe, as is setting it.
  std::shared_ptr<const TlsContext> tls() const {
    std::lock_guard lock(tls_mutex_);
    return tls_;
  }
  void set_tls(std::shared_ptr<const TlsContext> context) {
    std::lock_guard lock(tls_mutex_);
    tls_ = std::move(context);
  }

 private:
  mutable std::mutex tls_mutex_;
  std::shared_ptr<const TlsContext> tls_;  // Guarded by tls_mutex_.
};

/// Lives on its loop's thread, owned by its own coroutine, which ends with it.
///
///     Fresh ─┐    ┌──────────────── Idle ◄──────────┐
///            ▼    ▼                                 │
///            Receiving ──► Handling ────────────────┴──► Closing
///                └── refused: 400, 401, 408, 413, 429, 431 ─▲
class Connection final : private Client {
 public:
  enum class Admission { Welcome, TooMany };

  /// Starts serving `socket` on `loop`, whose thread this must be. A connection that is one too
  /// many only hears so.
  static void open(Service& service, EventLoop& loop, Socket socket, Admission admission,
                   std::uint64_t order);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // For the loop.
  EventLoop::Time deadline(bool memory_is_short) const {
    return memory_is_short && sending_ ? deadline_ - impatience_ : deadline_;
  }
  void expire();
  /// No key was seen on it, and it is not being answered.
  bool is_idle_stranger() const;
  void close_idle();
  /// Connections that were accepted earlier have a lower one.
  std::uint64_t order() const { return order_; }
  /// An idle one is closed; a handler that waits for something to happen is told.
  void begin_stop();
  void cut();
  std::size_t index() const { return index_; }
  void set_index(std::size_t index) { index_ = index; }

 private:
  enum class Phase { Fresh, Idle, Receiving, Handling, Closing };
  enum class Step { NeedInput, Admit, AwaitMemory, Handle, Refuse, Close };
  enum class Sent { All, Part, Failed };

  Connection(Service& service, EventLoop& loop, Socket socket, Admission admission,
             std::uint64_t order);
  static boost::asio::awaitable<void> run(std::unique_ptr<Connection> self);
  boost::asio::awaitable<void> serve();

  // Receiving.
  Step advance();
  bool hold_request();
  boost::asio::awaitable<bool> await_memory();
  boost::asio::awaitable<bool> admit();
  bool prepare_to_wait();
  void arrived(std::size_t size);

  // Handling.
  Request& describe_request();
  boost::asio::awaitable<Response> handle();
  void settle_answer(Response& response);
  bool is_on_loop() const;
  boost::asio::awaitable<void> resume_on_loop();
  void when_gone(std::move_only_function<void()> leave) override;
  Result<> hold_answer(std::size_t bytes) override;
  std::string address() const override;

  // Sending: start_response; then send, which is start_sending, send_now and, if that was not all,
  // send_rest; then send_stream, if there is one.
  bool start_response(Response& response);
  boost::asio::awaitable<bool> send();
  boost::asio::awaitable<bool> send_stream(std::unique_ptr<BodyStream> stream);
  [[nodiscard]] bool start_sending();
  Sent send_now();
  boost::asio::awaitable<bool> send_rest();
  Sent take_next_piece();
  std::size_t payload_bytes() const;
  boost::asio::awaitable<bool> send_handshake();
  void send_what_fits(std::string_view text);

  // Ending.
  Response make_refusal(Error error, std::chrono::milliseconds retry_after = {});
  boost::asio::awaitable<void> refuse(Response response);
  boost::asio::awaitable<void> time_out();
  boost::asio::awaitable<void> reject_over_limit();
  boost::asio::awaitable<void> say_goodbye();
  boost::asio::awaitable<void> linger();

  void set_deadline(EventLoop::Time deadline) {
    deadline_ = deadline;
    expired_ = false;
  }

  Service& service_;
  EventLoop& loop_;
  Socket socket_;
  const Admission admission_;
  const std::uint64_t order_;
  std::size_t index_ = 0;
  Phase phase_ = Phase::Fresh;
  EventLoop::Time deadline_ = EventLoop::Time::max();
  bool expired_ = false;
  bool sending_ = false;  // Waits for the client to read.
  // So much earlier a client that does not read is dropped while memory is short.
  const std::chrono::milliseconds impatience_;
  bool known_ = false;    // A key was seen on it.
  bool leaving_ = false;  // It is being closed to make room.
  boost::asio::ip::tcp::endpoint peer_;
  bool from_loopback_ = false;
  std::uint64_t peer_number_ = 0;
  bool protocol_known_ = false;  // http or https: the first byte tells

  RequestParser parser_;
  MemoryHold request_memory_;
  MemoryHold answer_memory_;
  std::unique_ptr<TlsSession> tls_;
  Error refusal_;  // for Step::Refuse

  std::shared_ptr<ClientWatch> watch_;  // Made when a handler first asks. Shared: see there.

  // The response on its way, or a piece of it. In TLS unsent_ is the session's output, made piece
  // by piece.
  std::string head_;
  std::string body_;   // One of these two holds what payload_ shows.
  SharedText shared_;  // Shared with other connections that send the same.
  std::string_view payload_;
  std::string_view tail_;          // Behind the payload: the end of a chunk.
  std::size_t payload_taken_ = 0;  // By head_ or unsent_.
  std::array<boost::asio::const_buffer, 3> unsent_;
};

}  // namespace orrery::http
