// For tests: a client that sends exactly the bytes it is told to, blocks, and never waits forever.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "base/test_wait.h"

namespace orrery::http {

/// A response as it came over the wire.
struct Answer {
  int status = 0;
  std::string head;
  std::map<std::string, std::string> headers;
  std::string body;
};

class TestClient {
 public:
  /// Every wait for the server ends after this with an exception.
  static constexpr std::chrono::seconds kPatience = test::kPatience;

  explicit TestClient(std::uint16_t port, const std::string& address = "127.0.0.1",
                      int receive_buffer = 0) {
    const bool v6 = address.find(':') != std::string::npos;
    fd_ = ::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_buffer > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    int result = -1;
    if (v6) {
      sockaddr_in6 peer{};
      peer.sin6_family = AF_INET6;
      peer.sin6_port = htons(port);
      ::inet_pton(AF_INET6, address.c_str(), &peer.sin6_addr);
      result = ::connect(fd_, reinterpret_cast<sockaddr*>(&peer), sizeof peer);
    } else {
      sockaddr_in peer{};
      peer.sin_family = AF_INET;
      peer.sin_port = htons(port);
      ::inet_pton(AF_INET, address.c_str(), &peer.sin_addr);
      result = ::connect(fd_, reinterpret_cast<sockaddr*>(&peer), sizeof peer);
    }
    if (result != 0) {
      ::close(fd_);
      throw std::runtime_error("cannot connect");
    }
  }
  virtual ~TestClient() { ::close(fd_); }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  /// Sends all, unless the server closed the connection; false then.
  virtual bool send(std::string_view text) {
    while (!text.empty()) {
      wait_for(POLLOUT);
      const auto sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (sent < 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  /// The next response; an exception when there is none. `to_head`: it answers a HEAD request.
  Answer read_answer(bool to_head = false) {
    while (buffer_.find("\r\n\r\n") == std::string::npos) fill();
    Answer answer;
    const auto head_end = buffer_.find("\r\n\r\n") + 4;
    answer.head = buffer_.substr(0, head_end);
    buffer_.erase(0, head_end);
    answer.status = std::stoi(answer.head.substr(9, 3));
    std::size_t line = answer.head.find("\r\n") + 2;
    while (line + 2 < answer.head.size()) {
      const auto end = answer.head.find("\r\n", line);
      const auto colon = answer.head.find(": ", line);
      answer.headers[answer.head.substr(line, colon - line)] =
          answer.head.substr(colon + 2, end - colon - 2);
      line = end + 2;
    }
    const auto length = answer.headers.find("content-length");
    if (length != answer.headers.end() && !to_head) {
      const auto size = std::stoul(length->second);
      while (buffer_.size() < size) fill();
      answer.body = buffer_.substr(0, size);
      buffer_.erase(0, size);
    }
    return answer;
  }

  /// The next chunk of a body; empty at its end. An exception when the body breaks off.
  std::string read_chunk() {
    while (buffer_.find("\r\n") == std::string::npos) fill();
    const auto line_end = buffer_.find("\r\n") + 2;
    const auto size = std::stoul(buffer_.substr(0, line_end), nullptr, 16);
    while (buffer_.size() < line_end + size + 2) fill();
    auto chunk = buffer_.substr(line_end, size);
    if (buffer_.substr(line_end + size, 2) != "\r\n") throw std::runtime_error("a broken chunk");
    buffer_.erase(0, line_end + size + 2);
    return chunk;
  }

  /// Everything until the server closes.
  std::string read_to_end() {
    try {
      while (true) fill();
    } catch (const std::runtime_error&) {
      return std::exchange(buffer_, {});
    }
  }

  Answer ask(std::string_view request) {
    send(request);
    return read_answer();
  }

  /// Waits until the server closes, and tells whether it did so without another byte.
  bool closed_silently() {
    if (!buffer_.empty()) return false;
    char byte;
    return receive(&byte, 1) <= 0;
  }

  /// Whether there is nothing to read at this moment.
  bool nothing_arrived() {
    pollfd wanted{fd_, POLLIN, 0};
    return buffer_.empty() && ::poll(&wanted, 1, 0) == 0;
  }

  void finish_sending() { ::shutdown(fd_, SHUT_WR); }
  int fd() const { return fd_; }

 protected:
  /// As ::recv: 0 at the end, negative when the connection was reset.
  virtual ssize_t receive(char* data, std::size_t size) {
    wait_for(POLLIN);
    return ::recv(fd_, data, size, 0);
  }

  void wait_for(short events) {
    pollfd wanted{fd_, events, 0};
    const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(kPatience);
    if (::poll(&wanted, 1, static_cast<int>(patience.count())) == 0) {
      throw std::runtime_error("the server kept silent");
    }
  }

 private:
  void fill() {
    const auto old = buffer_.size();
    buffer_.resize(old + 64 * 1024);
    const auto size = receive(buffer_.data() + old, 64 * 1024);
    buffer_.resize(old + static_cast<std::size_t>(size > 0 ? size : 0));
    if (size <= 0) throw std::runtime_error("the server closed instead of answering");
  }

  int fd_ = -1;
  std::string buffer_;
};

}  // namespace orrery::http
