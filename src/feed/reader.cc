#include "feed/reader.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/assert.h"
#include "feed/page_builder.h"
#include "feed/source.h"
#include "storage/heads.h"

namespace orrery::feed {

namespace {

/// The highest cost of a page without dead versions in its way: for itself, for each version that
/// it looks at, and for each byte of these. Beyond that a live map is wanted.
constexpr std::chrono::nanoseconds kPageCost{300'000};
constexpr std::chrono::nanoseconds kVersionCost{6'000};
constexpr std::chrono::nanoseconds kByteCost{2};
/// Items are reserved for with this beside their texts.
constexpr std::uint64_t kItemSurplus = 32;
constexpr std::size_t kWrappedSurplus = 160;

std::uint64_t average_size(const storage::Head& head) {
  return head.documents == 0 ? 1024 : head.text_bytes / head.documents + kItemSurplus;
}

/// How many items are likely to be taken.
std::uint64_t likely_items(const storage::Head& head, const PageRequest& request) {
  const std::uint64_t by_bytes = request.bytes_max / average_size(head) + 1;
  return request.count_max ? std::min<std::uint64_t>(*request.count_max, by_bytes) : by_bytes;
}

void reserve(std::string& text, const storage::Head& head, const PageRequest& request) {
  if (!request.scope.whole() || request.mode == Mode::AllVersions) return;
  const std::uint64_t lsns = head.lsns_above(request.after);
  const std::uint64_t per_lsn = head.documents / (head.lsns_above(Lsn{}) + 1) + 1;
  const std::uint64_t left = std::min(head.documents, lsns * per_lsn);
  const std::uint64_t each = average_size(head) + (request.wrapped ? kWrappedSurplus : 0);
  const std::uint64_t bytes =
      std::min<std::uint64_t>(std::min(likely_items(head, request), left) * each,
                              request.bytes_max) +
      each;
  text.reserve(text.size() + bytes);
}

}  // namespace

Result<storage::Head> head_in(const storage::Snapshot& snapshot, PartitionNumber partition) {
  ORRERY_TRY(auto head, storage::find_head(snapshot, partition));
  if (!head) return Error(ErrorCode::Unavailable, "the range has no head in the store");
  return std::move(*head);
}

std::optional<Page> Reader::caught_up(const partition::Partition& partition,
                                      const PageRequest& request) {
  // A published head has been committed: this is the answer as of a moment ago, at the latest.
  const Lsn head = partition.head();
  if (request.after != head) return std::nullopt;
  Page page;
  page.head = head;
  page.position = request.after;
  page.caught_up = true;
  return page;
}

Result<storage::Snapshot> Reader::snapshot_of(const partition::Partition& partition) const {
  ORRERY_TRY(auto snapshot, store_.snapshot());
  // A retired partition may be reclaimed at any time, unless it was still in use by then.
  ORRERY_TRY(partition.check_in_place());
  return snapshot;
}

Result<> Reader::check(const storage::Head& head, const PageRequest& request) {
  if (request.after > head.lsn) stats_.positions_ahead.fetch_add(1, std::memory_order_relaxed);
  return check_position(head, request);
}

Result<std::unique_ptr<Source>> Reader::open(const SourceContext& context,
                                             const PageRequest& request) {
  std::shared_ptr<const LiveMap> map;
  if (request.mode == Mode::Latest) map = live_maps_.of(context.partition, context.head);
  return open_source(context, request, request.after, std::move(map),
                     likely_items(context.head, request));
}

Result<Page> Reader::read(const partition::Partition& partition, const PageRequest& request,
                          std::string text) {
  ORRERY_TRY(const auto snapshot, snapshot_of(partition));
  return read(snapshot, partition.number(), request, std::move(text));
}

Result<Page> Reader::read(const storage::Snapshot& snapshot, PartitionNumber partition,
                          const PageRequest& request, std::string text) {
  // Head and contents are of one snapshot. A head that was read later would let the reader skip
  // what was committed in between.
  ORRERY_TRY(const auto head, head_in(snapshot, partition));
  ORRERY_TRY(check(head, request));
  stats_.pages.fetch_add(1, std::memory_order_relaxed);
  Page page;
  page.head = head.lsn;
  page.merged_at = head.merged_at;
  page.ended_life = ended_life_of(head, request.after);
  if (request.after == head.lsn) {
    page.text = std::move(text);
    page.position = request.after;
    page.caught_up = true;
    return page;
  }

  const auto begun = thread_cpu_time();
  reserve(text, head, request);
  const RequestWork work(request);
  const SourceContext context{snapshot, partition, head, *work};
  ORRERY_TRY(const auto source, open(context, request));
  PageBuilder builder(request, *work, std::move(text));
  ORRERY_TRY(Step step, source->next());
  Lsn shown = request.after;
  while (step == Step::Version) {
    const Lsn lsn = source->version().position.lsn;
    // Changes come in the order of their LSNs, each once, and none before it is committed.
    ORRERY_ASSERT(lsn > shown && lsn <= head.lsn);
    shown = lsn;
    builder.open_group(lsn);
    do {
      ORRERY_TRY(builder.add(source->version()));
      ORRERY_TRY(step, source->next());
    } while (step == Step::Version && source->version().position.lsn == lsn);
    const bool fits = builder.close_group();
    if (!fits) step = Step::Version;  // There is something left, whatever comes after it.
    if (!fits || builder.full()) break;
  }
  if (work->has_stopped()) return interruption(*work);

  page.caught_up = step == Step::End;
  if (!builder.empty()) {
    page.position = builder.last_lsn();
  } else if (page.caught_up) {
    page.position = head.lsn;
  } else {
    page.position = Lsn{std::max(request.after.value, source->reached().value - 1)};
  }
  page.began_at = began_at_of_next(head, request, page.position);
  if (page.began_at && page.caught_up) {
    // Nothing is left: from here on all deletes are kept.
    page.position = head.lsn;
    page.began_at.reset();
  }
  // A position moves forward, and never past the snapshot that was read.
  ORRERY_ASSERT(page.position >= request.after && page.position <= head.lsn);
  builder.finish(page);
  stats_.items.fetch_add(page.count, std::memory_order_relaxed);
  if (const std::size_t looked_at = source->looked_at();
      looked_at > 0 && request.filter == nullptr) {
    const auto usual =
        kPageCost + (kVersionCost + kByteCost * average_size(head)) * (looked_at + 1);
    if (thread_cpu_time() - begun > usual) live_maps_.note_slow(partition, head);
  }
  return page;
}

}  // namespace orrery::feed
