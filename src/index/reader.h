// Reading indexes of a partition: which documents have values in some intervals, and walking over
// them in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/sort_key.h"
#include "protocol/ids.h"
#include "storage/keys.h"
#include "storage/records.h"
#include "storage/store.h"

namespace orrery::index {

/// A version that an index names. Entries and versions change together, so the snapshot that has
/// the entry has the version.
struct Candidate {
  DocumentNumber number;
  storage::LogPosition position;
  bool operator==(const Candidate&) const = default;
};

/// All documents with an entry in one of the intervals, in the order of their numbers, each once.
/// Nothing when there are more than `count_max` entries: then another way is better.
Result<std::optional<std::vector<Candidate>>> find_candidates(
    const storage::Snapshot& snapshot, PartitionNumber partition, std::uint32_t index,
    std::span<const json::KeyInterval> intervals, std::size_t count_max);

/// Goes over entries in the order of their keys, or in the reverse order of keys; entries of equal
/// keys always in the order of document numbers.
class IndexCursor {
 public:
  /// Within [low, high) of keys; empty `high`: to the end of the index.
  IndexCursor(const storage::Snapshot& snapshot, PartitionNumber partition, std::uint32_t index,
              std::string low, std::string high, bool is_backward);
  IndexCursor(IndexCursor&&) noexcept;
  ~IndexCursor();

  /// False at the end; then status() tells whether it is one.
  bool next();
  std::string_view key() const;
  Candidate candidate() const;
  Result<> status() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace orrery::index
