#include "index/vector/partition_vectors.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace orrery::index {

using storage::LogPosition;

namespace {

/// A search that finds deleted documents is made again without them, so many times.
constexpr int kRoundsMax = 4;
/// So many times as many vectors as are wanted are kept in sight by a search. It costs little
/// beside reading the documents, and finds most even of vectors without any structure.
constexpr std::size_t kBreadth = 4;
constexpr std::uint32_t kIndexMax = std::numeric_limits<std::uint32_t>::max();

}  // namespace

PartitionVectors::PartitionVectors(VectorIndexKey key, std::size_t vectors_max)
    : key_(std::move(key)),
      vectors_max_(vectors_max),
      index_(
          {.dimensions = key_.dimensions, .function = key_.function, .vectors_max = vectors_max}) {
  const std::vector<json::Step> steps(key_.path.begin(), key_.path.end());
  paths_.add(steps);
}

// ── following the log ────────────────────────────────────────────────────────────────────────────

std::optional<Floats> PartitionVectors::read(std::string_view document) const {
  const auto all = json::Value::of_checked(document);
  json::Value value;
  paths_.read(all, std::span(&value, 1));
  return read_vector(value, key_.type);
}

Result<bool> PartitionVectors::follow(const storage::Store& store,
                                      std::chrono::steady_clock::time_point deadline) {
  ORRERY_TRY(const auto snapshot, store.snapshot());
  ORRERY_TRY(const auto head, head_in(snapshot, key_.partition));
  LogPosition after;
  {
    const std::lock_guard lock(mutex_);
    begin_walk(head.lsn);
    after = followed_to_;
  }
  LogCursor log(snapshot, key_.partition, after, storage::Snapshot::Access::Scan);
  while (log.next()) {
    const auto vector = read(log.record().text);
    {
      // For one vector at a time, so that no search waits for long.
      const std::lock_guard lock(mutex_);
      take(log.candidate(), vector);
      if (is_spent_) return true;
    }
    if (std::chrono::steady_clock::now() > deadline) return false;
  }
  ORRERY_TRY(log.status());
  const std::lock_guard lock(mutex_);
  is_complete_ = true;
  is_behind_ = false;
  return true;
}

/// A document that is deleted before the log is walked over is never taken in. Queries with older
/// snapshots must look for it themselves: in the part of the log that was walked over too late.
void PartitionVectors::begin_walk(Lsn head) {
  if (!walks_.empty() && walks_.back().after == followed_to_) {
    walks_.back().head = head;
    return;
  }
  walks_.push_back({.head = head, .after = followed_to_});
  if (walks_.size() <= kWalksMax) return;
  walks_known_since_ = walks_.front().head;
  walks_.pop_front();
}

void PartitionVectors::take(const Candidate& change, const std::optional<Floats>& vector) {
  const auto& [number, position] = change;
  const std::size_t before = index_.size();
  const bool is_added = vector && index_.add(number.value, *vector);
  if (!vector) index_.remove(number.value);
  if (index_.size() < before + (is_added ? 1 : 0)) ++removed_;
  is_spent_ = index_.size() >= vectors_max_;
  followed_to_ = position;
  remember(change);
}

void PartitionVectors::remember(const Candidate& change) {
  recent_.push_back(change);
  if (recent_.size() <= kRecentMax) return;
  // They are not all in order: see forget().
  remembered_since_ = std::max(remembered_since_, recent_.front().position.lsn);
  recent_.pop_front();
}

bool PartitionVectors::is_behind() const {
  const std::lock_guard lock(mutex_);
  return is_behind_;
}

bool PartitionVectors::is_worn() const {
  const std::lock_guard lock(mutex_);
  return is_spent_ || has_many_removed();
}

bool PartitionVectors::has_many_removed() const {
  // Removed ones still lead searches to others, until the index makes itself anew, which takes long
  // if it is large: that is not for the middle of a query.
  return index_.size() >= kVectorsMin && removed_ > index_.size() / 2;
}

