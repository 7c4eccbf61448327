// Waiting for the head of a partition to move, without a thread and with little memory per reader.
//
//   WaitingRoom  of the server: how many may wait, and who they are
//   HeadWatch    of a partition: whom to wake when its head moves
//   Waiter       of a reader: waits for one or several heads, a deadline, or an interruption
//
// Heads move on the committer's thread, which has better things to do than to wake a thousand
// readers: it tells each event loop once, and the loop wakes those of its readers whom it concerns.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/intrusive/list.hpp>

#include "protocol/ids.h"

namespace orrery::partition {

class Waiter;

/// Why a reader stopped waiting.
enum class WakeReason {
  Head,         ///< one of the heads is above what the reader has seen
  Deadline,     ///< nothing happened in time
  Retired,      ///< a partition has been replaced by others, or its container deleted: look it up
  Interrupted,  ///< Waiter::interrupt was called
  Stopping,     ///< the server stops
};

/// The readers that wait on a server. Thread-safe. Outlives its seats and waiters.
class WaitingRoom {
 public:
  static constexpr std::size_t kReadersMax = 10'000;
  explicit WaitingRoom(std::size_t readers_max = kReadersMax) : readers_max_(readers_max) {}

  /// The right to wait, given back when it is destroyed.
  class Seat {
   public:
    Seat(Seat&& other) noexcept : room_(std::exchange(other.room_, nullptr)) {}
    Seat& operator=(Seat&& other) noexcept {
      std::swap(room_, other.room_);
      return *this;
    }
    ~Seat() {
      if (room_ != nullptr) room_->readers_.fetch_sub(1, std::memory_order_relaxed);
    }

   private:
    friend class WaitingRoom;
    explicit Seat(WaitingRoom& room) : room_(&room) {}
    WaitingRoom* room_;
  };
  /// Nothing when as many as may wait already do.
  std::optional<Seat> take_seat();
  std::size_t readers() const { return readers_.load(std::memory_order_relaxed); }
  std::size_t readers_max() const { return readers_max_; }

  /// Wakes everybody, and lets nobody wait again. Returns before they have all left.
  void close();
  bool closed() const { return closed_.load(std::memory_order_acquire); }

 private:
  friend class Waiter;
  friend class HeadWatch;
  class Desk;  // Belongs to the readers of one event loop.

  std::shared_ptr<Desk> desk_of(const boost::asio::any_io_executor& executor);

  const std::size_t readers_max_;
  std::atomic<std::size_t> readers_{0};
  std::atomic<bool> closed_{false};
  std::mutex mutex_;
  std::vector<std::shared_ptr<Desk>> desks_;  // Guarded by mutex_. Shared with what is posted.
};

/// One per partition.
class HeadWatch {
 public:
  /// `head` is the partition's and lives as long as this.
  explicit HeadWatch(const std::atomic<std::uint64_t>& head);
  ~HeadWatch();

  /// The head has been stored. One load when nobody waits; never blocks for long.
  void moved();
  /// This partition will never move again: wakes its readers, and lets nobody wait for it. Call it
  /// once a lookup of the container finds its successors.
  void retire();

  Lsn head() const { return Lsn{head_.load(std::memory_order_acquire)}; }

 private:
  friend class Waiter;
  struct State;
  const std::atomic<std::uint64_t>& head_;
  std::shared_ptr<State> state_;  // Shared with what is posted to event loops.
};

/// For one thread: that of the executor, which must be single-threaded, as event loops are. A
/// reader keeps it while it follows the feed.
class Waiter {
 public:
  struct Target {
    HeadWatch* watch;  ///< outlives the wait
    Lsn seen;
  };

  Waiter(WaitingRoom& room, const boost::asio::any_io_executor& executor);
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  /// Returns at once if a head is above what was seen, or there will be nothing to wait for. A
  /// deadline may pass up to a tenth of a second late.
  boost::asio::awaitable<WakeReason> wait(std::span<const Target> targets,
                                          std::chrono::steady_clock::time_point deadline);
  /// Ends the wait, and every later one at once. On the executor's thread.
  void interrupt();

 private:
  friend class HeadWatch;
  friend class WaitingRoom;
  using Hook = boost::intrusive::list_member_hook<
      boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

  /// A place in the list of those who wait for a partition.
  struct Link {
    Waiter* waiter = nullptr;
    Lsn seen;
    std::shared_ptr<HeadWatch::State> state;
    Hook hook;  // Guarded by the state's mutex.
  };

  bool link(const Target& target, Link& link);
  void unlink();
  void finish(WakeReason woken);

  WaitingRoom& room_;
  const std::shared_ptr<WaitingRoom::Desk> desk_;     // Shared with what is posted.
  std::move_only_function<void(WakeReason)> resume_;  // Set while it waits.
  std::chrono::steady_clock::time_point deadline_;
  Link first_link_;
  std::vector<std::unique_ptr<Link>> more_links_;  // Of those who wait for several.
  Hook desk_hook_;                                 // In the desk's list of those who wait.
  Hook ready_hook_;                                // In the desk's list of those to be woken.
  WakeReason woken_ = WakeReason::Head;            // Will be told, when it is in that list.
  bool interrupted_ = false;
};

}  // namespace orrery::partition
