#include "partition/read/point_read.h"

#include <utility>

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

namespace {

Lookup find(const storage::Store& store, PartitionNumber partition, const DocumentAddress& address,
            storage::Tier tier, Found& found) {
  if (!address.number) return find_entry(store, partition, address.key, tier, found);
  const auto lookup = find_by_number(store, partition, *address.number, tier, found);
  if (lookup != Lookup::Found) return lookup;
  const auto version = found.version();
  const bool is_under_key =
      version.epk == address.key.epk && version.partition_key == address.key.partition_key;
  return is_under_key ? Lookup::Found : Lookup::Missing;
}

Error error_of(Lookup lookup) {
  ORRERY_ASSERT(lookup != Lookup::Found);
  if (lookup == Lookup::Missing) return no_such_document();
  if (lookup == Lookup::Unknown) return Error(ErrorCode::NotInMemory, "not in memory");
  return Error(ErrorCode::Unavailable, "the document could not be read from the disk");
}

}  // namespace

Error no_such_document() {
  return Error(ErrorCode::NotFound,
               "Resource Not Found. No document with this id exists under this partition key.");
}

Result<PointRead> read_document(const storage::Store& store, PartitionNumber partition,
                                const DocumentAddress& address, const PointReadOptions& options,
                                UnixSeconds now, storage::Tier tier) {
  // A version can be superseded between the look-up of its place and its reading, again and again
  // under a storm of writes to one document; each time the next look-up finds a newer one.
  constexpr int kAttemptsMax = 100;
  Found found;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    auto lookup = find(store, partition, address, tier, found);
    if (lookup != Lookup::Found) return error_of(lookup);
    const auto& entry = found.entry;
    if (storage::expired(entry.header.ts, entry.header.own_ttl, options.default_ttl, now)) {
      return no_such_document();
    }
    PointRead read{.lsn = entry.position.lsn, .etag = entry.etag()};
    if (!options.if_none_match.empty() && read.etag.matches(options.if_none_match)) {
      read.is_unchanged = true;
      return read;
    }
    if (found.record.empty()) {
      lookup = fetch_version(store, partition, tier, found);
      if (lookup == Lookup::Missing) continue;
      if (lookup != Lookup::Found) return error_of(lookup);
    }
    // A record ends with the text.
    read.text = std::move(found.record);
    read.text.erase(0, read.text.size() - entry.text_size);
    return read;
  }
  return error_of(Lookup::Failed);
}

Result<std::string> find_document_id(const storage::Store& store, PartitionNumber partition,
                                     const DocumentAddress& address) {
  ORRERY_ASSERT(address.number.has_value());
  Found found;
  const auto lookup = find(store, partition, address, storage::Tier::Disk, found);
  if (lookup != Lookup::Found) return error_of(lookup);
  return std::string(found.version().id);
}

}  // namespace orrery::partition
