// The part of Stage that keeps unique keys: which document of a logical partition holds which
// values.
#include <utility>

#include "base/assert.h"
#include "partition/writer/stage.h"
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
    if (staged->second.lsn != writer_.head().lsn) rests_on_staged_ = true;
    return std::optional<Holder>(staged->second.holder);
  }
  ORRERY_TRY(const bool found, look_up(Family::Unique, unique_key));
  if (!found) return std::optional<Holder>();
  const auto position = storage::parse_position_value(scratch_);
  ORRERY_ASSERT(position.has_value());
  return std::optional<Holder>(Holder{*position, std::nullopt});
}

Result<> Stage::make_way(const storage::DocumentKey& key, const Holder& holder,
                         const Scope& scope) {
  storage::DocumentKey other = key;
  if (holder.id) {
    other.id = *holder.id;
  } else {
    ORRERY_TRY(const bool found,
               look_up(Family::Log, storage::log_key(partition_, holder.position)));
    ORRERY_ASSERT(found);
    const auto record = storage::VersionRecord::parse(scratch_);
    ORRERY_ASSERT(record.has_value());
    other.id = record->id;
  }
  ORRERY_TRY(const auto existing, find(other, scope));
  ORRERY_ASSERT(existing && existing->entry.position == holder.position);
  // Another document holds the values, unless it has expired and only waits to be purged.
  if (existing->expired) return purge_version(other, existing->entry, scope);
  return Error(ErrorCode::Conflict,
               "Unique index constraint violation. Resource with specified id, name, or unique "
               "index already exists.");
}

void Stage::remember_holder(std::string unique_key, std::optional<Holder> holder) {
  auto& slot = uniques_[unique_key];
  std::optional<StagedUnique> before;
  if (slot.lsn != Lsn{}) before = slot;
  slot = StagedUnique{writer_.head().lsn, std::move(holder)};
  unique_undo_.emplace_back(std::move(unique_key), std::move(before));
}

Result<> Stage::claim_unique_values(const storage::DocumentKey& old_key,
                                    const storage::DocumentKey& key,
                                    const std::vector<std::string>& values,
                                    const std::optional<Existing>& existing, const Scope& scope,
                                    storage::LogPosition position) {
  if (!scope.rules.unique_values_of) return {};
  for (std::size_t policy = 0; policy < values.size(); ++policy) {
    ORRERY_TRY(const auto holder, find_holder(unique_key(key, policy, values[policy])));
    if (!holder || (existing && holder->position == existing->entry.position)) continue;
    ORRERY_TRY(make_way(key, *holder, scope));
  }
  if (existing) ORRERY_TRY(release_unique_values(old_key, existing->entry, scope.rules));
  for (std::size_t policy = 0; policy < values.size(); ++policy) {
    writer_.put_unique(key, policy, values[policy], position);
    remember_holder(unique_key(key, policy, values[policy]), Holder{position, key.id});
  }
  return {};
}

Result<std::vector<std::string>> Stage::unique_values_of(const storage::DocumentKey& key,
                                                         const IdEntry& entry, const Rules& rules) {
  const auto staged = documents_.find(storage::id_key(partition_, key));
  if (staged != documents_.end() && staged->second.entry) return staged->second.unique_values;
  ORRERY_TRY(const auto record, fetch(key, entry));
  return (*rules.unique_values_of)(record.text);
}

Result<> Stage::release_unique_values(const storage::DocumentKey& key, const IdEntry& entry,
                                      const Rules& rules) {
  if (!rules.unique_values_of) return {};
  ORRERY_TRY(const auto values, unique_values_of(key, entry, rules));
  for (std::size_t policy = 0; policy < values.size(); ++policy) {
    std::string unique = unique_key(key, policy, values[policy]);
    ORRERY_TRY(const auto holder, find_holder(unique));
    // In a store of an earlier version another document may have taken the values of an expired
    // one over without purging it.
    if (!holder || holder->position != entry.position) continue;
    writer_.erase_unique(key, policy, values[policy]);
    remember_holder(std::move(unique), std::nullopt);
  }
  return {};
}

}  // namespace orrery::partition
