#include "feed/prefetch.h"

#include <algorithm>

namespace orrery::feed {
namespace {

constexpr std::size_t kPagesMax = 8;
constexpr std::chrono::seconds kAgeMax{5};

}  // namespace

void Prefetcher::Reading::run() {
  if (!begun_.test_and_set()) task_();
}

void Prefetcher::begin(BackgroundPool& pool, std::string key, Owner container, Read read) {
  auto reading =
      std::make_shared<Reading>([read = std::move(read), container]() mutable { return read(); });
  const auto now = std::chrono::steady_clock::now();
  {
    std::lock_guard lock(mutex_);
    std::erase_if(entries_, [&](const Entry& entry) {
      return entry.key == key || now - entry.begun > kAgeMax;
    });
    if (entries_.size() == kPagesMax) entries_.pop_front();
    entries_.push_back({std::move(key), std::move(container), reading, now});
  }
  pool.post([reading] { reading->run(); });
}

std::optional<PreparedPage> Prefetcher::take(std::string_view key, const Owner& container) {
  std::list<Entry> taken;
  {
    std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(entries_, key, &Entry::key);
    if (found == entries_.end()) return {};
    taken.splice(taken.begin(), entries_, found);
  }
  Entry& entry = taken.front();
  // If no thread has begun with it, this one does: were all threads of the pool to wait here for
  // what none of them is free to do, they would wait for ever.
  entry.reading->run();
  auto page = entry.reading->page();
  if (!page || entry.container != container) return {};
  const bool current = std::ranges::all_of(page->heads, [](const auto& each) {
    const auto& partition = *each.first;
    return !partition.retired() && partition.head() == each.second;
  });
  if (!current) return {};
  return std::move(*page);
}

void PrefetchChain::after(const PreparedPage& page) {
  auto next = find_(page);
  {
    std::lock_guard lock(mutex_);
    next_ = std::move(next);
  }
  advance();
}

void PrefetchChain::page_taken() {
  {
    std::lock_guard lock(mutex_);
    --pages_ahead_;
  }
  advance();
}

void PrefetchChain::advance() {
  std::optional<Next> next;
  {
    std::lock_guard lock(mutex_);
    if (reading_ || !next_ || pages_ahead_ == kPagesAhead) return;
    reading_ = true;
    ++pages_ahead_;
    next = std::exchange(next_, std::nullopt);
  }
  pages_.begin(pool_, std::move(next->key), container_,
               [self = shared_from_this(), reading = std::move(next->read)]() mutable {
                 return self->read(reading);
               });
}

Result<PreparedPage> PrefetchChain::read(Prefetcher::Read& reading) {
  auto page = reading();
  {
    std::lock_guard lock(mutex_);
    reading_ = false;
  }
  if (!page) return page;
  page->ahead = shared_from_this();
  after(*page);
  return page;
}

}  // namespace orrery::feed
