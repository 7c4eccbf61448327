#include "base/background_pool.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "base/assert.h"
#include "base/clock.h"

namespace orrery {
namespace {

/// So soon work goes on when nobody presses any more.
constexpr std::chrono::milliseconds kLook{2};

BackgroundPool::Duration now() { return std::chrono::steady_clock::now().time_since_epoch(); }

/// The client that the calling thread works for, if it is one of a pool.
thread_local ClientId current;

}  // namespace

BackgroundPool::BackgroundPool(std::size_t threads, std::function<bool()> pressed, Rest rest,
                               int niceness)
    : pressed_(std::move(pressed)),
      rest_(rest),
      niceness_(niceness),
      threads_max_(threads),
      threads_per_client_(std::max<std::size_t>(threads, 2) - 1) {
  const std::lock_guard lock(mutex_);
  start_thread();
}

void BackgroundPool::start_thread() {
  threads_.emplace_back([this] {
    // On Linux the priority is a thread's own. Where a sandbox forbids it, everyone is treated
    // alike.
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), niceness_);
    run();
  });
}

void BackgroundPool::post(Work work) { post(std::move(work), current); }

void BackgroundPool::post(Work work, ClientId id) {
  {
    const std::lock_guard lock(mutex_);
    Client& client = clients_[id.client];
    if (client.connections.empty()) turns_.push_back(id.client);
    auto connection = std::ranges::find(client.connections, id.connection, &Client::Connection::id);
    if (connection == client.connections.end()) {
      connection = client.connections.insert(connection, {.id = id.connection, .waiting = {}});
    }
    connection->waiting.push_back(std::move(work));
    ++waiting_;
    if (!joining_ && threads_.size() < threads_max_ && running_ + waiting_ > threads_.size()) {
      try {
        start_thread();
      } catch (const std::system_error&) {
        // The machine has none left: those that there are do the work.
      }
    }
  }
  changed_.notify_one();
}

void BackgroundPool::join() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    joining_ = true;
    threads.swap(threads_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

void BackgroundPool::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock,
                  [this] { return can_take() || (joining_ && turns_.empty() && running_ == 0); });
    if (!can_take()) break;
    Taken taken = take();
    lock.unlock();
    run(taken);
    taken.work = nullptr;
    lock.lock();
    const auto client = clients_.find(taken.client.client);
    // A client is known for as long as it has work running, and never has more than its share.
    ORRERY_ASSERT(client != clients_.end() && running_ > 0);
    ORRERY_ASSERT(client->second.running > 0 && client->second.running <= threads_per_client_);
    --running_;
    const bool was_at_limit = client->second.running-- == threads_per_client_;
    if (client->second.running == 0 && client->second.connections.empty()) clients_.erase(client);
    // Threads that left this client's work alone may take it now; those that wait for the end look.
    if (was_at_limit || joining_) changed_.notify_all();
  }
}

bool BackgroundPool::can_take() const {
  return std::ranges::any_of(
      turns_, [this](std::uint64_t id) { return clients_.at(id).running < threads_per_client_; });
}

BackgroundPool::Taken BackgroundPool::take() {
  const auto turn = std::ranges::find_if(
      turns_, [this](std::uint64_t id) { return clients_.at(id).running < threads_per_client_; });
  const std::uint64_t id = *turn;
  Client& client = clients_.at(id);
  Client::Connection& connection = client.connections.front();
  Taken taken{.work = std::move(connection.waiting.front()),
              .client = {.client = id, .connection = connection.id}};
  connection.waiting.pop_front();
  ORRERY_ASSERT(waiting_ > 0);
  --waiting_;
  ++client.running;
  ++running_;
  ORRERY_ASSERT(running_ <= threads_max_);
  // It is the turn of others, if there are any.
  if (connection.waiting.empty()) {
    client.connections.pop_front();
  } else {
    client.connections.splice(client.connections.end(), client.connections,
                              client.connections.begin());
  }
  if (client.connections.empty()) {
    turns_.erase(turn);
  } else {
    turns_.splice(turns_.end(), turns_, turn);
  }
  return taken;
}

void BackgroundPool::wait_for_turn() const {
  while (now() < rest_until_.load(std::memory_order_relaxed) && pressed_() && !joining_) {
    std::this_thread::sleep_for(kLook);
  }
}

void BackgroundPool::run(Taken& taken) {
  wait_for_turn();
  const auto began = now();
  const auto cpu_before = thread_cpu_time();
  current = taken.client;
  taken.work();
  current = {};
  const auto ended = now();
  const Duration waited =
      std::max<Duration>(Duration(), ended - began - (thread_cpu_time() - cpu_before));
  // Divided rather than multiplied, for there is no bound to how long work may take.
  const auto rest = waited < rest_.max / rest_.factor ? waited * rest_.factor : rest_.max;
  // Of two that end at once one may be forgotten; the next ones make up for it.
  rest_until_.store(std::max(ended, rest_until_.load(std::memory_order_relaxed)) + rest,
                    std::memory_order_relaxed);
}

}  // namespace orrery
