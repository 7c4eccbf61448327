// Notices that a client leaves while nobody reads from its connection.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

namespace orrery::http {

/// Knows its executor's type, which saves an indirection in every operation.
using Socket =
    boost::asio::basic_stream_socket<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;

/// Looks at the socket without taking anything from it, so that the next request stays where it is.
/// Waits to be told by the kernel; only when unread bytes lie before a possible end, which the
/// kernel does not tell of again, it looks from time to time.
///
/// For the connection's event loop. Shared by the connection and by its own outstanding operations,
/// which may complete after the connection is gone.
class ClientWatch : public std::enable_shared_from_this<ClientWatch> {
 public:
  explicit ClientWatch(Socket& socket) : socket_(&socket) {}

  /// See Client::when_gone.
  void when_gone(std::move_only_function<void()> leave);
  /// As if the client had left. `leave` is called soon, but not from here.
  void tell_gone();
  /// The request is over.
  void forget() { leave_ = nullptr; }
  /// The socket is about to be destroyed.
  void detach();

 private:
  void wait();
  void look();
  void look_later();
  void call();

  Socket* socket_;  // Null once the connection is gone.
  std::move_only_function<void()> leave_;
  std::optional<boost::asio::steady_timer> timer_;
  bool waiting_ = false;  // An operation or the timer is outstanding.
  bool gone_ = false;
};

}  // namespace orrery::http
