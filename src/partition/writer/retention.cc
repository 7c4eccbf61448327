#include "partition/writer/retention.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "storage/records.h"

namespace orrery::partition {

using storage::HistoryPart;
using storage::RetentionSettings;

namespace {

/// How soon a trim that had to be put off is worth another try.
constexpr UnixSeconds kTrimAgainSeconds = 10;

}  // namespace

Committed RetentionWriter::change(const RetentionChange& work) {
  RetentionSettings retention = work.retention;
  change_expiry(retention);
  change_history(retention);
  state_.writer.head().retention = retention;
  return {};
}

void RetentionWriter::change_expiry(RetentionSettings& retention) {
  const RetentionSettings& before = state_.head.retention;
  if (retention.expiry == RetentionSettings::Expiry::Off) {
    if (before.expiry != RetentionSettings::Expiry::Off) state_.writer.erase_all_expiry();
    return;
  }
  if (before.expiry != RetentionSettings::Expiry::Off) {
    retention.expiry = before.expiry;
    return;
  }
  retention.expiry = RetentionSettings::Expiry::Building;
  expiry_build_.restart();
  // The build walks what is committed; staged versions may come behind it.
  state_.view.for_each_staged([&](const storage::IdEntry& staged, const RecordPtr&) {
    const auto entry = storage::expiry_of(staged.position, staged.header);
    if (entry) state_.writer.put_expiry(*entry);
  });
}

void RetentionWriter::change_history(RetentionSettings& retention) {
  storage::Head& head = state_.writer.head();
  const RetentionSettings& before = state_.head.retention;
  // The head without this transaction: changes after it are kept.
  const Lsn now = state_.head.lsn;
  if (retention.history == RetentionSettings::History::None) {
    retention.previous_image = RetentionSettings::PreviousImage::None;
    if (before.history != RetentionSettings::History::None) {
      state_.writer.erase_all_history();
      head.history = nullptr;
      trimmer_.restart();
    }
  } else if (before.history == RetentionSettings::History::None) {
    head.history =
        std::make_shared<const std::vector<HistoryPart>>(std::vector<HistoryPart>{{"", now, now}});
    trimmer_.restart();
  } else if (before.history != retention.history) {
    // Older records keep their deletes only, or will once they have been trimmed.
    const Lsn reduced = std::ranges::min(*head.history, {}, &HistoryPart::all_begin).all_begin;
    trimmer_.restart(reduced);
    if (retention.history == RetentionSettings::History::All) {
      auto parts = std::make_shared<std::vector<HistoryPart>>(*head.history);
      for (HistoryPart& part : *parts) part.all_begin = now;
      head.history = std::move(parts);
    }
  }
}

Result<Committed> RetentionWriter::build_expiry() {
  Committed committed;
  switch (state_.head.retention.expiry) {
    case RetentionSettings::Expiry::Off:
      return Error(ErrorCode::Conflict, "no expiry entries are kept here");
    case RetentionSettings::Expiry::Complete:
      return committed;
    case RetentionSettings::Expiry::Building:
      break;
  }
  ORRERY_TRY(state_.view.require_disk());
  ORRERY_TRY(committed.more,
             expiry_build_.step(state_.store, state_.partition, state_.view, state_.writer));
  if (!committed.more) state_.writer.head().retention.expiry = RetentionSettings::Expiry::Complete;
  return committed;
}

Result<Committed> RetentionWriter::trim(const HistoryTrim& work, bool is_being_copied) {
  Committed committed;
  const auto kept = state_.head.retention.history;
  if (kept == RetentionSettings::History::None) return committed;
  // A copy must not lose what it is about to read.
  if (is_being_copied) {
    committed.next_in = kTrimAgainSeconds;
    return committed;
  }
  // Asked for before everything was kept, and no longer true.
  if (kept == RetentionSettings::History::All &&
      work.all_before == std::numeric_limits<UnixSeconds>::max()) {
    return committed;
  }
  ORRERY_TRY(state_.view.require_disk());
  ORRERY_TRY(const auto step, trimmer_.step(state_.store, state_.partition, work, state_.writer));
  committed.more = step.more;
  committed.tidied = step.records;
  committed.next_in = step.next_in;
  return committed;
}

void RetentionWriter::restart() {
  expiry_build_.restart();
  trimmer_.restart();
}

}  // namespace orrery::partition
