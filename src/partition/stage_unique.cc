// The part of Stage that keeps unique keys: which document of a logical partition holds which
// values.
#include <utility>

#include "base/assert.h"
#include "partition/stage.h"
#include "storage/keys.h"

namespace orrery::partition {

using storage::Family;
using storage::IdEntry;

std::string Stage::unique_key(const storage::DocumentKey& key, std::size_t policy,
                              std::string_view values) const {
  std::string out;
  storage::append_u32(out, partition_.value);
  out.append(key.epk).append(key.partition_key);
  storage::append_u16(out, static_cast<std::uint16_t>(policy));
  out.append(values);
  return out;
}

Result<std::optional<Stage::Holder>> Stage::find_holder(const std::string& unique_key) {
  if (const auto staged = uniques_.find(unique_key); staged != uniques_.end()) {
    rests_on_staged_ = true;
    return std::optional<Holder>(staged->second.holder);
  }
  ORRERY_TRY(const bool found, look_up(Family::Unique, unique_key));
  if (!found) return std::optional<Holder>();
  const auto position = storage::parse_position_value(scratch_);
  ORRERY_ASSERT(position.has_value());
  return std::optional<Holder>(Holder{*position, std::nullopt});
}

Result<bool> Stage::is_visible(const Holder& holder, const Rules& rules, UnixSeconds now) {
  storage::VersionHeader header;
  if (holder.header) {
    header = *holder.header;
  } else {
    ORRERY_TRY(const bool found,
               look_up(Family::Log, storage::log_key(partition_, holder.position)));
    ORRERY_ASSERT(found);
    const auto record = storage::VersionRecord::parse(scratch_);
    ORRERY_ASSERT(record.has_value());
    header = record->header;
  }
  return !storage::expired(header.ts, header.own_ttl, rules.default_ttl, now);
}

void Stage::remember_holder(std::string unique_key, std::optional<Holder> holder) {
  auto& slot = uniques_[unique_key];
  std::optional<StagedUnique> before;
  if (slot.lsn != Lsn{}) before = slot;
  slot = StagedUnique{transaction_head_.lsn, std::move(holder)};
  unique_undo_.emplace_back(std::move(unique_key), std::move(before));
}

Result<> Stage::claim_unique_values(const Write& write, const storage::DocumentKey& key,
                                    const std::optional<Existing>& existing, const Rules& rules,
                                    UnixSeconds now, const Holder& claimant) {
  if (!rules.unique_values_of) return {};
  for (std::size_t policy = 0; policy < write.unique_values.size(); ++policy) {
    const std::string unique = unique_key(key, policy, write.unique_values[policy]);
    ORRERY_TRY(const auto holder, find_holder(unique));
    if (!holder || (existing && holder->position == existing->entry.position)) continue;
    // Another document holds the values, unless it has expired and only waits to be purged.
    ORRERY_TRY(const bool visible, is_visible(*holder, rules, now));
    if (visible) {
      return Error(ErrorCode::Conflict,
                   "Unique index constraint violation. Resource with specified id, name, or unique "
                   "index already exists.");
    }
  }
  if (existing) ORRERY_TRY(release_unique_values(write.key, existing->entry, rules));
  for (std::size_t policy = 0; policy < write.unique_values.size(); ++policy) {
    std::string unique = unique_key(key, policy, write.unique_values[policy]);
    transaction_batch_.put(Family::Unique, unique, storage::make_position_value(claimant.position));
    remember_holder(std::move(unique), claimant);
  }
  return {};
}

Result<std::vector<std::string>> Stage::unique_values_of(const storage::DocumentKey& key,
                                                         const IdEntry& entry, const Rules& rules) {
  const auto staged = documents_.find(storage::id_key(partition_, key));
  if (staged != documents_.end() && staged->second.entry) return staged->second.unique_values;
  ORRERY_TRY(const bool found, look_up(Family::Log, storage::log_key(partition_, entry.position)));
  // An entry and its version come and go together.
  ORRERY_ASSERT(found);
  const auto record = storage::VersionRecord::parse(scratch_);
  ORRERY_ASSERT(record.has_value());
  return (*rules.unique_values_of)(record->text);
}

Result<> Stage::release_unique_values(const storage::DocumentKey& key, const IdEntry& entry,
                                      const Rules& rules) {
  if (!rules.unique_values_of) return {};
  ORRERY_TRY(const auto values, unique_values_of(key, entry, rules));
  for (std::size_t policy = 0; policy < values.size(); ++policy) {
    std::string unique = unique_key(key, policy, values[policy]);
    ORRERY_TRY(const auto holder, find_holder(unique));
    // After an expiry the values may already be another document's.
    if (!holder || holder->position != entry.position) continue;
    transaction_batch_.erase(Family::Unique, unique);
    remember_holder(std::move(unique), std::nullopt);
  }
  return {};
}

}  // namespace orrery::partition
