// Link: one connection to one endpoint. libcurl finds the way there and speaks TLS; what is said
// over it is HTTP/1.1 of our own, so that it is known exactly whether a request can have arrived,
// and a page of 4 MB is received where it stays.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "client/exchange/outcome.h"

namespace orrery::client {

struct LinkOptions {
  std::string certificate_file;
  bool verify_certificate = true;
  std::chrono::milliseconds connect_time_max{10'000};
};

/// Something that ends a wait for a socket from another thread.
class Wake {
 public:
  Wake();
  ~Wake();
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;

  void ring() noexcept;
  /// Forgets rings of before.
  void silence() noexcept;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

/// For one thread at a time.
class Link {
 public:
  /// Of a libcurl easy handle, and of the multi handle that made its connection.
  struct Handles;

  Link(EndpointPtr endpoint, const LinkOptions& options);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  const EndpointPtr& endpoint() const { return endpoint_; }
  int descriptor() const { return descriptor_; }

  /// Blocks until there is a connection. `wake` may be null.
  Outcome open(std::chrono::steady_clock::time_point deadline, const Wake* wake);

  /// Begins to connect as a part of `multi`, a CURLM*. The Link must not outlive it.
  void open_in(void* multi);
  /// To be called with the CURLcode that `multi` told of the handle of this link.
  Outcome opened(int code);
  /// The CURL* of this link, by which `multi` names it.
  void* handle() const;

  struct Progress {
    std::size_t count = 0;
    bool closed = false;  ///< by the other side, or by an error
  };
  /// Sends or receives as much as possible without blocking; count 0 when that is nothing.
  Progress send(std::string_view bytes);
  Progress receive(std::span<char> room);

  /// Whether nothing has come over a connection that nobody waits at: neither an end nor bytes.
  bool is_quiet();

  bool used = false;  ///< some request was answered over it

 private:
  EndpointPtr endpoint_;
  std::unique_ptr<Handles> handles_;
  int descriptor_ = -1;
};

/// Must be called before libcurl is used by several threads.
void init_libcurl();

}  // namespace orrery::client
