// VectorIndexes: the vector indexes of all partitions that queries have asked for, in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "base/result.h"
#include "index/vector/partition_vectors.h"

namespace orrery::index {

/// The first query that could use an index has it built in the background, as do changes; until it
/// is ready queries do without. Those that were not used for the longest time make room for others.
/// Thread-safe.
class VectorIndexes {
 public:
  /// An index does not make room for another one before so many further searches were made, so that
  /// several that do not all fit are not built in turns for ever.
  static constexpr std::uint64_t kRestSearches = 16;

  /// `post` hands work to a pool, which must have run all of it before this is destroyed. Each
  /// piece takes a twentieth of a second.
  using Post = std::function<void(std::function<void()>)>;
  VectorIndexes(const storage::Store& store, Post post, std::size_t memory_max);

  /// As PartitionVectors::find. `documents`: about how many the partition has. Blocks.
  Result<std::optional<PartitionVectors::Found>> find(const VectorIndexKey& key,
                                                      std::uint64_t documents,
                                                      const storage::Snapshot& snapshot,
                                                      const PartitionVectors::Wish& wish);
  /// Nothing is built any more.
  void stop();

  struct Stats {
    std::size_t indexes = 0;
    std::size_t bytes = 0;  ///< that they may grow to
  };
  Stats stats() const;

 private:
  struct Entry {
    Entry(VectorIndexKey key, std::size_t vectors_max, std::size_t bytes_max)
        : vectors(std::move(key), vectors_max), bytes(bytes_max) {}
    PartitionVectors vectors;
    const std::size_t bytes;
    std::uint64_t used_at = 0;  // Guarded by mutex_, as is the next one.
    bool is_waiting = false;    // To follow its log, or it does.
  };
  using EntryPtr = std::shared_ptr<Entry>;  // Shared with searches, and with who follows the log.

  EntryPtr entry_of(const VectorIndexKey& key, std::uint64_t documents);
  bool make_room(std::size_t bytes);
  void schedule(const EntryPtr& entry);
  void work();

  const storage::Store& store_;
  const Post post_;
  const std::size_t memory_max_;

  mutable std::mutex mutex_;  // Guards everything below.
  std::map<VectorIndexKey, EntryPtr> entries_;
  std::size_t bytes_ = 0;
  std::uint64_t searches_ = 0;
  std::deque<EntryPtr> waiting_;
  bool is_working_ = false;
  bool is_stopped_ = false;
};

}  // namespace orrery::index
