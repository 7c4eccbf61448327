#include "partition/copy/document_copier.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/assert.h"
#include "partition/writer/unique_keys.h"
#include "storage/keys.h"

namespace orrery::partition {

using storage::Family;
using storage::LogPosition;

namespace {

// A chunk keeps the writer from its other work: it ends at whichever of these comes first.
constexpr std::size_t kChunkBytesMax = 256 << 10;
constexpr std::size_t kChunkRecordsMax = 1000;
constexpr std::chrono::milliseconds kChunkTimeMax{3};

LogPosition shifted(LogPosition position, const CopyTarget& target) {
  return {position.lsn, position.index + target.index_shift};
}

}  // namespace

Result<> DocumentCopier::begin(CopyPlan plan) {
  if (mirror_) return Error(ErrorCode::Conflict, "the partition is being copied already");
  for (const CopyTarget& target : plan.targets) {
    if (target.index_shift > UINT32_MAX - storage::kNewIndexBound) return merged_too_often();
  }
  mirror_.emplace(std::move(plan), state_.head);
  return {};
}

Result<std::uint32_t> DocumentCopier::index_bound() const {
  if (!mirror_ || mirror_->stretch != Mirror::Stretch::Done) return copy_abandoned();
  std::uint32_t bound = storage::kNewIndexBound;
  for (const Copied& each : mirror_->targets()) bound = std::max(bound, each.index_bound);
  return bound;
}

/// Whether a chunk is long enough.
class DocumentCopier::Chunk {
 public:
  explicit Chunk(const storage::Batch& batch) : batch_(batch), bytes_before_(batch.byte_size()) {}

  bool full() {
    ++looked_at_;
    if (batch_.byte_size() - bytes_before_ >= kChunkBytesMax) return true;
    if (looked_at_ >= kChunkRecordsMax) return true;
    return looked_at_ % kDeadlineInterval == 0 && std::chrono::steady_clock::now() > deadline_;
  }

 private:
  static constexpr std::size_t kDeadlineInterval = 16;

