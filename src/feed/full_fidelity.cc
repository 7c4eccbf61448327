// All versions and deletes, from the history; and deletes beside the latest versions.
#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"
#include "feed/source.h"

namespace orrery::feed {

using storage::Family;
using storage::HistoryRecord;
using storage::RetentionSettings;

namespace {

Version::Kind kind_of(HistoryRecord::Operation operation) {
  switch (operation) {
    case HistoryRecord::Operation::Create:
      return Version::Kind::Create;
    case HistoryRecord::Operation::Replace:
      return Version::Kind::Replace;
    case HistoryRecord::Operation::Delete:
      return Version::Kind::Delete;
    case HistoryRecord::Operation::TtlDelete:
      return Version::Kind::Expire;
  }
  return Version::Kind::Replace;
}

/// The highest of the begins of all parts that the scope touches: a merged range has one part for
/// each former parent, and who reads only one of them is not refused for the other's sake.
Lsn history_begin(const storage::Head& head, const Scope& scope,
                  Lsn storage::HistoryPart::* begin) {
  Lsn highest;
  if (!head.history) return head.lsn;
  const auto& parts = *head.history;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (scope.epks) {
      const bool below = i + 1 < parts.size() && parts[i + 1].epk_min <= scope.epks->min.bytes;
      const bool above = scope.epks->max.bytes <= parts[i].epk_min;
      if (below || above) continue;
    }
    highest = std::max(highest, parts[i].*begin);
  }
  return highest;
}

/// `anew`: what the reader can do about it.
Error outside_retention(Lsn after, Lsn begin, std::string_view anew) {
  if (after == Lsn{}) {
    return Error(ErrorCode::BadRequest,
                 "You must read the change feed from within the retention period. All versions and "
                 "deletes cannot be read from the beginning: begin with If-None-Match: *.");
  }
  return Error(ErrorCode::BadRequest,
               fmt::format("You must read the change feed from within the retention period. The "
                           "history that is kept begins after position {}, but the request's "
                           "If-None-Match names {}. Begin anew {}.",
                           begin.value, after.value, anew));
}

/// Nothing may be answered from there: the changes up to it would be hidden, once there are any.
Error beyond_head(Lsn after, Lsn head) {
  return Error(
      ErrorCode::BadRequest,
      fmt::format("The position in If-None-Match is beyond the end of this change feed: it names "
                  "{}, but the last change has the position {}. It comes from another container, "
                  "another range or another server. Begin anew: leave If-None-Match out for all "
                  "documents, or send * for what comes from now on.",
                  after.value, head.value));
}

}  // namespace

Result<> check_position(const storage::Head& head, const PageRequest& request) {
  if (request.after > head.lsn) return beyond_head(request.after, head.lsn);
  if (request.mode == Mode::AllVersions) {
    if (head.retention.history != RetentionSettings::History::All) {
      return Error(ErrorCode::BadRequest,
                   "Change Feed 'All Versions and Deletes' mode must be enabled on the container: "
                   "set changeFeedPolicy.retentionDuration, in minutes.");
    }
    const Lsn begin = history_begin(head, request.scope, &storage::HistoryPart::all_begin);
    if (request.after < begin) {
      return outside_retention(request.after, begin, "with If-None-Match: *");
    }
    return {};
  }
  if (!request.tombstones) return {};
  if (head.retention.history == RetentionSettings::History::None) {
    return Error(
        ErrorCode::BadRequest,
        "The container keeps no tombstones: set changeFeedPolicy.tombstoneDuration (minutes, "
        "or -1 for ever), or leave out x-orrery-feed-deletes.");
  }
  // A reader from the beginning has seen nothing that could have been deleted since.
  if (request.after == Lsn{}) return {};
  const Lsn begin = history_begin(head, request.scope, &storage::HistoryPart::tombstones_begin);
  if (std::max(request.after, request.began_at.value_or(Lsn{})) < begin) {
    return outside_retention(request.after, begin, "without If-None-Match, from the beginning");
  }
  return {};
}

