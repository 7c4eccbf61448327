#include "partition/copy.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/assert.h"

namespace orrery::partition {

Error copy_abandoned() {
  return Error(ErrorCode::Unavailable,
               "The change of ranges was abandoned because of a disk error or because the server "
               "is stopping; the ranges are as they were. Try again.");
}

Mirror::Mirror(CopyPlan plan, Lsn begun)
    : unique_values_of_(std::move(plan.unique_values_of)), begun_(begun) {
  for (CopyTarget& target : plan.targets) {
    Copied& added = targets_.emplace_back();
    added.target = std::move(target);
  }
  ORRERY_ASSERT(!targets_.empty());
}

Copied& Mirror::owner_of(std::string_view epk) {
  // Targets lie in the order of their keys and leave no gap.
  for (std::size_t i = targets_.size() - 1; i > 0; --i) {
    if (std::string_view(targets_[i].target.epks.min.bytes) <= epk) return targets_[i];
  }
  return targets_[0];
}

void Mirror::count_put(std::string_view epk, const storage::IdEntry& entry) {
  Copied& owner = owner_of(epk);
  owner.documents += 1;
  owner.text_bytes += entry.text_size;
  owner.see_index(entry.position);
}

void Mirror::count_erase(std::string_view epk, const storage::IdEntry& entry) {
  Copied& owner = owner_of(epk);
  owner.documents -= 1;
  owner.text_bytes -= entry.text_size;
}

void Mirror::count_history(std::string_view epk, storage::LogPosition position, std::size_t bytes) {
  Copied& owner = owner_of(epk);
  owner.history_bytes += bytes;
  owner.see_index(position);
}

void Mirror::see_change(const storage::Keeping& before, const storage::Keeping& after) {
  using Expiry = storage::Keeping::Expiry;
  if (before.history != after.history || before.previous_image != after.previous_image) {
    history_changed_ = true;
  }
  if (before.expiry == Expiry::Off && after.expiry != Expiry::Off) expiry_incomplete_ = true;
}

void Copied::see_index(storage::LogPosition position) {
  index_bound = std::max(index_bound, position.index + target.index_shift + 1);
}

// ── heads ────────────────────────────────────────────────────────────────────────────────────────

namespace {

using storage::HistoryPart;

/// Keeps what differs from its neighbour.
storage::HistoryParts joined(std::vector<HistoryPart> parts) {
  if (parts.empty()) return nullptr;
  const auto repeated = std::ranges::unique(parts, [](const HistoryPart& a, const HistoryPart& b) {
    return a.all_begin == b.all_begin && a.tombstones_begin == b.tombstones_begin;
  });
  parts.erase(repeated.begin(), repeated.end());
  return std::make_shared<const std::vector<HistoryPart>>(std::move(parts));
}

/// The parts that overlap [min, max); the first begins at `min`.
std::vector<HistoryPart> clipped(const storage::HistoryParts& parts, std::string_view min,
                                 std::string_view max) {
  std::vector<HistoryPart> found;
  if (!parts) return found;
  for (const HistoryPart& part : *parts) {
    if (part.epk_min >= max) break;
    // The last of those that begin before it reaches into it.
    if (part.epk_min <= min) found.clear();
    found.push_back(part);
  }
  if (!found.empty()) found.front().epk_min = min;
  return found;
}

void settle(storage::Head& head, bool expiry_incomplete) {
  using Expiry = storage::Keeping::Expiry;
  // Documents are numbered by the range that makes them, and this one is new.
  head.document_sequence = 0;
  if (expiry_incomplete && head.keeping.expiry != Expiry::Off) {
    head.keeping.expiry = Expiry::Building;
  }
}

}  // namespace

storage::Head head_of_part(const CopyOutcome& parent, std::size_t target) {
  const Copied& copied = parent.targets.at(target);
  storage::Head head = parent.head;
  head.documents = copied.documents;
  head.text_bytes = copied.text_bytes;
  head.history_bytes = copied.history_bytes;
  head.index_bound = std::max(storage::Head().index_bound, copied.index_bound);
  head.history = joined(
      clipped(parent.head.history, copied.target.epks.min.bytes, copied.target.epks.max.bytes));
  settle(head, parent.expiry_incomplete);
  return head;
}

storage::Head head_of_merged(const CopyOutcome& left, const CopyOutcome& right,
                             const Epk& boundary) {
  const Copied& from_left = left.targets.at(0);
  const Copied& from_right = right.targets.at(0);
  storage::Head head = left.head;
  head.lsn = std::max(left.head.lsn, right.head.lsn);
  head.ts = std::max(left.head.ts, right.head.ts);
  head.documents = from_left.documents + from_right.documents;
  head.text_bytes = from_left.text_bytes + from_right.text_bytes;
  head.history_bytes = from_left.history_bytes + from_right.history_bytes;
  head.merged_at = head.lsn;
  head.index_bound =
      std::max({storage::Head().index_bound, from_left.index_bound, from_right.index_bound});
  const EpkRange& all = from_left.target.epks;
  auto parts = clipped(left.head.history, all.min.bytes, boundary.bytes);
  auto more = clipped(right.head.history, boundary.bytes, all.max.bytes);
  parts.insert(parts.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
  head.history = joined(std::move(parts));
  using Expiry = storage::Keeping::Expiry;
  const bool one_builds = right.head.keeping.expiry != left.head.keeping.expiry;
  if (one_builds && head.keeping.expiry == Expiry::Off) head.keeping.expiry = Expiry::Building;
  settle(head, one_builds || left.expiry_incomplete || right.expiry_incomplete);
  return head;
}

}  // namespace orrery::partition
