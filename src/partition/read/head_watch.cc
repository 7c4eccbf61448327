#include "partition/read/head_watch.h"

#include <algorithm>

#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/assert.h"

namespace orrery::partition {
namespace {

namespace asio = boost::asio;
namespace intrusive = boost::intrusive;
using TimePoint = std::chrono::steady_clock::time_point;

/// An event loop wakes so many before it looks after its other connections.
constexpr std::size_t kWakeMax = 64;
/// Deadlines are looked after together: not more often than this.
constexpr std::chrono::milliseconds kDeadlineStep{100};

}  // namespace

// ── The desk: everything here happens on its event loop ──

class WaitingRoom::Desk : public std::enable_shared_from_this<Desk> {
 public:
  explicit Desk(asio::any_io_executor executor) : executor_(std::move(executor)) {}

  const asio::any_io_executor& executor() const { return executor_; }

  void sit(Waiter& waiter) {
    waiting_.push_back(waiter);
    if (waiter.deadline_ < timer_at_) set_timer(waiter.deadline_);
  }

  void stand_up(Waiter& waiter) {
    waiter.desk_hook_.unlink();
    // The timer must not outlive the event loop. Without readers there is none.
    if (waiting_.empty()) drop_timer();
  }

  void make_ready(Waiter& waiter, WakeReason woken) {
    waiter.woken_ = woken;
    if (!waiter.ready_hook_.is_linked()) ready_.push_back(waiter);
  }

  void wake_ready() {
    for (std::size_t count = 0; count < kWakeMax && !ready_.empty(); ++count) {
      Waiter& waiter = ready_.front();
      ready_.pop_front();
      waiter.finish(waiter.woken_);
    }
    if (ready_.empty()) return;
    asio::post(executor_, [self = shared_from_this()] { self->wake_ready(); });
  }

  void wake_all(WakeReason woken) {
    // A reader that is woken may wait again at once, but not after what we wake for.
    while (!waiting_.empty()) waiting_.front().finish(woken);
  }

 private:
  using Waiting =
      intrusive::list<Waiter, intrusive::member_hook<Waiter, Waiter::Hook, &Waiter::desk_hook_>,
                      intrusive::constant_time_size<false>>;
  using Ready =
      intrusive::list<Waiter, intrusive::member_hook<Waiter, Waiter::Hook, &Waiter::ready_hook_>,
                      intrusive::constant_time_size<false>>;

  void set_timer(TimePoint at) {
    timer_at_ = at;
    if (!timer_) timer_.emplace(executor_);
    timer_->expires_at(at);
    timer_->async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (!error) self->look_at_deadlines();
    });
  }

  void drop_timer() {
    timer_.reset();
    timer_at_ = TimePoint::max();
  }

  void look_at_deadlines() {
    const auto now = std::chrono::steady_clock::now();
    timer_at_ = TimePoint::max();
    auto next = TimePoint::max();
    std::vector<Waiter*> late;
    for (Waiter& waiter : waiting_) {
      if (waiter.deadline_ <= now) {
        late.push_back(&waiter);
      } else {
        next = std::min(next, waiter.deadline_);
      }
    }
    if (next != TimePoint::max()) set_timer(std::max(next, now + kDeadlineStep));
    // A reader that is resumed touches no other one.
    for (Waiter* waiter : late) waiter->finish(WakeReason::Deadline);
  }

  const asio::any_io_executor executor_;
  Waiting waiting_;
  Ready ready_;  // Of those waiting.
  std::optional<asio::steady_timer> timer_;
  TimePoint timer_at_ = TimePoint::max();
};

// ── The room ──

std::optional<WaitingRoom::Seat> WaitingRoom::take_seat() {
  if (readers_.fetch_add(1, std::memory_order_relaxed) < readers_max_) return Seat(*this);
  readers_.fetch_sub(1, std::memory_order_relaxed);
  return {};
}

std::shared_ptr<WaitingRoom::Desk> WaitingRoom::desk_of(const asio::any_io_executor& executor) {
  const std::lock_guard lock(mutex_);
  for (const auto& desk : desks_) {
    if (desk->executor() == executor) return desk;
  }
  desks_.push_back(std::make_shared<Desk>(executor));
  return desks_.back();
}

void WaitingRoom::close() {
  closed_.store(true, std::memory_order_release);
  const std::lock_guard lock(mutex_);
  for (const auto& desk : desks_) {
    asio::post(desk->executor(), [desk] { desk->wake_all(WakeReason::Stopping); });
  }
}

// ── The watch ──

