// A world of its own for tests: one thread, virtual time, and chance from a seed. Hosts live in it
// on runtimes that can be paused, cut off and killed.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "base/assert.h"
#include "processor/hosting/runtime.h"

namespace orrery::processor::simulation {

using Duration = std::chrono::nanoseconds;

class SimulatedRuntime;

/// Time, and what happens in it, in the order of time.
class World {
 public:
  explicit World(std::uint64_t seed) : chance_(seed) {}

  Duration now() const { return now_; }
  void after(Duration delay, std::function<void()> what) {
    events_.push({now_ + std::max(delay, Duration(0)), ++last_event_, std::move(what)});
  }

  std::uint64_t below(std::uint64_t bound) { return chance_() % bound; }
  bool one_in(std::uint64_t bound) { return below(bound) == 0; }
  Duration between(Duration low, Duration high) {
    return low + Duration(below(static_cast<std::uint64_t>((high - low).count()) + 1));
  }
  std::uint64_t draw() { return chance_(); }

  /// Lets time pass until `done`, at the longest until `end`. Whether it is done.
  bool run_until(Duration end, const std::function<bool()>& done);

  /// It has something to run.
  void wake(std::shared_ptr<SimulatedRuntime> runtime) { awake_.push_back(std::move(runtime)); }

 private:
  struct Event {
    Duration at;
    std::uint64_t order;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return std::pair(at, order) > std::pair(other.at, other.order);
    }
  };
  void run_awake();

  Duration now_{0};
  std::uint64_t last_event_ = 0;
  std::priority_queue<Event> events_;
  std::mt19937_64 chance_;
  std::vector<std::shared_ptr<SimulatedRuntime>> awake_;
};

/// The runtime of one life of a simulated host.
class SimulatedRuntime final : public Runtime,
                               public std::enable_shared_from_this<SimulatedRuntime> {
 public:
  /// The wall clock is wrong by `skew`.
  SimulatedRuntime(World& world, Duration skew)
      : world_(world), skew_(skew), boot_(world.between(Duration(0), std::chrono::hours(1))) {}

  asio::any_io_executor executor() override { return context_.get_executor(); }
  MonotonicTime now() const override {
    return MonotonicTime(std::chrono::hours(1) + boot_ + world_.now());
  }
  WallTime wall_now() const override {
    return WallTime(std::chrono::duration_cast<WallTime::duration>(
        std::chrono::seconds(1'700'000'000) + world_.now() + skew_));
  }
  std::uint64_t random() override { return world_.draw(); }

  void post(std::move_only_function<void()> task) override {
    if (dead_) return;
    asio::post(context_, std::move(task));
    wake();
  }

  WaitId wait(MonotonicTime deadline, WaitHandler handler) override {
    const WaitId id = ++last_wait_;
    if (dead_) return id;  // The handler goes, and with it the coroutine.
    waits_.emplace(id, std::move(handler));
    if (deadline != MonotonicTime::max()) {
      world_.after(deadline - now(), [self = weak_from_this(), id] {
        if (const auto runtime = self.lock()) runtime->fire(id, false);
      });
    }
    return id;
  }
  void notify(WaitId id) override { fire(id, true); }

  /// Runs `what` in this host's world, unless it is dead: now, or when it goes on.
  void deliver(std::function<void()> what) {
    if (dead_) return;
    if (paused_) {
      deferred_.push_back(std::move(what));
    } else {
      what();
    }
  }

  void pause() { paused_ = true; }
  void go_on() {
    if (!std::exchange(paused_, false)) return;
    for (auto& what : std::exchange(deferred_, {})) what();
    wake();
  }
  /// Nothing that it has begun goes on; nobody is told.
  void kill() {
    dead_ = true;
    waits_.clear();
    deferred_.clear();
    // Asio takes coroutines down through their executor.
    while (run_some() > 0) {
    }
  }
  bool dead() const { return dead_; }
  bool paused() const { return paused_; }

  std::size_t run_some() {
    awake_ = false;
    if (paused_ && !dead_) return 0;
    context_.restart();
    return context_.poll();
  }

 private:
  void fire(WaitId id, bool notified) {
    auto node = waits_.extract(id);
    if (node.empty()) return;
    asio::post(context_,
               [handler = std::move(node.mapped()), notified]() mutable { handler(notified); });
    wake();
  }
  void wake() {
    if (!std::exchange(awake_, true)) world_.wake(shared_from_this());
  }

  World& world_;
  Duration skew_;
  Duration boot_;
  asio::io_context context_{1};
  WaitId last_wait_ = 0;
  std::map<WaitId, WaitHandler> waits_;
  std::vector<std::function<void()>> deferred_;
  bool awake_ = false;
  bool paused_ = false;
  bool dead_ = false;
};

inline void World::run_awake() {
  while (!awake_.empty()) {
    for (const auto& runtime : std::exchange(awake_, {})) runtime->run_some();
  }
}

inline bool World::run_until(Duration end, const std::function<bool()>& done) {
  run_awake();
  while (!done()) {
    if (events_.empty() || events_.top().at > end) {
      now_ = std::max(now_, end);
      return false;
    }
    Event event = events_.top();
    events_.pop();
    now_ = event.at;
    event.what();
    run_awake();
  }
  return true;
}

/// How requests of one host fare on their way.
struct Network {
  Duration latency_max = std::chrono::milliseconds(20);
  unsigned lost_per_mille = 0;         ///< requests that never arrive
  unsigned answer_lost_per_mille = 0;  ///< carried out, but nobody hears of it
  unsigned throttled_per_mille = 0;
  bool cut = false;  ///< nothing goes through
};

/// The reply that a request waits for.
template <typename T>
struct Reply {
  explicit Reply(Runtime& runtime) : arrived(runtime) {}
  std::optional<T> value;
  Signal arrived;
};

/// Sends `ask` to a server: it is carried out there at some moment, whatever becomes of the host,
/// and the answer comes back if the network lets it. `unheard` and `throttled` are what the host
/// sees otherwise.
template <typename T>
asio::awaitable<T> exchange(World& world, std::shared_ptr<SimulatedRuntime> runtime,
                            const Network& network, std::function<T()> ask, T unheard,
                            T throttled) {
  auto reply = std::make_shared<Reply<T>>(*runtime);
  const auto answer = [&world, runtime, reply](Duration delay, T value) {
    world.after(delay, [runtime, reply, value = std::move(value)] {
      runtime->deliver([runtime, reply, value] {
        if (reply->value) return;
        reply->value = value;
        reply->arrived.notify();
      });
    });
  };
  const Duration there = world.between(Duration(0), network.latency_max);
  const Duration back = world.between(Duration(0), network.latency_max);
  const Duration patience = world.between(std::chrono::seconds(1), std::chrono::seconds(5));
  if (network.cut || world.below(1000) < network.lost_per_mille) {
    answer(patience, std::move(unheard));
  } else if (world.below(1000) < network.throttled_per_mille) {
    answer(there + back, std::move(throttled));
  } else {
    const bool lost = world.below(1000) < network.answer_lost_per_mille;
    world.after(there,
                [ask = std::move(ask), answer, back, lost, patience, unheard = std::move(unheard)] {
                  T value = ask();
                  if (lost) {
                    answer(patience, unheard);
                  } else {
                    answer(back, std::move(value));
                  }
                });
  }
  while (!reply->value) co_await reply->arrived.wait();
  co_return *std::move(reply->value);
}

}  // namespace orrery::processor::simulation
