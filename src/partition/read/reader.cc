#include "partition/read/reader.h"

#include "base/assert.h"
#include "storage/keys.h"

namespace orrery::partition {

using storage::Family;
using storage::Lookup;

Lookup find_entry(const storage::Store& store, PartitionNumber partition,
                  const storage::DocumentKey& key, storage::Tier tier, Found& out) {
  // The record's memory serves for the entry too: it is read next.
  const auto lookup = store.get(Family::Ids, storage::id_key(partition, key), out.record, tier);
  if (lookup != Lookup::Found) return lookup;
  const auto entry = storage::IdEntry::parse(out.record);
  ORRERY_ASSERT(entry.has_value());
  out.entry = *entry;
  out.record.clear();
  return Lookup::Found;
}

Lookup fetch_version(const storage::Store& store, PartitionNumber partition, storage::Tier tier,
                     Found& found) {
  const auto lookup =
      store.get(Family::Log, storage::log_key(partition, found.entry.position), found.record, tier);
  ORRERY_ASSERT(lookup != Lookup::Found || storage::VersionRecord::parse(found.record));
  return lookup;
}

Lookup find_by_number(const storage::Store& store, PartitionNumber partition, DocumentNumber number,
                      storage::Tier tier, Found& out) {
  // A version may be superseded between the two reads; then the entry names another one.
  constexpr int kAttemptsMax = 100;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    auto lookup = store.get(Family::Rids, storage::rid_key(partition, number), out.record, tier);
    if (lookup != Lookup::Found) return lookup;
    const auto position = storage::parse_position_value(out.record);
    ORRERY_ASSERT(position.has_value());
    out.entry.position = *position;
    lookup = fetch_version(store, partition, tier, out);
    if (lookup == Lookup::Missing) continue;
    if (lookup == Lookup::Found) {
      const auto version = out.version();
      out.entry.header = version.header;
      out.entry.text_size = static_cast<std::uint32_t>(version.text.size());
    }
    return lookup;
  }
  return Lookup::Failed;
}

}  // namespace orrery::partition
