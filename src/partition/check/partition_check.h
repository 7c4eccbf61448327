// PartitionCheck: whether all that the store holds of a partition says the same.
//
// The log is the truth. Every version in it has one entry in `ids` and one in `rids`, and those
// that it should have in `unique`, `expiry`, `terms` and `history`; and there are no entries
// besides, but for expiry entries of versions that are gone, which are collected later. The head
// counts what is there, and is above all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "partition/check/findings.h"
#include "partition/writer/index_terms.h"
#include "partition/writer/transaction.h"
#include "protocol/ids.h"
#include "protocol/keys/epk.h"
#include "storage/keys.h"
#include "storage/records.h"
#include "storage/store.h"

namespace orrery::partition {

/// Which partition, and what its container says of it.
struct CheckedPartition {
  PartitionNumber number;
  std::string name;  ///< for findings
  RangeId range;
  EpkRange epks;
  Rules rules;
};

/// Goes over a partition once, with memory that does not depend on its size.
class PartitionCheck {
 public:
  PartitionCheck(const storage::Snapshot& snapshot, const CheckedPartition& partition,
                 Findings& findings, CheckPace& pace);

  /// Adds what is wrong to the findings; also what cannot be read. Blocks. False: the pace has
  /// stopped it early.
  bool run();

  std::uint64_t documents() const { return documents_; }

 private:
  using Family = storage::Family;

  void find(std::string_view where, std::string what);
  void find_at(std::string_view family, storage::LogPosition position, std::string what);
  /// Reads one value that should be there; null when it is not, which was told.
  const std::string* get(Family family, const std::string& key);

  bool read_head();
  void check_head();
  /// False when the pace said so, as all that follow.
  bool check_versions();
  void check_version(storage::LogPosition position, const storage::VersionRecord& record);
  void check_place(storage::LogPosition position, const storage::VersionRecord& record);
  void check_ids(storage::LogPosition position, const storage::VersionRecord& record);
  void check_text(storage::LogPosition position, const storage::VersionRecord& record);
  void check_unique_of(storage::LogPosition position, const storage::VersionRecord& record);
  void check_expiry_of(storage::LogPosition position, const storage::VersionRecord& record);
  void check_terms_of(storage::LogPosition position, const storage::VersionRecord& record);
  void check_history_of(storage::LogPosition position, const storage::VersionRecord& record);

  bool count_entries(Family family, std::string_view name, std::uint64_t expected);
  bool check_unique();
  bool check_expiry();
  bool check_history();
  bool check_terms();
  /// Whether the pace says to go on, and an iteration has ended by itself.
  bool ended(const storage::Snapshot::Cursor& cursor, std::string_view name, bool goes_on);

  const storage::Snapshot& snapshot_;
  const CheckedPartition& partition_;
  Findings& findings_;
  CheckPace& pace_;
  const std::string from_;
  const std::string to_;

  storage::Head head_;
  std::optional<IndexTerms> terms_;  // Of all indexes of the head.
  std::string value_;                // That was read last.
  std::uint64_t documents_ = 0;
  std::uint64_t text_bytes_ = 0;
  std::map<std::uint32_t, std::uint64_t> terms_found_;  // By index: entries that are right.
  UnixSeconds last_ts_ = 0;
  DocumentNumber last_number_;
};

}  // namespace orrery::partition
