// For tests: a listener with a handler whose behaviour the target chooses.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include "base/async.h"
#include "http/listener.h"
#include "http/test_client.h"

namespace orrery::http {

/// Something one thread waits for and another one does.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  bool pass() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, TestClient::kPatience, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

class TestServer {
 public:
  explicit TestServer(ListenerOptions options = {}) {
    options.port = 0;
    auto opened = Listener::open(
        std::move(options), [this](Request& request) { return answer(request); },
        [](const Error& error) { return refusal(error); });
    if (!opened) throw std::runtime_error(opened.error().message());
    listener_ = std::move(*opened);
    listener_->start();
  }
  ~TestServer() {
    release.open();
    listener_.reset();
    pool_.join();
  }

  std::uint16_t port() const { return listener_->port(); }
  Listener& listener() { return *listener_; }
  const Stats& stats() const { return listener_->stats(); }

  Gate entered;  ///< opens when a request for /wait is being handled
  Gate release;  ///< lets such requests end

  /// Tells the conditions apart by status, as the server's own table does.
  static Response refusal(const Error& error) {
    Response response;
    response.status = error.code() == ErrorCode::BadRequest        ? 400
                      : error.code() == ErrorCode::RequestTimeout  ? 408
                      : error.code() == ErrorCode::RequestTooLarge ? 413
                      : error.code() == ErrorCode::HeadTooLarge    ? 431
                      : error.code() == ErrorCode::Unavailable     ? 503
                                                                   : 500;
    response.add("content-type", "application/json");
    response.body = fmt::format("{{\"message\":\"{}\"}}", error.message());
    return response;
  }

 private:
  asio::awaitable<Response> answer(Request& request) {
    Response response;
    if (request.target == "/big") {
      response.body.assign(4'000'000, 'b');
    } else if (request.target.starts_with("/status/")) {
      response.status = std::stoi(std::string(request.target.substr(8)));
      response.body = "a body";
    } else if (request.target == "/throw") {
      throw std::runtime_error("on purpose");
    } else if (request.target == "/close") {
      response.close = true;
    } else if (request.target == "/split") {
      response.add("x-first", "a\r\nx-second: b\n\r\n<html>");
    } else if (request.target == "/wait") {
      response.body = co_await run_blocking(pool_, [this] {
        entered.open();
        return std::string(release.pass() ? "waited" : "gave up");
      });
    } else if (request.target == "/stray") {
      // Comes back on a thread of the pool, which a careful handler would not do.
      co_await asio::post(pool_, asio::bind_executor(pool_.get_executor(), asio::use_awaitable));
      response.body = "strayed";
    } else {
      response.add("x-secure", request.secure ? "yes" : "no");
      response.add("x-loopback", request.from_loopback ? "yes" : "no");
      response.add("x-seen", request.header("x-see"));
      response.body = fmt::format("{} {} {}", request.method, request.target, request.body);
    }
    co_return response;
  }

  asio::thread_pool pool_{2};
  std::unique_ptr<Listener> listener_;
};

/// Waits for what another thread brings about; false when it does not happen.
template <typename Condition>
bool eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + TestClient::kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace orrery::http
