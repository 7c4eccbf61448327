// The part of Catalog that changes ranges: split and merge.
#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/diagnostics.h"
#include "catalog/catalog.h"
#include "catalog/range_change.h"
#include "protocol/tokens/continuation.h"
#include "storage/keys.h"

namespace orrery::catalog {

using storage::Family;
using Steady = std::chrono::steady_clock;

namespace {

/// After each piece the copying rests as long as that took, so that it has no more than half of the
/// disk; and at most so long, so that it ends.
constexpr std::chrono::milliseconds kRestMax{50};

/// A copy waits for flushes and compactions to catch up: it looks again so often, and goes on after
/// so long in any case, since others may write as fast as the disk takes it.
constexpr std::chrono::milliseconds kCatchUpInterval{10};
constexpr std::chrono::seconds kCatchUpWaitMax{2};

/// Of one level of a hierarchical key.
constexpr std::size_t kLevelHashSize = 16;

Error container_gone() {
  return Error(ErrorCode::NotFound, "Resource Not Found. The container does not exist.");
}

Error range_gone(RangeId range) {
  return Error(ErrorCode::RangeGone,
               fmt::format("The requested resource is no longer available at the server: there is "
                           "no partition key range '{}'. Read the ranges again.",
                           range.value));
}

std::int64_t milliseconds_since(Steady::time_point begin) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - begin).count();
}

