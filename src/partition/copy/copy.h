// Copying a partition's documents to those that will take its place, while it goes on taking
// writes.
//
// From the moment a copy begins, the writer puts every record of every transaction into the target
// that owns the document's key as well, in the same batch. Older documents are copied chunk by
// chunk by the writer itself, in between transactions, so that nothing can change under a chunk. At
// every moment a target holds exactly those documents of its range that were written since the
// begin, or lie behind the cursor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "partition/writer/index_terms.h"
#include "partition/writer/transaction.h"
#include "protocol/ids.h"
#include "protocol/keys/epk.h"
#include "storage/keys.h"
#include "storage/records.h"

namespace orrery::partition {

/// A new partition that takes over a part of the keys.
struct CopyTarget {
  PartitionNumber partition;
  EpkRange epks;
  /// Added to the index of every record: two parents of one target may have used the same LSN.
  std::uint32_t index_shift = 0;
};

/// A secondary index that the targets get complete, if nothing comes in between.
struct CopiedIndex {
  std::string spec;
  std::uint32_t id = 0;  ///< in the targets
  bool operator==(const CopiedIndex&) const = default;
};

struct CopyPlan {
  std::vector<CopyTarget> targets;  ///< together they hold every key of the partition
  /// As in Rules.
  std::shared_ptr<const UniqueValuesOf> unique_values_of;
  std::vector<CopiedIndex> indexes = {};
};

/// The contents of a target that come from one parent.
struct Copied {
  CopyTarget target;
  std::uint64_t documents = 0;
  std::uint64_t text_bytes = 0;
  std::uint64_t history_bytes = 0;
  std::uint32_t index_bound = 0;  ///< all indexes in the target are below

  /// Whether a position of the parent has one in the target.
  bool has_room_for(storage::LogPosition position) const {
    return position.index < UINT32_MAX - target.index_shift;
  }
  void see_index(storage::LogPosition position);  ///< of the parent
};

struct CopyOutcome {
  storage::Head head;  ///< of the parent, with all that is staged
  std::vector<Copied> targets;
  /// The retention of history was changed meanwhile: the targets do not hold what they should.
  bool history_changed = false;
  /// Expiry entries were not kept all the time: the targets lack some.
  bool expiry_incomplete = false;
  /// Those of the plan that were complete here from the beginning to the end.
  std::vector<CopiedIndex> indexes = {};
};

/// Those indexes that are complete in all of these lists, with ids of their own: what a plan for
/// parents that have them can copy.
std::vector<CopiedIndex> common_indexes(std::span<const storage::IndexRecords> parents);

/// The answer to a copier when the copy ends early: a disk error, or somebody else ended it.
Error copy_abandoned();
/// A record's index in the target would be above all that there are.
Error merged_too_often();

/// The head that a part of a divided partition begins with. Indexes that the copy has not completed
/// are built anew, under ids that no plan had.
storage::Head head_of_part(const CopyOutcome& parent, std::size_t target);
/// The head of the one target of two neighbours that meet at `boundary`, each with that target
/// only.
storage::Head head_of_merged(const CopyOutcome& left, const CopyOutcome& right,
                             const Epk& boundary);

/// The writer's view of a copy that is under way. Not thread-safe: the writer's.
class Mirror {
 public:
  /// Versions up to the LSN of `head`, the parent's, are to be copied; later ones are mirrored.
  Mirror(CopyPlan plan, const storage::Head& head);

  /// The target that owns documents of that key.
  Copied& owner_of(std::string_view epk);
  /// Whether the targets have, or get with what is staged, the version at `position`.
  bool has(storage::LogPosition position) const {
    return position.lsn > begun_ || position <= copied;
  }

  // Positions are the parent's.
  void count_put(std::string_view epk, const storage::IdEntry& entry);
  void count_erase(std::string_view epk, const storage::IdEntry& entry);
  void count_history(std::string_view epk, storage::LogPosition position, std::size_t bytes);
  /// The retention may change while the copy is under way.
  void see_change(const storage::RetentionSettings& before,
                  const storage::RetentionSettings& after);

  const std::vector<Copied>& targets() const { return targets_; }
  const UniqueValuesOf* unique_values_of() const { return unique_values_of_.get(); }
  Lsn begun() const { return begun_; }
  /// The id in the targets of an index of the parent; nothing if it is not copied.
  std::optional<std::uint32_t> index_there(std::uint32_t index) const;
  /// Finds what documents have in the targets' indexes; null when they have none.
  const IndexTerms* index_terms() const { return index_terms_.get(); }
  /// Those that the parent, with this head, has had all the time.
  std::vector<CopiedIndex> copied_indexes(const storage::Head& head) const;
  bool history_changed() const { return history_changed_; }
  bool expiry_incomplete() const { return expiry_incomplete_; }

  // Where the copying stands.
  enum class Stretch { Log, History, Done };
  Stretch stretch = Stretch::Log;
  storage::LogPosition copied;          ///< the last version of the log that was looked at
  storage::LogPosition copied_history;  ///< likewise of the history

 private:
  std::vector<Copied> targets_;
  std::shared_ptr<const UniqueValuesOf> unique_values_of_;
  Lsn begun_;
  struct MirroredIndex {
    std::uint32_t here;
    CopiedIndex there;
  };
  std::vector<MirroredIndex> indexes_;
  std::unique_ptr<const IndexTerms> index_terms_;
  bool history_changed_ = false;
  bool expiry_incomplete_ = false;
};

}  // namespace orrery::partition