std::optional<EndedLife> ended_life_of(const storage::Head& head, Lsn after) {
  const storage::LsnGap* gap = head.gap_around(after);
  if (gap == nullptr) return std::nullopt;
  return EndedLife{after, gap->ended};
}

std::optional<Lsn> began_at_of_next(const storage::Head& head, const PageRequest& request,
                                    Lsn position) {
  if (request.mode != Mode::Latest || !request.tombstones) return std::nullopt;
  const Lsn begin = history_begin(head, request.scope, &storage::HistoryPart::tombstones_begin);
  if (position >= begin) return std::nullopt;
  return request.began_at.value_or(head.lsn);
}

// ── the history ──────────────────────────────────────────────────────────────────────────────────

HistorySource::HistorySource(const SourceContext& context, Lsn after, Passes passes, Kinds kinds)
    : context_(context), passes_(std::move(passes)), kinds_(kinds), after_(after) {}

Result<Step> HistorySource::next() {
  if (cursor_) {
    cursor_->next();
  } else {
    cursor_.emplace(context_.snapshot.cursor(
        Family::History, storage::history_key(context_.partition, {orrery::next(after_), 0}),
        storage::history_key(context_.partition, {orrery::next(context_.head.lsn), 0}),
        storage::Snapshot::Access::Scan));
  }
  for (; cursor_->valid(); cursor_->next()) {
    const auto position = storage::log_position(cursor_->key());
    if (position.lsn != last_ && last_ != Lsn{} && context_.is_over()) {
      reached_ = position.lsn;
      return Step::OutOfTime;
    }
    last_ = position.lsn;
    context_.spend(cursor_->value().size());
    const auto record = HistoryRecord::parse(cursor_->value());
    ORRERY_ASSERT(record.has_value());
    if (kinds_ == Kinds::Deletes && !record->deletes()) continue;
    if (!passes_(record->epk, record->partition_key)) continue;
    if (passes_.newer_than && record->ts <= *passes_.newer_than) continue;
    version_.kind = kind_of(record->operation);
    version_.position = position;
    version_.ts = record->ts;
    version_.number = record->number;
    version_.before = record->previous;
    version_.partition_key = record->partition_key;
    version_.id = record->id;
    version_.current = record->current_text;
    version_.previous = record->previous_text;
    return Step::Version;
  }
  ORRERY_TRY(cursor_->status());
  return Step::End;
}

// ── both ─────────────────────────────────────────────────────────────────────────────────────────

Result<Step> MergedSource::next() {
  // Whichever was shown last moves; at the beginning both do.
  for (std::size_t which = 0; which < sources_.size(); ++which) {
    if (step_[which] && shown_ != which) continue;
    ORRERY_TRY(step_[which], sources_[which]->next());
  }
  const auto lsn = [this](std::size_t which) {
    switch (*step_[which]) {
      case Step::Version:
        return sources_[which]->version().position.lsn;
      case Step::OutOfTime:
        return sources_[which]->reached();
      case Step::End:
        break;
    }
    return Lsn{UINT64_MAX};
  };
  shown_ = lsn(0) <= lsn(1) ? 0 : 1;
  const Step step = *step_[shown_];
  if (step == Step::Version) version_ = sources_[shown_]->version();
  if (step == Step::OutOfTime) reached_ = sources_[shown_]->reached();
  return step;
}

Result<std::unique_ptr<Source>> open_source(const SourceContext& context,
                                            const PageRequest& request, Lsn after,
                                            std::shared_ptr<const LiveMap> map,
                                            std::uint64_t page_items) {
  const Passes passes{request.scope, std::nullopt, request.now, request.newer_than};
  if (request.mode == Mode::AllVersions) {
    return std::make_unique<HistorySource>(context, after, passes, HistorySource::Kinds::All);
  }
  ORRERY_TRY(auto latest, latest_source(context, request, after, std::move(map), page_items));
  if (!request.tombstones) return latest;
  // Deletes come first: of a document that a transaction deletes and creates anew, the end of the
  // old one is told before the beginning of the new one.
  return std::make_unique<MergedSource>(
      std::make_unique<HistorySource>(context, after, passes, HistorySource::Kinds::Deletes),
      std::move(latest));
}

}  // namespace orrery::feed