/// All that came before the ranges that are made of these: ids are given out in the order of time.
std::vector<RangeId> ancestors(const std::vector<Range>& parents) {
  std::vector<RangeId> found;
  for (const Range& parent : parents) {
    found.insert(found.end(), parent.parents.begin(), parent.parents.end());
    found.push_back(parent.id);
  }
  std::ranges::sort(found);
  const auto repeated = std::ranges::unique(found);
  found.erase(repeated.begin(), repeated.end());
  return found;
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

Result<std::unique_ptr<RangeChange>> Catalog::claim(const Container& container,
                                                    std::vector<Range> parents,
                                                    std::vector<EpkRange> parts) {
  if (container.ranges.next_id().value + parts.size() > kRangeIdMax) {
    return Error(ErrorCode::Forbidden,
                 "This container has given out as many range ids as there are.");
  }
  std::lock_guard lock(claims_mutex_);
  for (const Range& parent : parents) {
    if (claims_.contains(parent.partition->number())) {
      return Error(ErrorCode::Conflict,
                   fmt::format("Range '{}' is being split or merged already. Wait until that is "
                               "done, and read the ranges again.",
                               parent.id.value));
    }
  }
  for (const Range& parent : parents) claims_.insert(parent.partition->number());
  return std::unique_ptr<RangeChange>(
      new RangeChange(*this, container.rid, std::move(parents), std::move(parts)));
}

Result<std::unique_ptr<RangeChange>> Catalog::begin_split(const Rid& rid, RangeId id,
                                                          const std::optional<Epk>& at) {
  const auto current = container(rid);
  if (!current) return container_gone();
  const Range* range = current->ranges.find(id);
  if (range == nullptr) return range_gone(id);
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
  ORRERY_TRY(auto change,
             claim(*current, {*range}, {{range->epks.min, boundary}, {boundary, range->epks.max}}));
  change->may_choose_ = !at;
  return change;
}

Result<std::unique_ptr<RangeChange>> Catalog::begin_merge(const Rid& rid, RangeId one,
                                                          RangeId other) {
  const auto current = container(rid);
  if (!current) return container_gone();
  const Range* left = current->ranges.find(one);
  if (left == nullptr) return range_gone(one);
  const Range* right = current->ranges.find(other);
  if (right == nullptr) return range_gone(other);
  if (right->epks.min < left->epks.min) std::swap(left, right);
  if (left == right || left->epks.max != right->epks.min) {
    return Error(ErrorCode::BadRequest,
                 fmt::format("The ranges '{}' and '{}' are not neighbours: only two that touch can "
                             "be merged.",
                             one.value, other.value));
  }
  return claim(*current, {*left, *right}, {{left->epks.min, right->epks.max}});
}

Result<ContainerPtr> Catalog::split_range(const Rid& rid, RangeId range,
                                          const std::optional<Epk>& at) {
  ORRERY_TRY(const auto change, begin_split(rid, range, at));
  return change->run();
}

Result<ContainerPtr> Catalog::merge_ranges(const Rid& rid, RangeId one, RangeId other) {
  ORRERY_TRY(const auto change, begin_merge(rid, one, other));
  return change->run();
}

bool Catalog::rest(Steady::duration duration) {
  std::unique_lock lock(reclaim_mutex_);
  reclaim_work_.wait_for(lock, duration, [this] { return stopping_; });
  return !stopping_;
}

// ── running ──────────────────────────────────────────────────────────────────────────────────────

RangeChange::RangeChange(Catalog& catalog, Rid container, std::vector<Range> parents,
                         std::vector<EpkRange> parts)
    : catalog_(catalog),
      container_(container),
      parents_(std::move(parents)),
      parts_(std::move(parts)) {}

RangeChange::~RangeChange() {
  std::lock_guard lock(catalog_.claims_mutex_);
  for (const Range& parent : parents_) catalog_.claims_.erase(parent.partition->number());
}

Result<ContainerPtr> RangeChange::run() {
  const auto attempt = [this]() -> Result<ContainerPtr> {
    ORRERY_TRY(look_for_crowd());
    ORRERY_TRY(prepare());
    ORRERY_TRY(copy());
    return switch_over();
  };
  auto outcome = attempt();
  if (!outcome) abandon();
  return outcome;
}

Result<> RangeChange::look_for_crowd() {
  const auto current = catalog_.container(container_);
  if (!current) return container_gone();
  const auto& key = current->definition.partition_key();
  if (!may_choose_ || key.kind != KeyKind::MultiHash || key.paths.size() < 2) return {};
  const PartitionNumber partition = parents_[0].partition->number();
  ORRERY_TRY(const auto snapshot, catalog_.environment_.store.snapshot());
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
  const EpkRange crowd{std::max(whole.min, Epk{largest}),
                       std::min(whole.max, Epk{largest + '\xFF'})};
  const auto boundary = midpoint(key, crowd);
  if (!boundary || *boundary <= whole.min || *boundary >= whole.max) return {};
  parts_ = {{whole.min, *boundary}, {*boundary, whole.max}};
  return {};
}

Result<> RangeChange::prepare() {
  std::lock_guard change(catalog_.change_mutex_);
  generation_ = catalog_.environment_.committer.generation();
  if (!catalog_.container(container_)) return container_gone();
  Counters counters = catalog_.next_counters();
  storage::Batch batch;
  std::vector<PartitionNumber> numbers;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    numbers.push_back(PartitionNumber{++counters.partition});
    batch.put(Family::Catalog, garbage_key(numbers.back()), {});
  }
  ORRERY_TRY(catalog_.commit(std::move(batch), counters, generation_, [](Catalog::State&) {}));
  numbers_ = std::move(numbers);
  return {};
}

Result<> RangeChange::copy() {
  std::vector<storage::IndexRecords> indexes;
  for (const Range& parent : parents_) indexes.push_back(parent.partition->indexes());
  indexes_ = partition::common_indexes(indexes);
  std::uint32_t shift = 0;
  for (const Range& parent : parents_) {
    partition::CopyPlan plan;
    const auto current = catalog_.container(container_);
    if (!current) return container_gone();
    plan.unique_values_of = current->rules.unique_values_of;
    plan.indexes = indexes_;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      plan.targets.push_back({numbers_[i], parts_[i], shift});
    }
    ++copying_;
    ORRERY_TRY(parent.partition->begin_copy(std::move(plan), generation_));
    for (bool more = true; more;) {
      const auto begin = Steady::now();
      ORRERY_TRY(more, parent.partition->copy_step());
      const auto pause = std::min<Steady::duration>(Steady::now() - begin, kRestMax);
      if (!catalog_.rest(pause) || !wait_for_store()) return partition::copy_abandoned();
    }
    // Both parents may have used an LSN: the right-hand one's records are numbered on.
    ORRERY_TRY(shift, parent.partition->copied_index_bound());
  }
  return {};
}

