// The live documents in the order of their last change: from the log, or for a narrow scope from
// its own entries.
#include <algorithm>

#include "base/assert.h"
#include "feed/source.h"

namespace orrery::feed {

using storage::Family;
using storage::LogPosition;
using storage::Snapshot;

namespace {

/// A gap of more dead versions than this is jumped over; less is cheaper to step through.
constexpr std::uint64_t kStepsMax = 2;

// Relative costs: a step in the log (with the block around it), a step in the entries of a scope, a
// version by its position.
constexpr double kLogStepCost = 1.0;
constexpr double kEntryStepCost = 0.5;
constexpr double kFetchCost = 4.0;
/// A log that is at most so long after the position is just read.
constexpr std::uint64_t kShortLog = 64;
/// When the log has cost so many times as much as was expected, the scope's entries are asked.
constexpr double kPatience = 4.0;

void show(const storage::VersionRecord& record, LogPosition position, Version& version) {
  version.kind = record.header.replaces ? Version::Kind::Replace : Version::Kind::Create;
  version.position = position;
  version.ts = record.header.ts;
  version.number = record.header.number;
  version.partition_key = record.partition_key;
  version.id = record.id;
  version.current = record.text;
}

}  // namespace

// ── the log ──────────────────────────────────────────────────────────────────────────────────────

LogSource::LogSource(const SourceContext& context, Lsn after, Passes passes,
                     std::shared_ptr<const LiveMap> map, Snapshot::Access access)
    : context_(context),
      passes_(std::move(passes)),
      map_(std::move(map)),
      from_{orrery::next(after), 0},
      access_(access) {
  if (map_) walk_.emplace(*map_);
}

Result<Step> LogSource::next() {
  if (cursor_) {
    advance();
  } else {
    if (walk_ && from_.lsn <= map_->head()) {
      from_ = walk_->at_least(from_).value_or(LogPosition{orrery::next(map_->head()), 0});
    }
    // Jumps touch blocks here and there, which the cache should keep; a scan passes through.
    cursor_.emplace(context_.snapshot.cursor(
        Family::Log, storage::log_key(context_.partition, from_),
        storage::log_key(context_.partition, {orrery::next(context_.head.lsn), 0}),
        walk_ ? Snapshot::Access::Point : access_));
  }
  for (;; advance()) {
    if (!cursor_->valid()) {
      ORRERY_TRY(cursor_->status());
      return Step::End;
    }
    const LogPosition position = storage::log_position(cursor_->key());
    // Only between transactions: they are never cut.
    if (position.lsn != last_ && looked_at_ > 0 &&
        (looked_at_ >= looked_at_max_ || context_.is_over())) {
      reached_ = position.lsn;
      return Step::OutOfTime;
    }
    last_ = position.lsn;
    ++looked_at_;
    context_.spend(cursor_->value().size());
    const auto record = storage::VersionRecord::parse(cursor_->value());
    ORRERY_ASSERT(record.has_value());
    if (!passes_(record->epk, record->partition_key) || !passes_(record->header)) continue;
    show(*record, position, version_);
    return Step::Version;
  }
}

void LogSource::advance() {
  if (walk_) {
    const LogPosition here = storage::log_position(cursor_->key());
    if (here.lsn <= map_->head() && here.index < LiveMap::kIndexMax) {
      const LogPosition target = walk_->at_least({here.lsn, here.index + 1})
                                     .value_or(LogPosition{orrery::next(map_->head()), 0});
      const std::uint64_t gap =
          target.lsn == here.lsn ? target.index - here.index : target.lsn.value - here.lsn.value;
      if (gap > kStepsMax) {
        cursor_->seek(storage::log_key(context_.partition, target));
        return;
      }
    }
  }
  cursor_->next();
}

// ── positions ────────────────────────────────────────────────────────────────────────────────────

KeyedSource::KeyedSource(const SourceContext& context, std::vector<LogPosition> positions,
                         Passes passes)
    : context_(context), positions_(std::move(positions)), passes_(std::move(passes)) {}

Result<Step> KeyedSource::next() {
  while (at_ < positions_.size()) {
    const LogPosition position = positions_[at_];
    const bool is_next = at_ > 0 && positions_[at_ - 1].lsn != position.lsn;
    if (is_next && context_.is_over()) {
      reached_ = position.lsn;
      return Step::OutOfTime;
    }
    const bool follows = at_ > 0 && positions_[at_ - 1].lsn.value + 1 >= position.lsn.value;
    ++at_;
    if (!cursor_) {
      cursor_.emplace(context_.snapshot.cursor(
          Family::Log, storage::log_key(context_.partition, position),
          storage::log_key(context_.partition, {orrery::next(context_.head.lsn), 0})));
    } else {
      // Documents that were written one after the other lie side by side.
      if (follows) cursor_->next();
      if (!follows || !cursor_->valid() || storage::log_position(cursor_->key()) != position) {
        cursor_->seek(storage::log_key(context_.partition, position));
      }
    }
    if (!cursor_->valid() || storage::log_position(cursor_->key()) != position) {
      ORRERY_TRY(cursor_->status());
      return Error(ErrorCode::Internal, "an index entry names a version that is not in the log");
    }
    context_.spend(cursor_->value().size());
    const auto record = storage::VersionRecord::parse(cursor_->value());
    ORRERY_ASSERT(record.has_value());
    if (!passes_(record->epk, record->partition_key) || !passes_(record->header)) continue;
    show(*record, position, version_);
    return Step::Version;
  }
  return Step::End;
}

// ── the cheaper of both ──────────────────────────────────────────────────────────────────────────

namespace {

/// The keys in `ids` of everything in a scope; they may take in a little more.
struct EntryBounds {
  std::string from;
  std::string to;
};

std::optional<EntryBounds> entry_bounds(const SourceContext& context, const PageRequest& request) {
  EntryBounds bounds;
  bounds.from = storage::partition_prefix(context.partition);
  bounds.to = bounds.from;
  const Scope& scope = request.scope;
  if (scope.partition_key) {
    if (!scope.epks) return std::nullopt;
    bounds.from.append(scope.epks->min.bytes).append(*scope.partition_key);
    // No byte of UTF-8 is 0xFF, so this is beyond every id.
    bounds.to = bounds.from + '\xFF';
    return bounds;
  }
  // Keys are EPK, partition key, id. That compares as the EPK does when all EPKs are of one length,
  // but for bounds that are longer.
  const auto* definition = request.container.partition_key;
  if (definition == nullptr || definition->version < 2) return std::nullopt;
  constexpr std::size_t kHashSize = 16;
  const std::size_t epk_size =
      definition->kind == KeyKind::MultiHash ? definition->paths.size() * kHashSize : kHashSize;
  bounds.from.append(scope.epks->min.bytes, 0, epk_size);
  bounds.to.append(scope.epks->max.bytes, 0, epk_size);
  if (scope.epks->max.bytes.size() > epk_size) bounds.to.push_back('\xFF');
  return bounds;
}

/// Reads the entries of a scope, as far as that is worth it.
class EntryWalk {
 public:
  EntryWalk(const SourceContext& context, const EntryBounds& bounds, Passes passes, Lsn after)
      : passes_(std::move(passes)),
        after_(after),
        cursor_(context.snapshot.cursor(Family::Ids, bounds.from, bounds.to)) {}

