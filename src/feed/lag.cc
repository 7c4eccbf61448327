// How much a reader has still to read, counted without making pages.
#include <algorithm>

#include "base/assert.h"
#include "feed/reader.h"
#include "feed/source.h"

namespace orrery::feed {

using storage::Family;

namespace {

/// An entry of `ids` is so many times cheaper to look at than a version of the log.
constexpr std::uint64_t kEntryAdvantage = 2;

void count(Lag& lag, std::uint64_t bytes, UnixSeconds ts) {
  ++lag.items;
  lag.bytes += bytes;
  lag.oldest_ts = std::min(lag.oldest_ts.value_or(ts), ts);
}

Error too_slow() {
  return Error(ErrorCode::Unavailable,
               "There is too much to read for it to be counted in time. Read on, and ask again.");
}

/// By the entries of the documents, which name sizes and times: no text is read.
Result<> count_entries(const SourceContext& context, const PageRequest& request, Lag& lag) {
  auto cursor = context.snapshot.cursor(Family::Ids, storage::partition_prefix(context.partition),
                                        storage::partition_end(context.partition),
                                        storage::Snapshot::Access::Scan);
  for (; cursor.valid(); cursor.next()) {
    context.spend(0);
    if (context.is_over()) return too_slow();
    const auto entry = storage::IdEntry::parse(cursor.value());
    ORRERY_ASSERT(entry.has_value());
    if (entry->position.lsn <= request.after) continue;
    if (storage::expired(entry->header.ts, entry->header.own_ttl, request.container.default_ttl,
                         request.now)) {
      continue;
    }
    count(lag, entry->text_size, entry->header.ts);
  }
  return cursor.status();
}

Result<> count_versions(Source& source, const PageRequest& request, WorkBudget& work, Lag& lag) {
  std::string instead;
  for (;;) {
    ORRERY_TRY(const Step step, source.next());
    if (step == Step::End) return {};
    if (step == Step::OutOfTime) return too_slow();
    const Version& version = source.version();
    if (request.filter != nullptr && !(request.mode == Mode::Latest && version.deletes())) {
      instead.clear();
      ORRERY_TRY(const auto decision,
                 request.filter->decide(version.current, version.previous, instead, work));
      if (decision == ItemFilter::Decision::Skip) continue;
    }
    count(lag, version.current.size(), version.ts);
  }
}

}  // namespace

Result<Lag> Reader::lag(const partition::Partition& partition, const PageRequest& request) {
  ORRERY_TRY(const auto snapshot, snapshot_of(partition));
  return lag(snapshot, partition.number(), request);
}

Result<Lag> Reader::lag(const storage::Snapshot& snapshot, PartitionNumber partition,
                        const PageRequest& request) {
  ORRERY_TRY(const auto head, head_in(snapshot, partition));
  ORRERY_TRY(check(head, request));
  Lag lag;
  lag.head = head.lsn;
  lag.lsns = head.lsns_above(request.after);
  if (request.after == head.lsn) return lag;
  const RequestWork work(request);
  const SourceContext context{snapshot, partition, head, *work};
  const bool latest_of_all = request.mode == Mode::Latest && !request.tombstones &&
                             request.scope.whole() && request.filter == nullptr;
  if (latest_of_all && lag.lsns > head.documents / kEntryAdvantage) {
    ORRERY_TRY(count_entries(context, request, lag));
    return lag;
  }
  std::shared_ptr<const LiveMap> map;
  if (request.mode == Mode::Latest) map = live_maps_.of(partition, head);
  ORRERY_TRY(const auto source, open_source(context, request, request.after, std::move(map),
                                            std::max<std::uint64_t>(head.documents, 1)));
  ORRERY_TRY(count_versions(*source, request, *work, lag));
  return lag;
}

}  // namespace orrery::feed
