#include "maintenance/range_change.h"

#include <algorithm>
#include <condition_variable>
#include <utility>

#include <fmt/format.h>

#include "base/diagnostics.h"
#include "catalog/errors.h"
#include "protocol/tokens/continuation.h"
#include "protocol/wire/range_gone.h"
#include "storage/keys.h"

namespace orrery::maintenance {

using catalog::Container;
using catalog::ContainerPtr;
using catalog::Range;
using storage::Family;
using Steady = std::chrono::steady_clock;

namespace {

/// After each step the copy rests as long as that took, so that it has no more than half of the
/// disk; and at most so long, so that it ends.
constexpr std::chrono::milliseconds kRestMax{50};

/// A copy waits for flushes and compactions to catch up: it looks again so often, and goes on after
/// so long in any case, since others may write as fast as the disk takes it.
constexpr std::chrono::milliseconds kCatchUpInterval{10};
constexpr std::chrono::seconds kCatchUpWaitMax{2};

/// Of one level of a hierarchical key.
constexpr std::size_t kLevelHashSize = 16;

std::int64_t milliseconds_since(Steady::time_point begin) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - begin).count();
}

/// Whether history was kept in the same way all the time and in all parents.
bool keep_alike(const std::vector<partition::CopyOutcome>& outcomes) {
  return std::ranges::all_of(outcomes, [&](const partition::CopyOutcome& each) {
    const auto& retention = each.head.retention;
    const auto& first = outcomes.front().head.retention;
    return !each.history_changed && retention.history == first.history &&
           retention.previous_image == first.previous_image;
  });
}

}  // namespace

// ── accepting ────────────────────────────────────────────────────────────────────────────────────

Result<std::unique_ptr<RangeChange>> RangeChanges::accept(const Container& container,
                                                          RangeChange::Plan plan) {
  if (container.ranges.next_id().value + plan.parts.size() > kRangeIdMax) {
    return Error(ErrorCode::Forbidden,
                 "This container has given out as many range ids as there are.");
  }
  if (const Range* claimed = claims_.claim(plan.parents)) {
    return Error(ErrorCode::Conflict,
                 fmt::format("Range '{}' is being split or merged already. Wait until that is "
                             "done, and read the ranges again.",
                             claimed->id.value));
  }
  return std::make_unique<RangeChange>(environment_, catalog_, claims_, stop_.get_token(),
                                       std::move(plan));
}

Result<std::unique_ptr<RangeChange>> RangeChanges::begin_split(const Rid& rid, RangeId id,
                                                               const std::optional<Epk>& at) {
  const auto current = catalog_.container(rid);
  if (!current) return catalog::not_found("container");
  const Range* range = current->ranges.find(id);
  if (range == nullptr) return no_such_range(id.text());
  const auto& key = current->definition.partition_key();
  if (key.paths.empty()) {
    return Error(ErrorCode::BadRequest,
                 "The container has no partition key: all of its documents lie in one place, and "
                 "its range cannot be cut.");
  }
  Epk boundary;
  if (at) {
    boundary = *at;
  } else {
    ORRERY_TRY(boundary, midpoint(key, range->epks));
  }
  if (boundary.bytes.size() > kBoundaryBytesMax) {
    return Error(
        ErrorCode::BadRequest,
        fmt::format("A boundary of ranges has at most {} hex digits.", 2 * kBoundaryBytesMax));
  }
  if (boundary <= range->epks.min || boundary >= range->epks.max) {
    return Error(
        ErrorCode::BadRequest,
        fmt::format("'{}' does not lie strictly inside the range '{}', which goes from "
                    "'{}' to '{}'.",
                    boundary.hex(), id.value, range->epks.min.hex(), range->epks.max.hex()));
  }
  return accept(*current, {.container = rid,
                           .parents = {*range},
                           .parts = {{range->epks.min, boundary}, {boundary, range->epks.max}},
                           .may_choose = !at});
}