  /// Goes on until `enough(entries looked at)`. True when all have been read.
  template <typename Enough>
  Result<bool> read(Enough enough) {
    for (; cursor_.valid(); cursor_.next()) {
      if (enough(looked_at_)) return false;
      ++looked_at_;
      const auto entry = storage::IdEntry::parse(cursor_.value());
      ORRERY_ASSERT(entry.has_value());
      if (entry->position.lsn > after_ && passes_(entry->header)) {
        positions_.push_back(entry->position);
      }
    }
    ORRERY_TRY(cursor_.status());
    return true;
  }

  std::size_t looked_at() const { return looked_at_; }
  /// Those above `after`, in order.
  std::vector<LogPosition> positions_above(Lsn after) && {
    std::erase_if(positions_, [after](const LogPosition& each) { return each.lsn <= after; });
    std::ranges::sort(positions_);
    return std::move(positions_);
  }

 private:
  const Passes passes_;
  const Lsn after_;
  Snapshot::Cursor cursor_;
  std::size_t looked_at_ = 0;
  std::vector<LogPosition> positions_;
};

/// Begins with the log, where it looked cheaper. If it turns out not to be, goes on with the
/// scope's entries.
class PatientSource final : public Source {
 public:
  PatientSource(const SourceContext& context, std::unique_ptr<LogSource> log, Passes passes,
                std::unique_ptr<EntryWalk> entries)
      : context_(context),
        log_(std::move(log)),
        passes_(std::move(passes)),
        entries_(std::move(entries)) {}