  const storage::Batch& batch_;
  const std::size_t bytes_before_;
  const std::chrono::steady_clock::time_point deadline_ =
      std::chrono::steady_clock::now() + kChunkTimeMax;
  std::size_t looked_at_ = 0;
};

Result<bool> DocumentCopier::step(storage::Batch& batch) {
  if (!mirror_) return copy_abandoned();
  // The committed state, seen as the next transaction would see it.
  state_.view.begin(next(state_.head.lsn), storage::Tier::Disk);
  ORRERY_TRY(const auto snapshot, state_.store.snapshot());
  Chunk chunk(batch);
  if (mirror_->stretch == Mirror::Stretch::Log) {
    ORRERY_TRY(copy_log(snapshot, batch, chunk));
  } else if (mirror_->stretch == Mirror::Stretch::History) {
    ORRERY_TRY(copy_history(snapshot, batch, chunk));
  }
  return mirror_->stretch != Mirror::Stretch::Done;
}

Result<> DocumentCopier::copy_log(const storage::Snapshot& snapshot, storage::Batch& batch,
                                  Chunk& chunk) {
  Mirror& mirror = *mirror_;
  auto cursor =
      snapshot.cursor(Family::Log, storage::log_key(state_.partition, mirror.copied.next()),
                      storage::log_key(state_.partition, {next(mirror.begun()), 0}),
                      storage::Snapshot::Access::Scan);
  for (bool full = false; cursor.valid() && !full; cursor.next()) {
    const auto position = storage::log_position(cursor.key());
    ORRERY_TRY(copy_version(position, cursor.value(), batch));
    mirror.copied = position;
    full = chunk.full();
  }
  ORRERY_TRY(cursor.status());
  if (!cursor.valid()) {
    mirror.copied = {mirror.begun(), UINT32_MAX};
    mirror.stretch = Mirror::Stretch::History;
  }
  return {};
}

Result<> DocumentCopier::copy_version(LogPosition position, std::string_view value,
                                      storage::Batch& batch) {
  const auto record = storage::VersionRecord::parse(value);
  ORRERY_ASSERT(record.has_value());
  const storage::DocumentKey key = record->key();
  // Superseded or deleted by what is not committed yet: the targets have that already.
  const auto* staged = state_.view.find_staged(storage::id_key(state_.partition, key));
  if (staged != nullptr && staged->lsn > mirror_->begun()) return {};

  const Copied& copied = mirror_->owner_of(record->epk);
  if (!copied.has_room_for(position)) return merged_too_often();
  const CopyTarget& owner = copied.target;
  const LogPosition there = shifted(position, owner);
  storage::IdEntry entry{position, record->header, static_cast<std::uint32_t>(record->text.size())};
  mirror_->count_put(record->epk, entry);
  entry.position = there;
  batch.put(Family::Log, storage::log_key(owner.partition, there), value);
  batch.put(Family::Ids, storage::id_key(owner.partition, key), entry.make());
  batch.put(Family::Rids, storage::rid_key(owner.partition, record->header.number),
            storage::make_position_value(there));
  if (state_.head.retention.expiry != storage::RetentionSettings::Expiry::Off) {
    if (const auto expiry = storage::expiry_of(there, record->header)) {
      batch.put(Family::Expiry, storage::expiry_key(owner.partition, *expiry), {});
    }
  }
  if (mirror_->index_terms() != nullptr) {
    const std::string term_value = storage::make_position_value(there);
    std::string term_key;
    mirror_->index_terms()
        ->of(record->text)
        .for_each([&](std::uint32_t index, std::string_view term) {
          term_key.clear();
          storage::append_term_key(term_key, owner.partition, index, term, record->header.number);
          batch.put(Family::Terms, term_key, term_value);
        });
  }
  const auto* unique_values_of = mirror_->unique_values_of();
  if (unique_values_of == nullptr) return {};
  const auto values = (*unique_values_of)(record->text);
  for (std::size_t policy = 0; policy < values.size(); ++policy) {
    const std::string unique = unique_key(state_.partition, key, policy, values[policy]);
    ORRERY_TRY(const auto holder, state_.view.find_holder(unique));
    // After an expiry the values may already be another document's.
    if (!holder || holder->position != position) continue;
    batch.put(Family::Unique, unique_key(owner.partition, key, policy, values[policy]),
              storage::make_position_value(there));
  }
  return {};
}

Result<> DocumentCopier::copy_history(const storage::Snapshot& snapshot, storage::Batch& batch,
                                      Chunk& chunk) {
  Mirror& mirror = *mirror_;
  auto cursor = snapshot.cursor(
      Family::History, storage::history_key(state_.partition, mirror.copied_history.next()),
      storage::history_key(state_.partition, {next(mirror.begun()), 0}),
      storage::Snapshot::Access::Scan);
  for (bool full = false; cursor.valid() && !full; cursor.next()) {
    const auto position = storage::log_position(cursor.key());
    const auto record = storage::HistoryRecord::parse(cursor.value());
    ORRERY_ASSERT(record.has_value());
    const Copied& copied = mirror.owner_of(record->epk);
    if (!copied.has_room_for(position)) return merged_too_often();
    const CopyTarget& owner = copied.target;
    mirror.count_history(record->epk, position, cursor.value().size());
    batch.put(Family::History, storage::history_key(owner.partition, shifted(position, owner)),
              cursor.value());
    mirror.copied_history = position;
    full = chunk.full();
  }
  ORRERY_TRY(cursor.status());
  if (!cursor.valid()) mirror.stretch = Mirror::Stretch::Done;
  return {};
}

Result<CopyOutcome> DocumentCopier::outcome() const {
  if (!mirror_ || mirror_->stretch != Mirror::Stretch::Done) return copy_abandoned();
  return CopyOutcome{state_.head, mirror_->targets(), mirror_->history_changed(),
                     mirror_->expiry_incomplete(), mirror_->copied_indexes(state_.head)};
}

}  // namespace orrery::partition
