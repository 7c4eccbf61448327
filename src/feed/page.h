// The request for a page of the change feed, and the page. reader.h makes one of the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/work_budget.h"
#include "protocol/ids.h"
#include "protocol/keys/epk.h"
#include "protocol/keys/partition_key.h"

namespace orrery::feed {

enum class Mode {
  Latest,       ///< `Incremental feed`: the live documents in the order of their last change
  AllVersions,  ///< `Full-Fidelity Feed`: every change, deletes too, from the history
};

/// Which documents of a partition.
struct Scope {
  std::optional<EpkRange> epks;  ///< only those within
  std::optional<std::string>
      partition_key;  ///< only those of this key (canonical); epks has its EPK

  bool whole() const { return !epks && !partition_key; }
};

/// Decides about each version that would be shown, and may show something else instead. Called by
/// one thread at a time per page, by several for several pages.
class ItemFilter {
 public:
  enum class Decision {
    Skip,     ///< it is not in the feed
    Keep,     ///< it is shown as it is
    Replace,  ///< `instead` (a JSON value) is shown in place of `current`
  };
  virtual ~ItemFilter() = default;
  /// `current` and `previous` are texts of documents; empty: there is none, as `current` after a
  /// delete, and `previous` unless the container keeps it. An error is the answer in place of the
  /// page: what cannot be decided must not be missing, nor be shown to who may not want it. So is
  /// interruption() when `work` stops.
  virtual Result<Decision> decide(std::string_view current, std::string_view previous,
                                  std::string& instead, WorkBudget& work) const = 0;
};

/// Properties of the container; they outlive the request.
struct ContainerFacts {
  Rid rid;
  const PartitionKeyDefinition* partition_key = nullptr;
  std::optional<std::int32_t> default_ttl;  ///< expired documents are not there, purged or not
};

struct PageRequest {
  Mode mode = Mode::Latest;
  Scope scope;
  Lsn after;                              ///< changes above this LSN
  std::optional<UnixSeconds> newer_than;  ///< and only those with a `_ts` above this
  bool wrapped = false;     ///< {"current":…,"metadata":…}; all versions come so in any case
  bool tombstones = false;  ///< Mode::Latest: deletes too, as far as the container keeps them
  /// Mode::Latest with tombstones: reads on from the beginning, begun when the head was this.
  /// Deletes before it need not be told.
  std::optional<Lsn> began_at;
  const ItemFilter* filter = nullptr;
  ContainerFacts container;
  UnixSeconds now = 0;

  std::optional<std::uint32_t> count_max = 100;
  /// Of the items' text. The first transaction of a page is sent whole, however large.
  std::size_t bytes_max = std::size_t{4} << 20;
  /// The page ends when it is over, whatever is in it; each transaction is an item. Null: without a
  /// bound.
  WorkBudget* work = nullptr;
  bool mark_groups = false;  ///< fill Page::groups
};

/// The changes of one LSN in a page.
struct PageGroup {
  Lsn lsn;
  std::size_t begin = 0;  ///< where its first item begins in Page::text
  std::size_t end = 0;    ///< where its last one ends
  std::size_t count = 0;
};

/// A reader's position was given out by a life of the store that ended, and its change is not here:
/// the reader may have seen changes that the store has lost.
struct EndedLife {
  Lsn position;
  Lsn ended;  ///< up to here the changes of that life are here
};

struct Page {
  std::string text;  ///< the items, separated by commas, after what was in it before
  std::size_t count = 0;
  /// The position to read on from, as the next etag: the LSN of the last item, or without items as
  /// far as was looked (the head, when there are none; never below what was asked for).
  Lsn position;
  Lsn head;                 ///< of the snapshot that was read
  UnixSeconds last_ts = 0;  ///< of the last item
  /// Nothing is left above `position` in that snapshot. Without items: answer 304.
  bool caught_up = false;
  /// PageRequest::began_at of the request for the next page; see tombstone_etag().
  std::optional<Lsn> began_at;
  /// Up to this LSN `_ts` is not monotone: two logs were merged there. 0: never.
  Lsn merged_at;
  std::vector<PageGroup> groups;  ///< when they were asked for
  std::optional<EndedLife> ended_life;
};

}  // namespace orrery::feed
