// Going over the documents of a partition, as a snapshot has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "index/reader.h"
#include "protocol/ids.h"
#include "protocol/keys/epk.h"
#include "storage/records.h"
#include "storage/store.h"

namespace orrery::partition {

struct ScanFilter {
  std::optional<EpkRange> epks;
  /// Canonical. Then `epks` begins with the EPK of that key.
  std::optional<std::string> partition_key;
  std::optional<std::int32_t> default_ttl;  ///< of the container: expired documents are not there
  UnixSeconds now = 0;

  bool passes(const storage::VersionRecord& record) const;
};

/// The documents of the filter's partition key, in the order of their numbers, expired ones too.
/// Nothing when there are more than `count_max`. Blocks.
Result<std::optional<std::vector<index::Candidate>>> find_in_key(const storage::Snapshot& snapshot,
                                                                 PartitionNumber partition,
                                                                 const ScanFilter& filter,
                                                                 std::size_t count_max);

/// How many there are that have not expired, without reading them: their entries tell. Nothing when
/// more than `count_max` entries would have to be read. Blocks.
Result<std::optional<std::uint64_t>> count_in_key(const storage::Snapshot& snapshot,
                                                  PartitionNumber partition,
                                                  const ScanFilter& filter, std::size_t count_max);

/// The one of them that has this id, if there is one. Blocks.
Result<std::optional<index::Candidate>> find_by_id(const storage::Snapshot& snapshot,
                                                   PartitionNumber partition,
                                                   const ScanFilter& filter, std::string_view id);

/// Where the documents after this one begin in a log that is in the order of their numbers: see
/// storage::Head::is_reordered. Nothing when there are none. Blocks. Unavailable on an I/O error.
Result<std::optional<storage::LogPosition>> place_in_log(const storage::Snapshot& snapshot,
                                                         PartitionNumber partition,
                                                         DocumentNumber after);

/// Goes over the numbers of documents only. Must not outlive the snapshot. Blocks.
class NumberSteps {
 public:
  NumberSteps(const storage::Snapshot& snapshot, PartitionNumber partition, DocumentNumber after);

  /// The number of the document so many (at least 1) further on; nothing when there are no more
  /// than that.
  std::optional<DocumentNumber> step(std::uint64_t count);

 private:
  storage::Snapshot::Cursor numbers_;
};

/// Must not outlive the snapshot. Blocks.
///
///   while (cursor.next()) use(cursor.text());
///   ORRERY_TRY(cursor.status());
class DocumentCursor {
 public:
  static constexpr DocumentNumber kLastDocument{UINT64_MAX};
  /// Those after `after`, and up to `last` if no partition key is wanted, in the order of their
  /// numbers. Where a partition key is wanted and others are met, its own entries are gone over
  /// instead.
  static DocumentCursor by_number(const storage::Snapshot& snapshot, PartitionNumber partition,
                                  DocumentNumber after, ScanFilter filter,
                                  DocumentNumber last = kLastDocument);

  /// Of the log: what was written from `begin` on, and before `end`.
  struct LogPart {
    storage::LogPosition begin{};
    Lsn end{UINT64_MAX};
  };
  /// All of them, the longest unchanged first. The quickest way.
  static DocumentCursor in_log(const storage::Snapshot& snapshot, PartitionNumber partition,
                               ScanFilter filter) {
    return in_log(snapshot, partition, std::move(filter), LogPart());
  }
  static DocumentCursor in_log(const storage::Snapshot& snapshot, PartitionNumber partition,
                               ScanFilter filter, LogPart part);
  /// These, in their order.
  static DocumentCursor over(const storage::Snapshot& snapshot, PartitionNumber partition,
                             std::vector<index::Candidate> candidates, ScanFilter filter);
  DocumentCursor(DocumentCursor&&) noexcept;
  ~DocumentCursor();

  /// To the next document that passes the filter. False at the end, and when something went wrong:
  /// see status().
  bool next();
  /// To the next one whether it passes or not, for those who must not look at too many.
  bool step();
  bool passes() const { return filter_.passes(record_); }

  /// Of the document that the last call went to; live until the next one.
  std::string_view text() const { return record_.text; }
  DocumentNumber number() const { return record_.header.number; }
  const storage::VersionHeader& header() const { return record_.header; }

  /// How many were looked at.
  std::uint64_t looked_at() const { return looked_at_; }
  const Result<>& status() const { return status_; }

 private:
  class Way;
  class ByNumber;
  class InLog;
  class OverCandidates;

  DocumentCursor(std::unique_ptr<Way> way, ScanFilter filter);
  /// That never comes to a document.
  explicit DocumentCursor(Error error);

  std::unique_ptr<Way> way_;
  ScanFilter filter_;
  storage::VersionRecord record_;
  std::uint64_t looked_at_ = 0;
  Result<> status_;
};

}  // namespace orrery::partition
