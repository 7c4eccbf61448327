// Where a reader that names a time begins.
#include <algorithm>

#include "base/assert.h"
#include "feed/reader.h"
#include "feed/source.h"

namespace orrery::feed {

using storage::Family;

namespace {

UnixSeconds time_of(Family family, std::string_view value) {
  if (family == Family::History) {
    const auto record = storage::HistoryRecord::parse(value);
    ORRERY_ASSERT(record.has_value());
    return record->ts;
  }
  const auto record = storage::VersionRecord::parse(value);
  ORRERY_ASSERT(record.has_value());
  return record->header.ts;
}

/// An LSN ≥ `low` such that nothing in (low, it] is newer than `time`, as high as possible. Above
/// `low` times must not fall as LSNs rise.
Result<Lsn> last_not_newer(const SourceContext& context, Family family, Lsn low, UnixSeconds time,
                           const LiveMap* map) {
  // Nothing up to `low` is newer; all there is above `high` is.
  Lsn high = context.head.lsn;
  std::optional<LiveMap::Walk> walk;
  if (map != nullptr && family == Family::Log) walk.emplace(*map);
  auto cursor =
      context.snapshot.cursor(family, storage::log_key(context.partition, {next(low), 0}),
                              storage::log_key(context.partition, {next(context.head.lsn), 0}));
  while (low < high) {
    const Lsn middle{low.value + (high.value - low.value + 1) / 2};
    storage::LogPosition target{middle, 0};
    if (walk && middle <= map->head()) {
      target = walk->at_least(target).value_or(storage::LogPosition{next(map->head()), 0});
    }
    if (target.lsn > high) {
      high = Lsn{middle.value - 1};
      continue;
    }
    cursor.seek(storage::log_key(context.partition, target));
    if (!cursor.valid()) ORRERY_TRY(cursor.status());
    if (!cursor.valid() || storage::log_position(cursor.key()).lsn > high ||
        time_of(family, cursor.value()) > time) {
      high = Lsn{middle.value - 1};
    } else {
      low = storage::log_position(cursor.key()).lsn;
    }
  }
  return low;
}

}  // namespace

Result<TimePosition> Reader::find_time(const partition::Partition& partition,
                                       const PageRequest& request, UnixSeconds time) {
  ORRERY_TRY(const auto snapshot, snapshot_of(partition));
  return find_time(snapshot, partition.number(), request, time);
}

Result<TimePosition> Reader::find_time(const storage::Snapshot& snapshot, PartitionNumber partition,
                                       const PageRequest& asked, UnixSeconds time) {
  ORRERY_TRY(const auto head, head_in(snapshot, partition));
  TimePosition found;
  found.head = head.lsn;
  found.merged_at = head.merged_at;
  found.position = head.lsn;
  PageRequest request = asked;
  request.after = Lsn{};
  request.newer_than = time;
  ORRERY_TRY(check_position(head, request));
  if (time >= head.ts) return found;

  const RequestWork work(request);
  const auto map = live_maps_.of(partition, head);
  // The first that the scope shows of what is newer, above `after`.
  const auto first_above = [&](const storage::Head& up_to, Lsn after) -> Result<bool> {
    const SourceContext context{snapshot, partition, up_to, *work};
    ORRERY_TRY(const auto source, open_source(context, request, after, map, 1));
    ORRERY_TRY(const Step step, source->next());
    if (step == Step::End) return false;
    // Out of time, everything below is known not to match: that is a correct beginning too.
    const Lsn first = step == Step::Version ? source->version().position.lsn : source->reached();
    found.found = true;
    found.position = Lsn{first.value - 1};
    return true;
  };
  const auto settled = [&]() -> Result<TimePosition> {
    if (found.found && request.tombstones) {
      request.after = found.position;
      ORRERY_TRY(check_position(head, request));
    }
    return found;
  };

  if (head.merged_at > Lsn{}) {
    // Two logs lie one in the other up to there, each with its own times: one has to look at all.
    storage::Head merged = head;
    merged.lsn = head.merged_at;
    ORRERY_TRY(const bool matched, first_above(merged, Lsn{}));
    if (matched) return settled();
  }
  const SourceContext context{snapshot, partition, head, *work};
  ORRERY_TRY(Lsn after, last_not_newer(context, Family::Log, head.merged_at, time, map.get()));
  if (request.tombstones) {
    ORRERY_TRY(const Lsn deletes,
               last_not_newer(context, Family::History, head.merged_at, time, nullptr));
    after = std::min(after, deletes);
  }
  ORRERY_TRY(first_above(head, after));
  return settled();
}

}  // namespace orrery::feed
