#include "partition/expiry.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "storage/records.h"

namespace orrery::partition {

using storage::ExpiryEntry;
using storage::Family;

namespace {

/// How many documents one step of a build looks at.
constexpr std::size_t kBuildDocumentsMax = 2'000;

}  // namespace

Result<DueQueue::Due> DueQueue::find(const storage::Snapshot& snapshot, PartitionNumber partition,
                                     std::optional<std::int32_t> default_ttl, UnixSeconds now) {
  Due due;
  if (!default_ttl) return due;
  // New entries come behind what has been passed, because time does not go back. If it does, we
  // cannot know.
  if (now < last_now_) restart();
  last_now_ = now;
  for (const auto kind : {ExpiryEntry::Kind::Own, ExpiryEntry::Kind::Default}) {
    const bool by_default = kind == ExpiryEntry::Kind::Default;
    if (by_default && *default_ttl == storage::kTtlNever) continue;
    const UnixSeconds delay = by_default ? *default_ttl : 0;
    const auto& passed = passed_[static_cast<std::size_t>(kind)];
    const std::string from =
        storage::expiry_key(partition, passed ? *passed : ExpiryEntry{kind, 0, {}});
    std::string to = storage::partition_prefix(partition);
    to.push_back(static_cast<char>(static_cast<int>(kind) + 1));
    auto cursor = snapshot.cursor(Family::Expiry, from, to);
    for (; cursor.valid(); cursor.next()) {
      const ExpiryEntry entry = storage::expiry_entry(cursor.key());
      const UnixSeconds at = entry.second + delay;
      if (at > now || due.candidates.size() == kPurgeDocumentsMax) {
        due.next = std::min(due.next.value_or(at), at);
        break;
      }
      due.candidates.push_back({entry});
    }
    ORRERY_TRY(cursor.status());
  }
  return due;
}

void DueQueue::passed(const std::vector<PurgeCandidate>& candidates) {
  for (const PurgeCandidate& candidate : candidates) {
    passed_[static_cast<std::size_t>(candidate.entry.kind)] = candidate.entry;
  }
}

void DueQueue::restart() {
  for (auto& passed : passed_) passed.reset();
}

Result<bool> ExpiryBuild::step(const storage::Store& store, PartitionNumber partition,
                               const TransactionView& view, RecordWriter& writer) {
  ORRERY_TRY(const auto snapshot, store.snapshot());
  const std::string from = next_.empty() ? storage::partition_prefix(partition) : next_;
  auto cursor = snapshot.cursor(Family::Ids, from, storage::partition_end(partition),
                                storage::Snapshot::Access::Scan);
  for (std::size_t count = 0; cursor.valid() && count < kBuildDocumentsMax; cursor.next()) {
    ++count;
    const auto entry = storage::IdEntry::parse(cursor.value());
    ORRERY_ASSERT(entry.has_value());
    const auto expiry = storage::expiry_of(entry->position, entry->header);
    if (!expiry || view.is_superseded(std::string(cursor.key()), entry->position)) continue;
    writer.put_expiry(*expiry);
  }
  ORRERY_TRY(cursor.status());
  const bool more = cursor.valid();
  next_ = more ? std::string(cursor.key()) : std::string();
  return more;
}

}  // namespace orrery::partition
