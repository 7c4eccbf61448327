#include "processor/hosting/observer_calls.h"

#include <condition_variable>
#include <deque>
#include <thread>

#include <fmt/format.h>

namespace orrery::processor {

bool HostLink::post(std::move_only_function<void()> task) {
  const std::scoped_lock lock(mutex_);
  if (runtime_ == nullptr) return false;
  runtime_->post(std::move(task));
  return true;
}

void HostLink::close() {
  const std::scoped_lock lock(mutex_);
  runtime_ = nullptr;
}

namespace {

struct Call {
  Call(Runtime& runtime, ObserverCalls::Work todo) : work(std::move(todo)), ended(runtime) {}

  ObserverCalls::Work work;
  CallResult result;
  // For the host's thread.
  bool done = false;
  Signal ended;
};

void carry_out(Call& call) {
  try {
    call.result.outcome = call.work();
  } catch (const std::exception& exception) {
    call.result.error = exception.what();
  } catch (...) {
    call.result.error = "something that is no std::exception";
  }
  // Its captures are destroyed here: the destructors of an observer are the user's code, too.
  call.work = nullptr;
}

}  // namespace

asio::awaitable<CallResult> ObserverCalls::run(Work work,
                                               std::optional<std::chrono::milliseconds> time_max,
                                               std::function<void()> overdue) {
  const MonotonicTime begin = runtime_.now();
  auto call = std::make_shared<Call>(runtime_, std::move(work));
  try {
    executor_([call, link = link_] {
      carry_out(*call);
      link->post([call] {
        call->done = true;
        call->ended.notify();
      });
    });
  } catch (const std::exception& exception) {
    call->result.error = fmt::format("the executor refuses: {}", exception.what());
    call->done = true;
  }
  if (time_max) {
    while (!call->done && co_await call->ended.wait_until(begin + *time_max)) {
    }
    if (!call->done) overdue();
  }
  while (!call->done) co_await call->ended.wait();
  call->result.duration =
      std::chrono::duration_cast<std::chrono::microseconds>(runtime_.now() - begin);
  co_return std::move(call->result);
}

// ── ObserverThreads ──────────────────────────────────────────────────────────────────────────────

struct ObserverThreads::State {
  std::mutex mutex;  // Guards what follows.
  std::condition_variable changed;
  std::deque<std::function<void()>> waiting;
  std::size_t idle = 0;
  std::size_t alive = 0;
  bool stopping = false;

  void serve() {
    std::unique_lock lock(mutex);
    while (true) {
      ++idle;
      changed.wait(lock, [this] { return stopping || !waiting.empty(); });
      --idle;
      if (waiting.empty()) break;
      {
        const std::function<void()> work = std::move(waiting.front());
        waiting.pop_front();
        lock.unlock();
        work();
      }
      lock.lock();
    }
    --alive;
    changed.notify_all();
  }
};

ObserverThreads::ObserverThreads() : state_(std::make_shared<State>()) {}

ObserverThreads::~ObserverThreads() { stop(std::chrono::milliseconds(0)); }

void ObserverThreads::run(std::function<void()> work) {
  const std::scoped_lock lock(state_->mutex);
  state_->waiting.push_back(std::move(work));
  if (state_->idle >= state_->waiting.size()) {
    state_->changed.notify_one();
    return;
  }
  ++state_->alive;
  // Detached, since a call of the user's may never return; stop() waits for those that do.
  std::thread([state = state_] { state->serve(); }).detach();
}

void ObserverThreads::stop(std::chrono::milliseconds time_max) {
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  state_->changed.notify_all();
  state_->changed.wait_for(lock, time_max, [this] { return state_->alive == 0; });
}

}  // namespace orrery::processor
