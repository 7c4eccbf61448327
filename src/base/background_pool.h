// BackgroundPool: threads for long reads, which give way to whoever is in more of a hurry.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>

#include <boost/asio/thread_pool.hpp>

namespace orrery {

/// A pool for work that is long and never urgent. Its threads run at a lower priority than all
/// others of the process. That alone is not enough where the work makes work for others (a page
/// that was read has to be sent): while others press, the pool also rests, the longer the more it
/// had to wait for a processor or for the disk. Where there is enough for everyone it never rests.
class BackgroundPool {
 public:
  using Work = std::move_only_function<void()>;
  using Duration = std::chrono::steady_clock::duration;

  struct Rest {
    int factor = 2;                                 ///< for each moment that work had to wait
    Duration max = std::chrono::milliseconds(500);  ///< after one piece of work
  };

  /// `pressed` tells whether others wait now; it is called on the pool's threads, and must be
  /// cheap.
  BackgroundPool(std::size_t threads, std::function<bool()> pressed, Rest rest);
  BackgroundPool(std::size_t threads, std::function<bool()> pressed)
      : BackgroundPool(threads, std::move(pressed), Rest()) {}
  ~BackgroundPool() { join(); }
  BackgroundPool(const BackgroundPool&) = delete;
  BackgroundPool& operator=(const BackgroundPool&) = delete;

  /// Runs `work` when its turn comes.
  void post(Work work);
  /// Waits until everything posted has run. Nobody rests any more.
  void join();

 private:
  void wait_for_turn() const;
  void run(Work& work);

  const std::function<bool()> pressed_;
  const Rest rest_;
  std::atomic<Duration> rest_until_{};  // By the steady clock.
  std::atomic<bool> joining_{false};
  boost::asio::thread_pool pool_;
};

}  // namespace orrery
