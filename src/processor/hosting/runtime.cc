#include "processor/hosting/runtime.h"

#include <map>
#include <random>
#include <set>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/assert.h"
#include "base/clock.h"

namespace orrery::processor {

namespace {

/// `started` is told the id of the wait before it can be over.
template <typename Started>
asio::awaitable<bool> wait_in(Runtime& runtime, MonotonicTime deadline, Started started) {
  co_return co_await asio::async_initiate<decltype(asio::use_awaitable), void(bool)>(
      [&runtime, deadline](auto handler, Started tell) {
        tell(runtime.wait(deadline, [handler = std::move(handler)](bool notified) mutable {
          std::move(handler)(notified);
        }));
      },
      asio::use_awaitable, std::move(started));
}

}  // namespace

// ── Signal ───────────────────────────────────────────────────────────────────────────────────────

void Signal::notify() {
  notified_ = true;
  if (waiting_ != 0) runtime_->notify(waiting_);
}

asio::awaitable<bool> Signal::wait_until(MonotonicTime deadline) {
  if (!notified_) {
    ORRERY_ASSERT(waiting_ == 0);
    co_await wait_in(*runtime_, deadline, [this](Runtime::WaitId id) { waiting_ = id; });
    waiting_ = 0;
  }
  co_return std::exchange(notified_, false);
}

asio::awaitable<void> Signal::wait() { co_await wait_until(MonotonicTime::max()); }

asio::awaitable<void> pause_until(Runtime& runtime, MonotonicTime deadline) {
  co_await wait_in(runtime, deadline, [](Runtime::WaitId) {});
}

// ── Stop ─────────────────────────────────────────────────────────────────────────────────────────

void Stop::request() {
  source_.request_stop();
  for (const Runtime::WaitId id : waiting_) runtime_->notify(id);
}

asio::awaitable<bool> Stop::pause_until(MonotonicTime deadline) {
  if (!requested()) {
    Runtime::WaitId waiting = 0;
    co_await wait_in(*runtime_, deadline, [this, &waiting](Runtime::WaitId id) {
      waiting = id;
      waiting_.insert(id);
    });
    waiting_.erase(waiting);
  }
  co_return requested();
}

asio::awaitable<bool> Stop::pause_for(std::chrono::milliseconds time) {
  return pause_until(runtime_->now() + time);
}

// ── TaskGroup ────────────────────────────────────────────────────────────────────────────────────

struct TaskGroup::State {
  explicit State(Runtime& runtime) : ended(runtime) {}
  std::size_t running = 0;
  Signal ended;
};

TaskGroup::TaskGroup(Runtime& runtime)
    : runtime_(&runtime), state_(std::make_shared<State>(runtime)) {}

void TaskGroup::spawn(asio::awaitable<void> task) {
  ++state_->running;
  asio::co_spawn(runtime_->executor(), std::move(task),
                 [state = state_](const std::exception_ptr& failure) {
                   ORRERY_ASSERT(failure == nullptr);
                   if (--state->running == 0) state->ended.notify();
                 });
}

asio::awaitable<void> TaskGroup::join() {
  while (state_->running > 0) co_await state_->ended.wait();
}

std::size_t TaskGroup::running() const { return state_->running; }

// ── Turns ────────────────────────────────────────────────────────────────────────────────────────

asio::awaitable<Turns::Turn> Turns::take() {
  if (std::exchange(taken_, true)) {
    // The turn that ends leaves `taken_` set for the one that it wakes.
    co_await wait_in(*runtime_, MonotonicTime::max(),
                     [this](Runtime::WaitId id) { waiting_.push_back(id); });
  }
  co_return Turn(this);
}

void Turns::next() {
  if (waiting_.empty()) {
    taken_ = false;
    return;
  }
  runtime_->notify(waiting_.front());
  waiting_.erase(waiting_.begin());
}

// ── ThreadRuntime ────────────────────────────────────────────────────────────────────────────────

struct ThreadRuntime::State {
  explicit State(std::uint64_t seed) : chance(seed) {}

  /// One timer of the io_context serves all waits: it is set to the earliest.
  void set_timer() {
    if (due.empty()) return;
    const MonotonicTime earliest = due.begin()->first;
    if (earliest == timer_at) return;
    timer_at = earliest;
    timer.expires_at(earliest);
    timer.async_wait([this](const boost::system::error_code& error) {
      if (error) return;  // It was set to another time.
      timer_at = MonotonicTime::max();
      fire_due();
    });
  }

  void fire_due() {
    const MonotonicTime now = std::chrono::steady_clock::now();
    while (!due.empty() && due.begin()->first <= now) {
      auto node = waits.extract(due.begin()->second);
      due.erase(due.begin());
      node.mapped().handler(false);
    }
    set_timer();
  }

  struct Wait {
    MonotonicTime deadline;
    WaitHandler handler;
  };

  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  asio::steady_timer timer{context};
  MonotonicTime timer_at = MonotonicTime::max();
  SystemClock clock;
  std::mt19937_64 chance;
  WaitId last_id = 0;
  std::map<WaitId, Wait> waits;
  std::set<std::pair<MonotonicTime, WaitId>> due;  // Those that have a deadline.
  std::thread thread;
};

ThreadRuntime::ThreadRuntime(std::uint64_t seed) : state_(std::make_unique<State>(seed)) {
  state_->thread = std::thread([state = state_.get()] { state->context.run(); });
}

ThreadRuntime::~ThreadRuntime() {
  state_->context.stop();
  state_->thread.join();
  // Frames of coroutines go with their handlers, and may end waits on their way out.
  auto waits = std::move(state_->waits);
  state_->due.clear();
}

asio::any_io_executor ThreadRuntime::executor() { return state_->context.get_executor(); }

MonotonicTime ThreadRuntime::now() const { return std::chrono::steady_clock::now(); }

WallTime ThreadRuntime::wall_now() const { return state_->clock.now(); }

std::uint64_t ThreadRuntime::random() { return state_->chance(); }

void ThreadRuntime::post(std::move_only_function<void()> task) {
  asio::post(state_->context, std::move(task));
}

Runtime::WaitId ThreadRuntime::wait(MonotonicTime deadline, WaitHandler handler) {
  const WaitId id = ++state_->last_id;
  state_->waits.emplace(id, State::Wait{deadline, std::move(handler)});
  if (deadline != MonotonicTime::max()) {
    state_->due.emplace(deadline, id);
    state_->set_timer();
  }
  return id;
}

void ThreadRuntime::notify(WaitId id) {
  auto node = state_->waits.extract(id);
  if (node.empty()) return;
  state_->due.erase({node.mapped().deadline, id});
  asio::post(state_->context,
             [handler = std::move(node.mapped().handler)]() mutable { handler(true); });
}

}  // namespace orrery::processor
