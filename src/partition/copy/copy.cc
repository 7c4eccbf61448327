#include "partition/copy/copy.h"

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

Error merged_too_often() {
  return Error(ErrorCode::Forbidden,
               "These ranges have been merged too often. Write or delete the documents that are in "
               "them since then, or leave them apart.");
}

Mirror::Mirror(CopyPlan plan, const storage::Head& head)
    : unique_values_of_(std::move(plan.unique_values_of)), begun_(head.lsn) {
  for (CopyTarget& target : plan.targets) {
    Copied& added = targets_.emplace_back();
    added.target = std::move(target);
  }
  // Targets lie in the order of their keys, without gap or overlap.
  ORRERY_ASSERT(!targets_.empty());
  for (std::size_t i = 1; i < targets_.size(); ++i) {
    ORRERY_ASSERT(targets_[i - 1].target.epks.max == targets_[i].target.epks.min);
  }
  std::vector<storage::IndexRecord> there;
  for (CopiedIndex& index : plan.indexes) {
    const storage::IndexRecord* here = storage::find_index(head.indexes, index.spec);
    // Dropped since the plan was made.
    if (here == nullptr || !here->is_complete()) continue;
    there.push_back({.id = index.id, .spec = index.spec, .built_up_to = {}});
    indexes_.push_back({here->id, std::move(index)});
  }
  if (!there.empty()) index_terms_ = std::make_unique<const IndexTerms>(there);
}

std::optional<std::uint32_t> Mirror::index_there(std::uint32_t index) const {
  const auto found = std::ranges::find(indexes_, index, &MirroredIndex::here);
  if (found == indexes_.end()) return std::nullopt;
  return found->there.id;
}

std::vector<CopiedIndex> Mirror::copied_indexes(const storage::Head& head) const {
  std::vector<CopiedIndex> kept;
  for (const MirroredIndex& index : indexes_) {
    // One that was dropped and made again has another id.
    if (storage::find_index(head.indexes, index.here) != nullptr) kept.push_back(index.there);
  }
  return kept;
}

Copied& Mirror::owner_of(std::string_view epk) {
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
  // It was counted when it was copied or mirrored.
  ORRERY_ASSERT(owner.documents > 0 && owner.text_bytes >= entry.text_size);
  owner.documents -= 1;
  owner.text_bytes -= entry.text_size;
}

void Mirror::count_history(std::string_view epk, storage::LogPosition position, std::size_t bytes) {
  Copied& owner = owner_of(epk);
  owner.history_bytes += bytes;
  owner.see_index(position);
}

void Mirror::see_change(const storage::RetentionSettings& before,
                        const storage::RetentionSettings& after) {
  using Expiry = storage::RetentionSettings::Expiry;
  if (before.history != after.history || before.previous_image != after.previous_image) {
    history_changed_ = true;
  }
  if (before.expiry == Expiry::Off && after.expiry != Expiry::Off) expiry_incomplete_ = true;
}

void Copied::see_index(storage::LogPosition position) {
  index_bound = std::max(index_bound, position.index + target.index_shift + 1);
}

