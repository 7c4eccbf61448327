#include "api/page_ahead.h"

#include <algorithm>

#include <boost/asio/post.hpp>

namespace orrery::api {
namespace {

constexpr std::size_t kPagesMax = 8;
constexpr std::chrono::seconds kAgeMax{5};

}  // namespace

void PageAhead::begin(boost::asio::thread_pool& pool, std::string key,
                      catalog::ContainerPtr container, Read read) {
  std::packaged_task<Result<FeedPage>()> task(
      [read = std::move(read), container]() mutable { return read(); });
  const auto now = std::chrono::steady_clock::now();
  {
    std::lock_guard lock(mutex_);
    std::erase_if(entries_, [&](const Entry& entry) {
      return entry.key == key || now - entry.begun > kAgeMax;
    });
    if (entries_.size() == kPagesMax) entries_.pop_front();
    entries_.push_back({std::move(key), std::move(container), task.get_future(), now});
  }
  // In a lambda: Asio takes a bare packaged_task for something whose future it is to return.
  boost::asio::post(pool, [task = std::move(task)]() mutable { task(); });
}

std::optional<FeedPage> PageAhead::take(std::string_view key,
                                        const catalog::ContainerPtr& container) {
  std::list<Entry> taken;
  {
    std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(entries_, key, &Entry::key);
    if (found == entries_.end()) return {};
    taken.splice(taken.begin(), entries_, found);
  }
  Entry& entry = taken.front();
  // Posted before whoever waits for it, so that it cannot be waiting for a thread that we hold.
  auto page = entry.page.get();
  if (!page || entry.container != container) return {};
  const bool current = std::ranges::all_of(page->heads, [](const auto& each) {
    const auto& partition = *each.first->partition;
    return !partition.retired() && partition.head() == each.second;
  });
  if (!current) return {};
  return std::move(*page);
}

}  // namespace orrery::api
