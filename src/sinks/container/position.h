// Positions: how far a copy has come, kept in the destination and written in the same transaction
// as the copied documents.
//
//   {"id":"orrery.position.<group>.<min>-<max>", …the partition key of its logical partition…,
//    "ttl":-1,
//    "orreryPosition":{"group":"…","min":"","max":"FF","epoch":1763270400,"to":17,"within":"…"}}
//
// One for each logical partition and each part of the source's hash space that a lease stands for:
// all changes of that part, for that logical partition, are applied up to the LSN `to`; with
// `within`, of that last LSN only documents whose _rid is not above it. `epoch` is that of the
// lease under which it was written; a writer with a lower one has lost its lease.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/options.h"
#include "protocol/keys/partition_key.h"
#include "sinks/container/change.h"

namespace orrery::sinks {

/// The last change that is applied.
struct AppliedUpTo {
  std::uint64_t lsn = 0;
  std::string within;  ///< empty: all of that LSN

  bool includes(const SourceChange& change) const {
    return change.lsn < lsn || (change.lsn == lsn && (within.empty() || change.rid <= within));
  }
  friend bool operator==(const AppliedUpTo&, const AppliedUpTo&) = default;
};

struct Position {
  AppliedUpTo applied;
  std::uint64_t epoch = 0;
  std::string etag;  ///< of its document; empty: there is none
};

/// Makes and reads the documents of one group in one destination. Immutable; threads may share it.
class PositionFormat {
 public:
  /// `unique_paths`: of the destination's unique keys. A document that lacks them would count as
  /// one with null, of which there may be one only.
  PositionFormat(std::string group, PartitionKeyDefinition definition,
                 std::vector<std::vector<std::string>> unique_paths)
      : group_(std::move(group)),
        definition_(std::move(definition)),
        unique_paths_(std::move(unique_paths)) {}

  std::string id_of(const client::FeedRange& area) const;
  std::string text_of(const client::FeedRange& area, const PartitionKey& key,
                      const Position& position) const;
  /// nullopt when it is no position.
  static std::optional<Position> parse(std::string_view document);

  /// The id of the ledger of the group, and a document of that id and with `state`, a JSON object.
  std::string ledger_id() const;
  std::string ledger_text(std::string_view state) const;

  /// Whether it is a position or ledger, of any group, and no document of users.
  static bool is_position(std::string_view document);
  /// Whether it is one of this group.
  bool is_ours(std::string_view document) const;

 private:
  std::string document(const std::string& id, const PartitionKey* key,
                       std::string_view state) const;

  std::string group_;
  PartitionKeyDefinition definition_;
  std::vector<std::vector<std::string>> unique_paths_;
};

/// The ledger of a group: the parts of the source's hash space that leases stood for, each with the
/// epoch of its last owner. An owner that takes a part finds there which positions of overlapping
/// parts to read, and an owner that comes too late finds that it lost.
struct Ledger {
  struct Entry {
    client::FeedRange area;
    std::uint64_t epoch = 0;
  };
  std::string source_rid;
  std::vector<Entry> entries;

  std::string to_json() const;
  /// nullopt when it is none.
  static std::optional<Ledger> parse(std::string_view document);

  /// Whether an owner with a higher epoch has taken a part of `area`.
  bool is_superseded(const client::FeedRange& area, std::uint64_t epoch) const;
  /// All that overlap `area`, itself aside.
  std::vector<Entry> predecessors_of(const client::FeedRange& area) const;
  const Entry* find(const client::FeedRange& area) const;
  /// Adds the area, or changes its epoch.
  void put(const client::FeedRange& area, std::uint64_t epoch);
};

}  // namespace orrery::sinks
