#include "executor/suspended_queries.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <random>
#include <utility>

namespace orrery::executor {
namespace {

/// Not to be guessed: a token of one client gives no other client's work away.
std::uint64_t random_number() {
  static thread_local std::random_device device;
  const std::uint64_t number = std::uint64_t{device()} << 32 | device();
  return number == 0 ? 1 : number;
}

}  // namespace

std::uint64_t SuspendedQueries::keep(std::unique_ptr<SuspendedQuery> query, std::string key,
                                     std::uint64_t client) {
  const std::size_t memory = query->memory();
  const std::uint64_t number = random_number();
  std::list<Entry> surplus;  // Destroyed when the lock has been given back.
  const std::lock_guard lock(mutex_);
  if (stopped_) return number;
  entries_.push_back(
      {number, std::move(key), client, std::move(query), memory, std::chrono::steady_clock::now()});
  surplus = take_surplus();
  if (entries_.size() == 1) wait_for_oldest();
  return number;
}

std::unique_ptr<SuspendedQuery> SuspendedQueries::take(std::uint64_t number, std::string_view key) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      entries_, [&](const Entry& entry) { return entry.number == number && entry.key == key; });
  if (found == entries_.end()) return nullptr;
  auto query = std::move(found->query);
  entries_.erase(found);
  return query;
}

void SuspendedQueries::stop() {
  std::list<Entry> all;
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  all.swap(entries_);
  timer_.cancel();
}

std::list<SuspendedQueries::Entry> SuspendedQueries::take_surplus() {
  std::list<Entry> surplus;
  auto memory =
      std::accumulate(entries_.begin(), entries_.end(), std::size_t{0},
                      [](std::size_t sum, const Entry& entry) { return sum + entry.memory; });
  while (entries_.size() > kCountMax || (memory > kMemoryMax && entries_.size() > 1)) {
    const auto victim = oldest_of_greediest(memory > kMemoryMax);
    memory -= victim->memory;
    surplus.splice(surplus.end(), entries_, victim);
  }
  return surplus;
}

/// Of the client that has most of them, or that takes most memory. Not the newest: it has just
/// been kept.
std::list<SuspendedQueries::Entry>::iterator SuspendedQueries::oldest_of_greediest(bool by_memory) {
  std::map<std::uint64_t, std::size_t> held;
  for (const Entry& entry : entries_) held[entry.client] += by_memory ? entry.memory : 1;
  const auto newest = std::prev(entries_.end());
  auto victim = newest;
  for (auto each = entries_.begin(); each != newest; ++each) {
    if (victim == newest || held[each->client] > held[victim->client]) victim = each;
  }
  return victim;
}

void SuspendedQueries::wait_for_oldest() {
  timer_.expires_at(entries_.front().since + kAgeMax);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) let_old_ones_go();
  });
}

void SuspendedQueries::let_old_ones_go() {
  std::list<Entry> old;
  const std::lock_guard lock(mutex_);
  const auto limit = std::chrono::steady_clock::now() - kAgeMax;
  while (!entries_.empty() && entries_.front().since <= limit) {
    old.splice(old.end(), entries_, entries_.begin());
  }
  if (!entries_.empty() && !stopped_) wait_for_oldest();
}

}  // namespace orrery::executor