Result<std::unique_ptr<RangeChange>> RangeChanges::begin_merge(const Rid& rid, RangeId one,
                                                               RangeId other) {
  const auto current = catalog_.container(rid);
  if (!current) return catalog::not_found("container");
  const Range* left = current->ranges.find(one);
  if (left == nullptr) return no_such_range(one.text());
  const Range* right = current->ranges.find(other);
  if (right == nullptr) return no_such_range(other.text());
  if (right->epks.min < left->epks.min) std::swap(left, right);
  if (left == right || left->epks.max != right->epks.min) {
    return Error(ErrorCode::BadRequest,
                 fmt::format("The ranges '{}' and '{}' are not neighbours: only two that touch can "
                             "be merged.",
                             one.value, other.value));
  }
  return accept(
      *current,
      {.container = rid, .parents = {*left, *right}, .parts = {{left->epks.min, right->epks.max}}});
}

Result<ContainerPtr> RangeChanges::split(const Rid& rid, RangeId range,
                                         const std::optional<Epk>& at) {
  ORRERY_TRY(const auto change, begin_split(rid, range, at));
  return change->run();
}

Result<ContainerPtr> RangeChanges::merge(const Rid& rid, RangeId one, RangeId other) {
  ORRERY_TRY(const auto change, begin_merge(rid, one, other));
  return change->run();
}

// ── running ──────────────────────────────────────────────────────────────────────────────────────

RangeChange::RangeChange(partition::Environment& environment, catalog::Catalog& catalog,
                         RangeClaims& claims, std::stop_token stop, Plan plan)
    : environment_(environment),
      catalog_(catalog),
      claims_(claims),
      stop_(std::move(stop)),
      container_(plan.container),
      parents_(std::move(plan.parents)),
      parts_(std::move(plan.parts)),
      may_choose_(plan.may_choose) {}

RangeChange::~RangeChange() { claims_.release(parents_); }

Result<ContainerPtr> RangeChange::run() {
  const auto attempt = [this]() -> Result<ContainerPtr> {
    ORRERY_TRY(find_hot_prefix());
    ORRERY_TRY(reserved_, catalog_.topology().reserve(container_, parts_.size()));
    ORRERY_TRY(copy());
    return switch_over();
  };
  auto outcome = attempt();
  if (!outcome) abandon();
  return outcome;
}

Result<> RangeChange::find_hot_prefix() {
  const auto current = catalog_.container(container_);
  if (!current) return catalog::not_found("container");
  const auto& key = current->definition.partition_key();
  if (!may_choose_ || key.kind != KeyKind::MultiHash || key.paths.size() < 2) return {};
  const PartitionNumber partition = parents_[0].partition->number();
  ORRERY_TRY(const auto snapshot, environment_.store.snapshot());
  auto cursor = snapshot.cursor(Family::Ids, storage::partition_prefix(partition),
                                storage::partition_end(partition), storage::Snapshot::Access::Scan);
  std::string hash, largest;
  std::size_t in_hash = 0, in_largest = 0, total = 0;
  for (; cursor.valid(); cursor.next(), ++total) {
    // After the partition, a key of `ids` begins with the hashes of its levels.
    const auto first = cursor.key().substr(4, kLevelHashSize);
    if (first != hash) {
      hash = first;
      in_hash = 0;
    }
    if (++in_hash > in_largest) {
      in_largest = in_hash;
      largest = hash;
    }
  }
  ORRERY_TRY(cursor.status());
  if (in_largest * 2 <= total) return {};
  const EpkRange& whole = parents_[0].epks;
  const EpkRange hot{std::max(whole.min, Epk{largest}), std::min(whole.max, Epk{largest + '\xFF'})};
  const auto boundary = midpoint(key, hot);
  if (!boundary || *boundary <= whole.min || *boundary >= whole.max) return {};
  parts_ = {{whole.min, *boundary}, {*boundary, whole.max}};
  return {};
}

