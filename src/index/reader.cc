#include "index/reader.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/assert.h"

namespace orrery::index {

using storage::Family;

namespace {

Candidate candidate_at(const storage::Snapshot::Cursor& cursor) {
  const auto position = storage::parse_position_value(cursor.value());
  ORRERY_ASSERT(position.has_value() && cursor.key().size() >= storage::kTermKeySizeMin);
  return {storage::parse_term_key(cursor.key()).number, *position};
}

std::string bound(PartitionNumber partition, std::uint32_t index, std::string_view key) {
  return storage::terms_prefix(partition, index).append(key);
}

/// After all keys below `high`; empty: after all of the index.
std::string upper_bound(PartitionNumber partition, std::uint32_t index, std::string_view high) {
  return high.empty() ? storage::terms_end(partition, index) : bound(partition, index, high);
}

}  // namespace

Result<std::optional<std::vector<Candidate>>> find_candidates(
    const storage::Snapshot& snapshot, PartitionNumber partition, std::uint32_t index,
    std::span<const json::KeyInterval> intervals, std::size_t count_max) {
  std::vector<Candidate> found;
  for (const json::KeyInterval& interval : intervals) {
    auto cursor = snapshot.cursor(Family::Terms, bound(partition, index, interval.low),
                                  upper_bound(partition, index, interval.high));
    for (; cursor.valid(); cursor.next()) {
      if (found.size() == count_max) return std::optional<std::vector<Candidate>>();
      found.push_back(candidate_at(cursor));
    }
    ORRERY_TRY(cursor.status());
  }
  // Entries of one document name the same version.
  std::ranges::sort(found, {}, &Candidate::number);
  const auto repeated = std::ranges::unique(found, {}, &Candidate::number);
  found.erase(repeated.begin(), repeated.end());
  return std::optional(std::move(found));
}

struct IndexCursor::State {
  State(storage::Snapshot::Cursor opened, std::string all_begin_with)
      : cursor(std::move(opened)), prefix(std::move(all_begin_with)) {}

  storage::Snapshot::Cursor cursor;
  const std::string prefix;
  bool is_backward = false;
  bool has_begun = false;
  /// Backward: among several entries of one key, which are gone over forward.
  bool in_group = false;
  // Of the entry, which a backward walk has left already.
  std::string key;
  Candidate candidate{};

  std::string_view key_at_cursor() const { return storage::parse_term_key(cursor.key()).term; }

  bool take_entry() {
    key = key_at_cursor();
    candidate = candidate_at(cursor);
    return true;
  }

  bool next_forward() {
    if (has_begun && cursor.valid()) cursor.next();
    has_begun = true;
    return cursor.valid() && take_entry();
  }

  bool next_backward() {
    if (in_group) {
      cursor.next();
      if (cursor.valid() && key_at_cursor() == key) return take_entry();
      in_group = false;
      if (!cursor.status()) return false;
      // Entries have a number behind their key: this finds what is before all of them.
      cursor.seek_for_prev(prefix + key);
    }
    if (!cursor.valid()) return false;
    // At the last entry of its key. Mostly it is the only one.
    take_entry();
    cursor.prev();
    if (!cursor.valid()) return cursor.status().has_value();
    if (key_at_cursor() != key) return true;
    in_group = true;
    cursor.seek(prefix + key);
    return cursor.valid() && take_entry();
  }
};

IndexCursor::IndexCursor(const storage::Snapshot& snapshot, PartitionNumber partition,
                         std::uint32_t index, std::string low, std::string high, bool is_backward) {
  const std::string upper = upper_bound(partition, index, high);
  state_ =
      std::make_unique<State>(snapshot.cursor(Family::Terms, bound(partition, index, low), upper),
                              storage::terms_prefix(partition, index));
  state_->is_backward = is_backward;
  if (is_backward) state_->cursor.seek_for_prev(upper);
}

IndexCursor::IndexCursor(IndexCursor&&) noexcept = default;
IndexCursor::~IndexCursor() = default;

bool IndexCursor::next() {
  return state_->is_backward ? state_->next_backward() : state_->next_forward();
}
std::string_view IndexCursor::key() const { return state_->key; }
Candidate IndexCursor::candidate() const { return state_->candidate; }
Result<> IndexCursor::status() const { return state_->cursor.status(); }

}  // namespace orrery::index
