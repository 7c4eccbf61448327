// Every value format of the store. Each begins with a version byte; integers are big-endian.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "protocol/ids.h"
#include "storage/keys.h"

namespace orrery::storage {

/// A document's place in the container: which logical partition, and its id there. Also the tail of
/// its key in `ids`.
///
///   EPK, partition key (canonical), id
///
/// All EPKs of a container are prefix-free, and so are its canonical keys, so that the parts need
/// no lengths and keys sort by EPK, then partition key, then id.
struct DocumentKey {
  std::string epk;            ///< bytes
  std::string partition_key;  ///< canonical bytes
  std::string id;

  std::string bytes() const { return epk + partition_key + id; }
  bool operator==(const DocumentKey&) const = default;
};

inline std::string id_key(PartitionNumber partition, const DocumentKey& key) {
  std::string out;
  out.reserve(4 + key.epk.size() + key.partition_key.size() + key.id.size());
  append_u32(out, partition.value);
  out.append(key.epk).append(key.partition_key).append(key.id);
  return out;
}

/// A document's own TTL as it is stored: absent, never (-1), or seconds.
inline constexpr std::int32_t kTtlAbsent = 0;
inline constexpr std::int32_t kTtlNever = -1;

/// Whether a document of that time and own TTL is gone, by the container's default TTL (absent: TTL
/// is off). Judged on every path, whether purged or not.
inline bool expired(UnixSeconds ts, std::int32_t own_ttl, std::optional<std::int32_t> default_ttl,
                    UnixSeconds now) {
  if (!default_ttl) return false;
  const std::int32_t ttl = own_ttl == kTtlAbsent ? *default_ttl : own_ttl;
  return ttl != kTtlNever && now >= ts + ttl;
}

/// What all versions carry besides their text.
struct VersionHeader {
  DocumentNumber number;
  UnixSeconds ts = 0;
  std::int32_t own_ttl = kTtlAbsent;
  std::uint32_t indexed_leaves = 0;  ///< what a request charge counts
};

/// Value in `log`.
///   offset 0   size 1   format version           offset 8    size 8   time (`_ts`)
///   offset 1   size 1   kind: 1 document         offset 16   size 4   own TTL
///   offset 2   size 2   EPK size                 offset 20   size 4   indexed leaves
///   offset 4   size 2   partition key size       offset 24   size 8   document number
///   offset 6   size 2   id size                  offset 32            EPK, partition key, id, text
struct VersionRecord {
  VersionHeader header;
  std::string_view epk;
  std::string_view partition_key;
  std::string_view id;
  std::string_view text;  ///< the document as it is sent

  DocumentKey key() const {
    return {std::string(epk), std::string(partition_key), std::string(id)};
  }
  /// Views into `value`. Nothing when it is not a record of this format.
  static std::optional<VersionRecord> parse(std::string_view value);
  static std::string make(const VersionHeader& header, const DocumentKey& key,
                          std::string_view text);
};

/// Value in `ids`: the document's current version, and what a point read needs to answer 304, 412
/// or 404 without reading it.
///   offset 0   size 1   format version           offset 24   size 8   time
///   offset 1   size 3   zero                     offset 32   size 4   own TTL
///   offset 4   size 4   index                    offset 36   size 4   size of the text
///   offset 8   size 8   LSN                      offset 40   size 4   indexed leaves
///   offset 16  size 8   document number
struct IdEntry {
  LogPosition position;
  VersionHeader header;
  std::uint32_t text_size = 0;

  ETag etag() const { return ETag(position.lsn, header.ts); }
  static std::optional<IdEntry> parse(std::string_view value);
  std::string make() const;
};

/// Value in `rids`, and in `unique`.
///   offset 0   size 1   format version           offset 9    size 4   index
///   offset 1   size 8   LSN
std::string make_position_value(LogPosition position);
std::optional<LogPosition> parse_position_value(std::string_view value);

/// Value in `heads`: a part of every commit, since a delete leaves nothing else behind, and none of
/// these may ever go back.
///   offset 0   size 1   format version           offset 25   size 8   where history begins
///   offset 1   size 8   head LSN                 offset 33   size 8   live documents
///   offset 9   size 8   its time                 offset 41   size 8   bytes of their texts
///   offset 17  size 8   last document sequence
struct Head {
  Lsn lsn{1};
  UnixSeconds ts = 0;
  std::uint64_t document_sequence = 0;
  Lsn history_begin{1};
  std::uint64_t documents = 0;
  std::uint64_t text_bytes = 0;

  static std::optional<Head> parse(std::string_view value);
  std::string make() const;
  bool operator==(const Head&) const = default;
};

}  // namespace orrery::storage