// ── searching ────────────────────────────────────────────────────────────────────────────────────

std::optional<PartitionVectors::Answer> PartitionVectors::ask(const Wish& wish,
                                                              const storage::Head& head) {
  const std::lock_guard lock(mutex_);
  if (!is_complete_ || is_spent_ || has_many_removed() || index_.size() < kVectorsMin) {
    return std::nullopt;
  }
  // Of some document the snapshot has an older version than the index, and nobody knows of which.
  if (remembered_since_ > head.lsn || walks_known_since_ > head.lsn) return std::nullopt;
  if (index_.size() > kVectorsMin + 2 * head.documents) {
    is_spent_ = true;
    return std::nullopt;
  }
  Answer answer;
  const auto too_late = std::ranges::upper_bound(walks_, head.lsn, {}, &Walk::head);
  answer.is_older = too_late != walks_.end();
  answer.known_to = answer.is_older ? too_late->after : followed_to_;
  for (const Candidate& change : recent_) {
    if (change.position.lsn > head.lsn) answer.later.insert(change.number.value);
  }
  for (const auto& found : index_.search(wish.vector, wish.count, kBreadth * wish.count)) {
    if (!answer.later.contains(found.number)) answer.similar.emplace_back(found.number);
  }
  return answer;
}

Result<std::optional<std::vector<Candidate>>> PartitionVectors::read_changes(
    const storage::Snapshot& snapshot, const Answer& answer) {
  std::vector<Candidate> changes;
  LogCursor log(snapshot, key_.partition, answer.known_to, storage::Snapshot::Access::Point);
  while (changes.size() <= kChangesMax && log.next()) changes.push_back(log.candidate());
  ORRERY_TRY(log.status());
  if (changes.size() >= kChangesMin && !answer.is_older) {
    const std::lock_guard lock(mutex_);
    is_behind_ = true;
    if (changes.size() > kChangesMax) is_complete_ = false;
  }
  if (changes.size() > kChangesMax) return std::optional<std::vector<Candidate>>();
  return std::optional(std::move(changes));
}

Result<std::optional<PartitionVectors::Found>> PartitionVectors::find(
    const storage::Snapshot& snapshot, const Wish& wish) {
  ORRERY_TRY(const auto head, head_in(snapshot, key_.partition));
  for (int round = 1;; ++round) {
    const auto answer = ask(wish, head);
    if (!answer) return std::optional<Found>();
    ORRERY_TRY(auto changes, read_changes(snapshot, *answer));
    if (!changes) return std::optional<Found>();
    Found found;
    std::unordered_set<std::uint64_t> changed;
    for (const Candidate& change : *changes) changed.insert(change.number.value);
    found.others = std::move(*changes);
    std::vector<DocumentNumber> deleted;
    // Looks a document up, and where it goes.
    const auto look_up = [&](DocumentNumber number, std::vector<Candidate>& list) -> Result<> {
      if (changed.contains(number.value)) return {};
      ORRERY_TRY(const auto version, find_version(snapshot, key_.partition, number));
      if (version) {
        list.push_back(*version);
      } else if (!answer->later.contains(number.value)) {
        deleted.push_back(number);
      }
      return {};
    };
    for (const DocumentNumber number : answer->similar) {
      ORRERY_TRY(look_up(number, found.similar));
    }
    for (const std::uint64_t number : answer->later) {
      ORRERY_TRY(look_up(DocumentNumber{number}, found.others));
    }
    if (!deleted.empty()) forget(deleted, head.lsn);
    if (deleted.empty() || round == kRoundsMax) return std::optional(std::move(found));
  }
}

void PartitionVectors::forget(const std::vector<DocumentNumber>& deleted, Lsn head) {
  const std::lock_guard lock(mutex_);
  for (const DocumentNumber number : deleted) {
    if (has_many_removed()) return;
    if (index_.remove(number.value)) ++removed_;
    // To a query with an older snapshot they are still there.
    remember({number, {head, kIndexMax}});
  }
}

}  // namespace orrery::index
