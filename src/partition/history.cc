#include "partition/history.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "storage/records.h"

namespace orrery::partition {

using storage::Family;
using storage::HistoryPart;
using storage::LogPosition;

namespace {

/// How much one step looks at: it holds the writer up for so long.
constexpr std::size_t kStepRecordsMax = 1'000;
constexpr std::size_t kStepBytesMax = 4 << 20;

constexpr UnixSeconds kWhatever = std::numeric_limits<UnixSeconds>::max();

/// One step under way.
class Pass {
 public:
  Pass(const storage::Snapshot& snapshot, PartitionNumber partition, const HistoryTrim& trim,
       RecordWriter& writer)
      : snapshot_(snapshot), partition_(partition), trim_(trim), writer_(writer) {}

  bool is_too_big() const { return writer_.head().history_bytes > trim_.bytes_max; }
  bool is_used_up() const { return looked_at_ >= kStepRecordsMax || bytes_ >= kStepBytesMax; }
  std::size_t records() const { return records_; }
  std::optional<UnixSeconds> next_in() const { return next_in_; }
  /// Nothing: it has changed nothing.
  const std::optional<std::pair<LogPosition, std::size_t>>& last() const { return last_; }

  enum class Ended { Young, AtTheEnd, UsedUp };
  /// Visits the records from `from` on that are older than `before`; while there is too much, also
  /// those that are not, if `for_size`.
  Result<Ended> walk(LogPosition& from, UnixSeconds before, bool for_size,
                     const std::function<void(LogPosition, std::string_view)>& visit) {
    auto cursor = snapshot_.cursor(Family::History, storage::history_key(partition_, from),
                                   storage::partition_end(partition_));
    for (; cursor.valid(); cursor.next()) {
      if (is_used_up()) return Ended::UsedUp;
      const auto record = storage::HistoryRecord::parse(cursor.value());
      ORRERY_ASSERT(record.has_value());
      if (record->ts >= before && !(for_size && is_too_big())) {
        const UnixSeconds next = record->ts - before + 1;
        next_in_ = std::min(next_in_.value_or(next), next);
        return Ended::Young;
      }
      ++looked_at_;
      bytes_ += cursor.value().size();
      const LogPosition position = storage::log_position(cursor.key());
      visit(position, cursor.value());
      from = position.next();
    }
    ORRERY_TRY(cursor.status());
    return Ended::AtTheEnd;
  }

  void erase(LogPosition position, std::string_view value) {
    const auto record = storage::HistoryRecord::parse(value);
    HistoryPart& part = part_of(record->epk);
    part.all_begin = std::max(part.all_begin, position.lsn);
    part.tombstones_begin = std::max(part.tombstones_begin, position.lsn);
    let_go(position, value);
  }

  void reduce(LogPosition position, std::string_view value) {
    const auto record = storage::HistoryRecord::parse(value);
    HistoryPart& part = part_of(record->epk);
    part.all_begin = std::max(part.all_begin, position.lsn);
    if (!record->deletes()) {
      let_go(position, value);
    } else if (!record->current_text.empty() || !record->previous_text.empty()) {
      const std::size_t before = writer_.head().history_bytes;
      writer_.strip_history(position, value);
      last_ = {position, value.size() - (before - writer_.head().history_bytes)};
    }
  }

  /// The begins have to be in the same commit as what they are about.
  void move_begins() {
    if (parts_) writer_.head().history = std::move(parts_);
  }

 private:
  void let_go(LogPosition position, std::string_view value) {
    writer_.erase_history(position, value);
    last_ = {position, 0};
    ++records_;
  }

  HistoryPart& part_of(std::string_view epk) {
    if (!parts_) parts_ = std::make_shared<std::vector<HistoryPart>>(*writer_.head().history);
    const storage::HistoryParts parts = parts_;
    const HistoryPart* found = storage::find_part(parts, epk);
    // The first part begins at the first EPK of the partition, so there is always one.
    return found == nullptr ? parts_->front()
                            : (*parts_)[static_cast<std::size_t>(found - parts->data())];
  }

  const storage::Snapshot& snapshot_;
  const PartitionNumber partition_;
  const HistoryTrim& trim_;
  RecordWriter& writer_;
  std::shared_ptr<std::vector<HistoryPart>> parts_;
  std::size_t looked_at_ = 0;
  std::size_t bytes_ = 0;
  std::size_t records_ = 0;
  std::optional<UnixSeconds> next_in_;
  std::optional<std::pair<LogPosition, std::size_t>> last_;
};

}  // namespace

bool HistoryTrimmer::is_committed(const storage::Snapshot& snapshot,
                                  PartitionNumber partition) const {
  if (!last_) return true;
  std::string value;
  const auto found =
      snapshot.get(Family::History, storage::history_key(partition, last_->position), value);
  if (last_->bytes_after == 0) return found == storage::Lookup::Missing;
  return found == storage::Lookup::Found && value.size() == last_->bytes_after;
}

void HistoryTrimmer::restart(std::optional<Lsn> from) {
  last_.reset();
  erase_next_.reset();
  reduce_next_.reset();
  if (from) reduce_next_ = LogPosition{*from, 0};
}

Result<HistoryTrimmer::Step> HistoryTrimmer::step(const storage::Store& store,
                                                  PartitionNumber partition,
                                                  const HistoryTrim& trim, RecordWriter& writer) {
  const storage::HistoryParts parts = writer.head().history;
  ORRERY_ASSERT(parts && !parts->empty());
  // From the begin on, and not after it: a step may have ended within an LSN.
  const auto lowest = [&parts](Lsn HistoryPart::* begin) {
    return LogPosition{std::ranges::min(*parts, {}, begin).*begin, 0};
  };
  LogPosition erase_next = erase_next_.value_or(lowest(&HistoryPart::tombstones_begin));
  LogPosition reduce_next = reduce_next_.value_or(lowest(&HistoryPart::all_begin));

  ORRERY_TRY(const auto snapshot, store.snapshot());
  // Steps are taken one at a time, so this is about never.
  if (!is_committed(snapshot, partition)) return Step{true, 0, {}};
  Pass pass(snapshot, partition, trim, writer);
  const auto erase = [&pass](LogPosition position, std::string_view value) {
    pass.erase(position, value);
  };
  const auto reduce = [&pass](LogPosition position, std::string_view value) {
    pass.reduce(position, value);
  };
  ORRERY_TRY(auto ended, pass.walk(erase_next, trim.tombstones_before, false, erase));
  if (ended != Pass::Ended::UsedUp) {
    reduce_next = std::max(reduce_next, erase_next);
    ORRERY_TRY(ended, pass.walk(reduce_next, trim.all_before, true, reduce));
  }
  if (ended == Pass::Ended::AtTheEnd && pass.is_too_big()) {
    // Only deletes are left, and they are still too much. The snapshot still shows what has just
    // been erased, so that has to be committed first.
    if (pass.last()) {
      ended = Pass::Ended::UsedUp;
    } else {
      ORRERY_TRY(ended, pass.walk(erase_next, kWhatever, false, erase));
    }
  }
  pass.move_begins();
  if (pass.last()) last_ = LastChange{pass.last()->first, pass.last()->second};
  erase_next_ = erase_next;
  reduce_next_ = std::max(reduce_next, erase_next);
  return Step{ended == Pass::Ended::UsedUp, pass.records(), pass.next_in()};
}

}  // namespace orrery::partition
