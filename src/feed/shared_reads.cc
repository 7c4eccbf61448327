#include "feed/shared_reads.h"

#include <algorithm>
#include <utility>

#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace orrery::feed {
namespace {

/// An event loop resumes so many before it looks after its other connections.
constexpr std::size_t kResumeMax = 64;

}  // namespace

Async<std::shared_ptr<const void>> SharedReads::get_any(std::string key, std::uint64_t now,
                                                        Read read,
                                                        const BackgroundPool::Lane* other) {
  if (auto found = find(key, now)) co_return found;
  co_return co_await asio::async_initiate<decltype(asio::use_awaitable), void(Outcome)>(
      [this, now, other](auto handler, std::string asked, Read how) {
        const auto executor = asio::get_associated_executor(handler);
        ask(std::move(asked), now, std::move(how), other, executor, std::move(handler));
      },
      asio::use_awaitable, std::move(key), std::move(read));
}

std::shared_ptr<const void> SharedReads::find(std::string_view key, std::uint64_t now) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  const auto& entry = *found->second;
  if (!entry.read.value || entry.read.moment < now) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  stats_.shared.fetch_add(1, std::memory_order_relaxed);
  return entry.read.value;
}

void SharedReads::ask(std::string key, std::uint64_t now, Read read,
                      const BackgroundPool::Lane* other, const asio::any_io_executor& executor,
                      Resume resume) {
  std::shared_ptr<Flight> flight;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = entry_of(key);
    if (entry.read.value && entry.read.moment >= now) {
      // It has arrived since we looked.
      stats_.shared.fetch_add(1, std::memory_order_relaxed);
      asio::post(executor, [resume = std::move(resume), value = entry.read.value]() mutable {
        resume(std::move(value));
      });
      return;
    }
    // One that began before what we must see was committed may not have seen it.
    if (entry.flight && entry.flight->begun_at >= now) {
      stats_.shared.fetch_add(1, std::memory_order_relaxed);
      join(*entry.flight, executor, std::move(resume));
      return;
    }
    flight = std::make_shared<Flight>(now);
    join(*flight, executor, std::move(resume));
    entry.flight = flight;
    trim();
  }
  stats_.reads.fetch_add(1, std::memory_order_relaxed);
  auto work = [this, key = std::move(key), flight = std::move(flight),
               read = std::move(read)]() mutable { finish(key, flight, read()); };
  if (other != nullptr) {
    other->post(std::move(work));
  } else {
    asio::post(pool_, std::move(work));
  }
}

void SharedReads::join(Flight& flight, const asio::any_io_executor& executor, Resume resume) {
  for (const auto& askers : flight.askers) {
    if (askers->executor == executor) {
      askers->resume.push_back(std::move(resume));
      return;
    }
  }
  flight.askers.push_back(std::make_shared<Askers>(executor));
  flight.askers.back()->resume.push_back(std::move(resume));
}

void SharedReads::finish(const std::string& key, const std::shared_ptr<Flight>& flight,
                         Result<SharedRead> read) {
  std::vector<std::shared_ptr<Askers>> askers;
  {
    const std::lock_guard lock(mutex_);
    askers = std::move(flight->askers);
    if (const auto found = by_key_.find(key); found != by_key_.end()) {
      Entry& entry = *found->second;
      if (entry.flight == flight) entry.flight = nullptr;
      const bool newer = read && (!entry.read.value || entry.read.moment < read->moment);
      if (newer && read->bytes <= limits_.entry_bytes_max) entry.read = *read;
    }
  }
  // One message to each event loop, however many of its readers asked.
  for (auto& each : askers) {
    each->outcome = read ? Outcome(read->value) : Outcome(read.error());
    const auto executor = each->executor;
    asio::post(executor, [each = std::move(each)]() mutable { resume_some(std::move(each)); });
  }
}

void SharedReads::resume_some(std::shared_ptr<Askers> askers) {
  const auto end = std::min(askers->resumed + kResumeMax, askers->resume.size());
  while (askers->resumed < end) {
    // Taken out first: what is resumed may take long to come back.
    auto resume = std::move(askers->resume[askers->resumed++]);
    resume(askers->outcome);
  }
  if (end == askers->resume.size()) return;
  const auto executor = askers->executor;
  asio::post(executor, [rest = std::move(askers)]() mutable { resume_some(std::move(rest)); });
}

SharedReads::Entry& SharedReads::entry_of(std::string key) {
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    entries_.splice(entries_.begin(), entries_, found->second);
  } else {
    entries_.push_front({std::move(key), {}, nullptr});
    by_key_.emplace(entries_.front().key, entries_.begin());
  }
  return entries_.front();
}

void SharedReads::trim() {
  while (entries_.size() > limits_.entries_max) {
    // A read that is under way finds nowhere to put what it read, and tells its askers all the
    // same.
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

}  // namespace orrery::feed