Result<> RangeChange::copy() {
  std::vector<storage::IndexRecords> indexes;
  indexes.reserve(parents_.size());
  for (const Range& parent : parents_) indexes.push_back(parent.partition->indexes());
  indexes_ = partition::common_indexes(indexes);
  std::uint32_t shift = 0;
  for (const Range& parent : parents_) {
    partition::CopyPlan plan;
    const auto current = catalog_.container(container_);
    if (!current) return catalog::not_found("container");
    plan.unique_values_of = current->rules.unique_values_of;
    plan.indexes = indexes_;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      plan.targets.push_back({reserved_.partitions[i], parts_[i], shift});
    }
    ++copying_;
    ORRERY_TRY(parent.partition->begin_copy(std::move(plan), reserved_.generation));
    for (bool more = true; more;) {
      const auto begin = Steady::now();
      ORRERY_TRY(more, parent.partition->copy_step());
      const auto pause = std::min<Steady::duration>(Steady::now() - begin, kRestMax);
      if (!rest(pause) || !wait_for_store()) return partition::copy_abandoned();
    }
    // Both parents may have used an LSN: the right-hand one's records are numbered on.
    ORRERY_TRY(shift, parent.partition->copied_index_bound());
  }
  return {};
}

bool RangeChange::rest(Steady::duration duration) const {
  std::mutex mutex;
  std::condition_variable_any stopping;
  std::unique_lock lock(mutex);
  stopping.wait_for(lock, stop_, duration, [] { return false; });
  return !stop_.stop_requested();
}

bool RangeChange::wait_for_store() const {
  const auto deadline = Steady::now() + kCatchUpWaitMax;
  while (environment_.store.is_behind() && Steady::now() < deadline) {
    if (!rest(kCatchUpInterval)) return false;
  }
  return true;
}

std::vector<storage::Head> RangeChange::heads_of_parts(
    const std::vector<partition::CopyOutcome>& outcomes) const {
  if (parents_.size() == 2)
    return {partition::head_of_merged(outcomes[0], outcomes[1], parents_[1].epks.min)};
  std::vector<storage::Head> heads;
  heads.reserve(parts_.size());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    heads.push_back(partition::head_of_part(outcomes[0], i));
  }
  return heads;
}

Result<ContainerPtr> RangeChange::switch_over() {
  // From here on the container stays as it is: the newest definition goes into the new map.
  ORRERY_TRY(auto change, catalog_.topology().begin(container_, reserved_.generation));
  const auto begin = Steady::now();
  std::vector<partition::CopyOutcome> outcomes;
  for (const Range& parent : parents_) {
    ORRERY_TRY(auto outcome, parent.partition->hold());
    outcomes.push_back(std::move(outcome));
  }
  if (!keep_alike(outcomes)) {
    return Error(ErrorCode::Conflict,
                 "The container's change feed policy was changed meanwhile; the ranges are as they "
                 "were. Try again.");
  }
  auto heads = heads_of_parts(outcomes);
  std::vector<catalog::Topology::Child> children;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const PartitionNumber number = reserved_.partitions[i];
    for (const partition::CopiedIndex& index : indexes_) {
      // Dropped meanwhile.
      if (storage::find_index(heads[i].indexes, index.id) != nullptr) continue;
      change.batch().erase_range(Family::Terms, storage::terms_prefix(number, index.id),
                                 storage::terms_end(number, index.id));
    }
    children.push_back({number, parts_[i], std::move(heads[i])});
  }
  committing_ = true;
  ORRERY_TRY(const auto made, change.commit(parents_, children));
  diagnostics::info("{}: {}; it has {} now. Writes waited for {} ms", made->alt_content_path,
                    parents_.size() == 2 ? "two ranges became one" : "a range became two",
                    made->ranges.all().size(), milliseconds_since(begin));
  return made;
}

void RangeChange::abandon() {
  for (std::size_t i = 0; i < copying_; ++i) parents_[i].partition->abandon_copy();
  // Once the last commit was tried, and after any disk error, the disk decides: loading the catalog
  // anew finds the garbage. Here it is known to be.
  if (!committing_) catalog_.topology().abandon(reserved_);
}

// ── claims ───────────────────────────────────────────────────────────────────────────────────────

const Range* RangeClaims::claim(const std::vector<Range>& ranges) {
  std::lock_guard lock(mutex_);
  for (const Range& range : ranges) {
    if (claimed_.contains(range.partition->number())) return &range;
  }
  for (const Range& range : ranges) claimed_.insert(range.partition->number());
  return nullptr;
}

void RangeClaims::release(const std::vector<Range>& ranges) {
  std::lock_guard lock(mutex_);
  for (const Range& range : ranges) claimed_.erase(range.partition->number());
}

}  // namespace orrery::maintenance
