#include "api/partition_vectors.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.h"

namespace orrery::api {

using index::Candidate;
using storage::Family;
using storage::LogPosition;
using storage::Lookup;

namespace {

/// A search that finds deleted documents is made again without them, so many times.
constexpr int kRoundsMax = 4;
/// So many times as many vectors as are wanted are kept in sight by a search. It costs little
/// beside reading the documents, and finds nearly all even of vectors without any structure.
constexpr std::size_t kBreadth = 4;
constexpr std::uint32_t kIndexMax = std::numeric_limits<std::uint32_t>::max();

Error unreadable() {
  return Error(ErrorCode::Unavailable, "the disk could not be read; see the server's diagnostics");
}

Result<storage::Head> head_of(const storage::Snapshot& snapshot, PartitionNumber partition) {
  std::string value;
  switch (snapshot.get(Family::Heads, storage::partition_prefix(partition), value)) {
    case Lookup::Found:
      break;
    case Lookup::Missing:
      return storage::Head{};
    case Lookup::Unknown:
    case Lookup::Failed:
      return unreadable();
  }
  const auto head = storage::Head::parse(value);
  ORRERY_ASSERT(head.has_value());
  return *head;
}

/// Where the document is in the snapshot's log; nothing when it is not there.
Result<std::optional<LogPosition>> position_of(const storage::Snapshot& snapshot,
                                               PartitionNumber partition, DocumentNumber number,
                                               std::string& buffer) {
  switch (snapshot.get(Family::Rids, storage::rid_key(partition, number), buffer)) {
    case Lookup::Found: {
      const auto position = storage::parse_position_value(buffer);
      ORRERY_ASSERT(position.has_value());
      return position;
    }
    case Lookup::Missing:
      return std::optional<LogPosition>();
    case Lookup::Unknown:
    case Lookup::Failed:
      break;
  }
  return unreadable();
}

std::string log_key_after(PartitionNumber partition, LogPosition position) {
  return position.index == kIndexMax
             ? storage::log_key(partition, {Lsn{position.lsn.value + 1}, 0})
             : storage::log_key(partition, {position.lsn, position.index + 1});
}

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

std::optional<query::Floats> PartitionVectors::read(std::string_view document) const {
  json::Value value;
  paths_.read(json::Value::of_checked(document), std::span(&value, 1));
  return query::read_vector(value, key_.type);
}

Result<bool> PartitionVectors::follow(const storage::Store& store,
                                      std::chrono::steady_clock::time_point deadline) {
  ORRERY_TRY(const auto snapshot, store.snapshot());
  LogPosition after;
  {
    const std::lock_guard lock(mutex_);
    after = followed_to_;
  }
  auto cursor =
      snapshot.cursor(Family::Log, log_key_after(key_.partition, after),
                      storage::partition_end(key_.partition), storage::Snapshot::Access::Scan);
  for (; cursor.valid(); cursor.next()) {
    const auto record = storage::VersionRecord::parse(cursor.value());
    ORRERY_ASSERT(record.has_value());
    const auto vector = read(record->text);
    {
      // For one vector at a time, so that no search waits for long.
      const std::lock_guard lock(mutex_);
      take(storage::log_position(cursor.key()), record->header.number, vector);
      if (is_spent_) return true;
    }
    if (std::chrono::steady_clock::now() > deadline) return false;
  }
  ORRERY_TRY(cursor.status());
  const std::lock_guard lock(mutex_);
  is_complete_ = true;
  is_behind_ = false;
  return true;
}

void PartitionVectors::take(LogPosition position, DocumentNumber number,
                            const std::optional<query::Floats>& vector) {
  const std::size_t before = index_.size();
  const bool is_added = vector && index_.add(number.value, *vector);
  if (!vector) index_.remove(number.value);
  if (index_.size() < before + (is_added ? 1 : 0)) ++removed_;
  if (is_added) {
    undefined_.erase(number.value);
  } else {
    undefined_.insert(number.value);
  }
  is_spent_ = index_.size() + undefined_.size() >= vectors_max_;
  followed_to_ = position;
  remember({position, number});
}

void PartitionVectors::remember(Change change) {
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
  if (index_.size() > kVectorsMin + 2 * head.documents) is_spent_ = true;
  if (!is_complete_ || is_spent_ || has_many_removed() || index_.size() < kVectorsMin) {
    return std::nullopt;
  }
  // Of some document the snapshot has an older version than the index, and nobody knows of which.
  if (remembered_since_ > head.lsn) return std::nullopt;
  if (wish.with_undefined && undefined_.size() > kUndefinedMax) return std::nullopt;
  Answer answer;
  answer.followed_to = followed_to_;
  for (const Change& change : recent_) {
    if (change.position.lsn > head.lsn) answer.later.insert(change.number.value);
  }
  answer.others = answer.later;
  if (wish.with_undefined) answer.others.insert(undefined_.begin(), undefined_.end());
  for (const auto& found : index_.search(wish.vector, wish.count, kBreadth * wish.count)) {
    if (!answer.others.contains(found.number)) answer.similar.emplace_back(found.number);
  }
  return answer;
}

Result<std::optional<std::vector<Candidate>>> PartitionVectors::read_changes(
    const storage::Snapshot& snapshot, LogPosition after) {
  std::vector<Candidate> changes;
  auto cursor = snapshot.cursor(Family::Log, log_key_after(key_.partition, after),
                                storage::partition_end(key_.partition));
  for (; cursor.valid() && changes.size() <= kChangesMax; cursor.next()) {
    const auto record = storage::VersionRecord::parse(cursor.value());
    ORRERY_ASSERT(record.has_value());
    changes.push_back({record->header.number, storage::log_position(cursor.key())});
  }
  ORRERY_TRY(cursor.status());
  if (changes.size() >= kChangesMin) {
    const std::lock_guard lock(mutex_);
    is_behind_ = true;
    if (changes.size() > kChangesMax) is_complete_ = false;
  }
  if (changes.size() > kChangesMax) return std::optional<std::vector<Candidate>>();
  return std::optional(std::move(changes));
}

Result<std::optional<PartitionVectors::Found>> PartitionVectors::find(
    const storage::Snapshot& snapshot, const Wish& wish) {
  ORRERY_TRY(const auto head, head_of(snapshot, key_.partition));
  std::string buffer;
  for (int round = 1;; ++round) {
    const auto answer = ask(wish, head);
    if (!answer) return std::optional<Found>();
    ORRERY_TRY(auto changes, read_changes(snapshot, answer->followed_to));
    if (!changes) return std::optional<Found>();
    Found found;
    std::unordered_set<std::uint64_t> changed;
    for (const Candidate& change : *changes) changed.insert(change.number.value);
    found.others = std::move(*changes);
    std::vector<DocumentNumber> deleted;
    // Looks a document up, and where it goes.
    const auto look_up = [&](DocumentNumber number, std::vector<Candidate>& list) -> Result<> {
      if (changed.contains(number.value)) return {};
      ORRERY_TRY(const auto position, position_of(snapshot, key_.partition, number, buffer));
      if (position) {
        list.push_back({number, *position});
      } else if (!answer->later.contains(number.value)) {
        deleted.push_back(number);
      }
      return {};
    };
    for (const DocumentNumber number : answer->similar) {
      ORRERY_TRY(look_up(number, found.similar));
    }
    for (const std::uint64_t number : answer->others) {
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
    undefined_.erase(number.value);
    // To a query with an older snapshot they are still there.
    remember({{head, kIndexMax}, number});
  }
}

}  // namespace orrery::api
