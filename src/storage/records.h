// Every value format of the store. Each begins with a version byte; integers are big-endian.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

/// Carried by all versions besides their text.
struct VersionHeader {
  DocumentNumber number;
  UnixSeconds ts = 0;
  std::int32_t own_ttl = kTtlAbsent;
  std::uint32_t indexed_leaves = 0;  ///< what a request charge counts
  bool replaces = false;  ///< the document was there before this LSN; known in `log` only
};

/// Value in `log`.
///   offset 0   size 1   format version           offset 8    size 8   time (`_ts`)
///   offset 1   size 1   kind: 1 created, 2 later  offset 16  size 4   own TTL
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

/// Value in `rids`, in `unique`, and in `terms`.
///   offset 0   size 1   format version           offset 9    size 4   index
///   offset 1   size 8   LSN
std::string make_position_value(LogPosition position);
std::optional<LogPosition> parse_position_value(std::string_view value);

/// When the version is due, if ever: what `expiry` holds of it.
std::optional<ExpiryEntry> expiry_of(LogPosition position, const VersionHeader& header);

/// Value in `history`: one change.
///   offset 0   size 1   format version           offset 16   size 8   LSN before (0: none)
///   offset 1   size 1   operation                offset 24   size 8   document number
///   offset 2   size 2   EPK size                 offset 32   size 4   size of the current text
///   offset 4   size 2   partition key size       offset 36            EPK, partition key, id,
///   offset 6   size 2   id size                                       current text, previous text
///   offset 8   size 8   time
struct HistoryRecord {
  enum class Operation : std::uint8_t { Create = 1, Replace = 2, Delete = 3, TtlDelete = 4 };
  Operation operation = Operation::Create;
  UnixSeconds ts = 0;
  Lsn previous;  ///< of the version before; 0 after a create
  DocumentNumber number;
  std::string_view epk;
  std::string_view partition_key;
  std::string_view id;
  std::string_view current_text;   ///< empty after a delete, and where only tombstones are kept
  std::string_view previous_text;  ///< empty where it is not kept

  bool deletes() const {
    return operation == Operation::Delete || operation == Operation::TtlDelete;
  }
  DocumentKey key() const {
    return {std::string(epk), std::string(partition_key), std::string(id)};
  }
  /// Views into `value`. Nothing when it is not a record of this format.
  static std::optional<HistoryRecord> parse(std::string_view value);
  std::string make() const;
};

/// Says which data a partition keeps besides the live documents. A part of its head, so that its
/// writer needs nobody to tell it.
struct RetentionSettings {
  enum class History : std::uint8_t { None, Tombstones, All };
  enum class PreviousImage : std::uint8_t { None, Delete, All };
  /// Whether `expiry` has an entry for each version: none, not yet for all, for all.
  enum class Expiry : std::uint8_t { Off, Building, Complete };
  History history = History::None;
  PreviousImage previous_image = PreviousImage::None;
  Expiry expiry = Expiry::Off;

  bool operator==(const RetentionSettings&) const = default;
};

/// From where on history is complete, for EPKs from `epk_min` up to the next part. A merged range
/// has one for each former parent. A reader that stands at p is served while p >= the begin.
struct HistoryPart {
  std::string epk_min;
  Lsn all_begin;         ///< of every change
  Lsn tombstones_begin;  ///< of deletes
  bool operator==(const HistoryPart&) const = default;
};
/// In the order of their EPKs. Shared, since a head is copied with every transaction.
using HistoryParts = std::shared_ptr<const std::vector<HistoryPart>>;

/// The part that holds the EPK; null when there is none, that is when no history is kept.
const HistoryPart* find_part(const HistoryParts& parts, std::string_view epk);

/// A secondary index of a partition: what it is over, and how far it has come.
struct IndexRecord {
  enum class State : std::uint8_t {
    Building,  ///< it lacks documents with higher numbers than `built_up_to`
    Complete,  ///< it has an entry for all there is
  };
  std::uint32_t id = 0;  ///< given by the partition's writer; from 1, and never again in it
  std::string spec;      ///< IndexSpec::text
  State state = State::Building;
  DocumentNumber built_up_to;  ///< while it is Building

