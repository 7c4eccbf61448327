// One thread that serves its share of the connections.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/clock.h"
#include "http/listener.h"

namespace orrery::http {

class Connection;

/// An io_context with its thread, and the deadlines of its connections. All connections of a loop
/// share one coarse timer: setting a deadline is one assignment, and every tick one pass over the
/// connections finds those that have expired. A loop without connections does not tick.
///
/// The first block of functions is for the owner, on any thread; the rest for the loop's own
/// thread.
class EventLoop {
 public:
  using Time = std::chrono::steady_clock::time_point;

  EventLoop(const Limits& limits, const MemoryBudget& memory);
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  boost::asio::io_context& context() { return context_; }
  void start();
  /// Whether the thread has ended, or was never started. Waits for that until `time`.
  bool ended_by(Time time);
  /// Makes the thread end at the next opportunity; connections stay as they are.
  void abandon() { context_.stop(); }
  void join();

  void add(Connection& connection);
  void remove(Connection& connection);
  std::size_t connection_count() const { return connections_.size(); }

  /// Closes up to `count` idle connections on which no key was seen, the oldest first; those from
  /// `newest` on stay.
  void close_strangers(std::size_t count, std::uint64_t newest);
  /// Memory that connections may read into what nobody wants: they all share it.
  std::span<char> scrap();

  /// A deadline that passes not before `after`, and at most two ticks later.
  Time deadline(std::chrono::milliseconds after) const { return now_ + tick_ + after; }
  /// The current date in RFC 1123; valid until the next call.
  std::string_view date();

  /// Closes idle connections; the others end with the response to their current request, and the
  /// thread ends with the last of them.
  void begin_stop();
  bool stopping() const { return stopping_; }
  /// Cuts all connections off. A handler that is running is not interrupted, but its answer is
  /// thrown away.
  void cut_connections();

 private:
  void schedule_tick();
  void tick();
  void finish();

  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  boost::asio::steady_timer timer_;
  std::thread thread_;
  std::promise<void> end_;
  std::future<void> ended_;

  const MemoryBudget& memory_;
  const std::chrono::milliseconds tick_;
  bool ticking_ = false;
  Time now_;
  std::vector<Connection*> connections_;
  std::unique_ptr<char[]> scrap_;
  bool stopping_ = false;

  SystemClock clock_;
  UnixSeconds date_second_ = -1;
  std::string date_;
};

}  // namespace orrery::http
