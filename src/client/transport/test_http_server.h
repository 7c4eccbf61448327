// For tests: an HTTP server over real sockets, one thread for each connection, whose answers the
// test writes byte by byte.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <functional>
#include <list>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/header_name.h"
#include "base/test_wait.h"

namespace orrery::client::test {

using orrery::test::eventually;
using orrery::test::kPatience;

/// Something that many threads wait for and one does.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  bool pass() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

struct SeenRequest {
  std::string method;
  std::string target;
  std::string head;
  std::string body;
  int connection = 0;  ///< the first is 1

  std::string header(std::string_view name) const {
    std::size_t at = head.find("\r\n");
    while (at != std::string::npos && at + 2 < head.size()) {
      const std::size_t begin = at + 2;
      at = head.find("\r\n", begin);
      const std::string_view line = std::string_view(head).substr(begin, at - begin);
      const auto colon = line.find(": ");
      if (colon != std::string_view::npos && equal_ignoring_case(line.substr(0, colon), name)) {
        return std::string(line.substr(colon + 2));
      }
    }
    return {};
  }
};

/// A whole answer.
inline std::string http_response(
    int status, std::string_view body = {},
    const std::vector<std::pair<std::string, std::string>>& headers = {}) {
  std::string text = "HTTP/1.1 " + std::to_string(status) + " Whatever\r\n";
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  if (status != 204 && status != 304) {
    text += "content-length: " + std::to_string(body.size()) + "\r\n";
  }
  return text + "\r\n" + std::string(body);
}

/// The answer to `GET /` of an account whose only region is at `url`.
inline std::string account_of(const std::string& url) {
  const std::string list = R"([{"name":"Local","databaseAccountEndpoint":")" + url + R"(/"}])";
  return R"({"id":"test","writableLocations":)" + list + R"(,"readableLocations":)" + list +
         R"(,"userConsistencyPolicy":{"defaultConsistencyLevel":"Session"}})";
}

class TestHttpServer {
 public:
  /// Makes the answer; empty: the connection is closed without one.
  using Handler = std::function<std::string(const SeenRequest&)>;

  explicit TestHttpServer(Handler handler) : handler_(std::move(handler)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(listener_, 4096) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("the test server can't listen");
    }
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }

  ~TestHttpServer() {
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    close_connections();
    for (auto& each : connections_) {
      each.thread.join();
      ::close(each.socket);
    }
    ::close(listener_);
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  int accepted() const { return accepted_; }
  std::vector<SeenRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  std::size_t request_count() const {
    const std::lock_guard lock(mutex_);
    return requests_.size();
  }
  /// Connections that the other side, or close_connections(), has ended.
  int ended() const { return ended_; }

  /// Whether every client's end has heard of the end of its connection: on a busy machine that
  /// takes a moment even on loopback. From the kernel's table: "…  local:port remote:port state …"
  /// in hex.
  bool is_end_known() const {
    constexpr std::string_view kEstablished = "01";
    std::ifstream table("/proc/net/tcp");
    char port[8];
    std::snprintf(port, sizeof(port), ":%04X", static_cast<unsigned>(port_));
    std::string number, local, remote, state, rest;
    std::getline(table, rest);
    while (table >> number >> local >> remote >> state && std::getline(table, rest)) {
      if (remote.ends_with(port) && state == kEstablished) return false;
    }
    return true;
  }

  /// Ends every connection, as a server does with idle ones.
  void close_connections() {
    const std::lock_guard lock(mutex_);
    for (auto& each : connections_) ::shutdown(each.socket, SHUT_RDWR);
  }

 private:
  struct Connection {
    int socket = -1;
    int number = 0;
    std::thread thread;
  };

  void accept_all() {
    for (;;) {
      const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) {
        if (stopping_) return;
        continue;
      }
      const std::lock_guard lock(mutex_);
      Connection& connection = connections_.emplace_back();
      connection.socket = socket;
      connection.number = ++accepted_;
      connection.thread = std::thread([this, &connection] { serve(connection); });
    }
  }

  void serve(Connection& connection) {
    std::string buffer;
    while (serve_one(connection, buffer)) {
    }
    ::shutdown(connection.socket, SHUT_RDWR);
    ++ended_;
  }

  static bool receive(int socket, std::string& buffer) {
    char piece[16384];
    const ssize_t count = ::recv(socket, piece, sizeof(piece), 0);
    if (count <= 0) return false;
    buffer.append(piece, static_cast<std::size_t>(count));
    return true;
  }

  bool serve_one(Connection& connection, std::string& buffer) {
    std::size_t end = 0;
    while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
      if (!receive(connection.socket, buffer)) return false;
    }
    SeenRequest request;
    request.connection = connection.number;
    request.head = buffer.substr(0, end + 2);
    const auto space = request.head.find(' ');
    request.method = request.head.substr(0, space);
    request.target = request.head.substr(space + 1, request.head.find(' ', space + 1) - space - 1);
    const std::string length = request.header("content-length");
    const std::size_t body_size = length.empty() ? 0 : std::stoul(length);
    while (buffer.size() < end + 4 + body_size) {
      if (!receive(connection.socket, buffer)) return false;
    }
    request.body = buffer.substr(end + 4, body_size);
    buffer.erase(0, end + 4 + body_size);
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    const std::string answer = handler_(request);
    if (answer.empty()) return false;
    std::string_view rest = answer;
    while (!rest.empty()) {
      const ssize_t count = ::send(connection.socket, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      rest.remove_prefix(static_cast<std::size_t>(count));
    }
    return answer.find("connection: close") == std::string::npos;
  }

  Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<int> accepted_{0};
  std::atomic<int> ended_{0};
  std::thread acceptor_;
  mutable std::mutex mutex_;
  std::vector<SeenRequest> requests_;
  std::list<Connection> connections_;
};

}  // namespace orrery::client::test