bool RangeChange::wait_for_store() {
  const auto deadline = Steady::now() + kCatchUpWaitMax;
  while (catalog_.environment_.store.is_behind() && Steady::now() < deadline) {
    if (!catalog_.rest(kCatchUpInterval)) return false;
  }
  return true;
}

std::vector<storage::Head> RangeChange::heads_of_parts(
    const std::vector<partition::CopyOutcome>& outcomes) const {
  if (parents_.size() == 2)
    return {partition::head_of_merged(outcomes[0], outcomes[1], parents_[1].epks.min)};
  std::vector<storage::Head> heads;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    heads.push_back(partition::head_of_part(outcomes[0], i));
  }
  return heads;
}

Result<ContainerPtr> RangeChange::switch_over() {
  // From here on the container stays as it is: the newest definition goes into the new map.
  std::lock_guard change(catalog_.change_mutex_);
  const auto current = catalog_.container(container_);
  if (!current) return container_gone();
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
  const auto heads = heads_of_parts(outcomes);

  Counters counters = catalog_.next_counters();
  StoredContainer stored = Catalog::stored_form(*current);
  stored.map_version += 1;
  const UnixSeconds now = catalog_.environment_.clock.unix_seconds();
  const auto is_parent = [this](RangeId id) {
    return std::ranges::find(parents_, id, &Range::id) != parents_.end();
  };
  std::erase_if(stored.ranges, [&](const StoredRange& each) { return is_parent(each.id); });
  std::vector<Range> ranges = current->ranges.all();
  std::erase_if(ranges, [&](const Range& each) { return is_parent(each.id); });

  storage::Batch batch;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const RangeId id{stored.next_range.value++};
    stored.ranges.push_back(
        {id, numbers_[i], parts_[i], ancestors(parents_), stored.map_version, now});
    ranges.push_back({id, parts_[i], ancestors(parents_), stored.map_version, now,
                      std::make_shared<partition::Partition>(catalog_.environment_, numbers_[i], id,
                                                             container_, heads[i])});
    batch.put(Family::Heads, storage::partition_prefix(numbers_[i]), heads[i].make());
    batch.erase(Family::Catalog, garbage_key(numbers_[i]));
    for (const partition::CopiedIndex& index : indexes_) {
      // Dropped meanwhile.
      if (storage::find_index(heads[i].indexes, index.id) != nullptr) continue;
      batch.erase_range(Family::Terms, storage::terms_prefix(numbers_[i], index.id),
                        storage::terms_end(numbers_[i], index.id));
    }
  }
  for (const Range& parent : parents_) {
    batch.put(Family::Catalog, garbage_key(parent.partition->number()), {});
  }
  batch.put(Family::Catalog, container_key(container_), make_value(stored));
  const auto made =
      catalog_.make_container(std::move(stored), current->database_id, std::move(ranges));
  committing_ = true;
  ORRERY_TRY(catalog_.commit(std::move(batch), counters, generation_, [&](Catalog::State& state) {
    Catalog::put(state, made);
    // No new partition can have committed anything yet: whoever reads an old one, and finds it not
    // retired afterwards, has missed nothing.
    for (const Range& parent : parents_) parent.partition->retire();
  }));
  const auto held = milliseconds_since(begin);
  catalog_.reclaim_when_unused(parents_);
  catalog_.tell_(container_);
  diagnostics::info("{}: {}; it has {} now. Writes waited for {} ms", made->alt_content_path,
                    parents_.size() == 2 ? "two ranges became one" : "a range became two",
                    made->ranges.all().size(), held);
  return made;
}

void RangeChange::abandon() {
  for (std::size_t i = 0; i < copying_; ++i) parents_[i].partition->abandon_copy();
  // Once the last commit was tried, and after any disk error, what the disk says counts: loading
  // the catalog anew finds the garbage. Here it is known to be.
  if (!committing_) catalog_.reclaim(numbers_);
}

}  // namespace orrery::catalog