std::vector<CopiedIndex> common_indexes(std::span<const storage::IndexRecords> parents) {
  std::vector<CopiedIndex> common;
  if (parents.empty() || !parents.front()) return common;
  for (const storage::IndexRecord& index : *parents.front()) {
    const bool everywhere = std::ranges::all_of(parents, [&](const storage::IndexRecords& parent) {
      const auto* found = storage::find_index(parent, index.spec);
      return found != nullptr && found->is_complete();
    });
    if (everywhere) common.push_back({index.spec, static_cast<std::uint32_t>(common.size() + 1)});
  }
  return common;
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

/// The indexes of a target: those that all parents have copied, and the others that one of them
/// has, to be built. Ids of plans, at most kIndexesMax, may have left something behind.
void settle_indexes(storage::Head& head, std::span<const CopyOutcome* const> parents) {
  std::vector<storage::IndexRecord> indexes;
  std::uint32_t last_id = storage::kIndexesMax;
  for (const CopiedIndex& index : parents.front()->indexes) {
    const bool everywhere = std::ranges::all_of(parents, [&](const CopyOutcome* parent) {
      return std::ranges::find(parent->indexes, index) != parent->indexes.end();
    });
    if (!everywhere) continue;
    indexes.push_back({index.id, index.spec, storage::IndexRecord::State::Complete, {}});
  }
  for (const CopyOutcome* parent : parents) {
    if (!parent->head.indexes) continue;
    for (const storage::IndexRecord& index : *parent->head.indexes) {
      const auto known = std::ranges::find(indexes, index.spec, &storage::IndexRecord::spec);
      if (known != indexes.end() || indexes.size() == storage::kIndexesMax) continue;
      indexes.push_back({++last_id, index.spec, storage::IndexRecord::State::Building, {}});
    }
  }
  head.last_index_id = last_id;
  head.indexes = nullptr;
  if (!indexes.empty()) {
    head.indexes = std::make_shared<const std::vector<storage::IndexRecord>>(std::move(indexes));
  }
}

/// The gaps of either. Where they differ a position is inside of one if it is for either parent.
storage::LsnGaps joined(const storage::LsnGaps& left, const storage::LsnGaps& right) {
  if (!left || !right) return left ? left : right;
  std::vector<storage::LsnGap> gaps = *left;
  for (const storage::LsnGap& gap : *right) {
    const auto known = std::ranges::find(gaps, gap.resumed, &storage::LsnGap::resumed);
    if (known == gaps.end()) {
      gaps.push_back(gap);
    } else {
      known->ended = std::min(known->ended, gap.ended);
    }
  }
  std::ranges::sort(gaps, {}, &storage::LsnGap::resumed);
  if (gaps.size() > storage::kLsnGapsMax) {
    gaps.erase(gaps.begin(), gaps.end() - storage::kLsnGapsMax);
  }
  return std::make_shared<const std::vector<storage::LsnGap>>(std::move(gaps));
}

void settle(storage::Head& head, bool expiry_incomplete) {
  using Expiry = storage::RetentionSettings::Expiry;
  // Documents are numbered by the range that makes them, and this one is new.
  head.document_sequence = 0;
  if (expiry_incomplete && head.retention.expiry != Expiry::Off) {
    head.retention.expiry = Expiry::Building;
  }
}

}  // namespace

storage::Head head_of_part(const CopyOutcome& parent, std::size_t target) {
  const Copied& copied = parent.targets.at(target);
  storage::Head head = parent.head;
  head.documents = copied.documents;
  head.text_bytes = copied.text_bytes;
  head.history_bytes = copied.history_bytes;
  head.index_bound = std::max(storage::kNewIndexBound, copied.index_bound);
  head.history = joined(
      clipped(parent.head.history, copied.target.epks.min.bytes, copied.target.epks.max.bytes));
  settle(head, parent.expiry_incomplete);
  const CopyOutcome* const parents[] = {&parent};
  settle_indexes(head, parents);
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
  head.gaps = joined(left.head.gaps, right.head.gaps);
  head.is_reordered = true;
  head.index_bound =
      std::max({storage::kNewIndexBound, from_left.index_bound, from_right.index_bound});
  const EpkRange& all = from_left.target.epks;
  auto parts = clipped(left.head.history, all.min.bytes, boundary.bytes);
  auto more = clipped(right.head.history, boundary.bytes, all.max.bytes);
  parts.insert(parts.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
  head.history = joined(std::move(parts));
  using Expiry = storage::RetentionSettings::Expiry;
  const bool one_builds = right.head.retention.expiry != left.head.retention.expiry;
  if (one_builds && head.retention.expiry == Expiry::Off) head.retention.expiry = Expiry::Building;
  settle(head, one_builds || left.expiry_incomplete || right.expiry_incomplete);
  const CopyOutcome* const parents[] = {&left, &right};
  settle_indexes(head, parents);
  return head;
}

}  // namespace orrery::partition
