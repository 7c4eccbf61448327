#include "index/vector/vector_indexes.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace orrery::index {
namespace {

constexpr std::chrono::milliseconds kSliceMax{50};

/// Room for as many documents, and for those that come: a quarter, but no less than this.
constexpr std::size_t kGrowthMin = 1000;
constexpr std::size_t kGrowthPart = 4;

}  // namespace

VectorIndexes::VectorIndexes(const storage::Store& store, Post post, std::size_t memory_max)
    : store_(store), post_(std::move(post)), memory_max_(memory_max) {}

Result<std::optional<PartitionVectors::Found>> VectorIndexes::find(
    const VectorIndexKey& key, std::uint64_t documents, const storage::Snapshot& snapshot,
    const PartitionVectors::Wish& wish) {
  if (documents < PartitionVectors::kVectorsMin) return std::optional<PartitionVectors::Found>();
  const EntryPtr entry = entry_of(key, documents);
  if (!entry) return std::optional<PartitionVectors::Found>();
  ORRERY_TRY(auto found, entry->vectors.find(snapshot, wish));
  if (entry->vectors.is_behind()) schedule(entry);
  return found;
}

/// Null when there is no room for it.
VectorIndexes::EntryPtr VectorIndexes::entry_of(const VectorIndexKey& key,
                                                std::uint64_t documents) {
  const std::lock_guard lock(mutex_);
  ++searches_;
  const auto there = entries_.find(key);
  if (there != entries_.end()) {
    const EntryPtr entry = there->second;
    entry->used_at = searches_;
    if (!entry->vectors.is_worn()) return entry;
    bytes_ -= entry->bytes;
    entries_.erase(there);
  }
  const std::size_t vectors_max =
      documents + std::max<std::size_t>(documents / kGrowthPart, kGrowthMin);
  const std::size_t bytes =
      VectorIndex::bytes_max({.dimensions = key.dimensions, .vectors_max = vectors_max});
  if (is_stopped_ || !make_room(bytes)) return nullptr;
  auto entry = std::make_shared<Entry>(key, vectors_max, bytes);
  entry->used_at = searches_;
  bytes_ += bytes;
  entries_.emplace(key, entry);
  return entry;
}

bool VectorIndexes::make_room(std::size_t bytes) {
  if (bytes > memory_max_) return false;
  const auto is_unused = [&](const auto& each) {
    return searches_ - each.second->used_at > kRestSearches;
  };
  std::size_t unused = 0;
  for (const auto& each : entries_) unused += is_unused(each) ? each.second->bytes : 0;
  if (bytes_ - unused + bytes > memory_max_) return false;
  while (bytes_ + bytes > memory_max_) {
    const auto oldest = std::ranges::min_element(
        entries_, {}, [](const auto& each) { return each.second->used_at; });
    bytes_ -= oldest->second->bytes;
    entries_.erase(oldest);
  }
  return true;
}

void VectorIndexes::schedule(const EntryPtr& entry) {
  const std::lock_guard lock(mutex_);
  if (entry->is_waiting || is_stopped_) return;
  entry->is_waiting = true;
  waiting_.push_back(entry);
  if (std::exchange(is_working_, true)) return;
  post_([this] { work(); });
}

/// One slice of one index. Several take turns; there is never more than one at work, since queries
/// need the threads, too.
void VectorIndexes::work() {
  EntryPtr entry;
  {
    const std::lock_guard lock(mutex_);
    // Those that had to make room are not followed any further.
    std::erase_if(waiting_, [](const EntryPtr& each) { return each.use_count() == 1; });
    if (is_stopped_ || waiting_.empty()) {
      waiting_.clear();
      is_working_ = false;
      return;
    }
    entry = std::move(waiting_.front());
    waiting_.pop_front();
  }
  // If the disk cannot be read, the next search asks again.
  const auto followed = entry->vectors.follow(store_, std::chrono::steady_clock::now() + kSliceMax);
  const std::lock_guard lock(mutex_);
  if (followed && !*followed) {
    waiting_.push_back(std::move(entry));
  } else {
    entry->is_waiting = false;
  }
  post_([this] { work(); });
}

void VectorIndexes::stop() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
}

VectorIndexes::Stats VectorIndexes::stats() const {
  const std::lock_guard lock(mutex_);
  return {.indexes = entries_.size(), .bytes = bytes_};
}

}  // namespace orrery::index
