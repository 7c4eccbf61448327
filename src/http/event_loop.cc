#include "http/event_loop.h"

#include <algorithm>

#include "base/assert.h"
#include "http/connection.h"
#include "http/response_head.h"

namespace orrery::http {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kScrapBytes = 64 * 1024;

// A limit may be overrun by a tenth, but nobody waits for less than this or needs more.
milliseconds tick_for(const Limits& limits) {
  const auto shortest = std::min({limits.request_time_max, limits.idle_time_max,
                                  limits.send_time_max, limits.send_time_max_when_short});
  return std::clamp(shortest / 10, milliseconds(5), milliseconds(500));
}

}  // namespace

// One thread runs the context, but others post to it, so its locks stay on: a hint of 1 says just
// that.
EventLoop::EventLoop(const Limits& limits, const MemoryBudget& memory)
    : context_(1),
      work_(context_.get_executor()),
      timer_(context_),
      memory_(memory),
      tick_(tick_for(limits)) {}

EventLoop::~EventLoop() { ORRERY_ASSERT(!thread_.joinable()); }

void EventLoop::start() {
  ended_ = end_.get_future();
  thread_ = std::thread([this] {
    context_.run();
    end_.set_value();
  });
}

bool EventLoop::ended_by(Time time) {
  return !ended_.valid() || ended_.wait_until(time) == std::future_status::ready;
}

void EventLoop::join() {
  if (thread_.joinable()) thread_.join();
}

void EventLoop::add(Connection& connection) {
  connection.set_index(connections_.size());
  connections_.push_back(&connection);
  if (!ticking_) {
    now_ = std::chrono::steady_clock::now();
    schedule_tick();
  }
}

void EventLoop::remove(Connection& connection) {
  const auto index = connection.index();
  ORRERY_ASSERT(index < connections_.size() && connections_[index] == &connection);
  connections_[index] = connections_.back();
  connections_[index]->set_index(index);
  connections_.pop_back();
  if (stopping_ && connections_.empty()) finish();
}

void EventLoop::schedule_tick() {
  ticking_ = true;
  timer_.expires_after(tick_);
  timer_.async_wait([this](const boost::system::error_code&) { tick(); });
}

void EventLoop::tick() {
  ticking_ = false;
  now_ = std::chrono::steady_clock::now();
  // Expiring only cancels I/O: connections leave the list later, when they are resumed.
  const bool memory_is_short = memory_.is_short();
  for (Connection* connection : connections_) {
    if (connection->deadline(memory_is_short) < now_) connection->expire();
  }
  if (!connections_.empty()) schedule_tick();
}

void EventLoop::close_strangers(std::size_t count, std::uint64_t newest) {
  std::vector<Connection*> strangers;
  for (Connection* connection : connections_) {
    if (connection->is_idle_stranger() && connection->order() < newest) {
      strangers.push_back(connection);
    }
  }
  count = std::min(count, strangers.size());
  const auto end = strangers.begin() + static_cast<std::ptrdiff_t>(count);
  std::ranges::nth_element(strangers, end, {}, &Connection::order);
  for (Connection* connection : std::span(strangers.begin(), end)) connection->close_idle();
}

std::span<char> EventLoop::scrap() {
  if (!scrap_) scrap_ = std::make_unique_for_overwrite<char[]>(kScrapBytes);
  return {scrap_.get(), kScrapBytes};
}

std::string_view EventLoop::date() {
  if (const auto second = clock_.unix_seconds(); second != date_second_) {
    date_second_ = second;
    date_ = http_date(second);
  }
  return date_;
}

void EventLoop::begin_stop() {
  stopping_ = true;
  for (Connection* connection : connections_) connection->begin_stop();
  if (connections_.empty()) finish();
}

// Without work guard and timer the context runs out of work, and its thread ends.
void EventLoop::finish() {
  work_.reset();
  timer_.cancel();
}

void EventLoop::cut_connections() {
  for (Connection* connection : connections_) connection->cut();
}

}  // namespace orrery::http
