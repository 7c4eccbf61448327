// BackgroundPool: threads for long reads, which clients share fairly, and which yield to more
// urgent work.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace orrery {

/// The client that work is done for. Its connections share its turns and its threads.
struct ClientId {
  std::uint64_t client = 0;      ///< 0: the server's own work
  std::uint64_t connection = 0;  ///< among those of the client

  bool operator==(const ClientId&) const = default;
};

/// A pool for work that is long and never urgent. Its threads run at a lower priority than all
/// others of the process. That alone is not enough where the work makes work for others (a page
/// that was read has to be sent): while others press, the pool also rests, the longer the more it
/// had to wait for a processor or for the disk. Where there is enough for everyone it never rests.
///
/// Clients have their turns one after the other, and so have the connections of each. No client has
/// all threads at once: one that comes later finds a thread, or waits for one piece of work to end.
class BackgroundPool {
 public:
  using Work = std::move_only_function<void()>;
  using Duration = std::chrono::steady_clock::duration;

  struct Rest {
    int factor = 2;                                 ///< for each moment that work had to wait
    Duration max = std::chrono::milliseconds(500);  ///< after one piece of work
  };
  /// Of 40 steps; about a tenth of the share of others.
  static constexpr int kNiceness = 10;

  /// The threads in the name of one client.
  class Lane {
   public:
    Lane(BackgroundPool& pool, ClientId client) : pool_(pool), client_(client) {}
    void post(Work work) const { pool_.post(std::move(work), client_); }

   private:
    BackgroundPool& pool_;
    ClientId client_;
  };

  /// With at most so many threads, started as they are needed. `pressed` tells whether others wait
  /// now; it is called on the pool's threads, and must be cheap.
  BackgroundPool(std::size_t threads, std::function<bool()> pressed, Rest rest,
                 int niceness = kNiceness);
  BackgroundPool(std::size_t threads, std::function<bool()> pressed)
      : BackgroundPool(threads, std::move(pressed), Rest()) {}
  ~BackgroundPool() { join(); }
  BackgroundPool(const BackgroundPool&) = delete;
  BackgroundPool& operator=(const BackgroundPool&) = delete;

  /// Runs `work` when the turn of the client comes.
  void post(Work work, ClientId client);
  /// The same for the client of the calling thread; outside of the pool, for the server itself.
  void post(Work work);
  Lane lane(ClientId client) { return {*this, client}; }

  /// How many threads one client may have at once.
  std::size_t threads_per_client() const { return threads_per_client_; }

  /// Waits until everything posted has run, and what that has posted. Nobody rests any more.
  void join();

 private:
  /// The queue of one client, a part for each of its connections.
  struct Client {
    struct Connection {
      std::uint64_t id;
      std::deque<Work> waiting;
    };
    std::list<Connection> connections;  // That have work waiting; whose turn it is first.
    std::size_t running = 0;
  };
  struct Taken {
    Work work;
    ClientId client;
  };

  void start_thread();
  void run();
  void run(Taken& taken);
  bool can_take() const;
  Taken take();
  void wait_for_turn() const;

  const std::function<bool()> pressed_;
  const Rest rest_;
  const int niceness_;
  const std::size_t threads_max_;
  const std::size_t threads_per_client_;
  std::atomic<Duration> rest_until_{};  // By the steady clock.
  std::atomic<bool> joining_{false};

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_, as all that follows.
  std::map<std::uint64_t, Client> clients_;  // That have work waiting or running.
  std::list<std::uint64_t> turns_;           // Those with work waiting; whose turn it is first.
  std::size_t waiting_ = 0;
  std::size_t running_ = 0;
  std::vector<std::thread> threads_;  // Started when there is work for one more.
};

}  // namespace orrery