struct HeadWatch::State : std::enable_shared_from_this<State> {
  using Links =
      intrusive::list<Waiter::Link,
                      intrusive::member_hook<Waiter::Link, Waiter::Hook, &Waiter::Link::hook>,
                      intrusive::constant_time_size<false>>;
  /// Those who wait on one event loop.
  struct Group {
    std::shared_ptr<WaitingRoom::Desk> desk;
    Links links;
    bool told = false;  // The loop has been, or is about to be, told.
  };

  Group& group_of(const std::shared_ptr<WaitingRoom::Desk>& desk) {
    for (const auto& group : groups) {
      if (group->desk == desk) return *group;
    }
    groups.push_back(std::make_unique<Group>(desk));
    return *groups.back();
  }

  // With the mutex held.
  void tell_groups() {
    for (const auto& group : groups) {
      if (group->links.empty() || group->told) continue;
      group->told = true;
      asio::post(group->desk->executor(),
                 [self = shared_from_this(), told = group.get()] { self->wake(*told); });
    }
  }

  void wake(Group& group) {
    {
      const std::lock_guard lock(mutex);
      group.told = false;
      const auto woken = retired ? WakeReason::Retired : WakeReason::Head;
      for (auto link = group.links.begin(); link != group.links.end();) {
        Waiter::Link& each = *link++;
        if (each.seen < latest || retired) group.desk->make_ready(*each.waiter, woken);
      }
    }
    group.desk->wake_ready();
  }

  /// How many links there are: what moved() looks at.
  std::atomic<std::size_t> waiting{0};
  std::mutex mutex;
  std::vector<std::unique_ptr<Group>> groups;  // One per event loop; they stay.
  Lsn latest;
  bool retired = false;
};

HeadWatch::HeadWatch(const std::atomic<std::uint64_t>& head)
    : head_(head), state_(std::make_shared<State>()) {}

HeadWatch::~HeadWatch() = default;

void HeadWatch::moved() {
  // A waiter has entered the list and then looked at the head; we have stored the head and then
  // look at the list. Between the two steps stands a fence on either side, so one of us sees the
  // other.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (state_->waiting.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard lock(state_->mutex);
  state_->latest = head();
  state_->tell_groups();
}

void HeadWatch::retire() {
  const std::lock_guard lock(state_->mutex);
  state_->retired = true;
  state_->tell_groups();
}

// ── The reader ──

Waiter::Waiter(WaitingRoom& room, const asio::any_io_executor& executor)
    : room_(room), desk_(room.desk_of(executor)) {}

Waiter::~Waiter() {
  unlink();
  if (desk_hook_.is_linked()) desk_->stand_up(*this);
}

bool Waiter::link(const Target& target, Link& link) {
  link.waiter = this;
  link.seen = target.seen;
  link.state = target.watch->state_;
  auto& state = *link.state;
  const std::lock_guard lock(state.mutex);
  if (state.retired) return false;
  state.group_of(desk_).links.push_back(link);
  state.waiting.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void Waiter::unlink() {
  const auto leave = [](Link& link) {
    if (!link.state) return;
    {
      const std::lock_guard lock(link.state->mutex);
      if (link.hook.is_linked()) {
        link.hook.unlink();
        link.state->waiting.fetch_sub(1, std::memory_order_relaxed);
      }
    }
    link.state = nullptr;
  };
  leave(first_link_);
  for (const auto& link : more_links_) leave(*link);
  more_links_.clear();
}

asio::awaitable<WakeReason> Waiter::wait(std::span<const Target> targets, TimePoint deadline) {
  ORRERY_ASSERT(!resume_);
  if (interrupted_) co_return WakeReason::Interrupted;
  if (room_.closed()) co_return WakeReason::Stopping;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (i > 0) more_links_.push_back(std::make_unique<Link>());
    if (!link(targets[i], i == 0 ? first_link_ : *more_links_.back())) {
      unlink();
      co_return WakeReason::Retired;
    }
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const Target& target : targets) {
    if (target.watch->head() > target.seen) {
      unlink();
      co_return WakeReason::Head;
    }
  }
  deadline_ = deadline;
  co_return co_await asio::async_initiate<decltype(asio::use_awaitable), void(WakeReason)>(
      [this](auto handler) {
        resume_ = std::move(handler);
        desk_->sit(*this);
        // Closed since we looked: the thread that closed may have missed us.
        if (room_.closed()) {
          asio::post(desk_->executor(), [desk = desk_] { desk->wake_all(WakeReason::Stopping); });
        }
      },
      asio::use_awaitable);
}

void Waiter::interrupt() {
  interrupted_ = true;
  finish(WakeReason::Interrupted);
}

void Waiter::finish(WakeReason woken) {
  if (!resume_) return;
  unlink();
  ready_hook_.unlink();
  desk_->stand_up(*this);
  // The last thing: it may destroy this.
  auto resume = std::exchange(resume_, nullptr);
  resume(woken);
}

}  // namespace orrery::partition
