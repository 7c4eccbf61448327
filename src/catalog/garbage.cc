#include "catalog/garbage.h"

#include <algorithm>
#include <utility>

namespace orrery::catalog {
namespace {

/// How long readers of a partition that was split or merged may take, and how often it is checked
/// whether they are done.
constexpr std::chrono::seconds kReadersPatience{60};
constexpr std::chrono::milliseconds kReadersInterval{50};
constexpr std::chrono::milliseconds kRetryInterval{250};

}  // namespace

void Garbage::insert(Entry entry) {
  {
    std::lock_guard lock(mutex_);
    const auto known = std::ranges::find(entries_, entry.partition, &Entry::partition);
    if (known == entries_.end()) entries_.push_back(std::move(entry));
  }
  changed_.notify_all();
}

void Garbage::add(const std::vector<PartitionNumber>& partitions) {
  for (const PartitionNumber partition : partitions) insert(Entry{partition, {}, {}, {}});
}

void Garbage::add_when_unused(const std::vector<Range>& ranges) {
  for (const Range& range : ranges) add_when_unused(range.partition);
}

void Garbage::add_when_unused(const std::shared_ptr<partition::Partition>& partition) {
  insert(Entry{partition->number(), partition, Steady::now() + kReadersPatience, {}});
}

void Garbage::retry_later(PartitionNumber partition) {
  insert(Entry{partition, {}, {}, Steady::now() + kRetryInterval});
}

std::optional<PartitionNumber> Garbage::take() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (closed_) return {};
    const auto now = Steady::now();
    const auto due = std::ranges::find_if(entries_, [&](const Entry& each) {
      return each.not_before <= now && (each.readers.expired() || each.deadline <= now);
    });
    if (due != entries_.end()) {
      const PartitionNumber partition = due->partition;
      entries_.erase(due);
      return partition;
    }
    if (entries_.empty()) {
      changed_.wait(lock);
    } else {
      // Nobody tells when the last reader lets go of a partition.
      changed_.wait_for(lock, kReadersInterval);
    }
  }
}

void Garbage::close() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

}  // namespace orrery::catalog
