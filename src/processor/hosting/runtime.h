// Runtime: time, chance and the executor of a host, injected, so that a simulation owns all three.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <stop_token>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/async.h"

namespace orrery::processor {

using MonotonicTime = std::chrono::steady_clock::time_point;
using WallTime = std::chrono::system_clock::time_point;

/// The executor, clocks and chance of a host. All of its coroutines run on the one thread of the
/// executor; unless it says otherwise, everything here is for that thread.
class Runtime {
 public:
  using WaitId = std::uint64_t;
  using WaitHandler = std::move_only_function<void(bool notified)>;

  virtual ~Runtime() = default;

  virtual asio::any_io_executor executor() = 0;
  /// Never goes back; means nothing to other hosts.
  virtual MonotonicTime now() const = 0;
  /// The time that other hosts compare with their own, for what it is worth.
  virtual WallTime wall_now() const = 0;
  virtual std::uint64_t random() = 0;
  /// Runs `task` on the executor, soon. From any thread.
  virtual void post(std::move_only_function<void()> task) = 0;

  /// Calls `handler` once, on the executor: with true soon after notify(), with false at
  /// `deadline`. The runtime holds it until then, so that a host that is cut off in mid-life leaves
  /// nothing behind.
  virtual WaitId wait(MonotonicTime deadline, WaitHandler handler) = 0;
  /// Ids of waits that are over are ignored.
  virtual void notify(WaitId id) = 0;
};

/// Something that a coroutine waits for, at the longest until a deadline. One waiter at a time.
class Signal {
 public:
  explicit Signal(Runtime& runtime) : runtime_(&runtime) {}
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  /// Wakes the waiter; without one, the next wait returns at once.
  void notify();
  /// Whether it was notified.
  asio::awaitable<bool> wait_until(MonotonicTime deadline);
  asio::awaitable<void> wait();

 private:
  Runtime* runtime_;
  Runtime::WaitId waiting_ = 0;
  bool notified_ = false;
};

/// A pause that nobody cuts short.
asio::awaitable<void> pause_until(Runtime& runtime, MonotonicTime deadline);

/// A request to end, once and for all, and the pauses that it cuts short.
class Stop {
 public:
  explicit Stop(Runtime& runtime) : runtime_(&runtime) {}
  Stop(const Stop&) = delete;
  Stop& operator=(const Stop&) = delete;

  void request();
  bool requested() const { return source_.stop_requested(); }
  /// For those on other threads.
  std::stop_token token() const { return source_.get_token(); }
  /// Whether the end was requested. Any number may wait.
  asio::awaitable<bool> pause_until(MonotonicTime deadline);
  asio::awaitable<bool> pause_for(std::chrono::milliseconds time);

 private:
  Runtime* runtime_;
  std::stop_source source_;
  std::set<Runtime::WaitId> waiting_;
};

/// Coroutines whose owner waits for all of them before it ends.
class TaskGroup {
 public:
  explicit TaskGroup(Runtime& runtime);
  /// Starts `task`, soon. It must not throw.
  void spawn(asio::awaitable<void> task);
  /// Returns when none runs; others may have been spawned meanwhile. One waiter at a time.
  asio::awaitable<void> join();
  std::size_t running() const;

 private:
  struct State;
  Runtime* runtime_;
  std::shared_ptr<State> state_;  // Shared with what completes when a task ends.
};

/// Coroutines that run one after the other, in the order in which they asked.
class Turns {
 public:
  explicit Turns(Runtime& runtime) : runtime_(&runtime) {}
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  /// Gives its turn to the next one when it goes.
  class [[nodiscard]] Turn {
   public:
    explicit Turn(Turns* turns) : turns_(turns) {}
    Turn(Turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (turns_ != nullptr) turns_->next();
    }

   private:
    Turns* turns_;
  };
  asio::awaitable<Turn> take();

 private:
  void next();

  Runtime* runtime_;
  bool taken_ = false;
  std::vector<Runtime::WaitId> waiting_;
};

/// The runtime of a real host: one thread, and the clocks of the machine.
class ThreadRuntime final : public Runtime {
 public:
  explicit ThreadRuntime(std::uint64_t seed);
  /// Stops the thread; what still waits is dropped. Not from that thread.
  ~ThreadRuntime() override;

  asio::any_io_executor executor() override;
  MonotonicTime now() const override;
  WallTime wall_now() const override;
  std::uint64_t random() override;
  void post(std::move_only_function<void()> task) override;
  WaitId wait(MonotonicTime deadline, WaitHandler handler) override;
  void notify(WaitId id) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace orrery::processor