  Result<Step> next() override {
    if (keyed_) return pass(*keyed_);
    ORRERY_TRY(const Step step, log_->next());
    if (step != Step::OutOfTime || log_->looked_at() < log_->looked_at_max()) {
      return shown(step, *log_);
    }
    ORRERY_TRY(entries_->read([](std::size_t) { return false; }));
    keyed_ = std::make_unique<KeyedSource>(
        context_, std::move(*entries_).positions_above(Lsn{log_->reached().value - 1}), passes_);
    return pass(*keyed_);
  }

 private:
  Result<Step> pass(Source& source) {
    ORRERY_TRY(const Step step, source.next());
    return shown(step, source);
  }
  Step shown(Step step, const Source& source) {
    if (step == Step::Version) version_ = source.version();
    if (step == Step::OutOfTime) reached_ = source.reached();
    return step;
  }

  const SourceContext& context_;
  std::unique_ptr<LogSource> log_;
  const Passes passes_;
  std::unique_ptr<EntryWalk> entries_;
  std::unique_ptr<KeyedSource> keyed_;
};

}  // namespace

Result<std::unique_ptr<Source>> latest_source(const SourceContext& context,
                                              const PageRequest& request, Lsn after,
                                              std::shared_ptr<const LiveMap> map,
                                              std::uint64_t page_items) {
  const Passes passes{request.scope, request.container.default_ttl, request.now,
                      request.newer_than};
  const bool mapped = map != nullptr;
  auto log =
      std::make_unique<LogSource>(context, after, passes, std::move(map), Snapshot::Access::Scan);
  const auto bounds = request.scope.whole() ? std::nullopt : entry_bounds(context, request);
  const std::uint64_t lsns = context.head.lsns_above(after);
  if (!bounds || lsns <= kShortLog) return log;

  // The log costs what lies between the position and as many of the scope's documents as fill a
  // page; the entries cost all of theirs.
  const auto documents = static_cast<double>(context.head.documents);
  const double versions_per_lsn =
      std::max(1.0, documents / static_cast<double>(context.head.lsns_above(Lsn{}) + 1));
  double log_rest = static_cast<double>(lsns) * versions_per_lsn;
  if (mapped) log_rest = std::min(log_rest, documents);
  const auto page = static_cast<double>(page_items);
  const auto log_cost = [&](std::size_t entries) {
    const double per_match = documents / static_cast<double>(std::max<std::size_t>(entries, 1));
    return kLogStepCost * std::min(log_rest, page * per_match);
  };
  auto entries = std::make_unique<EntryWalk>(context, *bounds, passes, after);
  ORRERY_TRY(const bool all, entries->read([&](std::size_t count) {
    const double fetches = std::min(page, static_cast<double>(count));
    return kEntryStepCost * static_cast<double>(count) + kFetchCost * fetches > log_cost(count);
  }));
  if (all) {
    return std::make_unique<KeyedSource>(context, std::move(*entries).positions_above(after),
                                         passes);
  }
  log->give_up_after(static_cast<std::size_t>(kPatience * log_cost(entries->looked_at())) +
                     kShortLog);
  return std::make_unique<PatientSource>(context, std::move(log), passes, std::move(entries));
}

}  // namespace orrery::feed
