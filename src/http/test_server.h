// For tests: a listener with a handler whose behaviour the target chooses.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include "base/async.h"
#include "base/test_wait.h"
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

/// A queue of pieces that streams and long polls send. A wait for one also ends when the client
/// leaves.
class Outbox {
 public:
  void put(std::string piece) { add(std::move(piece)); }
  /// Ends the stream or poll that takes it.
  void put_end() { add(std::nullopt); }

  /// Nothing at the end, or when the client is gone, which is counted.
  asio::awaitable<SharedText> take(Client& client) {
    asio::steady_timer news(co_await asio::this_coro::executor,
                            asio::steady_timer::time_point::max());
    {
      const std::lock_guard lock(mutex_);
      news_ = &news;
    }
    bool gone = false;
    client.when_gone([&] {
      gone = true;
      news.cancel();
    });
    ++waiting;
    while (!gone && !has_news()) {
      co_await news.async_wait(asio::as_tuple(asio::use_awaitable));
      news.expires_at(asio::steady_timer::time_point::max());
    }
    --waiting;
    client.when_gone(nullptr);
    const std::lock_guard lock(mutex_);
    news_ = nullptr;
    if (gone) ++left;
    if (gone || pieces_.empty()) co_return nullptr;
    auto piece = std::move(pieces_.front());
    pieces_.pop_front();
    co_return piece ? std::make_shared<const std::string>(std::move(*piece)) : nullptr;
  }

  std::atomic<int> waiting{0};
  std::atomic<int> left{0};

 private:
  void add(std::optional<std::string> piece) {
    const std::lock_guard lock(mutex_);
    pieces_.push_back(std::move(piece));
    // The timer belongs to an event loop: it is told there.
    if (news_ == nullptr) return;
    asio::post(news_->get_executor(), [this] {
      const std::lock_guard posted_lock(mutex_);
      if (news_ != nullptr) news_->cancel();
    });
  }
  bool has_news() {
    const std::lock_guard lock(mutex_);
    return !pieces_.empty();
  }

  std::mutex mutex_;
  std::deque<std::optional<std::string>> pieces_;
  asio::steady_timer* news_ = nullptr;
};

class TestServer {
 public:
  explicit TestServer(ListenerOptions options = {}) {
    options.port = 0;
    auto opened = Listener::open(
        std::move(options), [this](Request& request) { return answer(request); },
        [this](const Refusal& refused) {
          const std::lock_guard lock(refusals_mutex_);
          refusals_.push_back(
              fmt::format("{} {} {}", refused.method, refused.target, refused.error.message()));
          return refusal(refused);
        },
        [this](Request& request) { return admit(request); });
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

  Gate entered;  ///< opens when a request for /wait or /read/… is being handled
  Gate release;  ///< lets such requests end

  Outbox outbox;                    ///< what /pushed streams, and what /poll waits for
  std::atomic<int> pieces_made{0};  ///< by streams of /pieces/…
  std::atomic<int> streams_open{0};
  std::atomic<int> admissions{0};  ///< requests whose bodies were on their way
  const SharedText shared = std::make_shared<const std::string>(16'000'000, 's');  ///< for /shared

  /// Tells the conditions apart by status, as the server's own table does.
  static Response refusal(const Refusal& refused) {
    const Error& error = refused.error;
    Response response;
    response.status = error.code() == ErrorCode::BadRequest        ? 400
                      : error.code() == ErrorCode::RequestTimeout  ? 408
                      : error.code() == ErrorCode::RequestTooLarge ? 413
                      : error.code() == ErrorCode::TooManyRequests ? 429
                      : error.code() == ErrorCode::HeadTooLarge    ? 431
                      : error.code() == ErrorCode::Unavailable     ? 503
                                                                   : 500;
    response.add("content-type", "application/json");
    response.add("x-retry-after-ms", static_cast<std::uint64_t>(refused.retry_after.count()));
    response.body = fmt::format("{{\"message\":\"{}\"}}", error.message());
    return response;
  }

  /// "METHOD target message" of all that was refused.
  std::vector<std::string> refusals() {
    const std::lock_guard lock(refusals_mutex_);
    return refusals_;
  }

 private:
  /// Counts the streams that exist.
  class Stream : public BodyStream {
   public:
    explicit Stream(TestServer& server) : server_(server) { ++server_.streams_open; }
    ~Stream() override { --server_.streams_open; }

   protected:
    TestServer& server_;
  };

  class Pieces final : public Stream {
   public:
    Pieces(TestServer& server, std::size_t count, std::size_t size)
        : Stream(server), count_(count), size_(size) {}
    asio::awaitable<SharedText> next() override {
      if (count_-- == 0) co_return nullptr;
      ++server_.pieces_made;
      co_return std::make_shared<const std::string>(size_, 'p');
    }

   private:
    std::size_t count_;
    std::size_t size_;
  };

  class Pushed final : public Stream {
   public:
    Pushed(TestServer& server, Client& client) : Stream(server), client_(client) {}
    asio::awaitable<SharedText> next() override {
      auto piece = co_await server_.outbox.take(client_);
      if (piece && *piece == "throw") throw std::runtime_error("on purpose");
      co_return piece;
    }

   private:
    Client& client_;
  };

  /// Turns away those who say so, before their bodies are read.
  std::optional<Response> admit(Request& request) {
    ++admissions;
    if (request.header("x-stranger").empty()) return std::nullopt;
    Response response;
    response.status = 401;
    response.body = "no";
    return response;
  }

  asio::awaitable<Response> answer(Request& request) {
    Response response;
    request.authorized = request.header("x-stranger").empty();
    response.repeatable = request.method == "GET";
    if (request.target.starts_with("/pieces/")) {
      const std::string numbers(request.target.substr(8));
      response.stream = std::make_unique<Pieces>(*this, std::stoul(numbers),
                                                 std::stoul(numbers.substr(numbers.find('/') + 1)));
      co_return response;
    }
    if (request.target == "/pushed") {
      response.add("content-type", "text/plain");
      response.stream = std::make_unique<Pushed>(*this, *request.client);
      co_return response;
    }
    if (request.target == "/poll") {
      const auto piece = co_await outbox.take(*request.client);
      response.body = piece ? *piece : "nothing";
      co_return response;
    }
    if (request.target == "/shared") {
      response.shared_body = shared;
      co_return response;
    }
    if (request.target.starts_with("/bytes/")) {
      response.body.assign(std::stoul(std::string(request.target.substr(7))), 'b');
      co_return response;
    }
    if (request.target.starts_with("/read/")) {
      const auto size = std::stoul(std::string(request.target.substr(6)));
      const auto held = co_await run_blocking(pool_, [&] {
        auto outcome = request.client->hold_answer(size);
        if (outcome) {
          entered.open();
          release.pass();
        }
        return outcome;
      });
      if (!held) co_return refusal({held.error(), {}, request.method, request.target});
      response.body.assign(size, 'r');
      co_return response;
    }
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
  std::mutex refusals_mutex_;
  std::vector<std::string> refusals_;
  std::unique_ptr<Listener> listener_;
};

using test::eventually;

}  // namespace orrery::http