  bool is_complete() const { return state == State::Complete; }
  bool operator==(const IndexRecord&) const = default;
};
/// In the order of their ids. Shared, since a head is copied with every transaction.
using IndexRecords = std::shared_ptr<const std::vector<IndexRecord>>;

/// LSNs that are never given out: those between the head of a life of the store that ended, as far
/// as it is there, and where the next life goes on. See storage/life.h.
struct LsnGap {
  Lsn ended;    ///< the last LSN of the life that ended
  Lsn resumed;  ///< the head that the next life began with; its first write is one above
  bool operator==(const LsnGap&) const = default;
};
/// Ascending. Shared, since a head is copied with every transaction.
using LsnGaps = std::shared_ptr<const std::vector<LsnGap>>;

/// How many a head keeps: they are a part of every commit. Beyond it the two oldest become one.
inline constexpr std::size_t kLsnGapsMax = 32;

/// All indexes of new records are below.
inline constexpr std::uint32_t kNewIndexBound = 65'536;

/// How many a partition may have, and how long the text of one may be: they are a part of every
/// commit.
inline constexpr std::size_t kIndexesMax = 64;
inline constexpr std::size_t kIndexSpecBytesMax = 1024;

/// The index with that spec, or that id; null when there is none.
const IndexRecord* find_index(const IndexRecords& indexes, std::string_view spec);
const IndexRecord* find_index(const IndexRecords& indexes, std::uint32_t id);

/// Value in `heads`: a part of every commit, since a delete leaves nothing else behind, and none of
/// LSN, time, sequence and the begins may ever go back.
///   offset 0   size 1   format version           offset 43   size 1   expiry entries kept
///   offset 1   size 8   head LSN                 offset 44   size 8   bytes of history
///   offset 9   size 8   its time                 offset 52   size 8   head when it was merged
///   offset 17  size 8   last document sequence   offset 60   size 4   bound of indexes
///   offset 25  size 8   live documents           offset 64   size 2   number of history parts
///   offset 33  size 8   bytes of their texts     offset 66            for each: EPK size 2, EPK,
///   offset 41  size 1   history kept                                  all begin 8, tombstones
///   offset 42  size 1   previous images kept                          begin 8
///
/// Then whether the log is in another order than the document numbers 1; and the secondary indexes:
/// the last id that was given 4, the number of indexes 2, and for each: id 4, state 1, built up to
/// 8, spec size 2, spec.
///
/// That is format 3. Format 4, which only heads with gaps have, goes on with the number of gaps 2,
/// and for each: ended 8, resumed 8.
///
/// Older formats are still read. Format 2 ended before the order of the log. Format 1 had where
/// history begins at offset 25, then live documents and bytes, and ended there: nothing kept any
/// history yet.
struct Head {
  Lsn lsn{1};
  UnixSeconds ts = 0;
  std::uint64_t document_sequence = 0;
  std::uint64_t documents = 0;
  std::uint64_t text_bytes = 0;
  RetentionSettings retention = {};
  std::uint64_t history_bytes = 0;
  Lsn merged_at{0};  ///< 0: never. At or below it `_ts` is not monotone in the log.
  std::uint32_t index_bound = kNewIndexBound;  ///< all indexes here are below
  HistoryParts history = {};                   ///< null: none is kept
  /// Whether a document was ever written again, so that it stands behind younger ones in the log.
  /// While none was, the order of the log is that of document numbers.
  bool is_reordered = false;
  std::uint32_t last_index_id = 0;
  IndexRecords indexes = {};  ///< null: none
  LsnGaps gaps = {};          ///< null: none

  /// How many LSNs were given out above `position`: the distance to the head without the gaps.
  std::uint64_t lsns_above(Lsn position) const;
  /// The LSN that is `count` LSNs above `position`, gaps not counted. May be above the head.
  Lsn advanced(Lsn position, std::uint64_t count) const;
  /// The gap that a position lies inside of: a life that ended has given it out, for a change that
  /// is not here. Null when there is none.
  const LsnGap* gap_around(Lsn position) const;
  /// The head goes on at `resumed`, with a gap below.
  void resume_at(Lsn resumed);

  static std::optional<Head> parse(std::string_view value);
  std::string make() const;
  bool operator==(const Head& other) const;
};

}  // namespace orrery::storage
