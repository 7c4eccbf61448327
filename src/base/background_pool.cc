#include "base/background_pool.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <latch>
#include <memory>
#include <thread>

#include <boost/asio/post.hpp>

namespace orrery {
namespace {

/// Of 40 steps; about a tenth of the share of others.
constexpr int kNiceness = 10;
/// So soon work goes on when nobody presses any more.
constexpr std::chrono::milliseconds kLook{2};

BackgroundPool::Duration now() { return std::chrono::steady_clock::now().time_since_epoch(); }

BackgroundPool::Duration thread_cpu_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

BackgroundPool::BackgroundPool(std::size_t threads, std::function<bool()> pressed, Rest rest)
    : pressed_(std::move(pressed)), rest_(rest), pool_(threads) {
  // On Linux the priority is a thread's own. Each waits for the others, so that each gets one turn.
  const auto turns = std::make_shared<std::latch>(static_cast<std::ptrdiff_t>(threads));
  for (std::size_t i = 0; i < threads; ++i) {
    boost::asio::post(pool_, [turns] {
      // Where a sandbox forbids it, everyone is treated alike.
      ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNiceness);
      turns->arrive_and_wait();
    });
  }
}

void BackgroundPool::post(Work work) {
  boost::asio::post(pool_, [this, work = std::move(work)]() mutable { run(work); });
}

void BackgroundPool::join() {
  joining_ = true;
  pool_.join();
}

void BackgroundPool::wait_for_turn() const {
  while (now() < rest_until_.load(std::memory_order_relaxed) && pressed_() && !joining_) {
    std::this_thread::sleep_for(kLook);
  }
}

void BackgroundPool::run(Work& work) {
  wait_for_turn();
  const auto began = now();
  const auto cpu_before = thread_cpu_time();
  work();
  const auto ended = now();
  const auto waited = std::max(Duration(), ended - began - (thread_cpu_time() - cpu_before));
  // Divided rather than multiplied, for there is no bound to how long work may take.
  const auto rest = waited < rest_.max / rest_.factor ? waited * rest_.factor : rest_.max;
  // Of two that end at once one may be forgotten; the next ones make up for it.
  rest_until_.store(std::max(ended, rest_until_.load(std::memory_order_relaxed)) + rest,
                    std::memory_order_relaxed);
}

}  // namespace orrery
