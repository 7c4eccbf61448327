// PartitionVectors: the vectors that the documents of one partition have at one path, in memory, so
// that most of those that are similar to another one are found without reading them all.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "index/log_cursor.h"
#include "index/reader.h"
#include "index/vector/vector_index.h"
#include "json/path.h"
#include "protocol/ids.h"

namespace orrery::index {

/// The key of a vector index. A split or merge makes partitions of other numbers.
struct VectorIndexKey {
  PartitionNumber partition;
  std::vector<std::string> path;  ///< member names
  DistanceFunction function = DistanceFunction::Cosine;
  VectorDataType type = VectorDataType::Float32;
  std::size_t dimensions = 0;
  auto operator<=>(const VectorIndexKey&) const = default;
};

/// It follows the log, which has every live document where it was last changed: to be built is to
/// follow it from its beginning. A search also takes what the log has beyond, so that every change
/// counts at once, and looks each document up in the snapshot of its query. Documents that were
/// deleted are noticed there: the log does not tell of them.
///
/// Thread-safe. One thread at a time may follow the log.
class PartitionVectors {
 public:
  PartitionVectors(VectorIndexKey key, std::size_t vectors_max);

  /// Takes in what is next in the log. False when the time was up before its end. Blocks.
  Result<bool> follow(const storage::Store& store, std::chrono::steady_clock::time_point deadline);

  struct Wish {
    std::span<const float> vector;
    std::size_t count;
  };
  struct Found {
    std::vector<Candidate> similar;  ///< up to `count`, in any order
    /// Documents about which the index does not tell. No document is in both.
    std::vector<Candidate> others;
  };
  /// In the state of the snapshot. Nothing when the index is not complete, or too far behind, or
  /// too far ahead. Blocks.
  Result<std::optional<Found>> find(const storage::Snapshot& snapshot, const Wish& wish);

  /// Whether somebody should follow the log on.
  bool is_behind() const;
  /// Whether it is better to begin anew: there is no more room, or too much was removed.
  bool is_worn() const;

  /// Fewer vectors are compared one by one.
  static constexpr std::size_t kVectorsMin = 1000;
  /// So many changes in the log that are not taken in yet are read by each search.
  static constexpr std::size_t kChangesMax = 1000;
  /// So many are not worth following the log.
  static constexpr std::size_t kChangesMin = 50;
  /// So many of the latest changes are remembered, for queries whose snapshots are older.
  static constexpr std::size_t kRecentMax = 4096;
  /// So many of the latest walks over the log, for the same.
  static constexpr std::size_t kWalksMax = 64;

 private:
  /// The result of the index alone, at one moment.
  struct Answer {
    std::vector<DocumentNumber> similar;
    std::unordered_set<std::uint64_t> later;  ///< changed after the snapshot
    storage::LogPosition known_to;            ///< all that the snapshot has up to here was taken in
    bool is_older = false;  ///< The index has followed the log beyond the snapshot.
  };
  /// One walk over the log: through which state, from where.
  struct Walk {
    Lsn head;
    storage::LogPosition after;
  };

  std::optional<Floats> read(std::string_view document) const;
  void take(const Candidate& change, const std::optional<Floats>& vector);
  void remember(const Candidate& change);
  std::optional<Answer> ask(const Wish& wish, const storage::Head& head);
  Result<std::optional<std::vector<Candidate>>> read_changes(const storage::Snapshot& snapshot,
                                                             const Answer& answer);
  void begin_walk(Lsn head);
  void forget(const std::vector<DocumentNumber>& deleted, Lsn head);
  bool has_many_removed() const;

  const VectorIndexKey key_;
  const std::size_t vectors_max_;
  json::PathSet paths_;

  mutable std::mutex mutex_;  // Guards everything below.
  VectorIndex index_;
  storage::LogPosition followed_to_{};
  bool is_complete_ = false;  // It has come to the end of the log, and is not far behind it.
  bool is_behind_ = true;
  bool is_spent_ = false;         // No more room, or most of it is of documents that were deleted.
  std::size_t removed_ = 0;       // Vectors that were replaced or removed.
  std::deque<Candidate> recent_;  // The latest that were taken in.
  Lsn remembered_since_{0};       // All changes after it are in recent_.
  std::deque<Walk> walks_;        // The latest ones, each beyond the one before.
  Lsn walks_known_since_{0};      // All walks through later states are in walks_.
};

}  // namespace orrery::index
