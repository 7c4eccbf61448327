// Rows that wait for their turn: with ORDER BY until all documents were seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "json/sort_key.h"
#include "protocol/ids.h"

namespace orrery::query {

/// For sets of rows that were seen.
struct RowHashHash {
  std::size_t operator()(const json::Hash128& hash) const { return hash.low; }
};
using SeenRows = std::unordered_set<json::Hash128, RowHashHash>;
/// Memory of a remembered hash, in a set.
inline constexpr std::size_t kSeenBytes = 40;

struct WaitingRow {
  std::string key;
  std::size_t slice = 0;
  DocumentNumber number;
  std::uint32_t place = 0;  ///< among the rows of its document
  std::string text;
  mutable bool was_shown = false;  ///< DISTINCT: the like of it, on an earlier page

  auto order() const { return std::tie(key, slice, number, place); }
  bool operator<(const WaitingRow& other) const { return order() < other.order(); }
  std::size_t memory() const;
};

/// In their order.
class WaitingRows {
 public:
  bool empty() const { return rows_.empty(); }
  std::size_t size() const { return rows_.size(); }
  std::size_t memory() const { return memory_; }
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }
  const WaitingRow& last() const { return *rows_.rbegin(); }

  /// Whether it is the last one now.
  bool insert(WaitingRow row);
  void drop_last();
  /// DISTINCT: of equal rows the first one counts, which may come last, so that all that differ
  /// have to be kept. Where one of them was shown, which need not be the first one any more, none
  /// is.
  void insert_distinct(WaitingRow row);

 private:
  using Rows = std::set<WaitingRow>;
  void drop(Rows::const_iterator row);

  Rows rows_;
  std::size_t memory_ = 0;
  std::unordered_map<json::Hash128, Rows::iterator, RowHashHash> distinct_;
};

}  // namespace orrery::query
