#include "partition/writer/unique_keys.h"

#include <utility>

#include "base/assert.h"

namespace orrery::partition {

std::string unique_key(PartitionNumber partition, const storage::DocumentKey& key,
                       std::size_t policy, std::string_view values) {
  std::string out;
  storage::append_u32(out, partition.value);
  out.append(key.epk).append(key.partition_key);
  storage::append_u16(out, static_cast<std::uint16_t>(policy));
  out.append(values);
  return out;
}

Result<std::optional<UniqueKeys::Rival>> UniqueKeys::find_rival(
    const storage::DocumentKey& key, std::size_t policy, std::string_view values,
    std::optional<storage::LogPosition> own) {
  ORRERY_TRY(const auto holder,
             state_.view.find_holder(unique_key(state_.partition, key, policy, values)));
  if (!holder || holder->position == own) return std::optional<Rival>();
  Rival rival{key, holder->position};
  if (holder->id) {
    rival.key.id = *holder->id;
  } else {
    ORRERY_TRY(const auto record, state_.view.fetch_committed(holder->position));
    // An entry in `unique` and the version that it names come and go together.
    ORRERY_ASSERT(record.has_value());
    rival.key.id = record->id;
  }
  return std::optional<Rival>(std::move(rival));
}

void UniqueKeys::claim(const storage::DocumentKey& key, const std::vector<std::string>& values,
                       storage::LogPosition position) {
  for (std::size_t policy = 0; policy < values.size(); ++policy) {
    state_.writer.put_unique(key, policy, values[policy], position);
    state_.view.set_holder(unique_key(state_.partition, key, policy, values[policy]),
                           UniqueHolder{position, key.id});
  }
}

Result<std::vector<std::string>> UniqueKeys::values_of(const storage::DocumentKey& key,
                                                       const storage::IdEntry& entry,
                                                       const Rules& rules) {
  const auto* staged = state_.view.find_staged(storage::id_key(state_.partition, key));
  if (staged != nullptr && staged->value.entry) return staged->value.unique_values;
  ORRERY_TRY(const auto record, state_.view.fetch(key, entry));
  return (*rules.unique_values_of)(record.text);
}

Result<> UniqueKeys::release(const storage::DocumentKey& key, const storage::IdEntry& entry,
                             const Rules& rules) {
  if (!rules.unique_values_of) return {};
  ORRERY_TRY(const auto values, values_of(key, entry, rules));
  for (std::size_t policy = 0; policy < values.size(); ++policy) {
    std::string unique = unique_key(state_.partition, key, policy, values[policy]);
    ORRERY_TRY(const auto holder, state_.view.find_holder(unique));
    // In a store of an earlier version another document may have taken the values of an expired
    // one over without purging it.
    if (!holder || holder->position != entry.position) continue;
    state_.writer.erase_unique(key, policy, values[policy]);
    state_.view.set_holder(std::move(unique), std::nullopt);
  }
  return {};
}

}  // namespace orrery::partition
