#include "http/client_watch.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include <boost/asio/post.hpp>

namespace orrery::http {
namespace {

using boost::system::error_code;

// How often to look at a client that has sent more than its request. Long polls and streams rarely
// have such clients, but every client that says goodbye in TLS is one for a moment.
constexpr std::chrono::milliseconds kLookAgain{100};

bool has_finished_sending(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return true;
  return info.tcpi_state != TCP_ESTABLISHED;
}

}  // namespace

void ClientWatch::when_gone(std::move_only_function<void()> leave) {
  leave_ = std::move(leave);
  if (!leave_) return;
  if (gone_) {
    call();
  } else if (!waiting_) {
    wait();
  }
}

void ClientWatch::tell_gone() {
  gone_ = true;
  if (!leave_ || socket_ == nullptr) return;
  boost::asio::post(socket_->get_executor(), [self = shared_from_this()] { self->call(); });
}

void ClientWatch::detach() {
  socket_ = nullptr;
  leave_ = nullptr;
  if (timer_) timer_->cancel();
}

// Left outstanding when the request is over: it then completes when the next one arrives.
void ClientWatch::wait() {
  waiting_ = true;
  socket_->async_wait(Socket::wait_read, [self = shared_from_this()](const error_code&) {
    self->waiting_ = false;
    // Without a callback nobody is interested: the next when_gone() waits again.
    if (self->leave_) self->look();
  });
}

void ClientWatch::look() {
  if (socket_ == nullptr || gone_) return;
  const int fd = socket_->native_handle();
  char byte = 0;
  const auto size = ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  const bool nothing = size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  if (nothing) {
    wait();
  } else if (size > 0 && !has_finished_sending(fd)) {
    look_later();
  } else {
    gone_ = true;
    call();
  }
}

void ClientWatch::look_later() {
  if (!timer_) timer_.emplace(socket_->get_executor());
  waiting_ = true;
  timer_->expires_after(kLookAgain);
  timer_->async_wait([self = shared_from_this()](const error_code&) {
    self->waiting_ = false;
    if (self->leave_) self->look();
  });
}

void ClientWatch::call() {
  if (auto leave = std::exchange(leave_, nullptr)) leave();
}

}  // namespace orrery::http
