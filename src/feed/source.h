// Sources: the versions of one partition, or of one part of it, in LSN order. Pages, positions by
// time and lag are all made from them.
#pragma once

#include <array>
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
#include "base/work_budget.h"
#include "feed/live_map.h"
#include "feed/page.h"
#include "storage/keys.h"
#include "storage/records.h"
#include "storage/store.h"

namespace orrery::feed {

/// One version, or the end of one. Views live until the source moves.
struct Version {
  enum class Kind { Create, Replace, Delete, Expire };
  Kind kind = Kind::Create;
  storage::LogPosition position;
  UnixSeconds ts = 0;
  DocumentNumber number;
  Lsn before;  ///< the version that this one follows; 0 when there is none or it is not known
  std::string_view partition_key;
  std::string_view id;
  std::string_view current;   ///< empty after a delete
  std::string_view previous;  ///< empty unless the container keeps it

  bool deletes() const { return kind == Kind::Delete || kind == Kind::Expire; }
};

/// Where a source stands.
enum class Step {
  Version,    ///< at version()
  End,        ///< there is no more
  OutOfTime,  ///< everything below reached() has been looked at
};

/// Used by one thread.
class Source {
 public:
  virtual ~Source() = default;
  /// The first version, then the next. Blocks. Unavailable on an I/O error. Out of time only after
  /// one transaction was looked at, so that each page comes further.
  virtual Result<Step> next() = 0;
  const Version& version() const { return version_; }
  /// After OutOfTime: all LSNs below this one have been looked at.
  Lsn reached() const { return reached_; }
  /// How many versions of the log it has looked at, of any scope; 0 where that is not known.
  virtual std::size_t looked_at() const { return 0; }

 protected:
  Version version_;
  Lsn reached_;
};

/// The predicate of a source, over headers and keys: versions that fail it are not read further.
struct Passes {
  Scope scope;
  std::optional<std::int32_t> default_ttl;
  UnixSeconds now = 0;
  std::optional<UnixSeconds> newer_than;

  bool operator()(const storage::VersionHeader& header) const {
    if (newer_than && header.ts <= *newer_than) return false;
    return !storage::expired(header.ts, header.own_ttl, default_ttl, now);
  }
  /// Of a key; both in their stored form.
  bool operator()(std::string_view epk, std::string_view partition_key) const {
    if (scope.partition_key && partition_key != *scope.partition_key) return false;
    if (!scope.epks) return true;
    return epk >= scope.epks->min.bytes && epk < scope.epks->max.bytes;
  }
};

/// The common state of all sources of a partition. Outlives them.
struct SourceContext {
  const storage::Snapshot& snapshot;
  PartitionNumber partition;
  const storage::Head& head;  ///< in that snapshot
  WorkBudget& work;

  /// Before a version of so many bytes is looked at.
  void spend(std::size_t bytes) const { work.spend(kVersionSteps + WorkBudget::steps_of(bytes)); }
  /// Between two transactions: whether no other one should be looked at.
  bool is_over() const {
    work.begin_item();
    return work.is_over() || work.has_stopped();
  }

 private:
  static constexpr std::uint64_t kVersionSteps = 4;
};

/// The budget of a request, or one without a bound.
class RequestWork {
 public:
  explicit RequestWork(const PageRequest& request) {
    if (request.work == nullptr) own_.emplace();
    work_ = request.work == nullptr ? &*own_ : request.work;
  }
  WorkBudget& operator*() const { return *work_; }
  WorkBudget* operator->() const { return work_; }

 private:
  std::optional<WorkBudget> own_;
  WorkBudget* work_;
};

/// The live documents, from the log.
class LogSource final : public Source {
 public:
  /// Those with `after` < LSN. `map` may be null.
  LogSource(const SourceContext& context, Lsn after, Passes passes,
            std::shared_ptr<const LiveMap> map, storage::Snapshot::Access access);
  Result<Step> next() override;

  std::size_t looked_at() const override { return looked_at_; }
  /// Steps OutOfTime after so many.
  void give_up_after(std::size_t looked_at_max) { looked_at_max_ = looked_at_max; }
  std::size_t looked_at_max() const { return looked_at_max_; }

 private:
  void advance();

  const SourceContext& context_;
  const Passes passes_;
  const std::shared_ptr<const LiveMap> map_;
  std::optional<LiveMap::Walk> walk_;
  std::optional<storage::Snapshot::Cursor> cursor_;
  storage::LogPosition from_;
  storage::Snapshot::Access access_;
  Lsn last_;  // That was looked at.
  std::size_t looked_at_ = 0;
  std::size_t looked_at_max_ = SIZE_MAX;
};

/// The live documents at given positions.
class KeyedSource final : public Source {
 public:
  /// `positions` ascend, and are in the snapshot.
  KeyedSource(const SourceContext& context, std::vector<storage::LogPosition> positions,
              Passes passes);
  Result<Step> next() override;

 private:
  const SourceContext& context_;
  const std::vector<storage::LogPosition> positions_;
  const Passes passes_;
  std::optional<storage::Snapshot::Cursor> cursor_;
  std::size_t at_ = 0;
};

/// Versions and deletes as they were, from the history.
class HistorySource final : public Source {
 public:
  enum class Kinds { All, Deletes };
  /// Those with `after` < LSN.
  HistorySource(const SourceContext& context, Lsn after, Passes passes, Kinds kinds);
  Result<Step> next() override;

 private:
  const SourceContext& context_;
  const Passes passes_;
  const Kinds kinds_;
  const Lsn after_;
  std::optional<storage::Snapshot::Cursor> cursor_;
  Lsn last_;  // That was looked at.
};

/// Two sources in LSN order; of one LSN first all of the first.
class MergedSource final : public Source {
 public:
  MergedSource(std::unique_ptr<Source> first, std::unique_ptr<Source> second)
      : sources_{std::move(first), std::move(second)} {}
  Result<Step> next() override;

 private:
  std::array<std::unique_ptr<Source>, 2> sources_;
  std::array<std::optional<Step>, 2> step_;  // Where each stands.
  std::size_t shown_ = 0;                    // The one that version_ is of.
};

/// The head of a partition in a snapshot. Unavailable when it cannot be read.
Result<storage::Head> head_in(const storage::Snapshot& snapshot, PartitionNumber partition);

/// Whether the request may be served from what the partition has. BadRequest, with the texts that
/// clients look for, when it does not keep what is asked for, or not any more, and when the
/// position is beyond the head.
Result<> check_position(const storage::Head& head, const PageRequest& request);

/// Whether a life of the store gave the request's position out that ended before it.
std::optional<EndedLife> ended_life_of(const storage::Head& head, Lsn after);

/// PageRequest::began_at for a reader that goes on from `position`, if it needs one.
std::optional<Lsn> began_at_of_next(const storage::Head& head, const PageRequest& request,
                                    Lsn position);

/// Everything that the request asks for above `after`, in order.
Result<std::unique_ptr<Source>> open_source(const SourceContext& context,
                                            const PageRequest& request, Lsn after,
                                            std::shared_ptr<const LiveMap> map,
                                            std::uint64_t page_items);

/// The live documents of the request's scope above `after`: the cheaper of the log from there on,
/// and the scope's own entries sorted. `page_items` is about how many will be taken.
Result<std::unique_ptr<Source>> latest_source(const SourceContext& context,
                                              const PageRequest& request, Lsn after,
                                              std::shared_ptr<const LiveMap> map,
                                              std::uint64_t page_items);

}  // namespace orrery::feed
